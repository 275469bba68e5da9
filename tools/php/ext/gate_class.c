/*
 * gate_class: the class Gate, over libshmlimit-gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

#include <errno.h>

#include "SAPI.h"
#include "zend_exceptions.h"

struct gate_object {
	zend_string *spec; /* NULL before the constructor */
	struct gate *gate; /* NULL before the first request */
	zval report;
	zend_object std;
};

static zend_object_handlers handlers;

static zend_always_inline struct gate_object *gate_of(zend_object *object)
{
	return (struct gate_object *)((char *)object - XtOffsetOf(struct gate_object, std));
}

/* ---- objects ---- */

static zend_object *gate_new(zend_class_entry *ce)
{
	struct gate_object *g = zend_object_alloc(sizeof(struct gate_object), ce);

	g->spec = NULL;
	g->gate = NULL;
	ZVAL_UNDEF(&g->report);
	zend_object_std_init(&g->std, ce);
	object_properties_init(&g->std, ce);
	g->std.handlers = &handlers;
	return &g->std;
}

static void gate_free(zend_object *object)
{
	struct gate_object *g = gate_of(object);

	if (g->gate != NULL)
		shared_release(&g->gate->shared);
	if (g->spec != NULL)
		zend_string_release(g->spec);
	zval_ptr_dtor(&g->report);
	zend_object_std_dtor(object);
}

/* For the collector of cycles: the report may refer to the gate. */
static HashTable *gate_get_gc(zend_object *object, zval **values, int *n)
{
	struct gate_object *g = gate_of(object);

	*values = &g->report;
	*n = 1;
	return zend_std_get_properties(object);
}

void shmlimit_gate_class(zend_class_entry *ce)
{
	ce->create_object = gate_new;
	memcpy(&handlers, &std_object_handlers, sizeof(handlers));
	handlers.offset = XtOffsetOf(struct gate_object, std);
	handlers.free_obj = gate_free;
	handlers.get_gc = gate_get_gc;
	handlers.clone_obj = NULL;
}

PHP_METHOD(Shmlimit_Gate, __construct)
{
	struct gate_object *g = gate_of(Z_OBJ_P(ZEND_THIS));
	zend_fcall_info fci = empty_fcall_info;
	zend_fcall_info_cache fcc = empty_fcall_info_cache;
	zend_string *segment, *backend = NULL, *more = NULL;
	bool dry_run = false, fail_open = false;
	smart_str spec = { 0 };
	zend_long status = 429;
	int error;

	ZEND_PARSE_PARAMETERS_START(1, 7)
		Z_PARAM_STR(segment)
		Z_PARAM_OPTIONAL
		Z_PARAM_BOOL(dry_run)
		Z_PARAM_LONG(status)
		Z_PARAM_BOOL(fail_open)
		Z_PARAM_STR_OR_NULL(backend)
		Z_PARAM_STR(more)
		Z_PARAM_FUNC_OR_NULL(fci, fcc)
	ZEND_PARSE_PARAMETERS_END();
	if (g->spec != NULL) {
		zend_throw_error(NULL, "Cannot construct a Gate twice");
		RETURN_THROWS();
	}
	error = shmlimit_check_names(shmlimit_name(segment), NULL);
	if (error != 0) {
		shmlimit_throw(error, segment, NULL);
		RETURN_THROWS();
	}
	spec_append(&spec, "segment", segment);
	smart_str_appends(&spec, fail_open || dry_run ? "fail=open status=" : "fail=closed status=");
	smart_str_append_long(&spec, status);
	smart_str_appends(&spec, dry_run ? " dry_run " : " ");
	if (backend != NULL)
		spec_append(&spec, "backend", backend);
	if (more != NULL) {
		smart_str_append(&spec, more);
		smart_str_appendc(&spec, '\n');
	}
	smart_str_0(&spec);
	if (!zend_hash_exists(&SHMLIMIT_G(gates), spec.s) &&
	    (strlen(ZSTR_VAL(spec.s)) != ZSTR_LEN(spec.s) || shmlimit_gate_check(ZSTR_VAL(spec.s), NULL) != 0)) {
		spec_throw(ZSTR_VAL(spec.s), -EINVAL);
		smart_str_free(&spec);
		RETURN_THROWS();
	}
	g->spec = spec.s;
	if (ZEND_FCI_INITIALIZED(fci))
		ZVAL_COPY(&g->report, &fci.function_name);
}

