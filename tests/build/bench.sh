#!/bin/sh
# bench: every benchmark runs, for a moment, so that none rots. Its figures mean
# nothing here.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

before=$(ls /dev/shm | grep '^bench\.')
run "$SOURCE/bench/report.sh" "$BUILD" "$TMP/results" --quick
is "$rc" 0 "the report can be made of them"
like "$out" 'allowed, hot key, one process / floor' "and says what was to be reached"
for plot in compare keys processes global; do
	like "$(cat "$TMP/results/$plot.svg")" '</svg>' "$plot.svg is a picture"
done
is "$(ls /dev/shm | grep '^bench\.')" "$before" "and leaves nothing in /dev/shm"
done_testing
