/*
 * pending: a request that the host's agent is asked for, and nothing waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "gate.h"

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
		if (answered >= 0 && request_keep_places(env, gate, keys, &held, &places) != 0)
			answered = -ENOMEM;
		*out = answered < 0 ? NULL : answer_array(env, answered, &answer, keys->keys, places);
		return answered < 0 ? answered : 0;
	}
	if (request_keep(env, gate, keys, to, pending, out) == 0)
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
	error = keys_read(env, argv[1], argv[2], 1, shmlimit_gate_limits(gate->gate), &keys);
	if (error == 0)
		error = begin(env, gate, &keys, enters, &out);
	keys_free(&keys);
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
	struct request *request = request_get(env, argv[1]);
	int answered;
	bool holds;

	if (gate == NULL || request == NULL || request->pending == NULL)
		return integer(env, gate == NULL ? -EBADF : -EINVAL);
	answered = shmlimit_gate_poll(gate->gate, request->pending, &answer, request->enters ? &request->held : NULL);
	if (answered == SHMLIMIT_GATE_PENDING)
		return integer(env, (int64_t)to_ms(answer.retry_after_ns) + 1);
	request->pending = NULL;
	holds = answered >= 0 && request_holds(&request->held);
	if (answered < 0)
		request_leave(request);
	if (!holds)
		request_unlink(request);
	return answered < 0 ? integer(env, answered)
	                    : answer_array(env, answered, &answer, request->keys, holds ? argv[1] : NULL);
}

/* gateCancel(request) */
static napi_value gate_cancel(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct request *request;

	arguments(env, info, argv, 1);
	request = request_get(env, argv[0]);
	if (request != NULL && request->pending != NULL)
		request_cancel(request);
	return integer(env, 0);
}

const struct method pending_methods[] = {
	{ "gateBegin", gate_begin },
	{ "gatePoll", gate_poll },
	{ "gateCancel", gate_cancel },
	{ NULL, NULL },
};
