/*
 * rules.h: rules as a user gives them, on the command line or in a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef RULES_H
#define RULES_H

#include "command.h"
#include "segment_options.h"

#define RULE_RATE_MAX 128 /* longest text of a rate, bytes with the NUL */

/* A rule that is wanted, and what there is of it. */
struct rule_spec {
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	int line;       /* of a file: where its section begins */
	int wrong;      /* something that was given is wrong, which was said */
	unsigned given; /* the fields that were given: 1 << FIELD_... */
	unsigned said;  /* those that follow from the rate's text, the same way */
	char rate[RULE_RATE_MAX];
	struct shmlimit_rule rule;
	int exists;               /* from here on, rule_spec_complete() fills */
	struct shmlimit_rule old; /* all zero if it does not exist */
};

/*
 * rule_spec.c: from what was given to a rule that is set. rule_spec_complete() fills up
 * what was not given with what the rule has. rule_spec_check() says what rule_spec_set() would say;
 * it wants a handle that is read-only, and changes nothing.
 */
int rule_spec_begin(struct rule_spec *spec, const char *name);            /* a status */
int rule_spec_parse(struct rule_spec *spec, int field, const char *text); /* a status */
const char *rule_spec_lacks(const struct rule_spec *spec); /* what a new rule would have to be given, or NULL */
int rule_spec_complete(struct rule_spec *spec, struct shmlimit *limiter, const char *segment);      /* a status */
int rule_spec_check(const struct rule_spec *spec, struct shmlimit *read_only, const char *segment); /* a status */
int rule_spec_set(const struct rule_spec *spec, struct shmlimit *limiter, const char *segment);     /* a status */

/* rules_file.c: what a file asks for. */
struct rules_file {
	const char *path;       /* as messages name it */
	struct rule_spec *spec; /* in the file's order */
	size_t count;
	int enabled;                               /* the segment's switch: 1, 0; -1: not given */
	struct shmlimit_options options;           /* what the segment is made with */
	int segment_options_line[SEGMENT_OPTIONS]; /* where that stands; 0: it isn't given */
	unsigned wrong;                            /* errors that were said of it */
};

/*
 * `path` "-": standard input. Says all that is wrong in the file; what is left is in *file. Returns
 * a status; file->spec is the caller's to free in any case.
 */
int rules_file_read(const char *path, struct rules_file *file);

/* plan.c: the changes that make a segment what a file describes. */
enum {
	PLAN_PRUNE = 1,   /* rules that are not in the file have to go */
	PLAN_CREATE = 2,  /* a segment that is missing is to be made */
	PLAN_JSON = 8,    /* it is shown as JSON, an object on a line */
	PLAN_TRUSTED = 4, /* the user has not named the segment: its owner must be trusted */
};

struct plan {
	const char *segment;
	unsigned flags; /* PLAN_... */
	struct rules_file file;
	int missing;           /* there is no such segment */
	struct shmlimit *seen; /* read-only: what is decided by; where it is missing, one like it */
	struct shmlimit_info info;
	char (*gone)[SHMLIMIT_RULE_NAME_MAX + 1]; /* rules that have to go */
	size_t gone_count;
};

/*
 * plan_make() reads the file, `path`, and checks all of it; nothing is changed.
 * It says of a segment that is there what it was made with that the file has
 * otherwise, and leaves it at that. The rest of *plan is the caller's to free
 * in any case, by plan_free().
 */
int plan_make(struct plan *plan, const char *segment, const char *path, unsigned flags); /* a status */
int plan_is_empty(const struct plan *plan);                                              /* nothing to do? */
int plan_show(const struct plan *plan);                                                  /* a status */
int plan_perform(const struct plan *plan); /* shows it, and does what was shown; a status */
void plan_free(struct plan *plan);

#endif
