#!/bin/sh
# The model of a window's ring of times, searched with spin: the protocol as it is must
# hold, and each of its broken variants must break the law that ring.pml says it breaks.
# MODEL_FULL=1 adds larger searches (minutes, and up to 8 GB).

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DNOREDUCE'	# every step reads or writes what all see: nothing could be reduced
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
costs|900000|-DCOST=2 -DTICKS=5|2 processes, calls of one token and of two
three|3000000|-DN=3 -DTICKS=3|3 processes
keys|1000000|-DOTHERS=1 -DCOST=2 -DTICKS=6|2 keys with windows of their own take the slot in turn
spare|1000000|-DCELLS=3 -DCOST=2 -DTICKS=5|a ring with a cell more than capacity
triple|2000000|-DCELLS=3 -DCAPACITY=3 -DCOST=2|3 tokens in 3 cells
tick|1000000|-DS=1 -DCOST=2 -DTICKS=6|a tick of two nanoseconds
short|500000|-DS=2 -DCOST=2 -DTICKS=6|a window shorter than a tick
reset|1000000|-DRESETS=1 -DS=1|a reset, and the ring is full of times in the same tick
reset-costs|1500000|-DRESETS=1 -DCOST=2 -DTICKS=3|a reset, calls of one token and of two
step|1000000|-DSTEPS=1 -DPERIOD=4 -DTICKS=8|a clock that steps back
step-costs|1000000|-DSTEPS=1 -DPERIOD=4 -DTICKS=6 -DCOST=2|a clock that steps back, calls of one token and of two
late|200000|-DSLACK=0 -DCOST=2|whoever is late asks the clock again
split|500000|-DSPLIT -DCOST=2|tag and word read one after the other
solo|2000000|-DSOLO -DCOST=2|a process killed at any moment
solo-three|1000000|-DSOLO -DN=3 -DTICKS=1 -DPERIOD=1|3 processes of which two are killed at any moment
progress|500000|-DPROGRESS -DCOST=2|always some call ends
exact|2000000|-DEXACT -DS=1 -DCOST=2 -DTICKS=5|without resets cells may be taken at their word
undo|250000|-DUNDOS=1|an admission is undone
undo-costs|1500000|-DUNDOS=2 -DCOST=2 -DTICKS=4|two admissions are undone, of one token and of two
undo-three|1500000|-DUNDOS=1 -DN=3 -DTICKS=2|3 processes, and an admission is undone
undo-tick|900000|-DUNDOS=1 -DS=1 -DCOST=2|an admission is undone, and a tick is two nanoseconds
undo-reset|3000000|-DUNDOS=1 -DRESETS=1 -DS=1|an admission is undone beside a reset
undo-step|800000|-DUNDOS=1 -DSTEPS=1 -DPERIOD=4 -DTICKS=6|an admission is undone beside a clock that steps back
undo-solo|1500000|-DUNDOS=1 -DSOLO|an admission is undone, and a process killed at any moment
order|300000|-DDESCENDING -DCOST=2|cells may be written in any order
'
holds_full='
full-three|8000000|-DN=3 -DCOST=2 -DTICKS=3|3 processes, calls of one token and of two
full-reset|5000000|-DRESETS=1 -DCOST=2|a reset, calls of one token and of two
full-solo|4000000|-DSOLO -DN=3 -DTICKS=2|3 processes of which two are killed at any moment
full-reset-step|8000000|-DRESETS=1 -DSTEPS=1 -DPERIOD=4 -DTICKS=6|a reset, and a clock that steps back
full-step|5000000|-DSTEPS=1 -DPERIOD=4 -DTICKS=8 -DCOST=2|a clock that steps back, calls of one token and of two
'
# VARIANT | law broken, 0 = that some call ends | macros | title
fails='
NO_HELP|1||a word advanced over an unwritten cell admits more than capacity
NO_HELP|3||a word advanced over an unwritten cell makes it valid
WAIT|4|-DSOLO|who waits for a cell to be written waits for the dead
WAIT|0|-DPROGRESS|who waits for a cell to be written may wait for ever
PLAIN_STORE|3||a late store overwrites a cell that is valid again
NO_CHECK|3||a completer who does not look at the slot overwrites a valid cell
CHECK_FIRST|3||a completer who looks at the slot before the cell overwrites a valid one
TRUST_LAST|1|-DCELLS=3 -DCAPACITY=3 -DCOST=2 -DRESETS=1|the last of two cells is written by chance
DESCENDING|1|-DTRUST_LAST -DCELLS=3 -DCAPACITY=3 -DCOST=2|the last of two cells is written first
ROUND_DOWN|1|-DS=1|a tick taken for its first nanosecond admits too early
EXACT|1|-DS=1 -DRESETS=1|a cell taken at its word may be of before the reset
TIME_NOW|1||an admission at an older reading than the last goes back in time
EARLY_CLOCK|1|-DRESETS=1|a claim at the time of the call admits more than capacity
EARLY_CLOCK|3|-DRESETS=1|a claim at the time of the call takes what is in the ring for its own
KEEP_LAP|2|-DOTHERS=1|a claim that keeps the lap counts what another key took
NO_LOOK|2||a denial that does not look twice denies without cause
NARROW|2|-DUNDOS=1|a ring of as many cells as tokens denies without cause after an admission is undone
UNDO_BLIND|1|-DUNDOS=1|an admission undone by whatever stands in the slot takes back another
UNDO_LAP|3|-DUNDOS=1|an admission that began a lap, undone to the word before it, makes overwritten cells valid
LAP_IN_TICK|1|-DUNDOS=1 -DS=1|a lap that begins within the tick of the last admission lets a word come again
UNSIGNED|1|-DSTEPS=1 -DPERIOD=4 -DTICKS=8|a time to come taken for one long ago admits too much
STEP_ONE|3|-DSTEPS=1 -DPERIOD=4 -DTICKS=8 -DCOST=2|a step back that forgets unwritten cells makes them valid
NO_DOUBT|1|-DSLACK=0|a late reading taken for a clock that stepped back admits too much
SAME_NANOSECOND|1|-DSTEPS=1|a completer stopped until the nanosecond comes again overwrites a valid cell
'

model_check ring 23
