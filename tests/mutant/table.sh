#!/bin/sh
# table: the table of mutants fits the core as it is, and what runs them can tell a
# dead one from one that lives. `make mutants` runs them all.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v perl >/dev/null || skip_all "perl is missing"
mutants=$SOURCE/tests/mutant

while read -r name file tests; do
	mkdir -p "$TMP/$name/${file%/*}"
	cp "$SOURCE/$file" "$TMP/$name/$file"
	perl "$mutants/mutate.pl" "$mutants/mutants" "$name" "$TMP/$name" && ! cmp -s "$SOURCE/$file" "$TMP/$name/$file"
	ok $? "$name changes $file"
	for test in $tests; do
		[ -f "$SOURCE/tests/$test.c" ]
		ok $? "$name has the test $test"
	done
done <<END
$(perl "$mutants/mutate.pl" "$mutants/mutants")
END

like "$("$mutants/mutant.sh" "$TMP" one_token_too_many)" '^\| one_token_too_many \| unit/take \| .* \|$' \
	"a mutant is killed by the test that the table names, and the law is printed"
"$mutants/mutant.sh" "$TMP" nobody 2>/dev/null
[ $? -ne 0 ]
ok $? "there is no mutant that is not in the table"
done_testing
