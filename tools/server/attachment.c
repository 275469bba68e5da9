/*
 * attachment: see attachment.h.
 *
 * A thread may be inside a decision while another finds that the segment is
 * another one now. So a handle is reached by one pointer, under liburcu's read
 * lock, which waits for nobody; who replaces it waits until all who may have
 * seen the old one are out, and closes that then. Where they ask an engine that is
 * a deadline for each global limit of a request: he is one thread, and no other
 * waits for him.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu/urcu-bp.h>
#include <urcu/uatomic.h>

#include "attachment.h"
#include "bundle.h"
#include "number.h"
#include "repeats.h"

/* liburcu's macros cast qualifiers away. */
#pragma GCC diagnostic ignored "-Wcast-qual"

#define LOOK_EVERY_MS 1000u

/* A handle and the ids that the rules have in its segment; -errno for one that is not there. */
struct view {
	struct shmlimit *limiter;
	struct handles *handles;       /* NULL: there is no engine, or it cannot be asked, for this reason: */
	int no_handles;
	int ids[];
};

struct attachment {
	struct attachment_options options;
	struct view *view;             /* NULL: not attached */
	unsigned long looked_ms;       /* when somebody last looked */
	unsigned long failed;          /* requests that were not decided since the last word about it */
	pthread_mutex_t looking;       /* who looks: never waited for */
	struct repeats repeats;        /* of the engine */
	int error;                     /* why not attached: negative at any time */
	int said;                      /* the error that was logged last */
	int rule_said[];               /* for each rule too */
};

static const char *engine_option(struct attachment_options *options, const char *url)
{
	if (strcmp(url, "-") == 0)
		url = getenv("SHMLIMIT_ENGINE");
	if (url == NULL)
		return "needs SHMLIMIT_ENGINE in the environment";
	if (number_after(url, "redis://") == NULL && number_after(url, "unix://") == NULL &&
	    number_after(url, "redis+unix://") == NULL)
		return "must be engine=redis://..., engine=unix://... or engine=-";
	options->engine = url;
	return NULL;
}

static const char *owner_option(struct attachment_options *options, const char *user)
{
	const struct passwd *found = getpwnam(user);

	if (found == NULL)
		return "must be owner=USER, a user of this host";
	options->owner = found->pw_uid;
	return NULL;
}

const char *attachment_name(const char *name)
{
	return shmlimit_check_names(name, NULL) == 0 ? NULL :
	       "must be a segment's name: 1 to 255 bytes, no / or control characters, not a dot first";
}

const char *attachment_option(struct attachment_options *options, const char *option)
{
	const char *at;
	uint64_t n;

	if (strcmp(option, "fail=open") == 0 || strcmp(option, "fail=closed") == 0) {
		options->fail_open = strcmp(option, "fail=open") == 0;
		return NULL;
	}
	at = number_after(option, "owner=");
	if (at != NULL)
		return owner_option(options, at);
	at = number_after(option, "engine=");
	if (at != NULL)
		return engine_option(options, at);
	at = number_after(option, "deadline=");
	if (at != NULL) {
		at = number(at, 1, 10000, 'm', &n);
		if (at == NULL || strcmp(at, "s") != 0)
			return "must be deadline=Nms, 1ms to 10000ms";
		options->deadline_ms = (unsigned)n;
		return NULL;
	}
	at = number_after(option, "share=");
	if (at != NULL) {
		if (number(at, 1, 1000, '\0', &n) == NULL)
			return "must be share=N, thousandths, 1 to 1000";
		options->share_milli = (unsigned)n;
		return NULL;
	}
	return "must be fail=open or fail=closed, owner=USER, engine=URL, deadline=Nms or share=N";
}

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (unsigned long)now.tv_sec * 1000u + (unsigned long)now.tv_nsec / 1000000u;
}

static const char *words(int error)
{
	switch (error) {
	case -EPERM:
		return "it belongs to neither root nor this user, or has another hard link";
	case -EDESTADDRREQ:
		return "it is a lease, and there is no engine= to lease from";
	case -EINVAL:
		return "it is a lease, and the engine's URL is wrong";
	default:
		return shmlimit_strerror(error);
	}
}

