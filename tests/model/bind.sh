#!/bin/sh
# The model of a place that is bound to a process, searched with spin: the protocol as it is must hold, and each of its
# broken variants must break the law that bind.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|50000|-DCALLS=2|2 processes with 2 calls each
late|50000|-DLATE -DCALLS=2|2 processes with 2 calls each, of which one swaps the cell of a key that moves
'
holds_full='
full-two|10000000||2 processes with 3 calls each
full-three|1000000|-DN=3 -DCALLS=2|3 processes with 2 calls each
'
# VARIANT | law broken | macros | title
fails='
BY_VALUE|1||a place taken away by its value alone was bound to another process
NO_LOOK|1||a place bound without a look at the slot has moved without its owner
NO_LOOK_BACK|3||a place left without a look at the slot has moved, and is held
BLIND_OWNER|1||an owner that is stored late loses the place of another
BLIND_BURY|1||a place taken away without a look belongs to another holder by then
KEEP_OWNER|1||a place entered without an owner of its own belongs to the former holder
TORN|4|-DLATE -DCALLS=2|a carrier that does not read the value again gives a place to the process of a late entry
LEFT_BEHIND|2||a place that moved without its owner is not taken away when its holder has died
'

model_check bind 10
