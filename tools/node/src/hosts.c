/*
 * hosts: counts that hosts share through a backend. A call may wait for that, so a thread of libuv's makes it, and
 * JavaScript has a promise.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"
#include "shmlimit_global.h"

#define LIBRARY "libshmlimit-global.so.1"
#define URL_SIZE 1024
#define PREFIX_SIZE 72

static struct {
	__typeof__(&shmlimit_global_open) open;
	__typeof__(&shmlimit_global_count) count;
	__typeof__(&shmlimit_global_reset) reset;
	__typeof__(&shmlimit_global_close) close;
} global;

/* A segment of its own handle, which lives as long as its calls. */
struct hosts {
	struct shmlimit *limiter;
	struct shmlimit_global *global;
	unsigned working;
	bool closed;
};

/* An addition, or with n = 0 a reset. */
struct host_call {
	struct hosts *hosts;
	napi_async_work work;
	napi_deferred deferred;
	int rule, answer;
	struct shmlimit_count_request asked;
	struct shmlimit_count out;
	bool has_key;
	size_t length;
	char key[SHMLIMIT_KEY_MAX];
};

/*
 * The library brings the libshmlimit that is installed. A handle goes from the addon's to that one, so both must be of one
 * version. Returns 0, -ELIBACC or -ELIBBAD.
 */
static int load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&shmlimit_layout) layout;

	if (library == NULL)
		return -ELIBACC;
	*(void **)&layout = dlsym(library, "shmlimit_layout");
	if (layout == NULL || layout() != shmlimit_layout())
		return -ELIBBAD;
	/* ISO C does not convert a data pointer to a function pointer; POSIX allows this assignment. */
	*(void **)&global.count = dlsym(library, "shmlimit_global_count");
	*(void **)&global.reset = dlsym(library, "shmlimit_global_reset");
	*(void **)&global.close = dlsym(library, "shmlimit_global_close");
	*(void **)&global.open = dlsym(library, "shmlimit_global_open");
	return global.count != NULL && global.reset != NULL && global.close != NULL && global.open != NULL ? 0
	                                                                                                   : -ELIBBAD;
}

static void hosts_free(struct hosts *hosts)
{
	global.close(hosts->global);
	shmlimit_close(hosts->limiter);
	free(hosts);
}

/* Its calls have ended: Node waits for that. */
void hosts_end(void *hosts)
{
	if (hosts != NULL)
		hosts_free(hosts);
}

static int open_hosts(struct hosts *hosts, const char *name, uint64_t owner, const char *url,
                      const struct shmlimit_global_options *options)
{
	struct shmlimit_options trusted = { .struct_size = sizeof(trusted), .owner = (uint32_t)owner };
	int error = load();

	if (error == 0)
		error = shmlimit_open(name, SHMLIMIT_OPEN_TRUSTED, &trusted, &hosts->limiter);
	if (error != 0)
		return error;
	error = global.open(hosts->limiter, url, options, &hosts->global);
	if (error != 0)
		shmlimit_close(hosts->limiter);
	return error;
}

/* Any thread. WHY NOT process.emitWarning(): a line of an outage must not wait for the event loop. */
static void report(void *arg, const char *text)
{
	(void)arg;
	(void)fprintf(stderr, "shmlimit: %s\n", text);
}

/* hostsOpen(name, owner, url, prefix, deadlineMs, onFailure, share): the host's agent is a thread, if it has no other. */
static napi_value hosts_open(napi_env env, napi_callback_info info)
{
	napi_value argv[7];
	struct addon *addon = arguments(env, info, argv, 7);
	char name[SHMLIMIT_NAME_MAX + 8], url[URL_SIZE], prefix[PREFIX_SIZE];
	struct shmlimit_global_options options = { .struct_size = sizeof(options),
		                                   .prefix = prefix,
		                                   .report = report,
		                                   .flags = SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD };
	struct hosts *hosts = calloc(1, sizeof(*hosts));
	uint64_t owner = 0, on_failure = 0, share = 0;
	int answer = hosts == NULL ? -ENOMEM : read_name(env, argv[0], name, sizeof(name));

	if (answer == 0)
		answer = read_name(env, argv[2], url, sizeof(url));
	if (answer == 0)
		answer = read_name(env, argv[3], prefix, sizeof(prefix));
	if (answer == 0 && (read_whole(env, argv[1], &owner) != 0 || read_ms(env, argv[4], &options.deadline_ns) != 0 ||
	                    read_whole(env, argv[5], &on_failure) != 0 || read_whole(env, argv[6], &share) != 0))
		answer = -EINVAL;
	options.on_failure = (uint32_t)on_failure;
	options.local_milli = (uint32_t)share;
	if (answer == 0)
		answer = open_hosts(hosts, name, owner, url, &options);
	if (answer != 0) {
		free(hosts);
		return integer(env, answer);
	}
	answer = table_add(&addon->hosts, hosts);
	if (answer < 0)
		hosts_free(hosts);
	return integer(env, answer);
}

