#!/bin/sh
# english: texts are written for a reader who has never seen the project: documents and comments have no phrase that has
# been struck out, identifiers and names of files no such word, documents have no link that leads nowhere, and a test's
# title does not continue its predecessor.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need perl

is "$(perl "$SOURCE/tests/build/english.pl" "$SOURCE")" "" "no text or name has a struck phrase, no title continues another, and no link is broken"

# The check itself can fail.
mkdir -p "$TMP/kit/tests/build"
printf 'ok $? "$what: a key is found"\nok $? "$what: and is another"\n' >"$TMP/kit/tests/build/keys.sh"
printf 'A process that is killed loses his tokens.\nFor who looks in, there is [a page](gone.md).\n' >"$TMP/kit/page.md"
mkdir -p "$TMP/kit/lib" "$TMP/kit/tests/unit"
printf '/* Nobody waits. */\nint nobody; // So many.\nint has_twin(void) { return say("wish"); }\n' >"$TMP/kit/lib/wait.c"
: >"$TMP/kit/lib/table_carry.h"
printf '# He waits.\n' >"$TMP/kit/tests/unit/wait.sh"
printf "is(1, 1, 'or waits');\n" >"$TMP/kit/tests/unit/wait.php"
printf -- '-- Nobody waits.\nis(1, 1, "until then") -- so many\n' >"$TMP/kit/tests/unit/wait.lua"
printf 'def test_it():\n    """so is this"""\n' >"$TMP/kit/tests/unit/wait.py"
is "$(perl "$SOURCE/tests/build/english.pl" "$TMP/kit" | sed 's/": write: .*/"/')" \
	'lib/table_carry.h: write: migrate
page.md:2: link to gone.md: no such file
page.md:1: "his"
page.md:2: "For who l"
page.md:2: "who looks in"
lib/wait.c:1: "Nobody"
lib/wait.c:2: "So many"
lib/wait.c:3: "twin"
tests/unit/wait.lua:1: "Nobody"
tests/unit/wait.lua:2: "so many"
tests/unit/wait.sh:1: "He"
tests/build/keys.sh:2: title begins with "and": write a whole sentence
tests/unit/wait.lua:2: title begins with "until": write a whole sentence
tests/unit/wait.php:1: title begins with "or": write a whole sentence
tests/unit/wait.py:2: title begins with "so": write a whole sentence' "the check finds each of these mistakes"
done_testing
