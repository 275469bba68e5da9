#!/bin/sh
# html: `make html` renders the documentation, and its links lead somewhere.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need mandoc lowdown

run make --no-print-directory -s -C "$SOURCE" O="$TMP" html
is "$rc $out$err" "0 " "make html works without a word"
html=$TMP/html
missing=
for page in index tools/nginx/README lib/doc/tutorial man/shmlimit.1 man/shmlimit.3 man/shmlimit-security.7; do
	[ -s "$html/$page.html" ] || missing="$missing $page"
done
is "$missing" "" "make html renders the README, guides and manual pages"
find "$html" -name '*.html' | while read -r page; do
	sed -nE 's/(href|src)="([^":#]*)(#[^"]*)?"/\n=\2\3\n/gp' "$page" | sed -n 's/^=//p' | sort -u | while read -r link; do
		file=${link%%#*}
		file=${file:+$(dirname "$page")/$file}
		[ -e "${file:-$page}" ] || echo "${page#"$html/"}: $link"
	done
done >"$TMP/broken"
is "$(cat "$TMP/broken")" "" "links of the HTML lead to files"
for page in lib/doc/algorithms README; do
	for id in $(sed -nE 's/.*href="#([^"]*)".*/\1/p' "$html/$page.html" | sort -u); do
		grep -q "id=\"$id\"" "$html/$page.html" || echo "$page#$id"
	done
done >"$TMP/headings"
is "$(cat "$TMP/headings")" "" "links of the HTML lead to headings"
like "$(cat "$html/man/shmlimit.3.html")" 'href="shmlimit.7.html"' "manual pages link each other"
done_testing
