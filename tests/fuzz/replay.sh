#!/bin/sh
# The seeds: each input that is kept, whatever it was kept for, holds its target's laws, and so do some thousands that
# follow from them, the same in each run. `make fuzz` goes on from here.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

RUNS=2000
# What is added is read again, whatever its bytes.
perl -e 'print pack "C*", 0 .. 255' >"$TMP/all"
perl "$SOURCE/tests/fuzz/seeds.pl" add "$TMP/seeds" "$TMP/all" "$0" && perl "$SOURCE/tests/fuzz/seeds.pl" unpack "$TMP/seeds" "$TMP/unpacked"
cmp -s "$TMP/all" "$TMP/unpacked/all" && cmp -s "$0" "$TMP/unpacked/${0##*/}"
ok $? "a file of seeds keeps all bytes of its inputs"
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

for source in "$SOURCE"/tests/fuzz/target/*.c "$SOURCE"/*/*/tests/fuzz/target/*.c; do
	target=${source##*/}
	target=${target%.c}
	folder=${source%/target/*}
	perl "$SOURCE/tests/fuzz/seeds.pl" unpack "$folder/seeds/$target" "$TMP/$target.seeds"
	kept=$(ls "$TMP/$target.seeds" | wc -l)
	[ "$kept" -ge 3 ]
	ok $? "$target: inputs are kept"
	mkdir "$TMP/$target"
	"$BUILD/fuzz/$target" -seed=1 -runs=$((kept + RUNS)) -timeout=20 -artifact_prefix="$TMP/" "$TMP/$target" \
		"$TMP/$target.seeds" >"$TMP/out" 2>&1
	status=$?
	if [ $status -eq 77 ]; then
		ok 0 "$target # SKIP $(cat "$TMP/out")"
		continue
	fi
	ok $status "$target: no input that is kept breaks a law, nor one that follows from them"
	[ $status -eq 0 ] || diag "$(tail -n 30 "$TMP/out")"
	done=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$TMP/out")
	[ "${done:-0}" -ge $((kept + RUNS)) ]
	ok $? "$target: they were run"
done

done_testing
