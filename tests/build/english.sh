#!/bin/sh
# english: documents are written for a reader who has never seen the project: no phrase that has been struck out, no link
# that leads nowhere.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need perl

is "$(perl "$SOURCE/tests/build/english.pl" "$SOURCE")" "" "documents have no struck phrase and no broken link"

# The check itself can fail.
mkdir -p "$TMP/kit/tests/build"
printf 'ok $? "$what: a key is found"\nok $? "$what: and is another"\n' >"$TMP/kit/tests/build/keys.sh"
printf 'A process that is killed loses his tokens.\nFor who looks in, there is [a page](gone.md).\n' >"$TMP/kit/page.md"
printf 'A token leaks.\n' >"$TMP/kit/later.md"
printf 'All is well.\n' >"$TMP/kit/done.md"
printf '# Not rewritten yet:\nlater.md\ndone.md\nmissing.md\n' >"$TMP/kit/tests/build/english.todo"
is "$(perl "$SOURCE/tests/build/english.pl" "$TMP/kit" | sed 's/: write: .*//; s/todo,.*/todo/')" \
	'done.md: has nothing to correct: remove it from tests/build/english.todo
page.md:2: link to gone.md: no such file
page.md:1: "his"
page.md:2: "For who l"
page.md:2: "who looks in"
missing.md: is in tests/build/english.todo
tests/build/keys.sh:2: title begins with "and": write a whole sentence' "the check finds each of these mistakes, and a list that is too long"
done_testing
