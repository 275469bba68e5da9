#!/bin/sh
# The model of the memory of logs and places, searched with spin: the protocol as it is must hold, and each of its broken
# variants must break the law that cells.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|1000000|-DTURNS=1|2 processes, 2 keys of two sizes
resets|1000000|-DRESETS=1 -DTURNS=0|2 processes, and a slot that is reset
none|1000000|-DFREE=0|no memory in the beginning
one|100000|-DONE_KEY=1 -DCALLS=3 -DRESETS=1|2 processes that want one key, whose rule gets the larger size
'
holds_full='
full-three|10000000|-DN=3 -DCALLS=1|3 processes, of which two want one key
full-resets|3000000|-DRESETS=1 -DTURNS=1|2 processes, and a slot that is reset, longer
full-none|2000000|-DFREE=0 -DTURNS=3|no memory in the beginning, longer
'
# VARIANT | law broken | macros | title
fails='
COMMIT_FIRST|1||cells that are reserved after the commit are met by another process before
COMMIT_FIRST|2||a slot that is committed first has no cells
GO_ON|1||a process that goes on without memory writes into a hole
GO_ON|2||a process that goes on without memory commits a slot without cells
CONVERT_BLIND|1||a slot that is converted without reserving leads into a hole
CONVERT_BLIND|2||a slot that is converted without reserving has no cells
RULE_SIZE|1||the size in force is not that of a slot of the version before
GIVE_BACK|1||cells that are given back are read by a process that was stopped
EVICT_FIRST|3|-DFREE=1|a key that finds no memory has taken the slot of another
OLD_VIEW|2||cells that are reserved for the rule in force are not those of the version that is committed
'

model_check cells 12
