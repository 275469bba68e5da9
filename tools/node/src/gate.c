/*
 * gate: the calls on a gate, for class Gate in index.js, which says what they mean.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

#define FIELD_NAME 64 /* bytes for a field's name, and what separates it */
#define ARENA 2048    /* bytes for the keys of one request; longer ones are allocated */
#define NS_PER_MS 1000000u

struct gate {
	struct shmlimit_gate *gate;
	napi_threadsafe_function report;
	struct request *requests; /* those that hold places or are pending */
	unsigned working;         /* requests that other threads ask */
	int closed;               /* free it when there are none */
	struct shmlimit_gate_answer answer;
	char buffer[SHMLIMIT_GATE_BUFFER];
};

/* The keys of one request. */
struct keys {
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n, allocated_count, used;
	void *allocated[SHMLIMIT_REQUESTS_MAX];
	char arena[ARENA];
};

/* A request that JavaScript keeps: it waits for the host's agent, holds places, or both. With a copy of its keys' bytes. */
struct request {
	struct gate *gate; /* NULL: the gate was closed, or there is nothing to do for this request any more */
	struct request *next, **link;
	struct shmlimit_gate_pending *pending; /* NULL: it is decided */
	bool enters;
	struct shmlimit_gate_held held;
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n;
	char bytes[];
};

/* A request that a thread of libuv's asks, because there is no agent, and it may wait for a Redis server. */
struct work {
	struct gate *gate;
	napi_async_work work;
	napi_deferred deferred;
	int answer;
	bool enters;
	struct keys keys;
	struct shmlimit_gate_held held;
	struct shmlimit_gate_answer out;
	char buffer[SHMLIMIT_GATE_BUFFER];
};

/* ---- reports ---- */

/* Any thread. What it reports goes to JavaScript when its event loop comes to that. */
static void report(void *arg, int bad, const char *text)
{
	struct gate *gate = arg;
	size_t length = strlen(text) + 1;
	char *line = malloc(1 + length);

	if (line == NULL)
		return;
	line[0] = (char)bad;
	memcpy(line + 1, text, length);
	if (napi_call_threadsafe_function(gate->report, line, napi_tsfn_nonblocking) != napi_ok)
		free(line);
}

static void report_in_js(napi_env env, napi_value function, void *context, void *line)
{
	napi_value argv[2], receiver;

	(void)context;
	if (env != NULL && function != NULL && napi_get_undefined(env, &receiver) == napi_ok &&
	    napi_get_boolean(env, *(char *)line != 0, &argv[0]) == napi_ok &&
	    napi_create_string_utf8(env, (char *)line + 1, NAPI_AUTO_LENGTH, &argv[1]) == napi_ok)
		(void)napi_call_function(env, receiver, function, 2, argv, NULL);
	free(line);
}

/* ---- requests that JavaScript keeps ---- */

static void leave(struct request *request)
{
	if (request->held.count > 0)
		(void)shmlimit_gate_leave(request->gate->gate, request->keys, request->n, &request->held);
}

static void unlink_request(struct request *request)
{
	*request->link = request->next;
	if (request->next != NULL)
		request->next->link = request->link;
	request->gate = NULL;
}

/* A pending request is no longer wanted: it gives back what it has taken. */
static void cancel(struct request *request)
{
	shmlimit_gate_cancel(request->gate->gate, request->pending, request->enters ? &request->held : NULL);
	request->pending = NULL;
	leave(request);
	unlink_request(request);
}

/* JavaScript has dropped the request. Places that were not left end with the rule's period. */
static void request_free(napi_env env, void *arg, void *hint)
{
	struct request *request = arg;

	(void)env;
	(void)hint;
	if (request->gate != NULL && request->pending != NULL)
		cancel(request);
	else if (request->gate != NULL)
		unlink_request(request);
	free(request);
}

/*
 * Keep a request that is `pending`, or holds places. *out is what JavaScript has of it. Returns 0; or -ENOMEM, and the
 * request has what it had.
 */
