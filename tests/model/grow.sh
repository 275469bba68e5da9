#!/bin/sh
# How keys move to a larger table: the protocol as it is must hold, and each of its broken
# variants must break the law that grow.pml says it breaks.
# MODEL_FULL=1 adds larger searches (minutes, and up to 8 GB).

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN=-Og
MEMORY_MB=1700

# NAME | fewest states | macros | title
holds='
move|1000000|-DOLD=2 -DNEW=2|2 processes, 2 slots and 2
refill|5000000|-DOLD=1 -DTICKS=2 -DSTRANGERS=1|2 processes, refills, reclaimed by a stranger
evict|600000|-DOLD=1 -DEVICTS=1|2 processes, evicted on the way
reset|1500000|-DOLD=1 -DRESET -DTICKS=0|2 processes and a reset
change|1000000|-DOLD=1 -DCHANGE|2 processes, the capacity is raised on the way
solo|1000000|-DOLD=1 -DSOLO|2 processes of which one is killed at any moment, with the grower
'
holds_full='
full-three|1000000|-DN=3 -DOLD=1|3 processes
full-strangers|1000000|-DOLD=2 -DTICKS=2 -DSTRANGERS=2 -DEVICTS=1|2 processes, two refills, strangers, evict
full-dies|1000000|-DOLD=1 -DDIES -DTICKS=2 -DSTRANGERS=1|2 processes, each carrier is killed before it buries
full-change|1000000|-DOLD=2 -DCHANGE -DTICKS=2|2 processes, two refills, the capacity is raised
full-reset|1000000|-DOLD=2 -DRESET -DEVICTS=1|2 processes, reset and evict
'
# VARIANT | law broken | macros | title
fails='
NO_FREEZE|1||a key that is carried and not frozen is in two tables
FREEZE_FOUND|1||of a window that is frozen in part an old view claims the rest
LEAVE_TENTATIVE|1||what is tentative and not frozen is committed by an old view
THAW|3||an old view that takes frozen slots for free ones thaws them
NO_CARRY|2||a key that begins anew is admitted twice
CHARGE_FROZEN|2|-DTICKS=2|what is decided on a frozen slot is lost to who carries it
BURY_FIRST|2||what is buried before it is committed is nowhere in between
NO_RECHECK|4|-DRESET -DOLD=1 -DTICKS=0|a word that is not looked at again comes back after a reset
RESET_NEW_FIRST|4|-DRESET -DOLD=1 -DTICKS=0|a reset that clears the present table first misses what moves
LEAVE_LIVE|2||a table that is left with a key in it forgets it
CARRY_REFILLED|2|-DREVERSE -DOLD=1 -DDIES -DTICKS=2 -DSTRANGERS=1|what refilled on the way refills once more for a process with an older clock
NO_STATE|2||an old view that does not look at the state commits beside what was frozen
LEAVE_UNFROZEN|1||a table that is left and not frozen is decided on by an old view
KEEP_REFILLED|6||a key that refilled in the old table and is not buried there is in both
LOSE_BURY|6|-DOLD=1 -DCHANGE|a key whose word is converted before it is buried is in both
CONVERT_REFILLED|7|-DOLD=1 -DCHANGE|what has refilled in the old table holds something again when the capacity is raised
'

model_check grow 28
