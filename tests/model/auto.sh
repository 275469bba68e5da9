#!/bin/sh
# The model of a number that is found, searched with spin: the protocol as it is must hold, and each of its broken variants
# must break the law that auto.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
three|1000000|-DTIMES=2|3 processes that leave two places each
'
holds_full='
full-two|100000|-DLEAVERS=2 -DTIMES=5|2 processes that leave five places each
'
# VARIANT | law broken | macros | title
fails='
NO_EPOCH|1||a window has times of the one before
BLIND_CLOSE|2||a window is closed twice
BLIND_ADD|4||a time that is stored loses others
NO_AGAIN|4||a window is replaced by an earlier one
HALF_CLOSE|3||the window that is closed is another
'

model_check auto 4
