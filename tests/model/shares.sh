#!/bin/sh
# The model of places that keys have by shares of a total, searched with spin: the protocol as it is must hold, and each of
# its broken variants must break the law that shares.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
three|1000000||3 processes, of which 2 have one key, 3 places
once|10000|-DROUNDS=1 -DCAPACITY=2|the same with 2 places, each process once
double|10000|-DSHARE=2 -DROUNDS=1|3 processes, of which 2 have one key, by a share of 2
'
holds_full='
full-four|10000000|-DN=4 -DOTHERS=2 -DROUNDS=1|4 processes, of which each 2 have one key
full-double|10000000|-DSHARE=2 -DCAPACITY=4 -DN=4 -DROUNDS=1|4 processes, of which 3 have one key, by a share of 2
'
# VARIANT | law broken | macros | title
fails='
EARLY_LOOK|1||what is free is counted before the key is read, and another key enters
NO_LOOK|1||the entry of the total is trusted after another one
BLIND_SWAP|1||a key enters though another process of it has
BLIND_TOTAL|2|-DCAPACITY=2|the total is entered once more than it has places
NO_UNDO|3||a call that its share denies keeps its place of the total
LOST_UNDO|3||so does one that lost the swap of its key before
'

model_check shares 5
