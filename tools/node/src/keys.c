/*
 * keys: the keys and the costs of one request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

void keys_free(struct keys *keys)
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

/* { key, limit }: the limit of this request, as text, if there is one. *value becomes the key. Returns as read_key(). */
static int read_rate(napi_env env, napi_value *value, int stays, struct keys *keys, struct shmlimit_gate_key *key)
{
	struct shmlimit_gate_key text;
	napi_valuetype type = napi_undefined;
	napi_value limit;
	bool is_bytes = false;
	int error;

	napi_typeof(env, *value, &type);
	if (type != napi_object || (napi_is_typedarray(env, *value, &is_bytes) == napi_ok && is_bytes))
		return 0;
	if (napi_get_named_property(env, *value, "limit", &limit) != napi_ok ||
	    napi_get_named_property(env, *value, "key", value) != napi_ok ||
	    napi_typeof(env, *value, &type) != napi_ok || type == napi_undefined)
		return -EINVAL;
	napi_typeof(env, limit, &type);
	if (type == napi_undefined || type == napi_null)
		return 0;
	if (type != napi_string)
		return -EINVAL;
	error = read_key(env, limit, stays, keys, &text);
	if (error == 0) {
		key->rate = text.bytes;
		key->rate_length = text.length;
	}
	return error;
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
	error = read_rate(env, &value, stays, keys, key);
	if (error != 0)
		return error;
	napi_typeof(env, value, &type);
	if (type == napi_null)
		return 0;
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

/* The list has an entry for each limit: a limit that it lacks would not be enforced. */
static bool has_length(napi_env env, napi_value list, size_t limits)
{
	uint32_t length = 0;

	napi_get_array_length(env, list, &length);
	return length == limits;
}

int keys_read(napi_env env, napi_value value, napi_value costs, int stays, size_t limits, struct keys *keys)
{
	napi_valuetype type = napi_undefined;
	bool several = false;
	int error = 0;

	keys->n = keys->allocated_count = keys->used = 0;
	napi_typeof(env, costs, &type);
	if (type == napi_undefined)
		costs = NULL;
	if (costs != NULL && napi_is_array(env, costs, &several) == napi_ok && several &&
	    !has_length(env, costs, limits))
		return -EINVAL;
	if (napi_is_array(env, value, &several) != napi_ok || !several)
		return limits == 1 ? add_key(env, value, costs, 0, stays, keys) : -EINVAL;
	if (!has_length(env, value, limits))
		return -EINVAL;
	for (uint32_t i = 0; error == 0 && i < limits; i++) {
		napi_value one;

		error = napi_get_element(env, value, i, &one) != napi_ok ? -EINVAL
		                                                         : add_key(env, one, costs, i, stays, keys);
	}
	return error;
}
