#!/bin/sh
# The model of a key that is paused, searched with spin: the protocol as it is must hold, and each of its broken variants
# must break the law that pause.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|100000||2 processes that pause, one that decides, a rule that changes
'
holds_full='
full-two|1000000|-DPAUSES=2|2 processes that pause twice
'
# VARIANT | law broken | macros | title
fails='
COUNT_FIRST|4||a pause has begun, and nobody looks for it
BLIND_CLEAR|1||what is taken away without a look is the next pause
BLIND_CHANGE|1||a version that is stored loses a pause
SHORTER|1||a shorter pause ends the longer one
REPLACE|2||a shorter count takes the place of the longer one
NO_CLEAR|3||what is over is never taken away
ONE_MARK|1||the rule was set again before the count began, and says nothing of it
NO_SURVEY|1||a rule that is set again is without the pauses that there are
'

model_check pause 10
