/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: f88af9b1e4c3fb4d713e3cdd91a5d0c3d41ece12 */

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Error___construct, 0, 0, 3)
	ZEND_ARG_TYPE_INFO(0, subject, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, words, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, errno, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Result___construct, 0, 0, 6)
	ZEND_ARG_TYPE_INFO(0, allowed, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, limit, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, remaining, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, waitNs, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, retryAfterNs, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, resetAfterNs, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Count___construct, 0, 0, 4)
	ZEND_ARG_TYPE_INFO(0, allowed, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, count, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, applied, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, ttlNs, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Limit___construct, 0, 0, 2)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, cost, IS_LONG, 0, "1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, rate, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Answer___construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, status, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, refusal, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, fields, IS_ARRAY, 0, "[]")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, remaining, IS_LONG, 0, "PHP_INT_MAX")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, retryAfterNs, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, places, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Limiter___construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, segment, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, readOnly, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, owner, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_create, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, segment, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, slots, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, mode, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, group, IS_LONG, 0, "-1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, windowMax, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_keyIp, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, address, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, prefixV4, IS_LONG, 0, "32")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, prefixV6, IS_LONG, 0, "64")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, nth, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_setRule, 0, 4, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, capacity, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, refill, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, periodNs, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, algorithm, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, maxWaitNs, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Shmlimit_Limiter_take, 0, 2, Shmlimit\\Result, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, cost, IS_LONG, 0, "1")
ZEND_END_ARG_INFO()

#define arginfo_class_Shmlimit_Limiter_peek arginfo_class_Shmlimit_Limiter_take

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Shmlimit_Limiter_reserve, 0, 2, Shmlimit\\Result, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, cost, IS_LONG, 0, "1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, maxWaitNs, IS_LONG, 0, "PHP_INT_MAX")
ZEND_END_ARG_INFO()

#define arginfo_class_Shmlimit_Limiter_acquire arginfo_class_Shmlimit_Limiter_reserve

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Shmlimit_Limiter_refund, 0, 2, Shmlimit\\Result, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tokens, IS_LONG, 0, "1")
ZEND_END_ARG_INFO()

#define arginfo_class_Shmlimit_Limiter_charge arginfo_class_Shmlimit_Limiter_refund

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Shmlimit_Limiter_count, 0, 2, Shmlimit\\Count, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, n, IS_LONG, 0, "1")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttlNs, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, bound, IS_LONG, 0, "PHP_INT_MAX")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, flags, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_takeAll, 0, 1, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, limits, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_throttle, 0, 4, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, capacity, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, count, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, periodS, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, quantity, IS_LONG, 0, "1")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_reset, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, rule, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, key, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_fields, 0, 2, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, rule, IS_STRING, 0)
	ZEND_ARG_OBJ_INFO(0, result, Shmlimit\\Result, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_gone, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Limiter_owner, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Shmlimit_Gate___construct, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, segment, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, dryRun, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "429")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, failOpen, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, backend, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, spec, IS_STRING, 0, "\'\'")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, report, IS_CALLABLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Gate_client, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Gate_enforce, 0, 0, IS_STRING, 0)
	ZEND_ARG_VARIADIC_OBJ_INFO(0, limits, Shmlimit\\Limit, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Shmlimit_Gate_ask, 0, 0, Shmlimit\\Answer, 0)
	ZEND_ARG_VARIADIC_OBJ_INFO(0, limits, Shmlimit\\Limit, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_Shmlimit_Gate_enter arginfo_class_Shmlimit_Gate_ask

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Shmlimit_Gate_leave, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, places, IS_STRING, 1)
ZEND_END_ARG_INFO()


