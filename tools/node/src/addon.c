/*
 * addon: an environment's beginning and end, and arguments from JavaScript.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

#define NS_PER_MS 1e6

int table_add(struct table *table, void *item)
{
	uint32_t at = 0;

	while (at < table->count && table->items[at] != NULL)
		at++;
	if (at == table->count) {
		void **more = realloc(table->items, (at + 1) * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		table->items = more;
		table->count++;
	}
	table->items[at] = item;
	return (int)at;
}

void *table_get(napi_env env, const struct table *table, napi_value place)
{
	uint32_t at;

	return napi_get_value_uint32(env, place, &at) == napi_ok && at < table->count ? table->items[at] : NULL;
}

void *table_remove(napi_env env, struct table *table, napi_value place)
{
	void *item = table_get(env, table, place);
	uint32_t at;

	if (item != NULL && napi_get_value_uint32(env, place, &at) == napi_ok)
		table->items[at] = NULL;
	return item;
}

struct addon *arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t max)
{
	void *addon = NULL;

	napi_get_cb_info(env, info, &max, argv, NULL, &addon);
	return addon;
}

napi_value integer(napi_env env, int64_t value)
{
	napi_value out = NULL;

	napi_create_int64(env, value, &out);
	return out;
}

int read_whole(napi_env env, napi_value value, uint64_t *out)
{
	double number;

	if (napi_get_value_double(env, value, &number) != napi_ok || !(number >= 0 && number <= WHOLE_MAX) ||
	    number != floor(number))
		return -EINVAL;
	*out = (uint64_t)number;
	return 0;
}

int read_ms(napi_env env, napi_value value, uint64_t *out_ns)
{
	double ms;

	if (napi_get_value_double(env, value, &ms) != napi_ok || !(ms >= 0))
		return -EINVAL;
	*out_ns = ms * NS_PER_MS < 18446744073709551616.0 ? (uint64_t)(ms * NS_PER_MS) : UINT64_MAX;
	return 0;
}

int to_rate(double rate, uint64_t *refill, uint64_t *period_ns)
{
	if (!(rate >= 0 && rate <= WHOLE_MAX) || rate != floor(rate))
		return shmlimit_rate_from_double(rate, *period_ns, refill, period_ns);
	*refill = (uint64_t)rate;
	return 0;
}

double to_ms(uint64_t ns)
{
	return ns == UINT64_MAX ? INFINITY : (double)ns / NS_PER_MS;
}

int read_name(napi_env env, napi_value value, char *name, size_t size)
{
	size_t length;

	if (napi_get_value_string_utf8(env, value, name, size, &length) != napi_ok)
		return -EINVAL;
	return strlen(name) != length ? -EILSEQ : length + 4 >= size ? -ENAMETOOLONG : 0;
}

const void *read_bytes(napi_env env, napi_value value, char *buffer, size_t size, size_t *length)
{
	void *bytes = NULL;
	bool is = false;

	if (napi_get_value_string_utf8(env, value, buffer, size, length) == napi_ok)
		return buffer;
	if (napi_is_buffer(env, value, &is) != napi_ok || !is ||
	    napi_get_buffer_info(env, value, &bytes, length) != napi_ok)
		return NULL;
	return bytes != NULL ? bytes : buffer; /* one of no bytes may have no address */
}

/* What is wrong, in the library's words. */
static napi_value explain(napi_env env, napi_callback_info info)
{
	napi_value argv[1], text = NULL;
	int32_t error = 0;

	arguments(env, info, argv, 1);
	napi_get_value_int32(env, argv[0], &error);
	napi_create_string_utf8(env, shmlimit_strerror(error), NAPI_AUTO_LENGTH, &text);
	return text;
}

/* An environment ends. Gates' work has ended before: Node waits for that. */
static void end(void *arg)
{
	struct addon *addon = arg;

	for (uint32_t i = 0; i < addon->limiters.count; i++)
		limiter_free(addon->limiters.items[i]);
	for (uint32_t i = 0; i < addon->gates.count; i++)
		gate_end(addon->gates.items[i]);
	for (uint32_t i = 0; i < addon->hosts.count; i++)
		hosts_end(addon->hosts.items[i]);
	free(addon->limiters.items);
	free(addon->hosts.items);
	free(addon->gates.items);
	free(addon);
}

static int add_methods(napi_env env, napi_value exports, const struct method *methods, struct addon *addon)
{
	for (; methods->name != NULL; methods++) {
		napi_value function;

		if (napi_create_function(env, methods->name, NAPI_AUTO_LENGTH, methods->function, addon, &function) !=
		            napi_ok ||
		    napi_set_named_property(env, exports, methods->name, function) != napi_ok)
			return -1;
	}
	return 0;
}

static int add_numbers(napi_env env, napi_value exports, struct addon *addon)
{
	void *numbers = NULL;
	napi_value bytes, array;

	if (napi_create_arraybuffer(env, NUMBERS * sizeof(double), &numbers, &bytes) != napi_ok ||
	    napi_create_typedarray(env, napi_float64_array, NUMBERS, bytes, 0, &array) != napi_ok ||
	    napi_create_reference(env, bytes, 1, &addon->keeps_numbers) != napi_ok)
		return -1;
	addon->numbers = numbers;
	return napi_set_named_property(env, exports, "numbers", array) == napi_ok ? 0 : -1;
}

NAPI_MODULE_INIT()
{
	static const struct method methods[] = { { "strerror", explain }, { NULL, NULL } };
	const struct method *const all[] = {
		methods, segment_methods, limiter_methods, gate_methods, ask_methods, pending_methods, hosts_methods,
	};
	struct addon *addon = calloc(1, sizeof(*addon));
	int error;

	if (addon == NULL || napi_add_env_cleanup_hook(env, end, addon) != napi_ok) {
		free(addon);
		napi_throw_error(env, "ENOMEM", "shmlimit: out of memory");
		return NULL;
	}
	error = add_numbers(env, exports, addon);
	for (size_t i = 0; error == 0 && i < sizeof(all) / sizeof(all[0]); i++)
		error = add_methods(env, exports, all[i], addon);
	if (error != 0)
		napi_throw_error(env, NULL, "shmlimit: the addon could not be set up");
	return exports;
}
