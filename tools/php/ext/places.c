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

/*
 * What PHP keeps of them is a string: struct shmlimit_gate_held, and of each key its limit, the lengths of its bytes and of
 * the limit that it brought, and both.
 */
zend_string *places_pack(const struct shmlimit_gate_held *held, const struct shmlimit_gate_key *keys, uint32_t n)
{
	smart_str packed = { 0 };

	if (held->count == 0 && held->bill_count == 0)
		return NULL;
	smart_str_appendl(&packed, (const char *)held, sizeof(*held));
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t numbers[3] = { keys[i].limit, keys[i].length, keys[i].rate_length };

		smart_str_appendl(&packed, (const char *)numbers, sizeof(numbers));
		smart_str_appendl(&packed, keys[i].bytes, keys[i].length);
		smart_str_appendl(&packed, keys[i].rate, keys[i].rate_length);
	}
	smart_str_0(&packed);
	return packed.s;
}

struct unpacked {
	struct shmlimit_gate_held held;
	struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
	size_t n;
};

/* Returns 0, or -EINVAL: the string is none of places_pack(). */
static int unpack(const zend_string *packed, struct unpacked *out)
{
	const char *at = ZSTR_VAL(packed), *end = at + ZSTR_LEN(packed);
	uint32_t numbers[3];

	if (ZSTR_LEN(packed) < sizeof(out->held))
		return -EINVAL;
	memcpy(&out->held, at, sizeof(out->held));
	out->n = 0;
	for (at += sizeof(out->held); at < end; out->n++) {
		if (out->n == SHMLIMIT_REQUESTS_MAX || (size_t)(end - at) < sizeof(numbers))
			return -EINVAL;
		memcpy(numbers, at, sizeof(numbers));
		at += sizeof(numbers);
		if ((size_t)(end - at) < (size_t)numbers[1] + numbers[2])
			return -EINVAL;
		out->keys[out->n] = (struct shmlimit_gate_key){
			.limit = numbers[0], .length = numbers[1], .bytes = at, .rate_length = numbers[2]
		};
		at += numbers[1];
		if (numbers[2] > 0)
			out->keys[out->n].rate = at;
		at += numbers[2];
	}
	return 0;
}

int places_leave(struct gate *gate, const zend_string *packed)
{
	struct unpacked p;
	int error = unpack(packed, &p);

	return error != 0 || gate->gate == NULL ? error : shmlimit_gate_leave(gate->gate, p.keys, p.n, &p.held);
}

/* What each key has used. Returns 0, or -EINVAL: it is no number of tokens. */
static int read_used(const struct gate *gate, HashTable *used, const struct unpacked *p,
                     uint64_t tokens[SHMLIMIT_REQUESTS_MAX])
{
	struct known *known;
	zend_string *rule;

	for (size_t i = 0; i < p->n; i++)
		tokens[i] = SHMLIMIT_GATE_NOT_KNOWN;
	ZEND_HASH_FOREACH_STR_KEY_PTR((HashTable *)&gate->known, rule, known)
	{
		zval *told = zend_symtable_find(used, rule);

		if (told != NULL)
			ZVAL_DEREF(told);
		if (told == NULL || Z_TYPE_P(told) == IS_NULL)
			continue;
		for (size_t i = 0; i < p->n; i++)
			if (p->keys[i].limit == known->place) {
				if (Z_TYPE_P(told) != IS_LONG || Z_LVAL_P(told) < 0)
					return -EINVAL;
				tokens[i] = (uint64_t)Z_LVAL_P(told);
			}
	}
	ZEND_HASH_FOREACH_END();
	return 0;
}

int places_settle(struct gate *gate, HashTable *used, zend_string **packed)
{
	uint64_t tokens[SHMLIMIT_REQUESTS_MAX];
	struct unpacked p;
	zend_string *settled;
	int error = unpack(*packed, &p);

	if (error == 0)
		error = read_used(gate, used, &p, tokens);
	if (error == 0 && gate->gate != NULL)
		error = shmlimit_gate_settle(gate->gate, p.keys, p.n, tokens, &p.held);
	if (error != 0)
		return error;
	settled = zend_string_init(ZSTR_VAL(*packed), ZSTR_LEN(*packed), 0);
	memcpy(ZSTR_VAL(settled), &p.held, sizeof(p.held));
	zend_string_release(*packed);
	*packed = settled;
	return 0;
}

int places_settle_kept(struct gate *gate, HashTable *used)
{
	int error = 0;

	for (struct kept *kept = SHMLIMIT_G(kept); kept != NULL && error == 0; kept = kept->next)
		if (kept->gate == gate)
			error = places_settle(gate, used, &kept->places);
	return error;
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
