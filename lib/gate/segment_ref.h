/*
 * segment_ref: connects a process to a segment that may be created, destroyed or replaced while the
 * process runs. It opens the segment, closes a destroyed one, and opens its successor. It reports a
 * problem, and the end of a problem, once and not once per request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_SEGMENT_REF_H
#define SHMLIMIT_GATE_SEGMENT_REF_H

#include "global_library.h"
#include "log_once.h"
#include "fixed_fields.h"
#include "spec.h"

/* A handle on the segment, and the id of each rule of the spec there; -errno for a missing rule. */
struct view {
	struct shmlimit *limiter;
	/* NULL: LEASE rules cannot be asked, because of this error: */
	struct shmlimit_global *global;
	int no_global;
	uint64_t number;            /* differs from those of earlier views */
	struct fixed_fields *fixed; /* of the limits of the spec */
	int ids[];
};

struct rule_state {
	int reported;  /* the error that was reported last; 0: none */
	int unchanged; /* why an older rate than the spec's is in force; 0: the spec's is */
	int unchanged_reported;
	unsigned long rate_ms; /* when a rate of a request was last reported */
	/* see room_lacks(): the rule is missing, as the segment has no room for it; else 0 */
	int no_room;
};

struct segment_ref {
	const struct spec *spec;
	struct view *view;         /* NULL: not attached */
	int error;                 /* why not: always negative */
	uint64_t views;            /* how many there were, also in the processes before a fork */
	unsigned long looked_ms;   /* when a thread last looked at the segment's name */
	unsigned long attached_in; /* the number of the process that did: see segment_ref.c */
	unsigned long looking;     /* the number of the process that looks now; 0: none */
	/* requests that could not be decided since that was last reported */
	unsigned long failed;
	int lacked_room;            /* a rule had no room once: look for such rules in each request */
	unsigned long uncounted[2]; /* those not yet in the segment's counters: passed, refused */
	struct log_once log_once;
	void (*report)(void *arg, int bad, const char *text);
	void *arg;
	int reported;             /* the error of the segment that was reported last; 0: none */
	struct rule_state *rules; /* of the spec */
};

/* The spec must outlive it. Returns 0 or -ENOMEM. Opens nothing. */
int segment_ref_begin(struct segment_ref *ref, const struct spec *spec);

/* No thread may be inside another call. */
void segment_ref_end(struct segment_ref *ref);

/*
 * Look at the segment's name now, even if that was done recently. Returns 0, or the error. Threads:
 * safe.
 */
int segment_ref_look(struct segment_ref *ref);

/*
 * Returns the view, or NULL with *error set. segment_ref_leave() must follow in both cases; the
 * view is valid until then. At most once a second a call looks at the segment's name first, which
 * takes a few system calls. Threads: safe. Fork: a child may go on with it.
 */
struct view *segment_ref_enter(struct segment_ref *ref, int *error);
void segment_ref_leave(void);

/* Find the rules again: a rule may have been removed and set again under another id. */
void segment_ref_find_rules(struct segment_ref *ref, struct view *view);

/*
 * A rule of the spec that is missing because the segment has no room for it: see room_lacks().
 * Otherwise 0.
 */
int segment_ref_no_room(const struct segment_ref *ref, const struct view *view, size_t rule);

/* May a request's rate be reported that cannot be read? Once a minute for each rule. Then do. */
int segment_ref_may_report(struct segment_ref *ref, size_t rule);
void segment_ref_report(struct segment_ref *ref, const char *text); /* the same text once a minute at most */
void segment_ref_report_rate(struct segment_ref *ref, const char *text);

/* Count a request that could not be decided. */
void segment_ref_count_failed(struct segment_ref *ref, int passed);

/* Count a request that passed a limit for which there is no room. */
void segment_ref_count_no_room(struct segment_ref *ref);

#endif
