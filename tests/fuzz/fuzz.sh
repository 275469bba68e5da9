#!/bin/sh
# Fuzz each target, or those that are named, for some seconds, with libFuzzer or AFL++:
#
#	fuzz.sh libfuzzer|afl BUILD SECONDS [TARGET...]
#
# A run begins with the inputs in seeds/TARGET and those that earlier runs found, in BUILD/found. Inputs that break a law,
# crash or hang are added to BUILD/found, and the exit status is then 1. Each target's dictionary is dict/TARGET.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
how=$1 build=$(cd "$2" && pwd) seconds=$3
shift 3
here=$(cd "${0%/*}" && pwd)
# An annex has targets, too, in its folder tests/fuzz.
[ $# -gt 0 ] || set -- $(ls "$here"/target/*.c "$here"/../../*/*/tests/fuzz/target/*.c | sed 's/.*\///; s/\.c$//')
export ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0 UBSAN_OPTIONS=abort_on_error=1:symbolize=0

libfuzzer() {
	found=$build/found/$1
	mkdir -p "$found"
	ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 "$build/fuzz/$1" -max_total_time="$seconds" -timeout=10 \
		-max_len=4096 -print_final_stats=1 -artifact_prefix="$found-" $dictionary "$found" "$inputs" \
		>"$found.log" 2>&1
	status=$?
	echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") runs"
	[ $status -eq 0 ] || tail -n 40 "$found.log"
	return $status
}

# These settings keep AFL++ quiet, and make it leave CPUs and core_pattern as they are.
afl() {
	found=$build/found/$1
	mkdir -p "$found"
	AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_AUTORESUME=1 \
		afl-fuzz -V "$seconds" -m none -t 10000 -i "$inputs" -o "$found" $dictionary -- "$build/fuzz/$1" \
		>"$found.log" 2>&1
	status=$?
	echo "$1: $(sed -n 's/^execs_done *: *//p' "$found/default/fuzzer_stats") runs"
	[ $status -eq 0 ] || tail -n 40 "$found.log"
	crashed=$(find "$found/default/crashes" "$found/default/hangs" -name 'id:*')
	[ -z "$crashed" ] || printf '%s\n' "$crashed"
	[ $status -eq 0 ] && [ -z "$crashed" ]
}

bad=0
for target in "$@"; do
	folder=$(ls -d "$here"/target/"$target".c "$here"/../../*/*/tests/fuzz/target/"$target".c 2>/dev/null)
	folder=${folder%/target/*}
	inputs=$build/seeds/$target
	mkdir -p "$build/seeds" && perl "$here/seeds.pl" unpack "$folder/seeds/$target" "$inputs" || exit
	dictionary=
	if [ -e "$folder/dict/$target" ]; then
		[ "$how" = afl ] && dictionary="-x $folder/dict/$target" || dictionary=-dict=$folder/dict/$target
	fi
	$how "$target" || bad=1
done
exit $bad