static int keep_request(napi_env env, struct gate *gate, const struct keys *keys, bool enters,
                        const struct shmlimit_gate_held *held, struct shmlimit_gate_pending *pending, napi_value *out)
{
	struct request *request;
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < keys->n; i++)
		size += keys->keys[i].length;
	request = malloc(sizeof(*request) + size);
	if (request == NULL)
		return -ENOMEM;
	if (napi_create_external(env, request, request_free, NULL, out) != napi_ok) {
		free(request);
		return -ENOMEM;
	}
	request->gate = gate;
	request->next = gate->requests;
	request->link = &gate->requests;
	if (request->next != NULL)
		request->next->link = &request->next;
	gate->requests = request;
	request->pending = pending;
	request->enters = enters;
	request->held = *held;
	request->n = keys->n;
	at = request->bytes;
	for (size_t i = 0; i < keys->n; i++) {
		request->keys[i] = keys->keys[i];
		request->keys[i].bytes = at;
		at = mempcpy(at, keys->keys[i].bytes, keys->keys[i].length);
	}
	return 0;
}

static void cancel_pending(struct gate *gate)
{
	struct request *next;

	for (struct request *request = gate->requests; request != NULL; request = next) {
		next = request->next;
		if (request->pending != NULL)
			cancel(request);
	}
}

/* ---- its life ---- */

static void gate_free(struct gate *gate)
{
	cancel_pending(gate);
	while (gate->requests != NULL)
		unlink_request(gate->requests);
	shmlimit_gate_close(gate->gate);
	free(gate);
}

/* No request of this environment goes on. Node has released the report itself. */
void gate_end(void *arg)
{
	struct gate *gate = arg;

	if (gate == NULL)
		return;
	cancel_pending(gate);
	for (struct request *request = gate->requests; request != NULL; request = request->next)
		leave(request);
	gate_free(gate);
}

static void release(struct gate *gate)
{
	napi_threadsafe_function function = gate->report;

	gate_free(gate);
	(void)napi_release_threadsafe_function(function, napi_tsfn_abort);
}

/* The spec is wrong: say where and why. */
static void throw_wrong(napi_env env, const char *spec, int error)
{
	struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
	char text[512];

	if (error == -EINVAL && shmlimit_gate_check(spec, &wrong) == -EINVAL && wrong.length > 0)
		(void)snprintf(text, sizeof(text), "spec: %.*s: %s", (int)(wrong.length < 200 ? wrong.length : 200),
		               spec + wrong.offset, wrong.text);
	else
		(void)snprintf(text, sizeof(text), "spec: %s",
		               wrong.text[0] != '\0' ? wrong.text : shmlimit_strerror(error));
	napi_throw_error(env, error == -EINVAL ? "EINVAL" : "ENOMEM", text);
}

/* The whole string, to be freed; NULL: it is none, or has a NUL, or there is no memory. */
static char *read_text(napi_env env, napi_value value)
{
	size_t length;
	char *text;

	if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok)
		return NULL;
	text = malloc(length + 1);
	if (text != NULL &&
	    (napi_get_value_string_utf8(env, value, text, length + 1, &length) != napi_ok || strlen(text) != length)) {
		free(text);
		return NULL;
	}
	return text;
}

static struct gate *make(napi_env env, const char *spec, napi_value function)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	napi_value name;
	int error = gate == NULL ? -ENOMEM : shmlimit_gate_open(spec, &gate->gate);

	if (error != 0) {
		throw_wrong(env, spec, error);
		free(gate);
		return NULL;
	}
	gate->answer.struct_size = sizeof(gate->answer);
	gate->answer.buffer_size = sizeof(gate->buffer);
	gate->answer.buffer = gate->buffer;
	if (napi_create_string_utf8(env, "shmlimit.Gate", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	    napi_create_threadsafe_function(env, function, NULL, name, 0, 1, NULL, NULL, NULL, report_in_js,
	                                    &gate->report) != napi_ok) {
		gate_free(gate);
		napi_throw_error(env, "EINVAL", "report: must be a function");
		return NULL;
	}
	(void)napi_unref_threadsafe_function(env, gate->report);
	shmlimit_gate_report(gate->gate, report, gate);
	return gate;
}

