/*
 * top.h: what top looks at, over and over, and its two ways of showing it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TOP_H
#define TOP_H

#include "choice.h"
#include "key_text.h"
#include "number_text.h"
#include "top_keys.h"

/* ---- top_sample.c: all counters, at one moment ---- */

struct top_count {
	int id;
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	struct shmlimit_counters counters;
	uint64_t on_failure; /* requests that on_failure decided; UINT64_MAX: not known */
};

struct top_sample {
	uint64_t at_ns; /* 0: none was taken */
	struct top_count all;
	struct top_count *rule; /* by id */
	size_t rules;
};

/*
 * Of the segment `name`, in place of what *sample was. What on_failure decided is known to those
 * that may write to the segment. Returns a status; the sample is the caller's to free in any case.
 */
int top_sample_take(const char *name, struct shmlimit *limiter, const struct shmlimit_info *info,
                    struct top_sample *sample);
void top_sample_free(struct top_sample *sample);

/* ---- top_rates.c: what happened between two moments, pure ---- */

enum top_sort { TOP_DENIED, TOP_ALLOWED, TOP_NAME, TOP_SORTS };

/* Of a rule, or of all. A rate that is not known, for want of an earlier sample, is negative. */
struct top_row {
	char name[SHMLIMIT_RULE_NAME_MAX + 1];
	uint64_t allowed, denied;             /* since it was defined */
	double allowed_s, denied_s, shadow_s; /* a second */
	double evictions_s, no_slot_s, on_failure_s;
};

/* A row for each rule of `now`, and *all. */
void top_rows(const struct top_sample *before, const struct top_sample *now, struct top_row *rows, struct top_row *all);
void top_rows_sort(struct top_row *rows, size_t n, enum top_sort sort);

const char *top_rate_text(char text[TEXT_LEN], double per_second); /* "0.2", "1530", "-" */
const char *top_span_text(char text[TEXT_LEN], uint64_t ns);       /* rounded down: "12.5s", "3m20s", "2d23h" */

/* ---- top_look.c: one look at a segment, and what follows from it ---- */

struct top {
	/* What is wanted. */
	const char *name;
	uint64_t interval_ns;
	enum top_sort sort;
	enum top_keys_order order;
	char rule[SHMLIMIT_RULE_NAME_MAX + 1]; /* this one only; "": all */
	uint64_t keys_max;
	char match[TEXT_LEN]; /* keys only that match this pattern; "": all */
	uint64_t slots;       /* to be looked at each time, at most */

	/* What was seen. */
	struct shmlimit *limiter; /* NULL: the segment is gone */
	struct shmlimit_info info;
	struct top_sample before, now;
	struct top_row *row, all;
	size_t rows;
	struct top_keys keys;
	uint64_t first, looked;  /* the slots of that look: from which, how many */
	char news[2 * TEXT_LEN]; /* the last about the segment itself, or what was changed; or "" */
};

/*
 * Look at counters and keys: of a table larger than top->slots at its next part,
 * and again at the keys that came first till then. If the segment is gone, go on with the one that
 * has its name now. Returns a status, which is STATUS_OK also when there is none.
 */
int top_look(struct top *top);
int top_look_at_keys(struct top *top); /* at keys alone: others are wanted; a status */
void top_close(struct top *top);

/* ---- top.c: what stat shares ---- */

#define TOP_INTERVAL_DEFAULT UINT64_C(1000000000)

int top_interval_parse(const char *text, uint64_t *ns); /* a duration, or a number of seconds; a status */
/*
 * A look, and then `count` more (0: any number), each an interval later and shown: so all have
 * rates. Returns a status.
 */
int top_each(struct top *top, uint64_t count, int (*show)(struct top *top, uint64_t i));

/* In words, for both ways of showing: the segment, and what happens in it. */
#define TOP_LINE_LEN (SHMLIMIT_NAME_MAX + 4 * TEXT_LEN)
/*
 * The segment's name is cut, which a tilde shows, so that the line fits into that number of
 * columns.
 */
void top_segment_text(char text[TOP_LINE_LEN], const struct top *top, size_t columns);
void top_all_text(char text[TOP_LINE_LEN], const struct top *top);
const char *top_key_text(char text[KEY_TEXT_LEN], const struct top *top, const struct top_key *slot);
int top_finds_numbers(const struct top *top); /* is one of the keys of a rule with a law? */
const char *top_queue_text(char text[TEXT_LEN], const struct top_key *slot); /* "2.4", or "-": there is no law */

/* ---- top_act.c: changes; top->news has what came of them ---- */

void top_reset_key(struct top *top, const char *rule, uint64_t fingerprint);
#define TOP_BAN_NS (UINT64_C(3600) * 1000000000)
void top_ban_key(struct top *top, const struct top_key *slot);
int top_rule_mode(const struct top *top, const char *rule); /* SHMLIMIT_ENFORCE, ..., or -1: not known */
void top_rule_switch(struct top *top, const char *rule, uint32_t mode);

/* ---- top_text.c, top_json.c, top_screen.c ---- */

int top_text(const struct top *top);             /* a snapshot; a status */
int top_json(const struct top *top);             /* the same; the rows as they are sorted */
int top_terminal_paints(void);                   /* top_terminal.c: are input and output one that can be painted on? */
int top_screen(struct top *top, uint64_t count); /* until q, or `count` looks (0: any); a status */

extern const struct choice choices_top_sort[], choices_top_order[];

#endif
