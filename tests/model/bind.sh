#!/bin/sh
# The model of a place that is bound to a process, searched with spin: the protocol as it is must hold, and each of its
# broken variants must break the law that bind.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
three|1000000||3 processes with 2 calls each
'
holds_full='
full-three|10000000|-DCALLS=3|3 processes with 3 calls each
'
# VARIANT | law broken | macros | title
fails='
CELL_FIRST|2||a cell that is bound before its owner is written has none
SWAP_BOUND|1||an owner that is swapped while its cell is bound loses the place
SHARED|1||two owners of one value of a cell lose the place of the second
BLIND_OWNER|1||an owner that is stored late loses the place of another
BLIND_BURY|1||a place taken away without a look belongs to another holder by then
STAY_BOUND|2||a renewed place that stays bound without an owner is not taken away
'

model_check bind 9