/* gateOpen(spec, report) */
static napi_value gate_open(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	char *spec = read_text(env, argv[0]);
	struct gate *gate;
	int at;

	if (spec == NULL) {
		napi_throw_type_error(env, "EINVAL", "spec: must be a string without NUL");
		return NULL;
	}
	gate = make(env, spec, argv[1]);
	free(spec);
	if (gate == NULL)
		return NULL;
	at = table_add(&addon->gates, gate);
	if (at < 0)
		release(gate);
	return integer(env, at);
}

/* gateClose(gate) */
static napi_value gate_close(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	uint32_t at;

	if (gate == NULL)
		return integer(env, -EBADF);
	napi_get_value_uint32(env, argv[0], &at);
	addon->gates.items[at] = NULL;
	gate->closed = 1;
	cancel_pending(gate);
	if (gate->working == 0)
		release(gate);
	return integer(env, 0);
}

/* gateAttach(gate) */
static napi_value gate_attach(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);

	return integer(env, gate == NULL ? -EBADF : shmlimit_gate_attach(gate->gate));
}

/* gateLimits(gate) */
static napi_value gate_limits(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);

	return integer(env, gate == NULL ? -EBADF : (int64_t)shmlimit_gate_limits(gate->gate));
}

/* ---- keys ---- */

static void free_keys(struct keys *keys)
{
	for (size_t i = 0; i < keys->allocated_count; i++)
		free(keys->allocated[i]);
}

static void *allocate(struct keys *keys, size_t size)
{
	void *memory = malloc(size);

	if (memory != NULL)
		keys->allocated[keys->allocated_count++] = memory;
	return memory;
}

/* One key; `stays` is 0 where its bytes must be copied. Returns 0, -EINVAL or -ENOMEM. */
static int read_key(napi_env env, napi_value value, int stays, struct keys *keys, struct shmlimit_gate_key *key)
{
	size_t length, room = ARENA - keys->used;
	char *at = keys->arena + keys->used;
	const void *bytes = read_bytes(env, value, at, room, &length);

	if (bytes == NULL)
		return -EINVAL;
	if (bytes != at && !stays) {
		at = allocate(keys, length + 1);
		if (at == NULL)
			return -ENOMEM;
		bytes = memcpy(at, bytes, length);
	} else if (bytes == at && length + 4 >= room) {
		/* It may have been longer than the room. */
		(void)napi_get_value_string_utf8(env, value, NULL, 0, &length);
		at = allocate(keys, length + 1);
		if (at == NULL)
			return -ENOMEM;
		(void)napi_get_value_string_utf8(env, value, at, length + 1, &length);
		bytes = at;
	} else if (bytes == at) {
		keys->used += length;
	}
	if (length > UINT32_MAX)
		return -EINVAL;
	key->bytes = bytes;
	key->length = (uint32_t)length;
	return 0;
}

/* The key of limit i, where it has one, and its cost. */
static int add_key(napi_env env, napi_value value, napi_value costs, uint32_t i, int stays, struct keys *keys)
{
	struct shmlimit_gate_key *key = &keys->keys[keys->n];
	napi_valuetype type = napi_undefined;
	napi_value cost = costs;
	bool several = false;
	int error;

	napi_typeof(env, value, &type);
	if (type == napi_undefined || type == napi_null)
		return 0;
	if (keys->n == SHMLIMIT_REQUESTS_MAX)
		return -E2BIG;
	*key = (struct shmlimit_gate_key){ .limit = i };
	error = read_key(env, value, stays, keys, key);
	if (error != 0)
		return error;
	if (costs != NULL && napi_is_array(env, costs, &several) == napi_ok && several &&
	    napi_get_element(env, costs, i, &cost) != napi_ok)
		return -EINVAL;
	napi_typeof(env, cost, &type);
	if (cost != NULL && type != napi_undefined && read_whole(env, cost, &key->cost) != 0)
		return -EINVAL;
	keys->n++;
	return 0;
}

/*
 * Keys from a string or Uint8Array, which is that of the first limit, or an array of them, one for each limit; costs from a
 * number, an array of them, or nothing. Returns 0, -EINVAL, -E2BIG or -ENOMEM; free_keys() must follow.
 */
