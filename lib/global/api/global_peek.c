/*
 * global_peek: read the backend's funnel of one key.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>

#include "export.h"
#include "sized.h"
#include "handle.h"
#include "pool.h"

static int peek_global(struct shmlimit_global *g, int rule, const void *key, size_t key_len,
                       struct shmlimit_global_funnel *out)
{
	struct shmlimit_global_funnel funnel = { .struct_size = sizeof(funnel) };
	struct backend_question q = { .need = 0 };
	char text[KEY_TEXT_MAX];
	struct handle_rule of;
	int error;

	if (key_len < 1 || key_len > SHMLIMIT_KEY_MAX)
		return -EMSGSIZE;
	error = handle_rule(g, rule, &of);
	if (error != 0)
		return error;
	q.params = &of.params;
	q.key = text;
	q.key_len = handle_key(g, of.name, key, key_len, text);
	cluster_lease(&g->cluster, &q, 1, monotonic_now_ns() + g->options.deadline_ns);
	if (q.failure.kind != ERROR_NONE)
		return handle_failed(g, &q.failure, &of);
	handle_recovered(g);
	funnel.remaining = q.left;
	funnel.reset_after_ns = q.full_us < UINT64_MAX / 1000 ? q.full_us * 1000 : UINT64_MAX;
	funnel.lease_ns = of.lease_ns;
	return sized_out(out, &funnel, sizeof(funnel));
}

EXPORT int shmlimit_global_peek(struct shmlimit_global *g, int rule, const void *key, size_t key_len,
                                struct shmlimit_global_funnel *out)
{
	struct shmlimit_global *mine;
	int answer;

	if (g == NULL || key == NULL || out == NULL)
		return -EINVAL;
	mine = pool_borrow(g, &answer);
	if (mine == NULL)
		return answer;
	answer = peek_global(mine, rule, key, key_len, out);
	pool_return(mine);
	return answer;
}
