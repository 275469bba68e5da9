/*
 * global_open: make a handle on a backend, and release it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent_thread.h"
#include "export.h"
#include "sized.h"
#include "handle.h"
#include "layout.h"
#include "pool.h"

#define PREFIX_DEFAULT "shmlimit:"

#define OPTION_FLAGS (SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD | SHMLIMIT_GLOBAL_OPTION_NO_WAIT)

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)

/* Replace a time of 0 with its default, `value`. Returns whether the time is in its range. */
static int complete(uint64_t *ns, uint64_t value, uint64_t min, uint64_t max)
{
	if (*ns == 0)
		*ns = value;
	return *ns >= min && *ns <= max;
}

/*
 * WHY no default: each number is right for some number of hosts, and is wrong without a word for
 * the others.
 */
static int lacks_share(const struct shmlimit_global_options *o)
{
	int lacks = o->on_failure == SHMLIMIT_GLOBAL_LOCAL && o->local_milli == 0;

	if (lacks && o->report != NULL)
		o->report(o->arg,
		          "on_failure local needs a share: local_milli must be 1 to 1000 thousandths of the limit");
	return lacks;
}

static int complete_options(struct shmlimit_global_options *o)
{
	for (size_t i = 0; i < sizeof(o->reserved) / sizeof(o->reserved[0]); i++)
		if (o->reserved[i] != 0 || o->reserved32 != 0)
			return -E2BIG;
	if (!complete(&o->deadline_ns, 50 * MS, 100 * US, 10 * S) || !complete(&o->lease_ns, 100 * MS, MS, 10 * S) ||
	    !complete(&o->open_ns, 200 * MS, MS, 3600 * S))
		return -EINVAL;
	if (o->open_after == 0)
		o->open_after = 3;
	if (o->prefix == NULL)
		o->prefix = PREFIX_DEFAULT;
	if (o->on_failure > SHMLIMIT_GLOBAL_ERROR || (o->flags & ~(uint32_t)OPTION_FLAGS) != 0 ||
	    o->local_milli > 1000 || lacks_share(o) || strlen(o->prefix) > SHMLIMIT_GLOBAL_PREFIX_MAX ||
	    strchr(o->prefix, '{') != NULL)
		return -EINVAL;
	return 0;
}

static int read_url(const struct shmlimit_global_options *o, const char *text, struct url *url)
{
	char why[URL_WHY_MAX], line[URL_WHY_MAX + 16];
	int error = url_parse(text, url, why);

	if (error == 0 || o->report == NULL)
		return error;
	snprintf(line, sizeof(line), "backend's URL: %s", why);
	o->report(o->arg, line);
	return error;
}

EXPORT int shmlimit_global_open(struct shmlimit *limiter, const char *text,
                                const struct shmlimit_global_options *options, struct shmlimit_global **out)
{
	struct shmlimit_global_options o = { .struct_size = sizeof(o) };
	struct shmlimit_global *g;
	struct url url;
	int error = 0;

	if (text == NULL || (limiter == NULL) != (out == NULL))
		return -EINVAL;
	/*
	 * WHY: the old libshmlimit of a program that still runs, whose segment's area old processes
	 * share.
	 */
	if (shmlimit_layout() != LAYOUT_VERSION)
		return -ELIBBAD;
	if (options != NULL)
		error = sized_in(&o, options, sizeof(o));
	if (error == 0)
		error = complete_options(&o);
	if (error == 0)
		error = read_url(&o, text, &url);
	if (error != 0)
		return error;
	if (limiter != NULL)
		error = handle_open(limiter, &o, &url, &g);
	if (limiter != NULL && error == 0)
		pool_begin(g, &url);
	explicit_bzero(&url, sizeof(url));
	if (error != 0 || limiter == NULL)
		return error;
	error = agent_thread_begin(g);
	if (error != 0)
		shmlimit_global_close(g);
	else
		*out = g;
	return error;
}

EXPORT void shmlimit_global_close(struct shmlimit_global *g)
{
	if (g == NULL)
		return;
	agent_thread_end(g);
	pool_end(g);
}