/* Log what is wrong with the segment, or with a rule of it, if that is news. */
static void say(struct attachment *a, const char *rule, int error, int *said)
{
	const struct attachment_options *o = &a->options;
	const char *what = o->fail_open ? "pass without a limit" : "are refused";
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];
	int at;

	if (error == *said)
		return;
	*said = error;
	at = snprintf(text, sizeof(text), "segment %.*s: ", SHMLIMIT_NAME_MAX, o->segment);
	if (rule != NULL)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "rule %.*s: ", SHMLIMIT_RULE_NAME_MAX, rule);
	if (error != 0)
		snprintf(text + at, sizeof(text) - (size_t)at, "%s: requests that need it %s", words(error), what);
	else
		snprintf(text + at, sizeof(text) - (size_t)at, "in order again; requests that %s: %lu",
		         o->fail_open ? "passed without a limit" : "were refused", uatomic_xchg(&a->failed, 0));
	o->log(o->context, error != 0, text);
}

static void find_rules(struct attachment *a, struct view *view)
{
	for (size_t i = 0; i < a->options.rule_count; i++)
		uatomic_set(&view->ids[i], shmlimit_rule_find(view->limiter, a->options.rules[i]));
}

static void report(void *attachment, const char *text)
{
	struct attachment *a = attachment;

	if (!repeats_has(&a->repeats, text, now_ms()))
		a->options.log(a->options.context, 1, text);
}

/* That there is none is a matter of those rules that need it. */
static void open_handles(struct attachment *a, struct view *view)
{
	const struct attachment_options *o = &a->options;
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.on_failure = o->share_milli != 0 ? SHMLIMIT_GLOBAL_LOCAL :
		              o->fail_open        ? SHMLIMIT_GLOBAL_ALLOW :
		                                    SHMLIMIT_GLOBAL_DENY,
		.deadline_ns = UINT64_C(1000000) * o->deadline_ms,
		.local_milli = o->share_milli,
		.report = report,
		.arg = a,
	};

	view->no_handles = -EDESTADDRREQ;
	if (o->engine != NULL)
		view->no_handles = handles_new(view->limiter, o->engine, &options, &view->handles);
}

static int open_view(struct attachment *a, struct view **out)
{
	struct view *view = calloc(1, sizeof(*view) + a->options.rule_count * sizeof(view->ids[0]));
	int error;

	if (view == NULL)
		return -ENOMEM;
	error = shmlimit_open_owned(a->options.segment, 0, a->options.owner, &view->limiter);
	if (error != 0) {
		free(view);
		return error;
	}
	find_rules(a, view);
	open_handles(a, view);
	*out = view;
	return 0;
}

static void close_view(struct view *view)
{
	if (view == NULL)
		return;
	handles_free(view->handles);
	shmlimit_close(view->limiter);
	free(view);
}

/* Attach, or attach again, where needed; find the rules anew, which may have been removed and set again. */
static void look(struct attachment *a)
{
	struct view *old = a->view, *fresh = NULL;
	int error = 0;

	if (old != NULL && shmlimit_gone(old->limiter) == 0) {
		find_rules(a, old);
		fresh = old;
	} else {
		error = open_view(a, &fresh);
		if (error != 0)
			uatomic_set(&a->error, error);
		rcu_assign_pointer(a->view, fresh);
		if (old != NULL) {
			urcu_bp_synchronize_rcu();
			close_view(old);
		}
	}
	say(a, NULL, error, &a->said);
	for (size_t i = 0; fresh != NULL && i < a->options.rule_count; i++) {
		int id = uatomic_read(&fresh->ids[i]);
		int wrong = bundle_is_global(fresh->limiter, id) ? fresh->no_handles : 0;

		say(a, a->options.rules[i], id < 0 ? id : wrong, &a->rule_said[i]);
	}
}

static void look_if_due(struct attachment *a)
{
	unsigned long now = now_ms();

	if (now - uatomic_read(&a->looked_ms) < LOOK_EVERY_MS || pthread_mutex_trylock(&a->looking) != 0)
		return;
	uatomic_set(&a->looked_ms, now);
	look(a);
	pthread_mutex_unlock(&a->looking);
}

struct attachment *attachment_new(const struct attachment_options *options)
{
	struct attachment *a = calloc(1, sizeof(*a) + options->rule_count * sizeof(a->rule_said[0]));

	if (a == NULL)
		return NULL;
	a->options = *options;
	a->error = -ENOENT;
	pthread_mutex_init(&a->looking, NULL);
	repeats_begin(&a->repeats);
	a->looked_ms = now_ms();
	look(a);
	return a;
}

void attachment_free(struct attachment *a)
{
	if (a == NULL)
		return;
	close_view(a->view);
	pthread_mutex_destroy(&a->looking);
	repeats_end(&a->repeats);
	free(a);
}

