#!/bin/sh
# The model of the credit that a new key is lent, searched with spin: the protocol as it is must hold, and each of its
# broken variants must break the law that credit.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DCOLLAPSE'
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|150000||2 processes with 3 requests each
'
holds_full='
three|1000000|-DN=3 -DREQUESTS=2|3 processes with 2 requests each
'
# VARIANT | law broken | macros | title
fails='
LEND_KNOWN|1||a claim of a known key lends once more
LEND_WAITING|1||a process that waits for another one lends, too
DEPOSIT_TOO|2||what a debit leased is spent a second time
LEND_FIRST|2||a credit that a killed process lent is not debited
COUNT_NOT|2||a denied debit that is not counted is not accounted for
'

model_check credit 9
