/*
 * gate: the class Gate, over libshmlimit-gate. Gates of one configuration share one C gate, which stays open from request
 * to request. PHP passes the limits of a request with the request: a limit that the gate does not know yet makes a new gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>

#include "php_shmlimit.h"
#include "SAPI.h"
#include "zend_exceptions.h"
#include "zend_smart_str.h"

/* What is to be reported. Any thread adds a line, such as that of agent=thread, and a call on the gate takes them all. */
struct line {
	struct line *next; /* the line before this one */
	char text[];
};

/* The spec's limit of a rule. */
struct known {
	uint32_t place;
	zend_string *rate; /* NULL: none */
};

struct gate {
	struct shared shared;
	zend_string *base;          /* the spec before its first rule= */
	HashTable known;            /* struct known, by the rule's name */
	struct shmlimit_gate *gate; /* NULL before the first limit */
	struct line *lines;         /* the latest */
};

/* Places to be left when the request ends. */
struct kept {
	struct kept *next;
	struct gate *gate;
	zend_string *places;
};

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

/* ---- specs ---- */

static void append_word(smart_str *spec, const char *word, const zend_string *value)
{
	smart_str_appends(spec, word);
	smart_str_appends(spec, "=\"");
	if (EXPECTED(strpbrk(ZSTR_VAL(value), "\"\\") == NULL)) {
		smart_str_append(spec, value);
	} else {
		for (size_t i = 0; i < ZSTR_LEN(value); i++) {
			if (ZSTR_VAL(value)[i] == '"' || ZSTR_VAL(value)[i] == '\\')
				smart_str_appendc(spec, '\\');
			smart_str_appendc(spec, ZSTR_VAL(value)[i]);
		}
	}
	smart_str_appends(spec, "\" ");
}

static void throw_wrong(const char *spec, int error)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	char *word;

	/* Right as far as C reads it: there is a NUL in it, or no memory. */
	if (shmlimit_gate_check(spec, &wrong) == 0) {
		shmlimit_throw_words(error, "gate", shmlimit_strerror(error));
		return;
	}
	spprintf(&word, 0, "gate: %.*s", (int)wrong.length, spec + wrong.offset);
	shmlimit_throw_words(-EINVAL, word, wrong.text);
	efree(word);
}

/* ---- lines ---- */

static void lines_drop(struct line *line)
{
	while (line != NULL) {
		struct line *next = line->next;

		free(line);
		line = next;
	}
}

/* All lines, the first one first. ORDER acquires the lines from note(). */
static struct line *lines_take(struct line **lines)
{
	struct line *latest = __atomic_exchange_n(lines, NULL, __ATOMIC_ACQUIRE), *first = NULL;

	while (latest != NULL) {
		struct line *next = latest->next;

		latest->next = first;
		first = latest;
		latest = next;
	}
	return first;
}

/* ---- gates ---- */

static void known_drop(zval *entry)
{
	struct known *known = Z_PTR_P(entry);

	if (known->rate != NULL)
		zend_string_release(known->rate);
	pefree(known, 1);
}

static void gate_destroy(struct shared *shared)
{
	struct gate *gate = (struct gate *)shared;

	if (gate->gate != NULL) {
		shmlimit_gate_report(gate->gate, NULL, NULL);
		shmlimit_gate_close(gate->gate);
	}
	zend_hash_destroy(&gate->known);
	lines_drop(gate->lines);
	zend_string_release(gate->base);
	pefree(gate, 1);
}

static struct gate *gate_find(const zend_string *spec)
{
	struct gate *gate = (struct gate *)shared_find(&SHMLIMIT_G(gates), spec);

	if (gate != NULL)
		return gate;
	gate = pecalloc(1, sizeof(*gate), 1);
	gate->shared.destroy = gate_destroy;
	gate->base = zend_string_init(ZSTR_VAL(spec), ZSTR_LEN(spec), 1);
	zend_hash_init(&gate->known, 8, NULL, known_drop, 1);
	shared_add(&SHMLIMIT_G(gates), spec, &gate->shared);
	return gate;
}

