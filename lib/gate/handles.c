/*
 * handles: see handles.h.
 *
 * Each idle handle has a place of its own. A thread borrows a handle by exchanging it for NULL. So no thread waits,
 * and no two threads get the same handle. WHY NOT a list: it needs a lock, or a solution to the ABA problem. WHY NOT
 * one handle per thread: threads and segments end independently of each other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>

#include "handles.h"

/* Apache's default ThreadLimit. If more are lent at once, the others are closed after one decision. */
#define HANDLES_KEPT 64

struct handles {
	const struct global_library *library;
	struct shmlimit *limiter;
	const char *url;
	struct shmlimit_global_options options;
	struct shmlimit_global *idle[HANDLES_KEPT];
};

int handles_new(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                struct handles **out)
{
	const struct global_library *library = global_library_load();
	struct handles *handles;
	int error;

	if (library == NULL)
		return -ELIBACC;
	handles = calloc(1, sizeof(*handles));
	if (handles == NULL)
		return -ENOMEM;
	handles->library = library;
	handles->limiter = limiter;
	handles->url = url;
	handles->options = *options;
	error = library->open(limiter, url, options, &handles->idle[0]);
	/* The first handle is lent most often. It alone has the thread, so no other one waits for a thread when it is closed. */
	handles->options.agent = 0;
	if (error != 0)
		free(handles);
	else
		*out = handles;
	return error;
}

void handles_free(struct handles *handles)
{
	if (handles == NULL)
		return;
	for (size_t i = 0; i < HANDLES_KEPT; i++)
		handles->library->close(handles->idle[i]);
	free(handles);
}

/* ORDER the exchange acquires what handles_return() released by its compare-and-swap. */
struct shmlimit_global *handles_borrow(struct handles *handles, int *error)
{
	struct shmlimit_global *global = NULL;

	for (size_t i = 0; i < HANDLES_KEPT; i++) {
		if (__atomic_load_n(&handles->idle[i], __ATOMIC_RELAXED) != NULL)
			global = __atomic_exchange_n(&handles->idle[i], NULL, __ATOMIC_ACQUIRE);
		if (global != NULL)
			return global;
	}
	*error = handles->library->open(handles->limiter, handles->url, &handles->options, &global);
	return global;
}

/* Return it to the first free place, so that few threads use few handles and connections. */
void handles_return(struct handles *handles, struct shmlimit_global *global)
{
	for (size_t i = 0; i < HANDLES_KEPT; i++) {
		struct shmlimit_global *none = __atomic_load_n(&handles->idle[i], __ATOMIC_RELAXED);

		if (none == NULL && __atomic_compare_exchange_n(&handles->idle[i], &none, global, 0, __ATOMIC_RELEASE,
		                                                __ATOMIC_RELAXED))
			return;
	}
	handles->library->close(global);
}

int handles_take(struct handles *handles, struct shmlimit_global *global, const struct shmlimit_request *requests,
                 size_t n, size_t *failed, struct shmlimit_result *results)
{
	return handles->library->take_all(global, requests, n, failed, results);
}

int handles_begin(struct handles *handles, struct shmlimit_global *global, const struct shmlimit_request *requests,
                  size_t n, struct shmlimit_global_ticket *tickets, size_t *failed, struct shmlimit_result *results)
{
	for (size_t i = 0; i < n; i++)
		tickets[i] = (struct shmlimit_global_ticket){ .struct_size = sizeof(tickets[i]),
			                                      .flags = SHMLIMIT_GLOBAL_AGENT_ONLY };
	return handles->library->begin_all(global, requests, n, tickets, failed, results);
}

int handles_poll(struct handles *handles, struct shmlimit_global *global, struct shmlimit_global_ticket *tickets,
                 size_t n, size_t *failed, struct shmlimit_result *results)
{
	return handles->library->poll_all(global, tickets, n, failed, results);
}

void handles_cancel(struct handles *handles, struct shmlimit_global *global, struct shmlimit_global_ticket *tickets,
                    size_t n)
{
	handles->library->cancel_all(global, tickets, n);
}
