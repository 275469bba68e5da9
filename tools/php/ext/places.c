/*
 * places: those that a request holds, as PHP has them, and until it ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gate.h"

#include <errno.h>

/* Places to be left when the request ends. */
struct kept {
	struct kept *next;
	struct gate *gate;
	zend_string *places;
};

/* What PHP keeps of them is a string: struct shmlimit_gate_held, and of each key its limit, its length, and its bytes. */
zend_string *places_pack(const struct shmlimit_gate_held *held, const struct shmlimit_gate_key *keys, uint32_t n)
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

int places_leave(struct gate *gate, const zend_string *packed)
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

void places_keep(struct gate *gate, zend_string *places)
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
		(void)places_leave(kept->gate, kept->places);
		zend_string_release(kept->places);
		shared_release(&kept->gate->shared);
		efree(kept);
	}
}
