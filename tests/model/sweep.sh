#!/bin/sh
# The model of sweeps, searched with spin: the protocol as it is must hold, and each of its broken variants must break the
# law that sweep.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DCOLLAPSE'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|1000000||2 processes with a decision each, on keys that were asked before
fresh|1000000|-DFRESH|2 processes with a decision each, on a key that was asked before and a new one
undo|1000000|-DUNDO|2 processes with a decision each, which may be undone
one|200000|-DN=1 -DDECISIONS=3 -DEND=9|a process with 3 decisions over a longer time
'
holds_full='
more|3000000|-DDECISIONS=2|2 processes with 2 decisions each
'
# VARIANT | law broken | macros | title
fails='
NEVER|1||what is over denies again if no decision sweeps
ONE_CHUNK|1||what is over denies again if a decision does not finish a round that is late
READ_BY_NOW|3||what was left alone for too long is kept if it is read by the present time
MARK_THE_END|3||what ended while the round went on is over before the mark
CURSOR_FIRST|3||a process that is killed after it moved the cursor leaves a chunk that nobody swept
KEEP_TENTATIVE|3|-DFRESH|a claim that was stopped for long leaves a word from before the mark
NO_RETRY|3||a decision that was stopped leaves a word from before the mark, just before the sweep would free it
FREE_ANY|2||a word that was written since is freed
UNDO_ALL|3|-DUNDO|what is undone is over before the mark if the earlier word is swapped in whatever it says
UNDO_BY_START|3|-DUNDO|what is undone is over before the mark if the time of the decision says what is over
UNDO_BY_MARK|3|-DUNDO|a decision that was stopped for long swaps in what is over if a later mark says what is over
'

model_check sweep 14
