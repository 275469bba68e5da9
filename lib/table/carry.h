/*
 * carry: a key's way from the old table into the new one, while other processes
 * decide. P is the new (present) table, O the old one.
 *
 *  1. A decision looks for its key in P. It is there: O is not looked at.
 *  2. It is not. Then *freeze* the key's whole window in O: each slot gets
 *     FROZEN, tag and word staying what they are. A process that wants to change
 *     an unfrozen slot of O afterwards finds another tag and starts over, with P.
 *  3. A committed, frozen slot of the key says something: claim a slot in P
 *     for it (table.c) and, having placed it, read the clock and look at the frozen
 *     one again. It is the same, and says something still: commit the word as it
 *     is. Then *bury* the frozen one: its tag becomes FROZEN alone. Start over:
 *     the key is found in P. It says nothing, or there is none: an ordinary claim.
 *     A peek or refund, which claims nothing, looks at P once more: the key
 *     may have been carried over between the two looks.
 *
 * A frozen slot stays frozen for ever, and no decision is made on it. A window
 * that is frozen as a whole has at most one committed slot of a key, the last
 * that it ever had there. So a key is in O, or frozen, or in P, never in two.
 *
 * Why carrying a word twice gives nothing away. It happens where a carrier is
 * late or killed between committing and burying. In P the key began with that
 * word, and what was taken since only delays its being full: once its slot there
 * has refilled and was taken by another key, the frozen word has refilled too, and
 * says nothing. If the slot was evicted, the key counts as full, and the frozen
 * word never says more than that. (To a process whose clock was read earlier it
 * might: that is why the clock is read after placing, as for a claim.) A refund
 * would let the one in P be full earlier; so a refund buries first. A reset clears
 * O before P, and step 3's second look sees that, or the reset meets what was
 * placed. Windows likewise: what is in the ring of O is older than what is
 * admitted in P. A lease is not carried, for what was spent of it would be back.
 *
 * Old views. A process that was stopped while the table grew works on O as if it
 * were the new table. It finds its key there, unfrozen: no process has decided on
 * it in P yet, and its compare-and-swap comes before the freezing or fails. It
 * places a tentative slot: the freezer meets it, and no process can commit it; or the
 * freezer was there before, and the look at the state before the commit shows that.
 * It meets what is frozen, or finds nothing: it looks at the state again.
 *
 * Killed anywhere: a half-frozen window is frozen by the next process; a
 * tentative slot in P carries nothing; a word that was committed and not buried
 * may be carried twice.
 *
 * When each slot of O is frozen and says nothing, grow.c publishes that O is not
 * looked at any more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_CARRY_H
#define SHMLIMIT_LIB_CARRY_H

#include "table.h"

/* Freeze a slot; *seen is what it holds then. 0 if others change it each time. */
int carry_freeze_slot(struct layout_slot *slot, struct slot_seen *seen);

/*
 * Freeze the key's window in the old table. *from is its committed slot
 * there, also from before its rule was changed; from->slot NULL: it has none.
 * Returns 0 if others change a slot each time.
 */
int carry_freeze(const struct shmlimit *l, const struct table *old, const struct table_key *key,
                 struct table_place *from);

/*
 * Carry what was frozen, of the version in force, over into the new table.
 * As table_place(); CLAIM_DONE: it was, look again.
 */
enum claim carry_over(const struct shmlimit *l, const struct generation *tables, const struct table_key *key,
                      struct when when, const struct rule_view *view, const struct table_place *from,
                      struct table_place *to);

/* The key is in the new table: forget what it was in the old one. */
void carry_bury(const struct shmlimit *l, const struct table *old, const struct table_key *key);

#endif
