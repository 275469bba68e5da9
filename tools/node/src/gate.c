/*
 * gate: the life of a gate, and what it reports.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

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

static void gate_free(struct gate *gate)
{
	request_cancel_pending(gate);
	while (gate->requests != NULL)
		request_unlink(gate->requests);
	shmlimit_gate_close(gate->gate);
	free(gate);
}

/* No request of this environment goes on. Node has released the report itself. */
void gate_end(void *arg)
{
	struct gate *gate = arg;

	if (gate == NULL)
		return;
	request_cancel_pending(gate);
	for (struct request *request = gate->requests; request != NULL; request = request->next)
		request_leave(request);
	gate_free(gate);
}

void gate_release(struct gate *gate)
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
		gate_release(gate);
	return integer(env, at);
}

/* gateClose(gate) */
static napi_value gate_close(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct gate *gate = table_remove(env, &addon->gates, argv[0]);

	if (gate == NULL)
		return integer(env, -EBADF);
	gate->closed = 1;
	request_cancel_pending(gate);
	if (gate->working == 0)
		gate_release(gate);
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

/* gateForwarded(gate, peer, field, advice): 1, and it was reported that the peer, which is the key, is a proxy, or could be, without a field; or 0 */
static napi_value gate_forwarded(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	struct addon *addon = arguments(env, info, argv, 4);
	struct gate *gate = table_get(env, &addon->gates, argv[0]);
	char *peer = read_text(env, argv[1]), *field = read_text(env, argv[2]), *advice = read_text(env, argv[3]);
	struct shmlimit_gate_key key = { .bytes = peer };
	int answer = -EINVAL;

	if (gate != NULL && peer != NULL) {
		key.length = (uint32_t)strlen(peer);
		answer = shmlimit_gate_forwarded(gate->gate, &key, 1, peer, key.length, field, advice);
	}
	free(peer);
	free(field);
	free(advice);
	return integer(env, answer);
}

const struct method gate_methods[] = {
	{ "gateOpen", gate_open },           { "gateClose", gate_close },   { "gateAttach", gate_attach },
	{ "gateForwarded", gate_forwarded }, { "gateLimits", gate_limits }, { NULL, NULL },
};
