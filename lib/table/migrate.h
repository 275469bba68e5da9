/*
 * migrate: a key's way from the old table into the new one, while other processes
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
 *     the key is found in P. If the frozen one is equivalent to an empty slot, or is a
 *     lease, bury it first; then, or if there is none: an ordinary claim.
 *     A peek or refund, which claims nothing, looks at P once more: the key
 *     may have been carried over between the two looks.
 *
 * A frozen slot stays frozen for ever, and no decision is made on it. A window
 * that is frozen as a whole has at most one committed slot of a key, the last
 * that it ever had there. So a key is in O, or frozen, or in P, never in two.
 *
 * What is equivalent to an empty slot must not stay in O: under a changed rule, of a larger
 * capacity say, its word would hold something again, while the key is in P by an ordinary
 * claim, or has been idle for so long that O could be left. So step 3 buries it
 * before the claim, and a writer of rules frees it instead of converting it
 * (table_convert_slot()), whether it is frozen or not. The key then counts as full,
 * as any key without a slot does after a change.
 *
 * Why carrying a word twice grants nothing. It happens where a carrier was killed, or is
 * late, between committing and burying: only then is a key in P and in O. O is not looked
 * at while the key is in P. Once its slot there refilled and was taken by another key,
 * or was evicted, the key counts as full, and the frozen word never holds more than
 * that. Nor does it hold less for longer than it may. In P the key
 * began with that word, and what was taken since only delays its being full: when the
 * slot in P has refilled, so has the frozen one. A rule that is changed converts both, and
 * frees the frozen one if it has refilled. (To a process whose clock was read earlier it may hold
 * something: that is why the clock is read after placing, as for a claim.) A refund
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
 * may be carried twice. load, table_grow.c and walks that list keys take P's for the key's.
 *
 * When each slot of O is frozen and is equivalent to an empty one, or its key is in P,
 * table_grow.c publishes that O is not looked at any more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_MIGRATE_H
#define SHMLIMIT_LIB_MIGRATE_H

#include "table.h"

/* Freeze a slot; *seen is what it holds then. 0 if others change it each time. */
int migrate_freeze_slot(struct layout_slot *slot, struct slot_seen *seen);

/*
 * Freeze the key's window in the old table. *from is its committed slot
 * there, also from before its rule was changed; from->slot NULL: it has none.
 * Returns 0 if others change a slot each time.
 */
int migrate_freeze(const struct shmlimit *l, const struct table *old, const struct table_key *key,
                   struct table_place *from);

/*
 * Carry what was frozen, of the version in force, over into the new table.
 * As table_place(); CLAIM_DONE: it was, look again.
 */
enum claim migrate_key(const struct shmlimit *l, const struct table_claim *c, const struct table_place *from,
                       struct table_place *to);

/* Bury a frozen slot of the key, as it was seen. Returns 0 if it was changed since. */
int migrate_bury_place(const struct table_place *from);

/* The key is in the new table: forget what it was in the old one. */
void migrate_bury(const struct shmlimit *l, const struct table *old, const struct table_key *key);

#endif