/* hostsClose(hosts): when its calls have ended. */
static napi_value hosts_close(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct addon *addon = arguments(env, info, argv, 1);
	struct hosts *hosts = table_remove(env, &addon->hosts, argv[0]);

	if (hosts != NULL && hosts->working == 0)
		hosts_free(hosts);
	else if (hosts != NULL)
		hosts->closed = true;
	return integer(env, 0);
}

static void call_make(napi_env env, void *arg)
{
	struct host_call *call = arg;
	struct shmlimit_global *g = call->hosts->global;

	(void)env;
	if (call->asked.n != 0)
		call->answer = global.count(g, call->rule, call->key, call->length, &call->asked, &call->out);
	else
		call->answer = global.reset(g, call->rule, call->has_key ? call->key : NULL, call->length);
}

static void call_done(napi_env env, napi_status status, void *arg)
{
	struct host_call *call = arg;
	struct hosts *hosts = call->hosts;
	const double numbers[] = { call->answer, (double)call->out.count, (double)call->out.applied,
		                   to_ms(call->out.ttl_ns) };
	napi_value array, number;

	if (status == napi_ok && napi_create_array(env, &array) == napi_ok) {
		for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (napi_create_double(env, numbers[i], &number) == napi_ok)
				(void)napi_set_element(env, array, i, number);
		(void)napi_resolve_deferred(env, call->deferred, array);
	}
	(void)napi_delete_async_work(env, call->work);
	free(call);
	if (--hosts->working == 0 && hosts->closed)
		hosts_free(hosts);
}

/* A promise of the answer, the count, what was added, and the time to live; or an error. */
static napi_value begin(napi_env env, struct host_call *call, int error)
{
	napi_value promise, name;

	if (error == 0 &&
	    (napi_create_string_utf8(env, "shmlimit.hosts", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	     napi_create_async_work(env, NULL, name, call_make, call_done, call, &call->work) != napi_ok ||
	     napi_create_promise(env, &call->deferred, &promise) != napi_ok ||
	     napi_queue_async_work(env, call->work) != napi_ok))
		error = -ENOMEM;
	if (error != 0) {
		free(call);
		return integer(env, error);
	}
	call->hosts->working++;
	return promise;
}

/* The handle, the rule's name and the key, of which none is meant by undefined. */
static int read_call(napi_env env, struct addon *addon, const napi_value *argv, struct host_call *call)
{
	char name[SHMLIMIT_RULE_NAME_MAX + 8], buffer[KEY_SIZE];
	napi_valuetype type = napi_undefined;
	const void *key = buffer;
	int error;

	call->hosts = table_get(env, &addon->hosts, argv[0]);
	if (call->hosts == NULL)
		return -EBADF;
	error = read_name(env, argv[1], name, sizeof(name));
	call->rule = error != 0 ? error : shmlimit_rule_find(call->hosts->limiter, name);
	if (call->rule < 0)
		return call->rule;
	napi_typeof(env, argv[2], &type);
	call->has_key = type != napi_undefined;
	if (call->has_key)
		key = read_bytes(env, argv[2], buffer, sizeof(buffer), &call->length);
	if (key == NULL || call->length > sizeof(call->key))
		return -EINVAL;
	memcpy(call->key, key, call->length);
	return 0;
}

/* hostsCount(hosts, rule, key, n, ttlMs, bound): adds what fits. */
static napi_value hosts_count(napi_env env, napi_callback_info info)
{
	napi_value argv[6];
	struct addon *addon = arguments(env, info, argv, 6);
	struct host_call *call = calloc(1, sizeof(*call));
	uint64_t n = 0, ttl_ns = 0, bound = 0;
	int error = call == NULL ? -ENOMEM : read_call(env, addon, argv, call);

	if (error == 0 && (read_whole(env, argv[3], &n) != 0 || n == 0 || read_ms(env, argv[4], &ttl_ns) != 0 ||
	                   read_whole(env, argv[5], &bound) != 0))
		error = -EINVAL;
	if (call == NULL)
		return integer(env, error);
	call->asked = (struct shmlimit_count_request){
		.struct_size = sizeof(call->asked),
		.flags = SHMLIMIT_COUNT_SATURATE,
		.n = (int64_t)n,
		.bound = (int64_t)bound,
		.ttl_ns = ttl_ns,
	};
	call->out.struct_size = sizeof(call->out);
	return begin(env, call, error);
}

/* hostsReset(hosts, rule, key): without a key all keys of the rule. */
static napi_value hosts_reset(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct addon *addon = arguments(env, info, argv, 3);
	struct host_call *call = calloc(1, sizeof(*call));
	int error = call == NULL ? -ENOMEM : read_call(env, addon, argv, call);

	return call == NULL ? integer(env, error) : begin(env, call, error);
}

const struct method hosts_methods[] = {
	{ "hostsOpen", hosts_open },
	{ "hostsClose", hosts_close },
	{ "hostsCount", hosts_count },
	{ "hostsReset", hosts_reset },
	{ NULL, NULL },
};
