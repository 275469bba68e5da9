#!/bin/sh
# The model of segments' making, opening and destroying, searched with spin: the protocol as it is must hold, and each
# of its broken variants must break the law that lifecycle.pml says it breaks.

. "${0%/*}/../tap.sh"
. "$SOURCE/tests/model/model.sh"

PAN='-Og -DNOREDUCE'	# every step reads or writes what all see: nothing could be reduced
MEMORY_MB=1400

# NAME | fewest states | macros | title
holds='
two|1000|-DN=2|2 processes
three|100000||3 processes
tight|1000|-DROOM=1|3 processes, room for one segment
'
holds_full='
'
# VARIANT | law broken | macros | title
fails='
NAME_FIRST|1||a file that is made under its name is seen half-made
TEMPORARY_NAME|4||a file that is made under another name is left behind
LINK_EARLY|1||a file that is named before its permissions is seen without them
NO_INODE_CHECK|2||a writer who locks whatever has the name writes beside another
CHECK_BY_PATH|2||a writer who asks whose the name is, and then opens it, writes beside another
HANDLE_LOCK|2||a lock on the file that came with the handle excludes no child
LOCK_WORD|3||a lock in memory outlives its holder
OPEN_AGAIN|5||a creator who opens by name gets what another made
RENAME|6||a name taken by renaming is taken away
UNLINK_LINK|6||a name replaced in two steps is gone in between
NO_MAPPING|7||an inode number that is not kept is given again
TRUNCATE|8||memory that is not reserved is missing when it is used
'

model_check lifecycle 11