ZEND_METHOD(Shmlimit_Error, __construct);
ZEND_METHOD(Shmlimit_Result, __construct);
ZEND_METHOD(Shmlimit_Count, __construct);
ZEND_METHOD(Shmlimit_Limit, __construct);
ZEND_METHOD(Shmlimit_Answer, __construct);
ZEND_METHOD(Shmlimit_Limiter, __construct);
ZEND_METHOD(Shmlimit_Limiter, create);
ZEND_METHOD(Shmlimit_Limiter, keyIp);
ZEND_METHOD(Shmlimit_Limiter, setRule);
ZEND_METHOD(Shmlimit_Limiter, take);
ZEND_METHOD(Shmlimit_Limiter, peek);
ZEND_METHOD(Shmlimit_Limiter, reserve);
ZEND_METHOD(Shmlimit_Limiter, acquire);
ZEND_METHOD(Shmlimit_Limiter, refund);
ZEND_METHOD(Shmlimit_Limiter, charge);
ZEND_METHOD(Shmlimit_Limiter, count);
ZEND_METHOD(Shmlimit_Limiter, takeAll);
ZEND_METHOD(Shmlimit_Limiter, throttle);
ZEND_METHOD(Shmlimit_Limiter, reset);
ZEND_METHOD(Shmlimit_Limiter, fields);
ZEND_METHOD(Shmlimit_Limiter, gone);
ZEND_METHOD(Shmlimit_Limiter, owner);
ZEND_METHOD(Shmlimit_Gate, __construct);
ZEND_METHOD(Shmlimit_Gate, client);
ZEND_METHOD(Shmlimit_Gate, enforce);
ZEND_METHOD(Shmlimit_Gate, ask);
ZEND_METHOD(Shmlimit_Gate, enter);
ZEND_METHOD(Shmlimit_Gate, leave);


