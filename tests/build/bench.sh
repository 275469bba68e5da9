#!/bin/sh
# bench: each benchmark runs for a moment, so that it cannot break without notice. Its figures mean nothing here.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# left: segments of benchmarks whose process, the number in the name, is gone. Others may run benchmarks now.
left() {
	ls /dev/shm | sed -n 's/^shmlimit\.[0-9]*\.bench\./bench./p' | while read -r name; do
		[ -d "/proc/$(echo "$name" | cut -d. -f3)" ] || echo "$name"
	done
}

left >"$TMP/before"
run "$SOURCE/bench/report.sh" "$BUILD" "$TMP/results" --quick
is "$rc" 0 "the report can be made of them"
like "$out" 'allowed, hot key, one process / floor' "the report says which figures were to be reached"
like "$(cat "$TMP"/results/*/compare.svg)" '</svg>' "compare.svg is a picture"
is "$(left | grep -vxFf "$TMP/before")" "" "no benchmark leaves a segment in /dev/shm"
done_testing