static int read_keys(napi_env env, napi_value value, napi_value costs, int stays, struct keys *keys)
{
	napi_valuetype type = napi_undefined;
	bool several = false;
	uint32_t length = 0;
	int error = 0;

	keys->n = keys->allocated_count = keys->used = 0;
	napi_typeof(env, costs, &type);
	if (type == napi_undefined)
		costs = NULL;
	if (napi_is_array(env, value, &several) != napi_ok || !several)
		return add_key(env, value, costs, 0, stays, keys);
	napi_get_array_length(env, value, &length);
	if (length > SHMLIMIT_GATE_LIMITS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; error == 0 && i < length; i++) {
		napi_value one;

		error = napi_get_element(env, value, i, &one) != napi_ok ? -EINVAL
		                                                         : add_key(env, one, costs, i, stays, keys);
	}
	return error;
}

/* ---- asking ---- */

static void note(double *numbers, const struct shmlimit_gate_answer *out, const struct shmlimit_gate_key *keys)
{
	int rejected = out->outcome == SHMLIMIT_GATE_REJECTED;

	numbers[OUTCOME] = out->outcome;
	numbers[STATUS] = out->status;
	numbers[FAILURE] = out->error;
	numbers[DENIED_BY] = rejected ? keys[out->denied_by].limit : -1.0;
	numbers[GATE_REMAINING] = out->remaining == UINT64_MAX ? to_ms(UINT64_MAX) : (double)out->remaining;
	numbers[GATE_RETRY_AFTER_MS] = to_ms(out->retry_after_ns);
}

/* Hold places until they are left, or take them for the rule's period. */
static int ask(struct gate *gate, const struct keys *keys, bool enters, struct shmlimit_gate_answer *out,
               struct shmlimit_gate_held *held)
{
	*held = (struct shmlimit_gate_held){ .struct_size = sizeof(*held) };
	return enters ? shmlimit_gate_enter(gate->gate, keys->keys, keys->n, out, held)
	              : shmlimit_gate_ask(gate->gate, keys->keys, keys->n, out);
}

/* Keep the places of a request, if it has any. Returns 0; or -ENOMEM, and then they are left. */
static int keep_places(napi_env env, struct gate *gate, const struct keys *keys, struct shmlimit_gate_held *held,
                       napi_value *out)
{
	int error = held->count == 0 ? 0 : keep_request(env, gate, keys, 1, held, NULL, out);

	if (error != 0)
		(void)shmlimit_gate_leave(gate->gate, keys->keys, keys->n, held);
	return error;
}

/* gateEnter(gate, keys, costs): the answer; or the places that the request holds, and then it goes on. */
static napi_value gate_enter(napi_env env, napi_callback_info info)
{
	napi_value argv[3], places = NULL;
	struct addon *addon = arguments(env, info, argv, 3);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct shmlimit_gate_held held;
	struct keys keys;
	int answer;

	if (gate == NULL)
		return integer(env, -EBADF);
	answer = read_keys(env, argv[1], argv[2], 1, &keys);
	if (answer == 0) {
		answer = ask(gate, &keys, 1, &gate->answer, &held);
		if (answer >= 0)
			note(addon->numbers, &gate->answer, keys.keys);
		if (keep_places(env, gate, &keys, &held, &places) != 0)
			answer = -ENOMEM;
	}
	free_keys(&keys);
	return places != NULL ? places : integer(env, answer);
}

/* NULL: it is none, or has nothing to do with its gate any more. */
static struct request *get_request(napi_env env, napi_value value)
{
	void *request;

	return napi_get_value_external(env, value, &request) == napi_ok && ((struct request *)request)->gate != NULL
	               ? request
	               : NULL;
}

/* gateLeave(gate, places) */
static napi_value gate_leave(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct request *request = get_request(env, argv[1]);

	if (gate == NULL || request == NULL)
		return integer(env, gate == NULL ? -EBADF : -EINVAL);
	leave(request);
	unlink_request(request);
	return integer(env, 0);
}

/* gateAsk(gate, keys, costs) */
static napi_value gate_ask(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct keys keys;
	int answer;

	if (gate == NULL)
		return integer(env, -EBADF);
	answer = read_keys(env, argv[1], argv[2], 1, &keys);
	if (answer == 0)
		answer = shmlimit_gate_ask(gate->gate, keys.keys, keys.n, &gate->answer);
	if (answer >= 0)
		note(addon->numbers, &gate->answer, keys.keys);
	free_keys(&keys);
	return integer(env, answer);
}

