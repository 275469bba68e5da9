/*
 * take_many: many independent requests, each answered by itself.
 *
 * In a large table a decision waits for one line of memory, and nearly all of its
 * time is that. So hash a chunk of requests first, ask for all of their lines,
 * and decide when they are there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "export.h"
#include "fast.h"

/* As many lines as a core can wait for, and more; a chunk's hashes are 256 bytes of stack. */
#define CHUNK 32

/* What the request is, were it asked alone: 0, or the error that it gets without being decided. */
static int refusal(const struct shmlimit *l, const struct shmlimit_request *q)
{
	if (q->key == NULL)
		return -EINVAL;
	if (q->key_len - 1 >= SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	return l->read_only && q->cost != 0 ? -EROFS : 0;
}

static void take_chunk(const struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                       struct when when, struct shmlimit_result *results)
{
	const struct table *t = generation_known(l, load_acquire(&l->state));
	uint64_t hashes[CHUNK];

	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct table_window window;

		answers[i] = refusal(l, q);
		if (answers[i] != 0)
			continue;
		hashes[i] = hash_bytes(l->secret, (uint32_t)q->rule, q->key, q->key_len);
		/* Both homes: at a load of 0.8 three keys in four are in the first, nearly all of the rest in the second. */
		window = table_window(t, hashes[i]);
		__builtin_prefetch(table_line(t, window, 0), 1);
		__builtin_prefetch(table_line(t, window, 1), 1);
	}
	for (size_t i = 0; i < n; i++) {
		const struct shmlimit_request *q = &requests[i];
		struct shmlimit_result *r = results != NULL ? &results[i] : NULL;
		struct request_key key = { q->key, q->key_len };

		if (answers[i] != 0)
			continue;
		if (q->cost == 0)
			answers[i] = fast_any(l, OP_PEEK, (uint32_t)q->rule, hashes[i], &key, 0, 0, when, r);
		else
			answers[i] = fast_take(l, (uint32_t)q->rule, hashes[i], &key, q->cost, when, NULL, r);
	}
}

static int take_many(const struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                     struct when when, struct shmlimit_result *results)
{
	if (l == NULL || requests == NULL || answers == NULL)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (requests[i].reserved32 != 0)
			return -EINVAL;
	when = when_again(l, when);
	for (size_t i = 0; i < n; i += CHUNK)
		take_chunk(l, requests + i, n - i < CHUNK ? n - i : CHUNK, answers + i, when,
		           results != NULL ? results + i : NULL);
	return 0;
}

EXPORT int shmlimit_take_many(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                              struct shmlimit_result *results)
{
	return take_many(l, requests, n, answers, when_clock(), results);
}

EXPORT int shmlimit_take_many_at(struct shmlimit *l, const struct shmlimit_request *requests, size_t n, int *answers,
                                 uint64_t now_ns, struct shmlimit_result *results)
{
	return take_many(l, requests, n, answers, when_given(now_ns), results);
}
