/*
 * request: requests that JavaScript keeps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

int request_holds(const struct shmlimit_gate_held *held)
{
	return held->count > 0 || held->bill_count > 0;
}

void request_leave(struct request *request)
{
	if (request->held.count > 0)
		(void)shmlimit_gate_leave(request->gate->gate, request->keys, request->n, &request->held);
}

void request_unlink(struct request *request)
{
	*request->link = request->next;
	if (request->next != NULL)
		request->next->link = request->link;
	request->gate = NULL;
}

void request_cancel(struct request *request)
{
	shmlimit_gate_cancel(request->gate->gate, request->pending, request->enters ? &request->held : NULL);
	request->pending = NULL;
	request_leave(request);
	request_unlink(request);
}

/* JavaScript has dropped the request. Places that were not left end with the rule's period. */
static void request_free(napi_env env, void *arg, void *hint)
{
	struct request *request = arg;

	(void)env;
	(void)hint;
	if (request->gate != NULL && request->pending != NULL)
		request_cancel(request);
	else if (request->gate != NULL)
		request_unlink(request);
	free(request);
}

int request_keep(napi_env env, struct gate *gate, const struct keys *keys, const struct shmlimit_gate_held *held,
                 struct shmlimit_gate_pending *pending, napi_value *out)
{
	struct request *request;
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < keys->n; i++)
		size += (size_t)keys->keys[i].length + keys->keys[i].rate_length;
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
	request->enters = held != NULL;
	request->held = (struct shmlimit_gate_held){ .struct_size = sizeof(request->held) };
	if (held != NULL)
		request->held = *held;
	request->n = keys->n;
	at = request->bytes;
	for (size_t i = 0; i < keys->n; i++) {
		request->keys[i] = keys->keys[i];
		request->keys[i].bytes = at;
		at = mempcpy(at, keys->keys[i].bytes, keys->keys[i].length);
		if (keys->keys[i].rate == NULL)
			continue;
		request->keys[i].rate = at;
		at = mempcpy(at, keys->keys[i].rate, keys->keys[i].rate_length);
	}
	return 0;
}

int request_keep_places(napi_env env, struct gate *gate, const struct keys *keys, struct shmlimit_gate_held *held,
                        napi_value *out)
{
	int error = !request_holds(held) ? 0 : request_keep(env, gate, keys, held, NULL, out);

	if (error != 0 && held->count > 0)
		(void)shmlimit_gate_leave(gate->gate, keys->keys, keys->n, held);
	return error;
}

struct request *request_get(napi_env env, napi_value value)
{
	void *request;

	return napi_get_value_external(env, value, &request) == napi_ok && ((struct request *)request)->gate != NULL
	               ? request
	               : NULL;
}

void request_cancel_pending(struct gate *gate)
{
	struct request *next;

	for (struct request *request = gate->requests; request != NULL; request = next) {
		next = request->next;
		if (request->pending != NULL)
			request_cancel(request);
	}
}
