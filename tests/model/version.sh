#!/bin/sh
# The model of rules that change, searched with spin: the protocol as it is must hold,
# and each of its broken variants must break the law that version.pml says it breaks.
# MODEL_FULL=1 adds larger searches (minutes, and up to 8 GB).

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DNOREDUCE'	# every step reads or writes what all see: nothing could be reduced
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
change|4000000|-DCHANGES=4 -DVERSIONS=3|2 processes, 3 changes, of versions that wrap at the third
remove|300000|-DCHANGES=2 -DREMOVES|2 processes, a change and removals
reset|700000|-DCHANGES=2 -DRESETS=1|2 processes, a change and a reset
algorithm|500000|-DCHANGES=3 -DALGORITHMS=4|2 processes, a change to another algorithm and back
algorithm-remove|300000|-DCHANGES=2 -DREMOVES -DALGORITHMS=4|2 processes, a change to another algorithm and removals
algorithm-solo|300000|-DCHANGES=2 -DALGORITHMS=4 -DSOLO|3 processes, a change to another algorithm, of which two are killed at any moment
algorithm-wrap|100000|-DN=1 -DCHANGES=8 -DALGORITHMS=338 -DTERMS -DLOOKS -DTICKS=1|1 process, 7 changes, of which some are to another algorithm, and a refill
slots|1000000|-DCHANGES=2 -DSLOTS=3|2 processes, a change, 3 slots
solo|1000000|-DCHANGES=2 -DREMOVES -DSOLO|3 processes, the writer among them, of which two are killed at any moment
wrap|200000|-DN=1 -DCHANGES=10 -DTERMS -DLOOKS|1 process, 9 changes: versions wrap twice
wrap-remove|400000|-DN=1 -DCHANGES=7 -DREMOVES -DTERMS -DLOOKS|1 process, 6 changes, removals anywhere between
wrap-refill|200000|-DN=1 -DTICKS=1|1 process, 5 changes and a refill
wrap-slots|100000|-DN=1 -DSLOTS=3 -DRESETS=1 -DLOOKS|1 process, 5 changes, 3 slots and a reset
raise|50000|-DN=1 -DCAPACITIES=165 -DTERMS -DLOOKS|1 process, 5 changes that raise what the others lower
born|100000|-DN=1 -DREMOVES -DNO_BORN|the table was cleared before a rule began: nothing is older
view|20000|-DN=1 -DTRUST_VIEW|terms that were checked once need no other look: a tag is of one version
'
holds_full='
full-one-refill|3000000|-DCHANGES=2 -DCAPACITIES=6 -DTICKS=1|2 processes, a change and a refill
full-change|8000000|-DCHANGES=5|2 processes, 4 changes
full-wrap|10000000|-DCHANGES=6|2 processes, 5 changes: versions wrap
full-remove|6000000|-DCHANGES=4 -DREMOVES|2 processes, 3 changes and removals
full-refill|8000000|-DCHANGES=3 -DTICKS=1|2 processes, 2 changes and a refill
full-slots|2000000|-DCHANGES=3 -DSLOTS=3 -DRESETS=1|2 processes, 2 changes, 3 slots and a reset
full-solo|4000000|-DCHANGES=4 -DSOLO|3 processes, 3 changes, of which two are killed at any moment
'
# VARIANT | law broken | macros | title
fails='
IN_PLACE|1|-DN=1 -DTERMS|terms overwritten in place are read half old, half new
NO_CHECK|1|-DN=1 -DTERMS|terms copied during four changes are a mix, if nobody looks again
PUBLISH_EARLY|1|-DN=1 -DTERMS|a version published before its terms is read without them
IGNORE_OLD|2|-DN=1|a lookup blind to older versions makes twins
IGNORE_OLD|3|-DN=1|a lookup blind to older versions forgets what was taken
NO_WALK_FIRST|4|-DN=1|a killed writer whose walk nobody finishes leaves slots behind
NO_CHECK_COMMIT|4|-DN=1|a claim that does not look at the version again commits a slot left behind
CHECK_BEFORE_SCAN|4|-DN=1|a claim that looks at the version before it places commits a slot left behind
LEAVE_TENTATIVE|4|-DN=1|a walk that leaves tentative slots leaves a claim to commit behind it
CONVERT_TWO_CAS|4|-DN=1|two CASes in place of one show a word to terms it was not written under
TWO_BITS|4|-DN=1|a slot that tells two bits of its version looks unchanged after four changes
LATE_CONVERT|3|-DN=1 -DTICKS=1|a conversion by a late clock gives tokens away
NO_CLEAR|5|-DN=1 -DREMOVES|a table that nobody cleared keeps funnels of a rule that is gone
BLIND_TO_ALGORITHM|5|-DN=1 -DALGORITHMS=170|a slot of another algorithm is read as one of the version in force
NO_OLD_TENTATIVE|6|-DCHANGES=2 -DSOLO|a tentative slot of another version locks its key out
NO_CHECK_NONE|7|-DN=1 -DLOOKS|tags judged by versions published later hide a slot
BLIND_TO_CONVERTED|7|-DN=1 -DLOOKS|a slot converted between two looks is overlooked
'

model_check version 33
