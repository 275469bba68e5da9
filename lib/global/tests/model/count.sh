#!/bin/sh
# The model of a count that hosts share, searched with spin: the protocol as it is must hold, and each of its broken
# variants must break the law that count.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DCOLLAPSE'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|50000||2 hosts with 2 requests each
'
holds_full='
more|5000000|-DREQUESTS=3|2 hosts with 3 requests each
'
# VARIANT | law broken | macros | title
fails='
ADD_IN_TWO|1||a backend that reads, then adds, counts one request for two
ALLOW_HERE|1||a host that counts by itself allows more than the bound
ASK_AGAIN|1||an answer that is used twice allows more than the bound
FORGET|3||a backend that forgets what it counted counts a request of two agents twice
OUTLIVES|2||a slot that outlives the count denies what the backend allows
LATE_WRITE|2||an old answer denies what the backend allows
ADD_HERE|2|-DHOSTS=1 -DBOUND=3 -DREQUESTS=3|an answer that is added to the last one denies what the backend allows
'

model_check count 12
