#!/bin/sh
# top, where its output is no terminal: rules by what they do in a second, keys
# by how far they are over the limit. The rules refill so slowly that an hour shows in
# nothing that is printed.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --store-keys 22
shmlimit rule set "$segment" login --capacity 3 --rate 1/4d
shmlimit rule set "$segment" page --capacity 100 --rate 1/2d --max-wait 300d
shmlimit rule set "$segment" dry --capacity 1 --rate 1/2w --mode dry-run
for i in 1 2 3 4; do
	shmlimit take "$segment" login bob --quiet
done
shmlimit take "$segment" page alice --quiet --cost 70
shmlimit charge "$segment" page carol --quiet --tokens 105
shmlimit take "$segment" page "$(printf 'evil\033]0;key\007')" --quiet --cost 1
shmlimit take "$segment" dry dora --quiet
shmlimit take "$segment" dry dora --quiet
before=$(sum_file "$SHM$segment")

head="segment: $segment, enabled, 64 slots: live 7.8 %, refilled 0.0 %
per second: allowed 0.0, denied 0.0, shadow 0.0, on_failure 0.0, evictions 0.0, no slot 0.0
"
rules="RULE   ALLOWED/S  DENIED/S  SHADOW/S  EVICTIONS/S  ALLOWED  DENIED
login        0.0       0.0       0.0          0.0        3       1
page         0.0       0.0       0.0          0.0        2       0
dry          0.0       0.0       0.0          0.0        1       0
"
keys='RULE   REMAINING   DEBT  TIME-TO-FULL  KEY
page           0  9d23h       209d23h  carol
dry            0      -        13d23h  dora
login          0      -        11d23h  bob
page          30      -       139d23h  alice
page          99      -         1d23h  evil\x1b]0;key\x07'
run shmlimit top "$segment" --interval 10ms
is "$rc $err$out" "0 $head
$rules
$keys" "a snapshot has the segment, its rules, its keys"
run shmlimit top "$segment" --interval 10ms --count 3
is "$rc $err$out" "0 $head
$rules
$keys

$head
$rules
$keys

$head
$rules
$keys" "--count makes as many of them"
is "$(sum_file "$SHM$segment")" "$before" "looking changed nothing"

run timeout 300 sh -c 'shmlimit top "$1" --interval 10ms --count 1000000 2>"$2" | sed 1q' sh "$segment" "$TMP/err"
is "$rc $out" "0 ${head%%
*}" "a reader that closes the pipe ends top"
is "$(cat "$TMP/err")" "" "without a word"

# column WORD ARGUMENT...: what stands in the first (RULE) or last (KEY) column of that table.
column() {
	word=$1
	shift
	run shmlimit top "$segment" --interval 10ms "$@"
	printf '%s\n' "$out" | awk -v key="$word" '/^RULE/ { on = /KEY$/ == (key == "KEY"); next } /^$/ { on = 0 }
		on { printf "%s ", key == "KEY" ? $NF : $1 }'
}
is "$(column RULE --sort denied)" "login page dry " "--sort denied: what denies most first, then what allows most"
is "$(column RULE --sort allowed)" "login page dry " "--sort allowed"
is "$(column RULE --sort name)" "dry login page " "--sort name"
is "$(column KEY --order denial)" 'carol dora bob alice evil\x1b]0;key\x07 ' "--order denial: the deepest first"
is "$(column KEY --order near)" 'alice evil\x1b]0;key\x07 carol dora bob ' "--order near: those first that are not denied yet"
is "$(column KEY --order reset)" 'carol alice dora bob evil\x1b]0;key\x07 ' "--order reset: the longest time to full first"
is "$(column KEY --keys 2)" "carol dora " "--keys shows this number of keys"
is "$(column KEY --keys 0)" "" "--keys 0 shows no keys"
is "$(column KEY --rule page), $(column RULE --rule page)" 'carol alice evil\x1b]0;key\x07 , page ' "--rule shows one rule"

shmlimit create "$SEGMENT.bare" --slots 64
shmlimit rule set "$SEGMENT.bare" r --capacity 3 --rate 1/2d
shmlimit take "$SEGMENT.bare" r somebody --quiet
run shmlimit top "$SEGMENT.bare" --interval 10ms
like "$(printf '%s\n' "$out" | tail -n 1)" '^r  *2  *-  *1d23h  #[0-9a-f]{12}$' "without names fingerprints are shown"
shmlimit disable "$SEGMENT.bare"
like "$(shmlimit top "$SEGMENT.bare" --interval 10ms)" "^segment: $SEGMENT.bare, disabled, " "a segment that is off says so"

# The segment of that name is another one before the second look: a reader of the first makes it so.
shmlimit top "$SEGMENT.bare" --interval 10ms --count 3000 --sort name 2>"$TMP/err" | {
	sed -n '/#[0-9a-f]\{12\}$/{p;q}'
	shmlimit create "$SEGMENT.new" --slots 16
	shmlimit rule set "$SEGMENT.new" new --capacity 1 --rate 1/d
	mv "$SHM$SEGMENT.new" "$SHM$SEGMENT.bare"
	sed -n "/^news: /{n;p;n;p;n;n;n;p;q}"
	shmlimit destroy "$SEGMENT.bare"
	cat >/dev/null
} >"$TMP/seen"
is "$(sed 1d "$TMP/seen")" "segment: $SEGMENT.bare, enabled, 16 slots: live 0.0 %, refilled 0.0 %
per second: allowed -, denied -, shadow -, on_failure -, evictions -, no slot -
new           -         -         -            -        0       0" "top goes on with a segment that was created again"
like "$(cat "$TMP/err")" "^shmlimit: segment $SEGMENT.bare: no such segment" "top ends when the segment does not exist"

wrong() {
	message=$1
	shift
	run shmlimit top "$@"
	is "$rc $out$err" "$message" "top $* is refused"
}
wrong "2 shmlimit: --interval 0: must be 10ms to 1w" "$segment" --interval 0
wrong "2 shmlimit: --interval 8d: must be 10ms to 1w" "$segment" --interval 8d
wrong "2 shmlimit: --interval often: not a duration (for example 2s, 500ms or 1m; or 0)" "$segment" --interval often
wrong "2 shmlimit: --count 0: must be 1 or more" "$segment" --count 0
wrong "2 shmlimit: --keys 1000001: must be 0 to 1000000" "$segment" --keys 1000001
wrong "2 shmlimit: --sort size: must be denied, allowed or name" "$segment" --sort size
wrong "2 shmlimit: --order size: must be denial, near or reset" "$segment" --order size
wrong "3 shmlimit: rule none: no such rule in segment $segment (shmlimit rule set $segment none --capacity N \
--rate N/s makes it; shmlimit rule list $segment lists them)" "$segment" --rule none
wrong "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; shmlimit list \
lists all)" "$SEGMENT.none"
# A terminal on which nothing can be painted gets tables, too.
if has_terminal; then
	for term in dumb none-such ''; do
		TERM=$term script -qec "shmlimit top '$segment' --interval 10ms --count 1" "$TMP/typescript" </dev/null >"$TMP/seen" 2>&1
		is "$? $(grep -c "^segment: $segment, enabled" "$TMP/seen") $(tr -dc '\033' <"$TMP/seen" | wc -c)" "0 1 0" \
			"a terminal '$term' gets a table, and no sequences"
	done
fi

done_testing
