#!/bin/sh
# The slot table's model, searched with spin: the protocol as it is must hold, and
# each of its broken variants must break the law that claim.pml says it breaks.
# MODEL_FULL=1 adds larger searches (minutes, and up to 8 GB).

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN=-Og
MEMORY_MB=1700

# NAME | fewest states | macros | title
holds='
claim|1000000|-DSTRANGERS=1 -DOTHERS=1|3 processes, 2 slots, 2 keys and a stranger
window|50000|-DSTRANGERS=1 -DOTHERS=0 -DSLOTS=3 -DN=2|2 processes want one key, 3 slots
evict|1000000|-DSTRANGERS=1 -DRESETS=1 -DEVICT -DN=2|2 processes, any keys, with evict and reset
refill|500000|-DTICKS=2 -DRESETS=1 -DN=2|2 processes, any keys, two refills and a reset
capacity|300000|-DCAPACITY=2 -DSTRANGERS=1 -DN=2|2 processes, any keys, two tokens
split|400000|-DSPLIT -DSTRANGERS=1 -DN=2|2 processes, any keys, tag and word read one after the other
solo|500000|-DSOLO -DOTHERS=1|3 processes of which two are killed at any moment
progress|200000|-DPROGRESS -DOTHERS=0|3 processes that want one key: always some call ends
keep|100000|-DKEEP_MINE -DOTHERS=1|a tentative slot given up need not be freed
'
holds_full='
full|10000000|-DSTRANGERS=1|3 processes, any keys, 2 slots
full-evict|10000000|-DSTRANGERS=1 -DEVICT -DRESETS=1 -DOTHERS=1|3 processes, evict and reset
full-refill|10000000|-DTICKS=2 -DRESETS=1 -DOTHERS=1|3 processes, two refills
full-split|10000000|-DSPLIT -DSTRANGERS=1 -DOTHERS=1|3 processes, tag and word read one after the other
full-window|8000000|-DSTRANGERS=1 -DOTHERS=0 -DSLOTS=3|3 processes want one key, 3 slots
full-slots|4000000|-DSLOTS=3 -DSTRANGERS=1 -DOTHERS=1|3 processes, 3 slots, 2 keys
'
# VARIANT | law broken, 0 = that some call ends | macros | title
fails='
TWO_CAS|1|-DOTHERS=1|two CASes in place of one charge the wrong key
NO_SECOND_SCAN|2|-DOTHERS=0|without the second scan a key has twins
NO_NONCE|2|-DOTHERS=0 -DSLOTS=3 -DSTRANGERS=1|without a nonce a key has twins
NO_NONCE|3|-DOTHERS=1 -DSTRANGERS=1|without a nonce more than capacity is admitted
IGNORE_TENTATIVE|2|-DOTHERS=1|a second scan blind to tentative slots makes twins
LEAVE_HIGHER|2|-DOTHERS=1|a higher tentative slot left alone makes twins
LEAVE_LOWER|2|-DOTHERS=1|a lower tentative slot left alone makes twins
COMMIT_EARLY|2|-DOTHERS=1|a commit before the second scan has ended makes twins
HELP_WITHOUT_SCAN|2|-DOTHERS=0 -DSLOTS=3 -DSTRANGERS=1|help without a second scan makes twins
STALE_CLOCK|3|-DOTHERS=1|a commit at the time of the call admits more than capacity
CLOCK_EARLY|3|-DOTHERS=1 -DSTRANGERS=1|a commit at a time before the second scan admits more than capacity
TORN|4|-DOTHERS=1|a denial that does not look twice denies without cause
NO_HELP|5|-DOTHERS=1 -DSOLO|without help a killed claimer locks its key out
BOTH_YIELD|0|-DOTHERS=0 -DPROGRESS|two claims that both yield may never end
'

model_check claim 16
