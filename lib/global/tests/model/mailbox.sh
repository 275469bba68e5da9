#!/bin/sh
# The model of a request to an agent, searched with spin: the protocol as it is must hold, and each of its broken
# variants must break the law that mailbox.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
one|500000|-DREQUESTS=1|2 processes, and an agent that was replaced
again|1000000|-DONE_AGENT|2 processes with 2 requests each
'
holds_full='
full|10000000||2 processes with 2 requests each, and an agent that was replaced
three|10000000|-DN=3 -DREQUESTS=1|3 processes, and an agent that was replaced
'
# VARIANT | law broken | macros | title
fails='
NO_GENERATION|1||words that come back bring the answer to another request
STORE_ANSWER|1||an answer that is stored blindly is that of another request
NO_SEAL|2||a text without a seal is of two requests
PLAIN_SEAL|2||a seal of the text alone lets a stopped process replace a request
NO_SWEEP|3||a killed process keeps its cell for ever
SLEEP_BLIND|4||an agent that does not look once more sleeps while a process waits
LOOK_FIRST|4||a process that looks before it posts leaves the agent asleep
INHERIT_AGAIN|6||an agent that gives back what another one had asked for has it counted twice
DROP_AGAIN|6||an agent that ends, and gives back what it had asked for, has it counted twice
CANCEL_BLIND|5||a process that cancels without a compare-and-swap loses the tokens of an answer
'

model_check mailbox 12
