#!/bin/sh
# docs: the manual pages are clean and complete.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v mandoc >/dev/null || skip_all "no mandoc"
for page in lib/shmlimit.3 lib/global/shmlimit_global.3 lib/shmlimit.7 lib/shmlimit-security.7 tools/shmlimit/shmlimit.1; do
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
missing=
for name in $(grep -oE '\bshmlimit_[a-z_]+\(' "$SOURCE/include/shmlimit.h" | tr -d '(' | sort -u); do
	grep -qE "^\.(Fo|Fn|Ft.*) $name\b|^\.Fn $name\b" "$SOURCE/lib/shmlimit.3" || missing="$missing $name"
done
is "$missing" "" "shmlimit.3 has every function of the header"
missing=
for name in $(sed -n 's/^ \*	\(E[A-Z0-9]*\) .*/\1/p' "$SOURCE/include/shmlimit.h"); do
	grep -q "$name" "$SOURCE/lib/shmlimit.3" || missing="$missing $name"
done
is "$missing" "" "and every error"
is "$(cd "$SOURCE" && grep -rIlE '^(<{7}|>{7}) ' Makefile README.md include lib tools tests bench)" "" \
	"no file has a merge's marks in it"
missing=
for name in $(grep -oE '^(int|void) shmlimit_[a-z_]+\(' "$SOURCE/include/shmlimit_global.h" | grep -oE 'shmlimit_[a-z_]+'); do
	grep -qE "^\.(Fo|Fn|Ft.*) $name\b|^\.Fn $name\b" "$SOURCE/lib/global/shmlimit_global.3" || missing="$missing $name"
done
is "$missing" "" "shmlimit_global.3 has every function of its header"
done_testing
