#!/bin/sh
# gdb: tools/debug/shmlimit-gdb.py prints a segment's slots as the command shows them, of every algorithm.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
command -v gdb >/dev/null || skip_all "no gdb"
[ "$(readelf -S "$BUILD/bin/shmlimit" | grep -c debug_info)" -gt 0 ] || skip_all "built without -g"

shmlimit create "$SEGMENT" --slots 64 >/dev/null
shmlimit rule set "$SEGMENT" funnel --capacity 5 --rate 5/h
shmlimit rule set "$SEGMENT" bytes --capacity 10000000000 --rate 10000/s
shmlimit rule set "$SEGMENT" warmup --algorithm warmup --rate 100/h --warmup 1h
shmlimit rule set "$SEGMENT" window --algorithm window --rate 5/h
shmlimit rule set "$SEGMENT" counter --algorithm counter --capacity 5 --period 1h
shmlimit rule set "$SEGMENT" hold --algorithm hold --capacity 5 --period 1h
for rule in funnel bytes warmup window counter hold; do
	shmlimit take "$SEGMENT" "$rule" user:42 $([ "$rule" = bytes ] && echo --cost 1000000000) >/dev/null
done
gdb -q -batch -iex 'set debuginfod enabled off' -ex "source $SOURCE/tools/debug/shmlimit-gdb.py" -ex 'break shmlimit_peek' -ex run \
	-ex 'shmlimit-slots l' -ex 'shmlimit-slots l 0' -ex kill --args "$BUILD/bin/shmlimit" peek "$SEGMENT" funnel user:42 >"$TMP/out" 2>"$TMP/err"
grep '^slot' "$TMP/out" >"$TMP/slots" || skip_all "gdb cannot run a program here: $(tail -n 1 "$TMP/err")"

is "$(sed -n 's/.* rule \([0-9]*\),.* fingerprint \([0-9a-f]*\);.*/\1 \2/p' "$TMP/slots" | sort -u)" \
	"$(shmlimit inspect "$SEGMENT" --json | jq -r '(.rules | map({ (.name): .id }) | add) as $id | .occupancy.shown[] | "\($id[.rule]) \(.fingerprint)"' | sort)" \
	"the rule and the fingerprint of each slot are those that inspect shows"
is "$(grep -c . "$TMP/slots")" 7 "a second list, of one rule, has that rule's slot alone"
is "$(sed -n 's/.*; \([A-Z]*: quota [0-9]*\) at.*/\1/p' "$TMP/slots" | sort -u)" "FUNNEL: quota 4" "a funnel's quota is what a take left"
is "$(sed -n 's/.*; \(FUNNEL: empty\) at.*/\1/p' "$TMP/slots")" "FUNNEL: empty" "a funnel without a quota is shown as a time"
is "$(sed -n 's/.*; \(COUNTER: [0-9]*\),.*/\1/p' "$TMP/slots")" "COUNTER: 1" "a counter's count is what was taken"
is "$(sed -n 's/.*; \(WINDOW: 1 cells, 1 of the latest admission\),.*/\1/p' "$TMP/slots")" "WINDOW: 1 cells, 1 of the latest admission" \
	"a window's word says how many cells it has"
is "$(sed -n 's/.*; HOLD: .* \(reach [0-9]*\),.*/\1/p' "$TMP/slots")" "reach 1" "a place's word says how many cells are in use"
done_testing