/*
 * Lines are passed on when the call is over: PHP code could leave it by a jump. ORDER releases the line to lines_take(). Without
 * memory there is no line.
 */
static void note(void *arg, int bad, const char *text)
{
	struct gate *gate = arg;
	size_t size = strlen(text) + 1;
	struct line *line = malloc(sizeof(*line) + size);

	(void)bad;
	if (line == NULL)
		return;
	memcpy(line->text, text, size);
	line->next = __atomic_load_n(&gate->lines, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&gate->lines, &line->next, line, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* The line is freed first: PHP code may end the request by a jump, and then the lines after it are lost. */
static void report_line(struct line *line, zval *callable)
{
	zval text, ignored;

	ZVAL_STRING(&text, line->text);
	free(line);
	ZVAL_UNDEF(&ignored);
	if (Z_TYPE_P(callable) == IS_UNDEF)
		php_log_err(Z_STRVAL(text));
	else
		call_user_function(NULL, NULL, callable, &ignored, 1, &text);
	zval_ptr_dtor(&ignored);
	zval_ptr_dtor(&text);
}

static void report(struct gate *gate, zval *callable)
{
	struct line *line = lines_take(&gate->lines);

	while (line != NULL && !EG(exception)) {
		struct line *next = line->next;

		report_line(line, callable);
		line = next;
	}
	lines_drop(line);
}

/* The spec of all known limits, in the order of their places, which are those in the table. */
static zend_string *full_spec(struct gate *gate)
{
	smart_str spec = { 0 };
	struct known *known;
	zend_string *rule;

	smart_str_append(&spec, gate->base);
	ZEND_HASH_FOREACH_STR_KEY_PTR(&gate->known, rule, known)
	{
		append_word(&spec, "rule", rule);
		if (known->rate != NULL)
			append_word(&spec, "rate", known->rate);
	}
	ZEND_HASH_FOREACH_END();
	smart_str_0(&spec);
	return spec.s;
}

/* Make a new gate that also has this limit. Returns NULL after throwing, and then nothing was changed. */
static struct known *gate_learn(struct gate *gate, zend_string *rule, zend_string *rate)
{
	struct known *known = zend_hash_find_ptr(&gate->known, rule);
	zend_string *before = known == NULL ? NULL : known->rate, *name, *spec;
	bool is_new = known == NULL;
	struct shmlimit_gate *opened;
	int error;

	if (is_new) {
		known = pecalloc(1, sizeof(*known), 1);
		known->place = zend_hash_num_elements(&gate->known);
		name = zend_string_init(ZSTR_VAL(rule), ZSTR_LEN(rule), 1);
		zend_hash_add_new_ptr(&gate->known, name, known);
		zend_string_release(name);
	}
	known->rate = rate == NULL ? NULL : zend_string_init(ZSTR_VAL(rate), ZSTR_LEN(rate), 1);
	spec = full_spec(gate);
	error = strlen(ZSTR_VAL(spec)) != ZSTR_LEN(spec) ? -EINVAL : shmlimit_gate_open(ZSTR_VAL(spec), &opened);
	if (error == 0) {
		shmlimit_gate_report(opened, note, gate);
		shmlimit_gate_attach(opened);
		if (gate->gate != NULL) {
			shmlimit_gate_report(gate->gate, NULL, NULL);
			shmlimit_gate_close(gate->gate);
		}
		gate->gate = opened;
		if (before != NULL)
			zend_string_release(before);
	} else {
		throw_wrong(ZSTR_VAL(spec), error);
		if (is_new) {
			zend_hash_del(&gate->known, rule);
		} else {
			zend_string_release(known->rate);
			known->rate = before;
		}
		known = NULL;
	}
	zend_string_release(spec);
	return known;
}

static zend_always_inline struct known *gate_know(struct gate *gate, zend_object *limit)
{
	zend_string *rule = Z_STR_P(LIMIT_RULE(limit));
	struct known *known = zend_hash_find_ptr(&gate->known, rule);
	zval *rate = LIMIT_RATE(limit);

	if (EXPECTED(known != NULL && (Z_TYPE_P(rate) != IS_STRING ||
	                               (known->rate != NULL && zend_string_equals(known->rate, Z_STR_P(rate))))))
		return known;
	return gate_learn(gate, rule, Z_TYPE_P(rate) == IS_STRING ? Z_STR_P(rate) : NULL);
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
	append_word(&spec, "segment", segment);
	smart_str_appends(&spec, fail_open || dry_run ? "fail=open status=" : "fail=closed status=");
	smart_str_append_long(&spec, status);
	smart_str_appends(&spec, dry_run ? " dry_run " : " ");
	if (backend != NULL)
		append_word(&spec, "backend", backend);
	if (more != NULL) {
		smart_str_append(&spec, more);
		smart_str_appendc(&spec, '\n');
	}
	smart_str_0(&spec);
	if (!zend_hash_exists(&SHMLIMIT_G(gates), spec.s) &&
	    (strlen(ZSTR_VAL(spec.s)) != ZSTR_LEN(spec.s) || shmlimit_gate_check(ZSTR_VAL(spec.s), NULL) != 0)) {
		throw_wrong(ZSTR_VAL(spec.s), -EINVAL);
		smart_str_free(&spec);
		RETURN_THROWS();
	}
	g->spec = spec.s;
	if (ZEND_FCI_INITIALIZED(fci))
		ZVAL_COPY(&g->report, &fci.function_name);
}

PHP_METHOD(Shmlimit_Gate, client)
{
	char key[SHMLIMIT_KEY_IP_MAX];
	zval *server, *address = NULL;
	int length;

	ZEND_PARSE_PARAMETERS_NONE();
	zend_is_auto_global(ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
	server = zend_hash_find_known_hash(&EG(symbol_table), ZSTR_KNOWN(ZEND_STR_AUTOGLOBAL_SERVER));
	if (server != NULL) {
		ZVAL_DEREF(server);
		if (Z_TYPE_P(server) == IS_ARRAY)
			address = zend_hash_str_find_deref(Z_ARRVAL_P(server), ZEND_STRL("REMOTE_ADDR"));
	}
	if (address == NULL || Z_TYPE_P(address) != IS_STRING)
		RETURN_EMPTY_STRING();
	length = shmlimit_key_ip_text(shmlimit_name(Z_STR_P(address)), 32, 64, key, sizeof(key));
	if (length < 0)
		RETURN_STR_COPY(Z_STR_P(address));
	RETURN_STRINGL(key, (size_t)length);
}

/* ---- places ---- */

/* What PHP keeps of them is a string: struct shmlimit_gate_held, and of each key its limit, its length, and its bytes. */
static zend_string *places_pack(const struct shmlimit_gate_held *held, const struct shmlimit_gate_key *keys, uint32_t n)
{
	smart_str packed = { 0 };

	if (held->count == 0)
		return NULL;
	smart_str_appendl(&packed, (const char *)held, sizeof(*held));
	for (uint32_t i = 0; i < n; i++) {
		smart_str_appendl(&packed, (const char *)&keys[i].limit, sizeof(keys[i].limit));
		smart_str_appendl(&packed, (const char *)&keys[i].length, sizeof(keys[i].length));
		smart_str_appendl(&packed, keys[i].bytes, keys[i].length);
	}
	smart_str_0(&packed);
	return packed.s;
}

/* Returns 0, or -EINVAL: the string is none of places_pack(). */
static int leave(struct gate *gate, const zend_string *packed)
{
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX] = { 0 };
	struct shmlimit_gate_held held;
	const char *at = ZSTR_VAL(packed), *end = at + ZSTR_LEN(packed);
	size_t n = 0;

	if (ZSTR_LEN(packed) < sizeof(held))
		return -EINVAL;
	memcpy(&held, at, sizeof(held));
	for (at += sizeof(held); at < end; n++) {
		if (n == SHMLIMIT_REQUESTS_MAX || (size_t)(end - at) < 2 * sizeof(uint32_t))
			return -EINVAL;
		memcpy(&keys[n].limit, at, sizeof(uint32_t));
		memcpy(&keys[n].length, at + sizeof(uint32_t), sizeof(uint32_t));
		keys[n].bytes = at += 2 * sizeof(uint32_t);
		if ((size_t)(end - at) < keys[n].length)
			return -EINVAL;
		at += keys[n].length;
	}
	return gate->gate == NULL ? 0 : shmlimit_gate_leave(gate->gate, keys, n, &held);
}

/* Takes the reference. */
static void keep(struct gate *gate, zend_string *places)
{
	struct kept *kept = emalloc(sizeof(*kept));

	gate->shared.refs++;
	*kept = (struct kept){ SHMLIMIT_G(kept), gate, places };
	SHMLIMIT_G(kept) = kept;
}

void shmlimit_leave_kept(void)
{
	struct kept *kept;

	while ((kept = SHMLIMIT_G(kept)) != NULL) {
		SHMLIMIT_G(kept) = kept->next;
		(void)leave(kept->gate, kept->places);
		zend_string_release(kept->places);
		shared_release(&kept->gate->shared);
		efree(kept);
	}
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
		zval *key = LIMIT_KEY(limit);
		struct known *known;

		if (Z_TYPE_P(key) != IS_STRING)
			continue;
		if (Z_LVAL_P(LIMIT_COST(limit)) < 1 || count == SHMLIMIT_REQUESTS_MAX) {
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
			.cost = (uint64_t)Z_LVAL_P(LIMIT_COST(limit)),
		};
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
		report(gate, &g->report);
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

/* Returns whether there was an answer; else it has thrown. */
static bool parse_and_ask(INTERNAL_FUNCTION_PARAMETERS, struct shmlimit_gate_answer *answer, zend_string **places)
{
	zval *limits = NULL;
	uint32_t n = 0;

	ZEND_PARSE_PARAMETERS_START(0, -1)
		Z_PARAM_VARIADIC('*', limits, n)
		ZEND_PARSE_PARAMETERS_END_EX(return false);
		(void)return_value;
		for (uint32_t i = 0; i < n; i++)
			if (Z_TYPE(limits[i]) != IS_OBJECT || Z_OBJCE(limits[i]) != shmlimit_limit_ce ||
			    Z_TYPE_P(LIMIT_RULE(Z_OBJ(limits[i]))) != IS_STRING) {
				zend_argument_type_error(i + 1, "must be of type Shmlimit\\Limit, %s given",
				                         zend_zval_type_name(&limits[i]));
				return false;
			}
		return ask(gate_of(Z_OBJ_P(ZEND_THIS)), limits, n, answer, places);
}

PHP_METHOD(Shmlimit_Gate, ask)
{
	zval fields;
	ANSWER(answer);

	if (!parse_and_ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, &answer, NULL))
		RETURN_THROWS();
	shmlimit_fields_array(&fields, answer.fields, answer.field_count);
	shmlimit_return_answer(return_value, &answer, &fields, NULL);
}

PHP_METHOD(Shmlimit_Gate, enter)
{
	zend_string *places = NULL;
	zval fields;
	ANSWER(answer);

	if (!parse_and_ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, &answer, &places))
		RETURN_THROWS();
	shmlimit_fields_array(&fields, answer.fields, answer.field_count);
	shmlimit_return_answer(return_value, &answer, &fields, places);
}

PHP_METHOD(Shmlimit_Gate, leave)
{
	struct gate_object *g = gate_of(Z_OBJ_P(ZEND_THIS));
	zend_string *places;
	int error;

	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR_OR_NULL(places)
	ZEND_PARSE_PARAMETERS_END();
	if (places == NULL)
		return;
	error = g->gate == NULL ? -EINVAL : leave(g->gate, places);
	if (error != 0) {
		shmlimit_throw_words(error, "gate", shmlimit_strerror(error));
		RETURN_THROWS();
	}
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
	ANSWER(answer);

	if (!parse_and_ask(INTERNAL_FUNCTION_PARAM_PASSTHRU, &answer, &places))
		RETURN_THROWS();
	if (places != NULL)
		keep(gate_of(Z_OBJ_P(ZEND_THIS))->gate, places);
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