static const zend_function_entry class_Shmlimit_Error_methods[] = {
	ZEND_ME(Shmlimit_Error, __construct, arginfo_class_Shmlimit_Error___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Result_methods[] = {
	ZEND_ME(Shmlimit_Result, __construct, arginfo_class_Shmlimit_Result___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Count_methods[] = {
	ZEND_ME(Shmlimit_Count, __construct, arginfo_class_Shmlimit_Count___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Limit_methods[] = {
	ZEND_ME(Shmlimit_Limit, __construct, arginfo_class_Shmlimit_Limit___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Answer_methods[] = {
	ZEND_ME(Shmlimit_Answer, __construct, arginfo_class_Shmlimit_Answer___construct, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Limiter_methods[] = {
	ZEND_ME(Shmlimit_Limiter, __construct, arginfo_class_Shmlimit_Limiter___construct, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, create, arginfo_class_Shmlimit_Limiter_create, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Shmlimit_Limiter, keyIp, arginfo_class_Shmlimit_Limiter_keyIp, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Shmlimit_Limiter, setRule, arginfo_class_Shmlimit_Limiter_setRule, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, take, arginfo_class_Shmlimit_Limiter_take, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, peek, arginfo_class_Shmlimit_Limiter_peek, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, reserve, arginfo_class_Shmlimit_Limiter_reserve, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, acquire, arginfo_class_Shmlimit_Limiter_acquire, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, refund, arginfo_class_Shmlimit_Limiter_refund, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, charge, arginfo_class_Shmlimit_Limiter_charge, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, count, arginfo_class_Shmlimit_Limiter_count, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, takeAll, arginfo_class_Shmlimit_Limiter_takeAll, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, throttle, arginfo_class_Shmlimit_Limiter_throttle, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, reset, arginfo_class_Shmlimit_Limiter_reset, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, fields, arginfo_class_Shmlimit_Limiter_fields, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, gone, arginfo_class_Shmlimit_Limiter_gone, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Limiter, owner, arginfo_class_Shmlimit_Limiter_owner, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Shmlimit_Gate_methods[] = {
	ZEND_ME(Shmlimit_Gate, __construct, arginfo_class_Shmlimit_Gate___construct, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Gate, client, arginfo_class_Shmlimit_Gate_client, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Shmlimit_Gate, enforce, arginfo_class_Shmlimit_Gate_enforce, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Gate, ask, arginfo_class_Shmlimit_Gate_ask, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Gate, enter, arginfo_class_Shmlimit_Gate_enter, ZEND_ACC_PUBLIC)
	ZEND_ME(Shmlimit_Gate, leave, arginfo_class_Shmlimit_Gate_leave, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static zend_class_entry *register_class_Shmlimit_Error(zend_class_entry *class_entry_RuntimeException)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Error", class_Shmlimit_Error_methods);
	class_entry = zend_register_internal_class_ex(&ce, class_entry_RuntimeException);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_subject_default_value;
	ZVAL_UNDEF(&property_subject_default_value);
	zend_string *property_subject_name = zend_string_init("subject", sizeof("subject") - 1, 1);
	zend_declare_typed_property(class_entry, property_subject_name, &property_subject_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_subject_name);

	zval property_words_default_value;
	ZVAL_UNDEF(&property_words_default_value);
	zend_string *property_words_name = zend_string_init("words", sizeof("words") - 1, 1);
	zend_declare_typed_property(class_entry, property_words_name, &property_words_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_words_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Result(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Result", class_Shmlimit_Result_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_allowed_default_value;
	ZVAL_UNDEF(&property_allowed_default_value);
	zend_string *property_allowed_name = zend_string_init("allowed", sizeof("allowed") - 1, 1);
	zend_declare_typed_property(class_entry, property_allowed_name, &property_allowed_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_allowed_name);

	zval property_limit_default_value;
	ZVAL_UNDEF(&property_limit_default_value);
	zend_string *property_limit_name = zend_string_init("limit", sizeof("limit") - 1, 1);
	zend_declare_typed_property(class_entry, property_limit_name, &property_limit_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_limit_name);

	zval property_remaining_default_value;
	ZVAL_UNDEF(&property_remaining_default_value);
	zend_string *property_remaining_name = zend_string_init("remaining", sizeof("remaining") - 1, 1);
	zend_declare_typed_property(class_entry, property_remaining_name, &property_remaining_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_remaining_name);

	zval property_waitNs_default_value;
	ZVAL_UNDEF(&property_waitNs_default_value);
	zend_string *property_waitNs_name = zend_string_init("waitNs", sizeof("waitNs") - 1, 1);
	zend_declare_typed_property(class_entry, property_waitNs_name, &property_waitNs_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_waitNs_name);

	zval property_retryAfterNs_default_value;
	ZVAL_UNDEF(&property_retryAfterNs_default_value);
	zend_string *property_retryAfterNs_name = zend_string_init("retryAfterNs", sizeof("retryAfterNs") - 1, 1);
	zend_declare_typed_property(class_entry, property_retryAfterNs_name, &property_retryAfterNs_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_retryAfterNs_name);

	zval property_resetAfterNs_default_value;
	ZVAL_UNDEF(&property_resetAfterNs_default_value);
	zend_string *property_resetAfterNs_name = zend_string_init("resetAfterNs", sizeof("resetAfterNs") - 1, 1);
	zend_declare_typed_property(class_entry, property_resetAfterNs_name, &property_resetAfterNs_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_resetAfterNs_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Count(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Count", class_Shmlimit_Count_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_allowed_default_value;
	ZVAL_UNDEF(&property_allowed_default_value);
	zend_string *property_allowed_name = zend_string_init("allowed", sizeof("allowed") - 1, 1);
	zend_declare_typed_property(class_entry, property_allowed_name, &property_allowed_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_allowed_name);

	zval property_count_default_value;
	ZVAL_UNDEF(&property_count_default_value);
	zend_string *property_count_name = zend_string_init("count", sizeof("count") - 1, 1);
	zend_declare_typed_property(class_entry, property_count_name, &property_count_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_count_name);

	zval property_applied_default_value;
	ZVAL_UNDEF(&property_applied_default_value);
	zend_string *property_applied_name = zend_string_init("applied", sizeof("applied") - 1, 1);
	zend_declare_typed_property(class_entry, property_applied_name, &property_applied_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_applied_name);

	zval property_ttlNs_default_value;
	ZVAL_UNDEF(&property_ttlNs_default_value);
	zend_string *property_ttlNs_name = zend_string_init("ttlNs", sizeof("ttlNs") - 1, 1);
	zend_declare_typed_property(class_entry, property_ttlNs_name, &property_ttlNs_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_ttlNs_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Limit(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Limit", class_Shmlimit_Limit_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_rule_default_value;
	ZVAL_UNDEF(&property_rule_default_value);
	zend_string *property_rule_name = zend_string_init("rule", sizeof("rule") - 1, 1);
	zend_declare_typed_property(class_entry, property_rule_name, &property_rule_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_rule_name);

	zval property_key_default_value;
	ZVAL_UNDEF(&property_key_default_value);
	zend_string *property_key_name = zend_string_init("key", sizeof("key") - 1, 1);
	zend_declare_typed_property(class_entry, property_key_name, &property_key_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_key_name);

	zval property_cost_default_value;
	ZVAL_UNDEF(&property_cost_default_value);
	zend_string *property_cost_name = zend_string_init("cost", sizeof("cost") - 1, 1);
	zend_declare_typed_property(class_entry, property_cost_name, &property_cost_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_cost_name);

	zval property_rate_default_value;
	ZVAL_UNDEF(&property_rate_default_value);
	zend_string *property_rate_name = zend_string_init("rate", sizeof("rate") - 1, 1);
	zend_declare_typed_property(class_entry, property_rate_name, &property_rate_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_rate_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Answer(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Answer", class_Shmlimit_Answer_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	zval property_status_default_value;
	ZVAL_UNDEF(&property_status_default_value);
	zend_string *property_status_name = zend_string_init("status", sizeof("status") - 1, 1);
	zend_declare_typed_property(class_entry, property_status_name, &property_status_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_status_name);

	zval property_refusal_default_value;
	ZVAL_UNDEF(&property_refusal_default_value);
	zend_string *property_refusal_name = zend_string_init("refusal", sizeof("refusal") - 1, 1);
	zend_declare_typed_property(class_entry, property_refusal_name, &property_refusal_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_refusal_name);

	zval property_fields_default_value;
	ZVAL_UNDEF(&property_fields_default_value);
	zend_string *property_fields_name = zend_string_init("fields", sizeof("fields") - 1, 1);
	zend_declare_typed_property(class_entry, property_fields_name, &property_fields_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_fields_name);

	zval property_remaining_default_value;
	ZVAL_UNDEF(&property_remaining_default_value);
	zend_string *property_remaining_name = zend_string_init("remaining", sizeof("remaining") - 1, 1);
	zend_declare_typed_property(class_entry, property_remaining_name, &property_remaining_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_remaining_name);

	zval property_retryAfterNs_default_value;
	ZVAL_UNDEF(&property_retryAfterNs_default_value);
	zend_string *property_retryAfterNs_name = zend_string_init("retryAfterNs", sizeof("retryAfterNs") - 1, 1);
	zend_declare_typed_property(class_entry, property_retryAfterNs_name, &property_retryAfterNs_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_retryAfterNs_name);

	zval property_places_default_value;
	ZVAL_UNDEF(&property_places_default_value);
	zend_string *property_places_name = zend_string_init("places", sizeof("places") - 1, 1);
	zend_declare_typed_property(class_entry, property_places_name, &property_places_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING|MAY_BE_NULL));
	zend_string_release(property_places_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Limiter(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Limiter", class_Shmlimit_Limiter_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NOT_SERIALIZABLE;

	zval const_NEVER_value;
	ZVAL_LONG(&const_NEVER_value, ZEND_LONG_MAX);
	zend_string *const_NEVER_name = zend_string_init_interned("NEVER", sizeof("NEVER") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_NEVER_name, &const_NEVER_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_NEVER_name);

	zval const_FUNNEL_value;
	ZVAL_LONG(&const_FUNNEL_value, 0);
	zend_string *const_FUNNEL_name = zend_string_init_interned("FUNNEL", sizeof("FUNNEL") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_FUNNEL_name, &const_FUNNEL_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_FUNNEL_name);

	zval const_WINDOW_value;
	ZVAL_LONG(&const_WINDOW_value, 2);
	zend_string *const_WINDOW_name = zend_string_init_interned("WINDOW", sizeof("WINDOW") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_WINDOW_name, &const_WINDOW_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_WINDOW_name);

	zval const_COUNTER_value;
	ZVAL_LONG(&const_COUNTER_value, 4);
	zend_string *const_COUNTER_name = zend_string_init_interned("COUNTER", sizeof("COUNTER") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_COUNTER_name, &const_COUNTER_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_COUNTER_name);

	zval const_SATURATE_value;
	ZVAL_LONG(&const_SATURATE_value, 0x10000);
	zend_string *const_SATURATE_name = zend_string_init_interned("SATURATE", sizeof("SATURATE") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_SATURATE_name, &const_SATURATE_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_SATURATE_name);

	zval const_RESTART_value;
	ZVAL_LONG(&const_RESTART_value, 0x20000);
	zend_string *const_RESTART_name = zend_string_init_interned("RESTART", sizeof("RESTART") - 1, 1);
	zend_declare_class_constant_ex(class_entry, const_RESTART_name, &const_RESTART_value, ZEND_ACC_PUBLIC, NULL);
	zend_string_release(const_RESTART_name);

	zval property_segment_default_value;
	ZVAL_UNDEF(&property_segment_default_value);
	zend_string *property_segment_name = zend_string_init("segment", sizeof("segment") - 1, 1);
	zend_declare_typed_property(class_entry, property_segment_name, &property_segment_default_value, ZEND_ACC_PUBLIC|ZEND_ACC_READONLY, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_segment_name);

	return class_entry;
}

static zend_class_entry *register_class_Shmlimit_Gate(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Shmlimit", "Gate", class_Shmlimit_Gate_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NOT_SERIALIZABLE;

	return class_entry;
}
