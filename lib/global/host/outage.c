/*
 * outage: see outage.h.
 *
 * Three words: since when, when it was last reported, and how many requests on_failure has decided.
 * A compare-and-swap of the first ends an outage, one of the second chooses the process that
 * reports. A process that is killed between the two and its report takes one line with it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>

#include "atomic.h"
#include "outage.h"

#define AGAIN_NS UINT64_C(60000000000)

static const char *const done[] = {
	[SHMLIMIT_GLOBAL_DENY] = "denied",
	[SHMLIMIT_GLOBAL_ALLOW] = "allowed",
	[SHMLIMIT_GLOBAL_LOCAL] = "decided by this host's share",
	[SHMLIMIT_GLOBAL_ERROR] = "answered with an error",
};

/* Does the backend fail, or is this only a late answer, a lease's end, or a key of another type? */
static int is_out(struct shmlimit_global *g)
{
	uint64_t now_ns = monotonic_now_ns();

	return g->mailbox != NULL && mailbox_has_agent(g->mailbox, g->backend, now_ns) &&
	       mailbox_is_failing(g->mailbox, now_ns);
}

static void report_outage(struct shmlimit_global *g, const char *text)
{
	char line[URL_TEXT_MAX + 160];

	if (g->options.report == NULL)
		return;
	snprintf(line, sizeof(line), "backend %s: %s", g->breaker.key, text);
	g->options.report(g->options.arg, line);
}

void outage_note(struct shmlimit_global *g)
{
	uint64_t now_ns = monotonic_now_ns(), since_ns, told_ns;
	const char *what = done[g->options.on_failure];
	struct mailbox_outage *outage;
	char text[128];

	if (!is_out(g))
		return;
	outage = mailbox_outage(g->mailbox);
	(void)word_cas(&outage->since_ns, 0, now_ns);
	add_relaxed(&outage->decisions, 1);
	since_ns = load_relaxed(&outage->since_ns);
	told_ns = load_relaxed(&outage->told_ns);
	if ((told_ns != 0 && now_ns < told_ns + AGAIN_NS) || !word_cas(&outage->told_ns, told_ns, now_ns))
		return;
	if (told_ns == 0)
		snprintf(text, sizeof(text), "it does not answer: requests that need it are %s", what);
	else
		snprintf(text, sizeof(text), "it has not answered for %" PRIu64 " s: requests %s: %" PRIu64,
		         (now_ns - since_ns) / 1000000000, what, load_relaxed(&outage->decisions));
	report_outage(g, text);
}

void outage_over(struct shmlimit_global *g)
{
	struct mailbox_outage *outage = g->mailbox != NULL ? mailbox_outage(g->mailbox) : NULL;
	uint64_t since_ns = outage != NULL ? load_relaxed(&outage->since_ns) : 0, told_ns, n, tenths;
	char text[128];

	if (since_ns == 0 || is_out(g) || !word_cas(&outage->since_ns, since_ns, 0))
		return;
	told_ns = load_relaxed(&outage->told_ns);
	n = load_relaxed(&outage->decisions);
	store_relaxed(&outage->decisions, 0);
	store_relaxed(&outage->told_ns, 0);
	if (told_ns == 0)
		return;
	tenths = (monotonic_now_ns() - since_ns) / 100000000;
	snprintf(text, sizeof(text), "it answers again, after %" PRIu64 ".%" PRIu64 " s; requests %s: %" PRIu64,
	         tenths / 10, tenths % 10, done[g->options.on_failure], n);
	report_outage(g, text);
}
