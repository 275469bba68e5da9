/*
 * attachment: a process's hold on a segment that may come and go while the process runs. It opens the segment when there
 * is one, closes it when it was destroyed, opens its successor, and reports once, not once per request, what is wrong
 * and when that is over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_GATE_ATTACHMENT_H
#define SHMLIMIT_GATE_ATTACHMENT_H

#include "handles.h"
#include "repeats.h"
#include "spec.h"

/* A handle on the segment, and the id that each rule of the spec has there; -errno for a rule that is missing. */
struct view {
	struct shmlimit *limiter;
	struct handles *handles;       /* NULL: LEASE rules cannot be asked, for this reason: */
	int no_handles;
	int ids[];
};

struct attachment {
	const struct spec *spec;
	struct view *view;             /* NULL: not attached */
	int error;                     /* why not: negative at any time */
	unsigned long looked_ms;       /* when a thread last looked at the segment's name */
	unsigned long attached_in;     /* the process that did: see attachment.c */
	unsigned long looking;         /* the process of which a thread does; 0: none */
	unsigned long failed;          /* requests that could not be decided since the last report about that */
	unsigned long uncounted[2];    /* those that the segment's counters lack: let pass, refused */
	struct repeats repeats;
	void (*report)(void *arg, int bad, const char *text);
	void *arg;
	int reported;                  /* the error of the segment that was reported last; 0: none */
	int *rules_reported;           /* the same for each rule */
};

/* The spec must outlive it. Returns 0 or -ENOMEM. Opens nothing. */
int attachment_begin(struct attachment *a, const struct spec *spec);

/* No thread may be inside another call. */
void attachment_end(struct attachment *a);

/* Look at the segment's name now, whatever was seen before. Returns 0, or why there is no view. Threads: safe. */
int attachment_look(struct attachment *a);

/*
 * The view, or NULL, and *error says why; attachment_leave() must follow, and the view stays valid until then. At most once a
 * second a call looks at the segment's name first, which takes a few system calls. Threads: safe. Fork: a child may go
 * on with it.
 */
struct view *attachment_enter(struct attachment *a, int *error);
void attachment_leave(void);

/* Find the rules again: one may have been removed, and set again under another id. */
void attachment_find_rules(struct attachment *a, struct view *view);

/* Count a request that could not be decided. */
void attachment_count_failed(struct attachment *a, int passed);

#endif
