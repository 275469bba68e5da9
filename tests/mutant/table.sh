#!/bin/sh
# table: the table of mutants fits the core as it is, and what runs them can tell a
# dead one from one that lives. `make mutants` runs them all.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v perl >/dev/null || skip_all "perl is missing"
mutants=$SOURCE/tests/mutant

cat "$mutants/mutants" "$SOURCE"/*/*/tests/mutants >"$TMP/mutants"
perl "$mutants/mutate.pl" "$TMP/mutants" >"$TMP/table"
fits=" $(perl "$mutants/mutate.pl" "$TMP/mutants" "$SOURCE" 2>"$TMP/errors" | tr '\n' ' ')"
while read -r name file tests; do
	case $fits in *" $name "*) ;; *) false ;; esac
	ok $? "$name changes $file"
	for test in $tests; do
		ls "$SOURCE/tests/$test.c" "$SOURCE"/*/*/tests/"$test.c" "$SOURCE"/*/"${test%/*}/tests/${test#*/}.c" 2>/dev/null | grep -q .
		ok $? "$name has the test $test"
	done
done <"$TMP/table"
is "$(cat "$TMP/errors")" '' "no mutant of the table is without its place"

mkdir "$TMP/copy"
cp -R "$SOURCE/include" "$SOURCE/lib" "$TMP/copy/"
folders=$(cd "$TMP/copy" && find lib -type d ! -path '*/tests*' | sed 's/^/-I/')
[ "$(uname -m)" != x86_64 ] || folders="$folders -mcx16"
# compiles NAME FILE: so does this file with this mutant.
compiles() {
	perl "$mutants/mutate.pl" "$TMP/mutants" "$1" "$TMP/copy" || return 1
	# shellcheck disable=SC2086 # several words
	(cd "$TMP/copy" && cc -std=c11 -D_GNU_SOURCE -Iinclude $folders -w -fsyntax-only -x c "$2")
}
broken=
while read -r name file tests; do
	case $file in lib/*) ;; *) continue ;; esac
	compiles "$name" "$file" 2>>"$TMP/compiler" || broken="$broken $name"
	cp "$SOURCE/$file" "$TMP/copy/$file"
done <"$TMP/table"
is "$broken" "" "each mutant of a library compiles"
[ -z "$broken" ] || diag "$(grep error "$TMP/compiler")"

like "$("$mutants/mutant.sh" "$TMP" one_token_too_many)" '^\| one_token_too_many \| unit/take \| .* \|$' \
	"a mutant is killed by the test that the table names, and the law is printed"
"$mutants/mutant.sh" "$TMP" nobody 2>/dev/null
[ $? -ne 0 ]
ok $? "there is no mutant that is not in the table"

# draw SEED: what a seed draws.
draw() {
	LIST=yes perl "$mutants/random.pl" "$TMP" 40 "$1"
}
draw 7 >"$TMP/first"
draw 7 >"$TMP/again"
draw 8 >"$TMP/other"
is "$(wc -l <"$TMP/first") $(cut -d' ' -f3- "$TMP/first" | sed 's/:.*//' | sort -u | grep -c .)" \
	"40 8" "as many random mutants are drawn as are asked for, of eight kinds"
# area: what a mutant of the list breaks.
area() { sed 's/^[0-9]* //; s,^lib/\(gate\|global\)/.*,\1,; s,^lib/.*,core,; s,^tools/\(nginx\|apache\|server\)/.*,servers,; s,^tools/\([a-z]*\)/.*,\1,'; }
is "$(area <"$TMP/first" | sort -u | tr '\n' ' ')" "core gate global lua node php python ruby servers shmlimit " \
	"they are of the core, and of all in C that is built on it"
cmp -s "$TMP/first" "$TMP/again"
ok $? "a seed draws the same random mutants again"
! cmp -s "$TMP/first" "$TMP/other"
ok $? "another seed draws other random mutants"
done_testing
