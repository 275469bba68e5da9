#!/bin/sh
# bench: every benchmark runs, for a moment, so that none rots. Its figures mean
# nothing here.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

for source in "$SOURCE"/bench/*.c; do
	name=$(basename "$source" .c)
	run "$BUILD/bench/$name" --quick
	is "$rc" 0 "bench/$name runs"
done
is "$(ls /dev/shm | grep -c '^bench\.')" 0 "and leaves nothing in /dev/shm"
done_testing
