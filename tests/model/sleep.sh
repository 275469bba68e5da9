#!/bin/sh
# The model of an agent that sleeps beside the one that it replaced, searched with spin: the protocol as it is must
# hold, and each of its broken variants must break the law that sleep.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-O1 -DCOLLAPSE'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|500000||2 processes with 2 requests each, and an agent that was replaced
'
holds_full='
three|3000000|-DN=3 -DREQUESTS=1|3 processes, and an agent that was replaced
more|10000000|-DN=3|3 processes with 2 requests each, and an agent that was replaced
'
# VARIANT | law broken | macros | title
fails='
ONE_BIT|1||one bit for all agents undoes the wake of another agent
WAKE_ON_SWAP|1||a process that loses its compare-and-swap leaves the agent asleep
CLEAR_AT_END|1||an agent that was replaced says that none sleeps
SLEEP_BLIND|1||an agent that does not look once more sleeps beside a request
LOOK_FIRST|1||a process that looks before it posts leaves the agent asleep
'

model_check sleep 5
