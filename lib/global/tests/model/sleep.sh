#!/bin/sh
# The model of an agent that sleeps beside the one that it replaced, searched with spin: the protocol as it is must
# hold, and each of its broken variants must break the law that sleep.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DCOLLAPSE'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|500000||2 processes with 2 requests each, and an agent that was replaced
doze|500000|-DDOZE -DN=1 -DREQUESTS=3|a process with 3 requests, and agents that doze
'
holds_full='
three|3000000|-DN=3 -DREQUESTS=1|3 processes, and an agent that was replaced
dozing|7000000|-DDOZE -DREQUESTS=1|2 processes with a request each, and agents that doze
more|10000000|-DN=3|3 processes with 2 requests each, and an agent that was replaced
'
# VARIANT | law broken | macros | title
fails='
ONE_BIT|1||one bit for all agents undoes the wake of another agent
WAKE_ON_SWAP|1||a process that loses its compare-and-swap leaves the agent asleep
CLEAR_AT_END|1||an agent that was replaced says that none sleeps
SLEEP_BLIND|1||an agent that does not look once more sleeps beside a request
LOOK_FIRST|1||a process that looks before it posts leaves the agent asleep
DOZE_DEAF|1|-DDOZE -DN=1|a request does not wake an agent that dozes
DOZE_OVER|2|-DDOZE -DN=1|an agent that dozes hides one that sleeps from what may wait
DOZE_ON|2|-DDOZE -DN=1|an agent that dozes after it slept hides another one, too
WAIT_LONG|2|-DDOZE -DN=1|what may wait leaves the agent asleep
'

model_check sleep 7
