#!/bin/sh
# stat: what is printed of each interval is what was counted in it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" login --capacity 3 --rate 1/d
shmlimit rule set "$segment" dry --capacity 1 --rate 1/w --mode dry-run
before=$(sum_file "$SHM$segment")

run shmlimit stat "$segment" -i 10ms -c 3
like "$rc $err$(printf '%s\n' "$out" | sed 's/  */ /g' | sort -u | head -n 1)" \
	'^0 2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z 0\.0 0\.0 0\.0 0\.0 0\.0 0\.0 0\.0 0\.0 0\.0$' \
	"a line has the time and nine rates"
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 3 "--count ends it, and a pipe gets no headings"
is "$(sum_file "$SHM$segment")" "$before" "looking changed nothing"

# counted OPTION...: what the lines sum up to, once they have as many decisions as are made here.
counted() {
	mkfifo "$TMP/lines"
	timeout 600 shmlimit stat "$segment" -i 10ms --json "$@" >"$TMP/lines" 2>"$TMP/err" &
	{
		# The first line is of the time before the decisions.
		read -r line
		for i in 1 2 3 4 5; do shmlimit take "$segment" login a --quiet; done
		for i in 1 2 3; do shmlimit take "$segment" dry b --quiet; done
		: >"$TMP/all"
		while [ "$(jq -s 'map(.allowed + .denied + .shadow_denied) | add // 0' "$TMP/all")" -lt "$want" ] && read -r line; do
			printf '%s\n' "$line" >>"$TMP/all"
		done
	} <"$TMP/lines"
	wait $!
	rm "$TMP/lines"
	jq -sc '[map(.allowed), map(.denied), map(.shadow_denied), map(.claims) | add]' "$TMP/all"
}
want=8
is "$(counted) $(cat "$TMP/err")" "[4,2,2,2] " "the lines of all rules have each decision once, and end when nobody reads"
shmlimit reset "$segment" --all >/dev/null
want=3
is "$(counted --rule dry)" "[1,0,2,1]" "with --rule they have that rule's"
is "$(jq -sc 'map(.rule) | unique' "$TMP/all")" '["dry"]' "with --rule the lines have the rule's name"
like "$(jq -s 'map(.interval_ns) | min' "$TMP/all")" '^[0-9]{8,}$' "an interval is as long as it was, and no shorter than asked for"

# Destroyed, and created again, while it is watched.
mkfifo "$TMP/lines"
timeout 600 shmlimit stat "$segment" -i 10ms --json --rule dry >"$TMP/lines" 2>"$TMP/err" &
{
	read -r line
	shmlimit rule remove "$segment" dry
	while read -r line && [ "$(printf '%s' "$line" | jq .allowed)" != null ]; do :; done
	like "$line" '"denied": null' "while there is no such rule, its counts are not known"
	shmlimit rule set "$segment" dry --capacity 1 --rate 1/w
	while read -r line && [ "$(printf '%s' "$line" | jq .allowed)" = null ]; do :; done
	like "$line" '"denied": 0' "the figures of a rule are known again when it was set again"
	shmlimit destroy "$segment"
	while read -r line; do :; done
} <"$TMP/lines"
wait $!
is "$? $(cat "$TMP/err")" "3 shmlimit: segment $segment: no such segment (shmlimit create $segment makes one; shmlimit list lists \
all)" "it ends when there is no segment any more"

shmlimit create "$segment" --slots 64
if has_terminal; then
	script -qec "stty rows 3; shmlimit stat '$segment' -i 10ms -c 3" /dev/null </dev/null | tr -d '\r' >"$TMP/typescript"
	is "$(sed 's/[ :].*//; s/^2.*T.*/line/' "$TMP/typescript" | tr '\n' ' ')" "TIME line line TIME line " \
		"a terminal gets headings each screenful"
	is "$(sed -n 1p "$TMP/typescript" | sed 's/  */ /g')" \
		"TIME ALLOWED/S DENIED/S SHADOW/S ON-FAILURE/S CLAIMS/S RECLAIMS/S EVICTIONS/S NO-SLOT/S FAILED-CAS/S" "the columns have titles"
fi

wrong() {
	message=$1
	shift
	run shmlimit stat "$segment" "$@"
	is "$rc $out$err" "$message" "stat $* is refused"
}
wrong "2 shmlimit: --interval 0: must be 10ms to 1w" -i 0
wrong "2 shmlimit: --interval 604801: must be 10ms to 1w" --interval 604801
wrong "2 shmlimit: --interval often: not a duration (for example 2s, 500ms or 1m; or 0)" -i often
wrong "2 shmlimit: --count 0: must be 1 or more" -c 0
wrong "2 shmlimit: stat: --interval: missing value (usage: --interval DURATION)" -i
run shmlimit stat "$segment" --rule none
is $rc 3 "a rule that is missing exits 3"

done_testing
