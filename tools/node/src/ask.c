/*
 * ask: a request that is decided at once, or by a thread that waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "gate.h"

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

/* Hold places until they are left, or take them for the rule's period. */
static int ask(struct gate *gate, const struct keys *keys, bool enters, struct shmlimit_gate_answer *out,
               struct shmlimit_gate_held *held)
{
	return enters ? shmlimit_gate_enter(gate->gate, keys->keys, keys->n, out, held)
	              : shmlimit_gate_ask(gate->gate, keys->keys, keys->n, out);
}

/* The answer; or the places that the request holds, and then it goes on. */
static napi_value ask_at_once(napi_env env, napi_callback_info info, bool enters)
{
	napi_value argv[3], places = NULL;
	struct addon *addon = arguments(env, info, argv, 3);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct shmlimit_gate_held held;
	struct keys keys;
	int answer;

	if (gate == NULL)
		return integer(env, -EBADF);
	held.struct_size = sizeof(held);
	held.count = held.bill_count = 0;
	answer = keys_read(env, argv[1], argv[2], 1, shmlimit_gate_limits(gate->gate), &keys);
	if (answer == 0)
		answer = ask(gate, &keys, enters, &gate->answer, &held);
	if (answer >= 0)
		answer_note(addon->numbers, &gate->answer, keys.keys);
	if (answer >= 0 && request_keep_places(env, gate, &keys, &held, &places) != 0)
		answer = -ENOMEM;
	keys_free(&keys);
	return places != NULL ? places : integer(env, answer);
}

/* gateAsk(gate, keys, costs) */
static napi_value gate_ask(napi_env env, napi_callback_info info)
{
	return ask_at_once(env, info, false);
}

/* gateEnter(gate, keys, costs) */
static napi_value gate_enter(napi_env env, napi_callback_info info)
{
	return ask_at_once(env, info, true);
}

/* gateLeave(gate, places) */
static napi_value gate_leave(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct addon *addon = arguments(env, info, argv, 2);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct request *request = request_get(env, argv[1]);

	if (gate == NULL || request == NULL)
		return integer(env, gate == NULL ? -EBADF : -EINVAL);
	request_leave(request);
	request_unlink(request);
	return integer(env, 0);
}

/* What the request used of one limit, a number or nothing. Returns 0 or -EINVAL. */
static int read_used(napi_env env, napi_value value, uint64_t *used)
{
	napi_valuetype type = napi_undefined;

	*used = SHMLIMIT_GATE_NOT_KNOWN;
	napi_typeof(env, value, &type);
	return type == napi_undefined || type == napi_null ? 0 : read_whole(env, value, used) != 0 ? -EINVAL : 0;
}

/* gateSettle(gate, places, used): a number, or an array with one for each limit. */
static napi_value gate_settle(napi_env env, napi_callback_info info)
{
	napi_value argv[3], one;
	struct addon *addon = arguments(env, info, argv, 3);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	struct request *request = request_get(env, argv[1]);
	uint64_t used[SHMLIMIT_REQUESTS_MAX];
	bool several = false;

	if (gate == NULL || request == NULL)
		return integer(env, gate == NULL ? -EBADF : -EINVAL);
	if (napi_is_array(env, argv[2], &several) != napi_ok || (!several && shmlimit_gate_limits(gate->gate) != 1))
		return integer(env, -EINVAL);
	for (size_t i = 0; i < request->n; i++) {
		one = argv[2];
		if ((several && napi_get_element(env, argv[2], request->keys[i].limit, &one) != napi_ok) ||
		    read_used(env, one, &used[i]) != 0)
			return integer(env, -EINVAL);
	}
	return integer(env, shmlimit_gate_settle(gate->gate, request->keys, request->n, used, &request->held));
}

/* gateFields(gate): those of the latest answer. */
static napi_value gate_fields(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);

	return gate == NULL ? integer(env, -EBADF) : answer_fields(env, &gate->answer);
}

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
		if (request_keep_places(env, gate, &work->keys, &work->held, &places) != 0)
			work->answer = -ENOMEM;
		array = answer_array(env, work->answer, &work->out, work->keys.keys, places);
		if (array != NULL)
			(void)napi_resolve_deferred(env, work->deferred, array);
	}
	keys_free(&work->keys);
	(void)napi_delete_async_work(env, work->work);
	free(work);
	if (--gate->working == 0 && gate->closed)
		gate_release(gate);
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
	work->held.struct_size = sizeof(work->held);
	work->out.struct_size = sizeof(work->out);
	work->out.buffer_size = sizeof(work->buffer);
	work->out.buffer = work->buffer;
	error = keys_read(env, argv[1], argv[2], 0, shmlimit_gate_limits(gate->gate), &work->keys);
	if (error == 0 && (napi_create_string_utf8(env, "shmlimit.ask", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	                   napi_create_async_work(env, NULL, name, work_ask, work_done, work, &work->work) != napi_ok ||
	                   napi_create_promise(env, &work->deferred, &promise) != napi_ok ||
	                   napi_queue_async_work(env, work->work) != napi_ok))
		error = -ENOMEM;
	if (error != 0) {
		keys_free(&work->keys);
		free(work);
		return integer(env, error);
	}
	gate->working++;
	return promise;
}

const struct method ask_methods[] = {
	{ "gateAsk", gate_ask },
	{ "gateEnter", gate_enter },
	{ "gateLeave", gate_leave },
	{ "gateSettle", gate_settle },
	{ "gateFields", gate_fields },
	{ "gateAskAsync", gate_ask_async },
	{ NULL, NULL },
};
