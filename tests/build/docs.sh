#!/bin/sh
# docs: the manual pages are clean and complete.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v mandoc >/dev/null || skip_all "no mandoc"
for page in lib/shmlimit.3 lib/global/shmlimit_global.3 lib/shmlimit.7 tools/shmlimit/shmlimit.1; do
	is "$(mandoc -T lint -W style "$SOURCE/$page" 2>&1)" "" "$page is clean mdoc"
done
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