/* $_SERVER, or NULL. */
static HashTable *server_array(void)
{
	zval *server;

	zend_is_auto_global(ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
	server = zend_hash_find_known_hash(&EG(symbol_table), ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
	if (server == NULL)
		return NULL;
	ZVAL_DEREF(server);
	return Z_TYPE_P(server) == IS_ARRAY ? Z_ARRVAL_P(server) : NULL;
}

PHP_METHOD(Shmlimit_Gate, client)
{
	char key[SHMLIMIT_KEY_IP_MAX];
	HashTable *server;
	zval *address = NULL;
	int length;

	ZEND_PARSE_PARAMETERS_NONE();
	server = server_array();
	if (server != NULL)
		address = zend_hash_str_find_deref(server, ZEND_STRL("REMOTE_ADDR"));
	if (address == NULL || Z_TYPE_P(address) != IS_STRING)
		RETURN_EMPTY_STRING();
	length = shmlimit_key_ip_text(shmlimit_name(Z_STR_P(address)), 0, 32, 64, key, sizeof(key));
	if (length < 0)
		RETURN_STR_COPY(Z_STR_P(address));
	RETURN_STRINGL(key, (size_t)length);
}

/* ---- requests ---- */

/* Unless `places` is NULL, it becomes the places that the request holds. Returns false after throwing. */
static bool ask(struct gate_object *g, zval *limits, uint32_t n, struct shmlimit_gate_answer *answer,
                zend_string **places)
{
	struct shmlimit_gate_held held = { .struct_size = sizeof(held) };
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	struct gate *gate = g->gate;
	uint32_t count = 0;
	int error;

	if (g->spec == NULL) {
		zend_throw_error(NULL, "The Gate was not constructed");
		return false;
	}
	if (gate == NULL)
		gate = g->gate = gate_find(g->spec);
	for (uint32_t i = 0; i < n; i++) {
		zend_object *limit = Z_OBJ(limits[i]);
		zval *key = LIMIT_KEY(limit), *estimate = LIMIT_ESTIMATE(limit);
		zend_long cost = Z_LVAL_P(Z_TYPE_P(estimate) == IS_LONG ? estimate : LIMIT_COST(limit));
		struct known *known;
		double share = 0;

		if (Z_TYPE_P(key) != IS_STRING)
			continue;
		if (Z_TYPE_P(LIMIT_SHARE(limit)) == IS_DOUBLE)
			share = round(Z_DVAL_P(LIMIT_SHARE(limit)) * SHMLIMIT_SHARE_ONE);
		if (cost < 1 || count == SHMLIMIT_REQUESTS_MAX || !(share >= 0 && share <= 1e9) ||
		    (share < 1 && Z_TYPE_P(LIMIT_SHARE(limit)) == IS_DOUBLE)) {
			shmlimit_throw(-EINVAL, Z_STR_P(LIMIT_RULE(limit)), NULL);
			return false;
		}
		known = gate_know(gate, limit);
		if (known == NULL)
			return false;
		/* No client escapes its limit by an empty key: that is one, too. */
		keys[count++] = (struct shmlimit_gate_key){
			.limit = known->place,
			.length = Z_STRLEN_P(key) == 0           ? 1
			          : Z_STRLEN_P(key) > UINT32_MAX ? UINT32_MAX
			                                         : (uint32_t)Z_STRLEN_P(key),
			.bytes = Z_STRVAL_P(key),
			.cost = (uint64_t)cost,
			.share = (uint32_t)share,
		};
		if (Z_TYPE_P(LIMIT_LIMIT(limit)) == IS_STRING) {
			zend_string *rate = Z_STR_P(LIMIT_LIMIT(limit));

			keys[count - 1].rate = ZSTR_VAL(rate);
			keys[count - 1].rate_length = (uint32_t)MIN(ZSTR_LEN(rate), UINT32_MAX);
		}
	}
	if (count == 0) {
		*answer = (struct shmlimit_gate_answer){ .outcome = SHMLIMIT_GATE_UNLIMITED, .remaining = UINT64_MAX };
		return true;
	}
	error = places == NULL ? shmlimit_gate_ask(gate->gate, keys, count, answer)
	                       : shmlimit_gate_enter(gate->gate, keys, count, answer, &held);
	if (error < 0) {
		shmlimit_throw_words(error, "gate", shmlimit_strerror(error));
		return false;
	}
	if (UNEXPECTED(__atomic_load_n(&gate->lines, __ATOMIC_RELAXED) != NULL))
		lines_report(gate, &g->report);
	if (EG(exception)) {
		(void)shmlimit_gate_leave(gate->gate, keys, count, &held);
		return false;
	}
	if (places != NULL)
		*places = places_pack(&held, keys, count);
	return true;
}

#define ANSWER(name) \
	char name##_buffer[SHMLIMIT_GATE_BUFFER]; \
	struct shmlimit_gate_answer name; \
	name.struct_size = sizeof(name); \
	name.buffer_size = sizeof(name##_buffer); \
	name.buffer = name##_buffer

/* Returns false after throwing. `first` is the number of the first one among the arguments. */
static bool are_limits(const zval *limits, uint32_t n, uint32_t first)
{
	for (uint32_t i = 0; i < n; i++)
		if (Z_TYPE(limits[i]) != IS_OBJECT || Z_OBJCE(limits[i]) != shmlimit_limit_ce ||
		    Z_TYPE_P(LIMIT_RULE(Z_OBJ(limits[i]))) != IS_STRING) {
			zend_argument_type_error(first + i, "must be of type Shmlimit\\Limit, %s given",
			                         zend_zval_type_name(&limits[i]));
			return false;
		}
	return true;
}

/* Returns whether there was an answer; else it has thrown. */
static bool parse_and_ask(INTERNAL_FUNCTION_PARAMETERS, struct shmlimit_gate_answer *answer, zend_string **places)
{
	zval *limits = NULL;
	uint32_t n = 0;

	ZEND_PARSE_PARAMETERS_START(0, -1)
		Z_PARAM_VARIADIC('*', limits, n)
		ZEND_PARSE_PARAMETERS_END_EX(return false);
		(void)return_value;
		return are_limits(limits, n, 1) && ask(gate_of(Z_OBJ_P(ZEND_THIS)), limits, n, answer, places);
}

static void ask_and_return(INTERNAL_FUNCTION_PARAMETERS, bool enters)
{
	zend_string *places = NULL;
	zval fields;
	ANSWER(answer);

	if (!parse_and_ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, &answer, enters ? &places : NULL))
		RETURN_THROWS();
	shmlimit_fields_array(&fields, answer.fields, answer.field_count);
	shmlimit_return_answer(return_value, &answer, &fields, places);
}

PHP_METHOD(Shmlimit_Gate, ask)
{
	ask_and_return(INTERNAL_FUNCTION_PARAM_PASSTHRU, false);
}

PHP_METHOD(Shmlimit_Gate, enter)
{
	ask_and_return(INTERNAL_FUNCTION_PARAM_PASSTHRU, true);
}

/* ---- proxies ---- */

/* That proxies write. */
static const struct {
	const char *name, *field;
} forwarded_fields[] = {
	{ "HTTP_X_FORWARDED_FOR", "X-Forwarded-For" },
	{ "HTTP_FORWARDED", "Forwarded" },
	{ "HTTP_X_REAL_IP", "X-Real-IP" },
	{ "HTTP_CF_CONNECTING_IP", "CF-Connecting-IP" },
};
#define FORWARDED_FIELDS (sizeof(forwarded_fields) / sizeof(forwarded_fields[0]))

/* Is the address the key of a limit, as text or as client() has it? */
static bool is_key(const zend_string *address, const zval *limits, uint32_t n)
{
	char net[SHMLIMIT_KEY_IP_MAX];
	int length = shmlimit_key_ip_text(ZSTR_VAL(address), 0, 32, 64, net, sizeof(net));

	for (uint32_t i = 0; i < n; i++) {
		const zval *key = LIMIT_KEY(Z_OBJ(limits[i]));

		if (Z_TYPE_P(key) != IS_STRING)
			continue;
		if (zend_string_equals(Z_STR_P(key), address) || (length > 0 && Z_STRLEN_P(key) == (size_t)length &&
		                                                  memcmp(Z_STRVAL_P(key), net, Z_STRLEN_P(key)) == 0))
			return true;
	}
	return false;
}

/* Is there a gate? A Gate that was not asked makes one, which does not open the segment. */
static bool has_gate(struct gate_object *g, const zend_string *peer, const zval *limits, uint32_t n)
{
	if (g->gate == NULL && g->spec != NULL)
		g->gate = gate_find(g->spec);
	return g->gate != NULL &&
	       (g->gate->gate != NULL || (is_key(peer, limits, n) && gate_know(g->gate, Z_OBJ(limits[0])) != NULL));
}

/* Where the field has the peer's address, the web server has put that in the place of a proxy's. */
static void look(struct gate_object *g, const HashTable *server, const zval *limits, uint32_t n)
{
	zval *peer = zend_hash_str_find_deref((HashTable *)server, ZEND_STRL("REMOTE_ADDR")), *value = NULL;
	struct shmlimit_gate_key key = { 0 };
	size_t at = 0;

	if (peer == NULL || Z_TYPE_P(peer) != IS_STRING || !has_gate(g, Z_STR_P(peer), limits, n))
		return;
	key.bytes = Z_STRVAL_P(peer);
	key.length = (uint32_t)Z_STRLEN_P(peer);
	if (shmlimit_gate_forwarded(g->gate->gate, &key, 1, Z_STRVAL_P(peer), Z_STRLEN_P(peer), NULL, NULL) != 1)
		return;
	for (; at < FORWARDED_FIELDS && value == NULL; at++)
		value = zend_hash_str_find_deref((HashTable *)server, forwarded_fields[at].name,
		                                 strlen(forwarded_fields[at].name));
	if (value == NULL || Z_TYPE_P(value) != IS_STRING || !is_key(Z_STR_P(peer), limits, n) ||
	    strstr(Z_STRVAL_P(value), Z_STRVAL_P(peer)) != NULL)
		return;
	(void)shmlimit_gate_forwarded(
		g->gate->gate, &key, 1, Z_STRVAL_P(peer), Z_STRLEN_P(peer), forwarded_fields[at - 1].field,
		"nginx's set_real_ip_from, Apache's RemoteIPInternalProxy or a framework's trusted "
		"proxies name proxies");
	lines_report(g->gate, &g->report);
}

PHP_METHOD(Shmlimit_Gate, forwarded)
{
	zval *limits = NULL;
	HashTable *server;
	uint32_t n = 0;

	ZEND_PARSE_PARAMETERS_START(1, -1)
		Z_PARAM_ARRAY_HT(server)
		Z_PARAM_VARIADIC('*', limits, n)
	ZEND_PARSE_PARAMETERS_END();
	if (are_limits(limits, n, 2))
		look(gate_of(Z_OBJ_P(ZEND_THIS)), server, limits, n);
}

/* Throws if the error is one. */
static void throw_error(int error)
{
	if (error != 0)
		shmlimit_throw_words(error, "gate", shmlimit_strerror(error));
}

PHP_METHOD(Shmlimit_Gate, leave)
{
	struct gate_object *g = gate_of(Z_OBJ_P(ZEND_THIS));
	zend_string *places;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR_OR_NULL(places)
	ZEND_PARSE_PARAMETERS_END();
	if (places == NULL)
		return;
	throw_error(g->gate == NULL ? -EINVAL : places_leave(g->gate, places));
}

PHP_METHOD(Shmlimit_Gate, settle)
{
	struct gate_object *g = gate_of(Z_OBJ_P(ZEND_THIS));
	zend_string *places;
	HashTable *used;

	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_STR_OR_NULL(places)
		Z_PARAM_ARRAY_HT(used)
	ZEND_PARSE_PARAMETERS_END();
	if (places == NULL)
		RETURN_NULL();
	zend_string_addref(places);
	throw_error(g->gate == NULL ? -EINVAL : places_settle(g->gate, used, &places));
	RETURN_STR(places);
}

PHP_METHOD(Shmlimit_Gate, used)
{
	struct gate_object *g = gate_of(Z_OBJ_P(ZEND_THIS));
	HashTable *used;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(used)
	ZEND_PARSE_PARAMETERS_END();
	throw_error(g->gate == NULL ? 0 : places_settle_kept(g->gate, used));
}

static void add_header(const char *name, const char *value)
{
	sapi_header_line line = { .line_len = 0 };
	char *text;

	line.line_len = (size_t)spprintf(&text, 0, "%s: %s", name, value);
	line.line = text;
	sapi_header_op(SAPI_HEADER_REPLACE, &line);
	efree(text);
}

PHP_METHOD(Shmlimit_Gate, enforce)
{
	zend_string *name, *places = NULL;
	zval fields, *value;
	HashTable *server;
	ANSWER(answer);

	if (!parse_and_ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, &answer, &places))
		RETURN_THROWS();
	if (places != NULL)
		places_keep(gate_of(Z_OBJ_P(ZEND_THIS))->gate, places);
	server = server_array();
	if (server != NULL)
		look(gate_of(Z_OBJ_P(ZEND_THIS)), server, ZEND_CALL_ARG(execute_data, 1), ZEND_NUM_ARGS());
	if (EG(exception))
		RETURN_THROWS();
	shmlimit_fields_array(&fields, answer.fields, answer.field_count);
	ZEND_HASH_FOREACH_STR_KEY_VAL(Z_ARRVAL(fields), name, value)
	{
		add_header(ZSTR_VAL(name), Z_STRVAL_P(value));
	}
	ZEND_HASH_FOREACH_END();
	if (answer.status == 0) {
		shmlimit_return_answer(return_value, &answer, &fields, NULL);
		value = OBJ_PROP_NUM(Z_OBJ_P(return_value), 0);
		name = zend_string_copy(Z_STR_P(value));
		zval_ptr_dtor(return_value);
		RETURN_STR(name);
	}
	zval_ptr_dtor(&fields);
	SG(sapi_headers).http_response_code = (int)answer.status;
	add_header("Content-Type", "text/plain");
	if (answer.outcome == SHMLIMIT_GATE_FAILED)
		php_write((void *)ZEND_STRL("the limiter is out of order\n"));
	else
		php_write((void *)ZEND_STRL("too many requests\n"));
	zend_throw_unwind_exit();
}
