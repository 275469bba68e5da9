#!/bin/sh
# bindings: what does a decision cost in other languages?
#
#	bench/bindings.sh BUILD [--quick] [--rows FILE]
#
# The annexes' programs print rows of a figure and its nanoseconds. A language that is not installed is left out.
# See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

. "${0%/*}/kit.sh"
seconds=2
[ $quick = no ] || seconds=0.01
source=$(cd "${0%/*}/.." && pwd)
LD_LIBRARY_PATH=$build
export LD_LIBRARY_PATH

# measure NAME COMMAND...: the command's rows.
measure() {
	name=$1
	shift
	"$@" "$name" "$segment" "$seconds" >"$build/bench/bindings.rows"
	tell
}

# As a table and in $rows.
tell() {
	while IFS='	' read -r figure ns; do
		printf '%-54s %8.0f ns\n' "$figure" "$ns"
		printf 'bindings\t%s\tone client\tns\t%s\n' "$figure" "$ns" >>"$rows"
	done <"$build/bench/bindings.rows"
}

# Each annex has a part of its own. $here is its folder.
for part in "$source"/*/*/bench/bindings.inc; do
	here=${part%/*}
	. "$part"
done
