#!/bin/sh
# The model of places that are held, searched with spin: the protocol as it is must hold, and each of its broken variants must
# break the law that hold.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
keys|1000000|-DTICKS=1 -DCLAIMS=4|2 keys take the slot in turn
one|1000000|-DOTHERS=0|2 processes, one place of one key
places|1000000|-DCAPACITY=2 -DROUNDS=1|2 keys take the slot in turn, with two places each
bound|1000000|-DOTHERS=0 -DCAPACITY=2 -DBOUND=1 -DTICKS=1|2 processes, two places of one key, of which one enters by a bound of one
lasts|1000000|-DLASTS -DOTHERS=0 -DSTAMPS=5|2 processes, one place of one key, which lasts
three|300000|-DN=3 -DROUNDS=1 -DTICKS=1 -DCLAIMS=2|3 processes, 2 keys
'
holds_full='
full-keys|10000000||2 keys take the slot in turn, longer
full-three|10000000|-DN=3 -DROUNDS=1 -DCLAIMS=4|3 processes, 2 keys, longer
full-bound|10000000|-DOTHERS=1 -DCAPACITY=2 -DBOUND=1 -DN=3 -DROUNDS=1 -DTICKS=2|3 processes, two places of 2 keys, of which one enters by a bound of one
full-places|10000000|-DOTHERS=0 -DCAPACITY=2 -DN=3 -DROUNDS=1 -DTICKS=2|3 processes, two places of one key
'
# VARIANT | law broken | macros | title
fails='
NO_STAMP|1||an entry that does not change the word loses its slot to a reclaimer
WORD_FIRST|1||an entry that swaps the word first loses its slot to a reclaimer
CELLS_FIRST|1||a reclaimer that reads the cells first does not see an entry
NO_UNDO|2||an entry that lost the swap of the word has no place
RENEW_CELL|1||a renewal that swaps its cell alone loses its slot to a reclaimer
BLIND_LEAVE|3|-DOTHERS=0|a leave that does not look at the cell ends the place of another
NO_NONCE|3|-DOTHERS=0|a second leave ends the place of another that has the same value
TRIED_IS_FREE|2|-DLASTS -DOTHERS=0 -DSTAMPS=5|a late entry whose cell another has taken has no place that lasts
BLIND_BOUND|1|-DOTHERS=0 -DCAPACITY=2 -DBOUND=1|an entry with a bound that looks at no cell beyond it is one too many
LATE_WORD|1|-DOTHERS=0 -DCAPACITY=2 -DBOUND=1|an entry with a bound that reads the word after the cells is one too many
BLIND_UNDO|3|-DOTHERS=0|an entry taken back without a look ends the place of another
'

model_check hold 12