/*
 * Names and values in turn, a line each: no field has a line's end in it. WHY NOT an array: one string is made three times as
 * fast as an array of six.
 */
static napi_value make_fields(napi_env env, const struct shmlimit_gate_answer *answer)
{
	char lines[SHMLIMIT_GATE_BUFFER + SHMLIMIT_GATE_FIELDS_MAX * FIELD_NAME], *at = lines;
	napi_value text = NULL;

	for (uint32_t i = 0; i < answer->field_count; i++) {
		const struct shmlimit_gate_field *field = &answer->fields[i];

		if (field->name_length + 2 > FIELD_NAME)
			continue;
		at = mempcpy(at, field->name, field->name_length);
		*at++ = '\n';
		at = mempcpy(at, field->value, field->value_length);
		*at++ = '\n';
	}
	napi_create_string_latin1(env, lines, at == lines ? 0 : (size_t)(at - lines) - 1, &text);
	return text;
}

/* gateFields(gate): those of the latest answer. */
static napi_value gate_fields(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);

	return gate == NULL ? integer(env, -EBADF) : make_fields(env, &gate->answer);
}

/* ---- asking without waiting ---- */

/* The answer, the figures, the fields, and the places (NULL: none), in one array. */
static napi_value make_array(napi_env env, int answer, const struct shmlimit_gate_answer *out,
                             const struct shmlimit_gate_key *keys, napi_value places)
{
	double numbers[NUMBERS];
	napi_value array = NULL, value;

	if (napi_create_array_with_length(env, NUMBERS - OUTCOME + 3, &array) != napi_ok)
		return NULL;
	napi_set_element(env, array, 0, integer(env, answer));
	if (places != NULL)
		napi_set_element(env, array, NUMBERS - OUTCOME + 2, places);
	if (answer < 0)
		return array;
	note(numbers, out, keys);
	for (uint32_t i = OUTCOME; i < NUMBERS; i++) {
		napi_create_double(env, numbers[i], &value);
		napi_set_element(env, array, i - OUTCOME + 1, value);
	}
	napi_set_element(env, array, NUMBERS - OUTCOME + 1, make_fields(env, out));
	return array;
}

/* Decide, or begin to; *out is what JavaScript gets. Returns 0, or an error. */
static int begin(napi_env env, struct gate *gate, const struct keys *keys, bool enters, napi_value *out)
{
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer),
		                               .buffer_size = sizeof(buffer),
		                               .buffer = buffer };
	struct shmlimit_gate_held held = { .struct_size = sizeof(held) }, *to = enters ? &held : NULL;
	struct shmlimit_gate_pending *pending = NULL;
	napi_value places = NULL;
	int answered = shmlimit_gate_begin(gate->gate, keys->keys, keys->n, &answer, to, &pending);

	if (answered != SHMLIMIT_GATE_PENDING) {
		if (answered >= 0 && keep_places(env, gate, keys, &held, &places) != 0)
			answered = -ENOMEM;
		*out = answered < 0 ? NULL : make_array(env, answered, &answer, keys->keys, places);
		return answered < 0 ? answered : 0;
	}
	if (keep_request(env, gate, keys, enters, &held, pending, out) == 0)
		return 0;
	shmlimit_gate_cancel(gate->gate, pending, to);
	if (held.count > 0)
		(void)shmlimit_gate_leave(gate->gate, keys->keys, keys->n, &held);
	return -ENOMEM;
}

/* gateBegin(gate, keys, costs, enters): the answer as an array, a pending request, or an error. */
static napi_value gate_begin(napi_env env, napi_callback_info info)
{
	napi_value argv[4], out = NULL;
	struct addon *addon = arguments(env, info, argv, 4);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct keys keys;
	bool enters = false;
	int error;

	if (gate == NULL)
		return integer(env, -EBADF);
	(void)napi_get_value_bool(env, argv[3], &enters);
	error = read_keys(env, argv[1], argv[2], 1, &keys);
	if (error == 0)
		error = begin(env, gate, &keys, enters, &out);
	free_keys(&keys);
	return error != 0 ? integer(env, error) : out;
}