/* Ask the limits of the list, all or none. */
static int take(struct attachment *a, struct view *view, const struct limit *limits, const struct limit_key *keys,
                const size_t *list, size_t n, size_t *failed, struct shmlimit_result *results)
{
	struct shmlimit_request requests[SHMLIMIT_REQUESTS_MAX];
	int answer = -ESRCH;

	/* BOUND: a rule that is not there may have been set again under another id: look once. */
	for (int again = 0; answer == -ESRCH && again < 2; again++) {
		if (again)
			find_rules(a, view);
		for (size_t i = 0; i < n; i++)
			requests[i] = (struct shmlimit_request){
				.rule = uatomic_read(&view->ids[limits[list[i]].rule]),
				.key = keys[list[i]].bytes,
				.key_len = keys[list[i]].length,
				.cost = limits[list[i]].cost,
			};
		answer = bundle_take(view->limiter, view->handles, requests, n, failed, results);
	}
	return answer;
}

/* Add what there is to tell of one limit's answer. */
static void tell(struct attachment *a, struct view *view, const struct limit *limit, int answer,
                 const struct shmlimit_result *r, struct verdict *v)
{
	struct shmlimit_fields *fields = &v->told[v->told_count];
	struct shmlimit_rule rule;

	/* Whoever is denied, in a dry run or not, has hit a limit; but of a dry run clients are told nothing. */
	if (answer == SHMLIMIT_ALLOWED && r->retry_after_ns > 0)
		v->dry_denied = 1;
	if (answer == SHMLIMIT_ALLOWED && limit->quiet)
		return;
	rule.struct_size = sizeof(rule);
	if (shmlimit_rule_get(view->limiter, uatomic_read(&view->ids[limit->rule]), &rule) != 0)
		return;
	if (rule.mode != SHMLIMIT_ENFORCE)
		return;
	fields->struct_size = sizeof(*fields);
	if (shmlimit_fields(a->options.rules[limit->rule], &rule, answer, r, fields) == 0)
		v->told_count++;
}

static void least(struct verdict *v, const struct shmlimit_result *r)
{
	if (r->remaining < v->remaining)
		v->remaining = r->remaining;
}

static void enforce(struct attachment *a, struct view *view, const struct limit *limits,
                    const struct limit_key *keys, const size_t *list, size_t n, struct verdict *v)
{
	struct shmlimit_result results[SHMLIMIT_REQUESTS_MAX];
	size_t failed = 0;

	if (n == 0)
		return;
	v->answer = take(a, view, limits, keys, list, n, &failed, results);
	if (v->answer == SHMLIMIT_DENIED) {
		/* What was taken before it was given back: nobody needs to hear of that. */
		v->denied_by = list[failed];
		least(v, &results[failed]);
		tell(a, view, &limits[list[failed]], v->answer, &results[failed], v);
	}
	for (size_t i = 0; v->answer == SHMLIMIT_ALLOWED && i < n; i++) {
		least(v, &results[i]);
		tell(a, view, &limits[list[i]], v->answer, &results[i], v);
	}
}

static void rehearse(struct attachment *a, struct view *view, const struct limit *limits,
                     const struct limit_key *keys, size_t which, struct verdict *v)
{
	struct shmlimit_result r;
	size_t failed;
	int answer = take(a, view, limits, keys, &which, 1, &failed, &r);

	if (answer < 0)
		v->dry_failed = answer;
	else
		least(v, &r);
	if (answer == SHMLIMIT_DENIED || (answer == SHMLIMIT_ALLOWED && r.retry_after_ns > 0))
		v->dry_denied = 1;
}

void attachment_ask(struct attachment *a, const struct limit *limits, const struct limit_key *keys, size_t n,
                    struct verdict *v)
{
	size_t enforced[SHMLIMIT_REQUESTS_MAX], count = 0;
	struct view *view;

	look_if_due(a);
	v->answer = SHMLIMIT_ALLOWED;
	v->dry_denied = v->dry_failed = 0;
	v->remaining = UINT64_MAX;
	v->denied_by = v->told_count = 0;
	for (size_t i = 0; i < n; i++)
		if (!limits[i].dry_run)
			enforced[count++] = i;
	urcu_bp_read_lock();
	view = rcu_dereference(a->view);
	if (view == NULL && count > 0) {
		v->answer = uatomic_read(&a->error);
	} else if (view == NULL) {
		v->dry_failed = uatomic_read(&a->error);
	} else {
		enforce(a, view, limits, keys, enforced, count, v);
		for (size_t i = 0; v->answer == SHMLIMIT_ALLOWED && i < n; i++)
			if (limits[i].dry_run)
				rehearse(a, view, limits, keys, i, v);
	}
	urcu_bp_read_unlock();
	if (v->answer < 0 || v->dry_failed < 0)
		uatomic_inc(&a->failed);
}
