/*
 * handles: see handles.h.
 *
 * A handle that is not lent stands in a place of its own, and who borrows it
 * exchanges it for NULL: nobody waits, and no two get the same. WHY NOT a list: it
 * would need a lock, or an answer to ABA. WHY NOT one handle a thread: threads end
 * when the server likes, and the segment when its operator does.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <urcu/uatomic.h>

#include "handles.h"

/* Threads of a child, at Apache's default of ThreadLimit. Beyond that a handle lives for one decision. */
#define HANDLES_KEPT 64

struct handles {
	struct shmlimit *limiter;
	const char *url;
	struct shmlimit_global_options options;
	struct shmlimit_global *idle[HANDLES_KEPT];
};

int handles_new(struct shmlimit *limiter, const char *url, const struct shmlimit_global_options *options,
                struct handles **out)
{
	struct handles *handles = calloc(1, sizeof(*handles));
	int error;

	if (handles == NULL)
		return -ENOMEM;
	handles->limiter = limiter;
	handles->url = url;
	handles->options = *options;
	error = shmlimit_global_open(limiter, url, options, &handles->idle[0]);
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
		shmlimit_global_close(handles->idle[i]);
	free(handles);
}

/* ORDER the exchange is a full barrier, and acquires what the thread before released by its compare-and-swap. */
struct shmlimit_global *handles_borrow(struct handles *handles, int *error)
{
	struct shmlimit_global *global = NULL;

	for (size_t i = 0; i < HANDLES_KEPT; i++) {
		if (uatomic_read(&handles->idle[i]) != NULL)
			global = uatomic_xchg(&handles->idle[i], NULL);
		if (global != NULL)
			return global;
	}
	*error = shmlimit_global_open(handles->limiter, handles->url, &handles->options, &global);
	return global;
}

/* The first place that is free: so few threads use few handles, and connections. */
void handles_return(struct handles *handles, struct shmlimit_global *global)
{
	for (size_t i = 0; i < HANDLES_KEPT; i++)
		if (uatomic_read(&handles->idle[i]) == NULL &&
		    uatomic_cmpxchg(&handles->idle[i], NULL, global) == NULL)
			return;
	shmlimit_global_close(global);
}

const struct shmlimit_global_options *handles_options(const struct handles *handles)
{
	return &handles->options;
}
