#!/bin/sh
# instructions.sh O [--record]: how many instructions a decision takes, beside those on record, within 3 %.
#
# It counts the rows of bench/decide with callgrind: the same program takes the same number on every x86-64 processor,
# however busy. Another compiler makes another program, so a record is of one. Without one for this compiler it says so
# and exits with 3; it exits with 1 if a row takes more than 3 % more or fewer than on record.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u

[ $# -ge 1 ] || { echo "usage: $0 O [--record]" >&2; exit 2; }
decide=$1/bench/decide
compiler=$("${CC:-gcc}" -dumpfullversion -dumpversion)-$(uname -m)
record=${0%/*}/results/instructions-$compiler
folder=$(mktemp -d) || exit
trap 'rm -rf "$folder"' EXIT

valgrind -q --tool=callgrind --callgrind-out-file="$folder/out" "$decide" --quick >"$folder/log" 2>&1 ||
	{ cat "$folder/log" >&2; exit 1; }
# A quick run has four rounds of 1,000 calls. What depends on the time of day is left out, and what is not ours.
callgrind_annotate --inclusive=yes --threshold=100 "$folder/out" |
	sed -n 's/^ *\([0-9,]*\) .*decide\.c:run_\([a-z_]*\) .*/\1 \2/p' | tr -d , |
	awk '$2 !~ /^(clock|cas|hash|floor|window|warmup)$/ { printf "%s %d\n", $2, $1 / 4000 }' | sort -u >"$folder/now"
[ -s "$folder/now" ] || { echo "$0: callgrind counted nothing" >&2; exit 1; }

if [ "${2:-}" = --record ]; then
	cp "$folder/now" "$record"
elif [ ! -e "$record" ]; then
	echo "no record for $compiler: make one with $0 $1 --record"
	exit 3
fi
join -a 1 -a 2 -e - -o 0,1.2,2.2 "$record" "$folder/now" | awk '
	BEGIN { printf "%-16s %10s %10s\n", "instructions of", "on record", "now" }
	{
		off = $2 == "-" || $3 == "-" || $3 > $2 * 1.03 || $3 < $2 * 0.97
		printf "%-16s %10s %10s%s\n", $1, $2, $3, off ? "  <- not within 3 %" : ""
		worst += off
	}
	END { exit (worst > 0) }'
