/*
 * pool: see pool.h.
 *
 * Each idle handle has a place of its own. A thread borrows a handle by exchanging it for NULL. So
 * no two threads get the same handle. WHY NOT a list: it needs a lock, or a solution to the ABA
 * problem. WHY NOT one handle per thread: threads and segments end independently of each other.
 *
 * Fork: a handle that another thread had borrowed is not the child's, which opens another one. Its
 * connection is not shut in the child: that thread may have been changing it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

void pool_begin(struct shmlimit_global *g, const struct url *url)
{
	g->home = g->idle[0] = g;
	g->url = *url;
}

void pool_end(struct shmlimit_global *g)
{
	for (size_t i = 0; i < POOL_KEPT; i++)
		if (g->idle[i] != NULL && g->idle[i] != g)
			handle_close(g->idle[i]);
	explicit_bzero(&g->url, sizeof(g->url));
	for (size_t i = 0; i < POOL_KEPT; i++)
		if (g->idle[i] == g) {
			handle_close(g);
			return;
		}
	free(g);
}

/* ORDER the exchange acquires what pool_return() released by its compare-and-swap. */
struct shmlimit_global *pool_borrow(struct shmlimit_global *g, int *error)
{
	struct shmlimit_global *lent = NULL;

	for (size_t i = 0; i < POOL_KEPT; i++) {
		if (__atomic_load_n(&g->idle[i], __ATOMIC_RELAXED) != NULL)
			lent = __atomic_exchange_n(&g->idle[i], NULL, __ATOMIC_ACQUIRE);
		if (lent != NULL)
			return lent;
	}
	*error = handle_open(g->limiter, &g->options, &g->url, &lent);
	if (*error != 0)
		return NULL;
	lent->home = g;
	lent->lease_ns = g->lease_ns;
	return lent;
}

/* Return it to the first free place, so that few threads use few handles and connections. */
void pool_return(struct shmlimit_global *lent)
{
	struct shmlimit_global *g = lent->home;

	for (size_t i = 0; i < POOL_KEPT; i++) {
		struct shmlimit_global *none = __atomic_load_n(&g->idle[i], __ATOMIC_RELAXED);

		if (none == NULL &&
		    __atomic_compare_exchange_n(&g->idle[i], &none, lent, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	if (lent == g)
		lent = __atomic_exchange_n(&g->idle[0], g, __ATOMIC_ACQ_REL);
	if (lent != NULL)
		handle_close(lent);
}
