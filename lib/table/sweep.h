/*
 * sweep: entries that are over are freed before their words can seem to be of the
 * future. So an entry that was left alone, for however long, is as if there were no slot.
 *
 * A state word has few bits for time. For `back_ns` after it is over (shmlimit_rule_range())
 * a word is known to be over; later its time comes round again. The header has a mark,
 * `swept`: each committed slot was written at that time or later, or was not over then.
 *
 *  1. A decision that finds the mark older than `sweep_after_ns` leaves for the slow path.
 *     That is half of the shortest back_ns of all rules that the segment ever had.
 *  2. There it sweeps one chunk of the table: what is over is freed, and so is what is
 *     tentative. Then it moves the cursor on, by one swap of both its words.
 *  3. The process that finds the last chunk done swaps the mark for the time at which the
 *     round began, less a slack of half of sweep_after_ns.
 *  4. If the mark is older than twice sweep_after_ns, or later than now, because the clock
 *     stepped back, a decision finishes a round before it decides.
 *
 * Why no entry comes back. Let M be the mark and B the back_ns of a rule. A slot was
 * not over before M, so its word is known until M + B. A decision at M + B or later
 * finishes a round first. So all words of the table were written before M + B, and
 * at M + B - 1 each of them says what it means: sweep_wait() reads a word at that time where
 * now is later, and subtracts what has passed since. What is not over now was not over when the
 * round began, or was written since: so the next mark is right, too.
 *
 * Several processes may sweep one chunk; one of them moves the cursor. One that is late
 * frees what is over, as a claim does, by a swap of exactly what it saw. It cannot set
 * the mark: the mark has the number of its round, and a round that was given up for another
 * has another number.
 *
 * ORDER. The mark is loaded after a word that is judged by it. If another process has moved the
 * mark on in between, the word is of before, and the swap of it fails, since that process freed it,
 * or it is not over.
 *
 * A claimer that was stopped since before the round finds its tentative slot freed, and
 * starts over: what it would have committed has a time of before the mark.
 *
 * What is not covered: a decision that was stopped between reading the clock and its swap for
 * longer than the slack, so that a round passed in between, and goes on by its old time: it may
 * leave a word that is over before the mark. One that was stopped for longer than ahead_ns takes a
 * newer word for an old one. That takes weeks, or a window's or a count's whole length several
 * times (shmlimit(7), CAVEATS). tests/schedule/sweep shows that nothing shorter does.
 *
 * A rule's writer lowers sweep_after_ns, and sweeps if that makes the table due, before it
 * publishes the rule. So a decision that looked at the old number, and then finds the new rule, has
 * a time at which the mark was not too old.
 *
 * A clock that stepped back leaves words that are further ahead than their rule can mean.
 * Decisions replace such a time, and so does a sweep.
 *
 * What only looks never sweeps: it asks sweep_is_over() about what it saw.
 *
 * WHY NOT a process or thread that sweeps: there is none, and it could be killed. WHY NOT longer
 * times in the words: a count of 48 bits leaves 16 for the time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_SWEEP_H
#define SHMLIMIT_LIB_SWEEP_H

#include "algorithm.h"
#include "table.h"

/*
 * Has the table not been swept for long, or is this before it was? generation_glance() asks that,
 * too.
 */
static inline int sweep_is_due(const struct shmlimit *l, uint64_t now_ns)
{
	return load_is_older(now_ns, &l->header->swept.ns, &l->header->sweep_after_ns);
}

/* Sweep as much as is due: nothing, a chunk, or all. */
void sweep(const struct shmlimit *l, struct when when);

/* As algorithm_wait(), for a word that may have been left alone for any time. */
uint64_t sweep_wait(const struct look *k, uint64_t word);

/*
 * Is a slot, as it was seen, equivalent to an empty one? Tentative ones are, and those of no rule.
 */
int sweep_is_over(const struct shmlimit *l, const struct table_slot *here, struct when when);

/*
 * How long after it was swept the table is due, with a rule of these parameters too: half of their
 * back_ns, at most.
 */
uint64_t sweep_after(const struct layout_params *params);

/* To be called before a rule with these parameters is published, by its writer. */
void sweep_lower(const struct shmlimit *l, const struct layout_params *params);

/* No slot of the table was ever used. */
void sweep_begin(const struct shmlimit *l, struct when when);

#endif