/* gatePoll(gate, request): the answer as an array, the milliseconds after which to ask again, or an error. */
static napi_value gate_poll(napi_env env, napi_callback_info info)
{
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer),
		                               .buffer_size = sizeof(buffer),
		                               .buffer = buffer };
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct request *request = get_request(env, argv[1]);
	int answered;
	bool holds;

	if (gate == NULL || request == NULL || request->pending == NULL)
		return integer(env, gate == NULL ? -EBADF : -EINVAL);
	answered = shmlimit_gate_poll(gate->gate, request->pending, &answer, request->enters ? &request->held : NULL);
	if (answered == SHMLIMIT_GATE_PENDING)
		return integer(env, (int64_t)(answer.retry_after_ns / NS_PER_MS) + 1);
	request->pending = NULL;
	holds = answered >= 0 && request->held.count > 0;
	if (answered < 0)
		leave(request);
	if (!holds)
		unlink_request(request);
	return answered < 0 ? integer(env, answered)
	                    : make_array(env, answered, &answer, request->keys, holds ? argv[1] : NULL);
}

/* gateCancel(request) */
static napi_value gate_cancel(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct request *request;

	arguments(env, info, argv, 1);
	request = get_request(env, argv[0]);
	if (request != NULL && request->pending != NULL)
		cancel(request);
	return integer(env, 0);
}

/* ---- asking in another thread ---- */

static void work_ask(napi_env env, void *arg)
{
	struct work *work = arg;

	(void)env;
	work->answer = ask(work->gate, &work->keys, work->enters, &work->out, &work->held);
}

static void work_done(napi_env env, napi_status status, void *arg)
{
	struct work *work = arg;
	struct gate *gate = work->gate;
	napi_value array, places = NULL;

	if (status == napi_ok) {
		if (keep_places(env, gate, &work->keys, &work->held, &places) != 0)
			work->answer = -ENOMEM;
		array = make_array(env, work->answer, &work->out, work->keys.keys, places);
		if (array != NULL)
			(void)napi_resolve_deferred(env, work->deferred, array);
	}
	free_keys(&work->keys);
	(void)napi_delete_async_work(env, work->work);
	free(work);
	if (--gate->working == 0 && gate->closed)
		release(gate);
}

/* gateAskAsync(gate, keys, costs, enters): a promise, or an error. */
static napi_value gate_ask_async(napi_env env, napi_callback_info info)
{
	napi_value argv[4], promise, name;
	struct addon *addon = arguments(env, info, argv, 4);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct work *work = gate == NULL ? NULL : calloc(1, sizeof(*work));
	int error;

	if (work == NULL)
		return integer(env, gate == NULL ? -EBADF : -ENOMEM);
	work->gate = gate;
	(void)napi_get_value_bool(env, argv[3], &work->enters);
	work->out.struct_size = sizeof(work->out);
	work->out.buffer_size = sizeof(work->buffer);
	work->out.buffer = work->buffer;
	error = read_keys(env, argv[1], argv[2], 0, &work->keys);
	if (error == 0 && (napi_create_string_utf8(env, "shmlimit.ask", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	                   napi_create_async_work(env, NULL, name, work_ask, work_done, work, &work->work) != napi_ok ||
	                   napi_create_promise(env, &work->deferred, &promise) != napi_ok ||
	                   napi_queue_async_work(env, work->work) != napi_ok))
		error = -ENOMEM;
	if (error != 0) {
		free_keys(&work->keys);
		free(work);
		return integer(env, error);
	}
	gate->working++;
	return promise;
}

const struct method gate_methods[] = {
	{ "gateOpen", gate_open },
	{ "gateClose", gate_close },
	{ "gateAttach", gate_attach },
	{ "gateLimits", gate_limits },
	{ "gateAsk", gate_ask },
	{ "gateFields", gate_fields },
	{ "gateBegin", gate_begin },
	{ "gatePoll", gate_poll },
	{ "gateCancel", gate_cancel },
	{ "gateAskAsync", gate_ask_async },
	{ "gateEnter", gate_enter },
	{ "gateLeave", gate_leave },
	{ NULL, NULL },
};
