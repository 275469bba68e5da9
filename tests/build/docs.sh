#!/bin/sh
# docs: the manual pages are clean and complete.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v mandoc >/dev/null || skip_all "no mandoc"
for page in lib/shmlimit.3 lib/global/shmlimit_global.3 lib/gate/shmlimit_gate.3 lib/shmlimit.7 lib/shmlimit-security.7 tools/shmlimit/shmlimit.1; do
	is "$(mandoc -T lint -W style "$SOURCE/$page" 2>&1)" "" "$page is clean mdoc"
done
missing=
for words in 'Reporting a weakness' Rights 'Hosts with several users' RemoveIPC 'Filling /dev/shm' 'Saved segments' \
	'Redis and Valkey' 'Keys that clients choose'; do
	grep -q "^\.Ss $words\$" "$SOURCE/lib/shmlimit-security.7" || missing="$missing; $words"
done
is "$missing" "" "shmlimit-security.7 has what an administrator looks for"
sed -n '/^\.Ss Rights/,/^\.Ed/p' "$SOURCE/lib/shmlimit-security.7" | grep -E ' (yes|-)$' >"$TMP/rights"
is "$(awk '{ for (i = NF - 4; i <= NF; i++) { if ($i != "yes" && $i != "-") bad++; if (i > NF - 4 && $(i - 1) == "yes" && $i != "yes") bad++ } }
	END { print bad + 0, (NR > 10) }' "$TMP/rights")" "0 1" "its table of rights says of each of five, and each includes the one before"
is "$(perl "$SOURCE/tests/build/docs.pl" "$SOURCE/include/shmlimit.h" "$SOURCE/lib/shmlimit.3")" "" \
	"shmlimit.3 has the functions, structures and constants of its header, and no others"
is "$(perl "$SOURCE/tests/build/docs.pl" "$SOURCE/include/shmlimit_global.h" "$SOURCE/lib/global/shmlimit_global.3" \
	"$SOURCE/include/shmlimit.h")" "" "shmlimit_global.3 has those of its header"
is "$(perl "$SOURCE/tests/build/docs.pl" "$SOURCE/include/shmlimit_gate.h" "$SOURCE/lib/gate/shmlimit_gate.3" \
	"$SOURCE/include/shmlimit.h")" "" "shmlimit_gate.3 has those of its header"
missing=
for word in $(sed -n 's/^	{ "\([a-z_]*=*\)", read_.*/\1/p' "$SOURCE/lib/gate/spec.c"); do
	for page in lib/gate/shmlimit_gate.3 include/shmlimit_gate.h; do
		grep -q "\b$word" "$SOURCE/$page" || missing="$missing $page:$word"
	done
done
is "$missing" "" "page and header of the gate have each word of a spec"
is "$(perl "$SOURCE/tests/build/options.pl" "$SOURCE/tools/shmlimit/shmlimit.1" shmlimit)" "" \
	"shmlimit.1 has the commands and options that --help has"
missing=
for name in $(sed -n 's/^ \*	\(E[A-Z0-9]*\) .*/\1/p' "$SOURCE/include/shmlimit.h"); do
	grep -q "$name" "$SOURCE/lib/shmlimit.3" || missing="$missing $name"
done
is "$missing" "" "shmlimit.3 names every error of the header"
is "$(cd "$SOURCE" && grep -rIlE '^(<{7}|>{7}) ' Makefile README.md include lib tools tests bench)" "" \
	"no file has a merge's marks in it"

# What README tells to type after a $, each with the segments' names made this test's own.
sed -n 's/^\$ //p' "$SOURCE/README.md" | sed -E "s/\\b(web|api)\\b/$SEGMENT.\\1/" >"$TMP/typed"
[ "$(wc -l <"$TMP/typed")" -ge 5 ]
ok $? "README has commands to type"
while read -r line; do
	run sh -c "$line"
	is "$rc $err" "0 " "README: it does what it says: $line"
done <"$TMP/typed"
is "$(shmlimit throttle "$SEGMENT.web" another 15 30 60)" "$(sed -n '/^\$ .*throttle/{n;p}' "$SOURCE/README.md")" \
	"README: and prints what it says"
run sh -c "$(grep -oE '`shmlimit size [^`]*`' "$SOURCE/README.md" | tr -d '`')"
is "$rc $err" "0 " "README: a segment's size can be asked as it says"
missing=
for package in $(make -s -C "$SOURCE" --eval='packages:; @echo $(need_build)' packages); do
	case $package in gcc | make) continue ;; esac
	grep -qw -e "$package" "$SOURCE/README.md" || missing="$missing $package"
done
is "$missing" "" "README names the packages that building needs"
done_testing
