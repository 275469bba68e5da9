#!/bin/sh
# dashboard: the picture of the Grafana dashboard in lib/doc is drawn by a Prometheus server's answers to the dashboard's queries.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
PATH=$BUILD/bin:$PATH PYTHONPATH=$SOURCE/tools/python LD_LIBRARY_PATH=$BUILD PYTHONDONTWRITEBYTECODE=1
export PATH PYTHONPATH LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE
need prometheus gnuplot jq python3
! nm -D "$BUILD/libshmlimit.so" | grep -q '__asan_\|__tsan_' ||
	skip_all "a library that was built with a sanitizer is for programs that were, too"

# Each title above the row, a line each.
jq -r '[.panels[].type] as $types | .panels[: ($types | index("row"))][].title' "$SOURCE/tools/grafana/shmlimit.json" | sort >"$TMP/panels"
[ "$(wc -l <"$TMP/panels")" -ge 10 ]
ok $? "the dashboard has panels"
titles() { sed -n 's/^[[:blank:]]*<text>\(.*\)<\/text>$/\1/p' "$1" | sort | comm -12 - "$TMP/panels"; }
is "$(titles "$SOURCE/lib/doc/dashboard.svg")" "$(cat "$TMP/panels")" "the guide's picture has each panel"
run python3 "$SOURCE/lib/doc/dashboard.py" "$SEGMENT" 5
is "$rc $err" "0 " "the picture can be drawn again"
printf '%s\n' "$out" >"$TMP/drawn.svg"
is "$(titles "$TMP/drawn.svg")" "$(cat "$TMP/panels")" "it has each panel then, too"
is "$(grep -oE '>(page|login|api)<' "$TMP/drawn.svg" | sort -u | tr -d '\n')" ">api<>login<>page<" "it has what the server answered"
[ ! -e "$SHM$SEGMENT" ]
ok $? "no segment is left"
done_testing
