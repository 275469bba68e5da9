#!/bin/sh
# mutant.sh BUILD [NAME...]: breaks a copy of the libraries in one place, as the table
# `mutants` says, and those of the annexes, and runs tests until one fails; then the next. Prints, for each
# mutant, the test that killed it and the law that it broke. Fails if one survives
# or if the core fails as it is.
#
# SPDX-License-Identifier: BSD-2-Clause
set -u
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "${SOURCE:-$here/../..}" && pwd)
mkdir -p "$1/mutant" || exit
folder=$(cd "$1/mutant" && pwd)
table=$folder/mutants
shift
# Tried after those which the table has; fast ones first.
then_all="unit/take unit/boundary unit/clock unit/full unit/funnel unit/names unit/reserve unit/rule unit/throttle
unit/warmup unit/window unit/lease unit/grow unit/grow_history unit/ages process/claim process/denial process/conserve
process/rule_change process/sliding process/interval process/debt process/kill process/lease schedule/take schedule/claim
schedule/change schedule/window schedule/verbs schedule/lease schedule/grow schedule/grow_crowded schedule/grow_change
schedule/grow_window schedule/sweep unit/hold schedule/hold unit/count schedule/count schedule/mailbox
torture/torture"

# attempt TEST: builds and runs it in the copy; its output is in $folder/out. Fails as it does.
attempt() {
	if ! make -s -C "$folder/source" O=build CC=gcc CFLAGS=-O1 "build/tests/$1.t" >"$folder/out" 2>&1; then
		cat "$folder/out"
		exit 1
	fi
	SECONDS=5 timeout 120 "$folder/source/build/tests/$1.t" >"$folder/out" 2>/dev/null
}

law() {
	grep -m 1 '^not ok' "$folder/out" | sed 's/^not ok [0-9]* - //' | grep . || echo 'it does not come to its end'
}

rm -rf "$folder/source"
mkdir -p "$folder/source/tests" "$folder/source/bench" "$folder/source/tools"
cp -R "$source/Makefile" "$source/include" "$source/lib" "$folder/source/" || exit
cp "$source/tools/"*.mk "$folder/source/tools/" && cp "$source/tests/tests.mk" "$folder/source/tests/" || exit
cp -R "$source/bench/kit" "$folder/source/bench/" || exit
cp -R "$source/tests/"*.h "$source/tests/unit" "$source/tests/process" "$source/tests/torture" \
	"$source/tests/schedule" "$source/tests/gate" "$folder/source/tests/" || exit

cat "$source/tests/mutant/mutants" "$source"/*/*/tests/mutants >"$table" || exit
survivors=0
perl "$here/mutate.pl" "$table" >"$folder/list" || exit
for name; do
	grep -q "^$name " "$folder/list" || { echo "$name: no such mutant" >&2; exit 1; }
done
while read -r name file tests; do
	[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
	killer=
	for test in $tests; do
		[ $# -eq 0 ] || attempt "$test" || { echo "$test fails without a mutant: $(law)"; exit 1; }
	done
	perl "$here/mutate.pl" "$table" "$name" "$folder/source" || exit
	for test in $tests $then_all; do
		attempt "$test" || { killer=$test; break; }
	done
	cp "$source/$file" "$folder/source/$file"
	if [ -n "$killer" ]; then
		printf '| %s | %s | %s |\n' "$name" "$killer" "$(law)"
	else
		printf '| %s | survives | |\n' "$name"
		survivors=$((survivors + 1))
	fi
done <"$folder/list"
rm -rf "$folder"
[ "$survivors" -eq 0 ]
