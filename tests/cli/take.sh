#!/bin/sh
# take, peek, refund: the exit status is the answer, the five lines are why.
# The rules here refill so slowly that the time a test takes shows in no token.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" r --capacity 3 --rate 1/d
shmlimit rule set "$segment" seen --capacity 1 --rate 1/d --mode dry-run
shmlimit rule set "$segment" off --capacity 1 --rate 1/d --mode off

run shmlimit take "$segment" r key
is $rc 0 "a key never seen is allowed"
is "$(printf '%s\n' "$out" | sed 's/: .*//' | tr '\n' ',')" "decision,limit,remaining,retry after,reset after," \
	"an answer is five lines"
is "$(printf '%s\n' "$out" | sed -n 1,4p | tr '\n' ';')" \
	"decision: allowed;limit: 3;remaining: 2;retry after: 0s;" "the first of three leaves two"
like "$out" '^reset after: 1d(0\.000000001s)?$' "the token comes back after a day"
run shmlimit peek "$segment" r key
is "$rc $(printf '%s\n' "$out" | sed -n 3p)" "0 remaining: 2" "peek takes nothing"
run shmlimit take "$segment" r key --cost 2
is "$rc $(printf '%s\n' "$out" | sed -n 3p)" "0 remaining: 0" "--cost takes more than one"
run shmlimit take "$segment" r key
is $rc 1 "an empty funnel denies"
is "$(printf '%s\n' "$out" | sed -n 1,3p | tr '\n' ';')" "decision: denied;limit: 3;remaining: 0;" "a denial says what the limit is and what remains"
like "$out" '^retry after: (1d|23h[0-9]+m)$' "it says when it is worth another try"
like "$out" '^reset after: 3d$' "a denial says when the funnel is full"
is "$err" "" "a denial is no error"
run shmlimit peek "$segment" r key
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "1 decision: denied" "peek answers what take would"
run shmlimit take "$segment" r key --cost 0
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "0 decision: allowed" "a cost of 0 is always allowed"
run shmlimit take "$segment" r key --cost 4
is "$rc" 1 "more than the capacity is denied"
like "$out" '^retry after: never$' "for ever"
run shmlimit take "$segment" r other --cost 18446744073709551615
is "$rc" 1 "the largest cost there is is denied"
run shmlimit take "$segment" r other
is "$rc" 0 "keys have each their own funnel"

run shmlimit refund "$segment" r key
is "$rc $(printf '%s\n' "$out" | sed -n 3p)" "0 remaining: 1" "refund gives one back"
run shmlimit refund "$segment" r key --tokens 18446744073709551615
is "$rc $(printf '%s\n' "$out" | sed -n 3p)" "0 remaining: 3" "refund fills no funnel above its capacity"
is "$(printf '%s\n' "$out" | sed -n 5p)" "reset after: 0s" "a full funnel needs no time to be so"

# As many as fit.
run shmlimit take "$segment" r batch --at-most 2
is "$rc $(printf '%s\n' "$out" | sed -n '1p;3p;6p' | tr '\n' ';')" "0 decision: allowed;remaining: 1;granted: 2;" "--at-most takes what it asks for, if that fits"
is "$(shmlimit take "$segment" r batch --at-most 2 --json | jq -c '[.allowed, .granted]')" "[true,1]" "--at-most takes a part, if no more fits"
run shmlimit take "$segment" r batch --at-most 9
is "$rc $(printf '%s\n' "$out" | sed -n '1p;6p' | tr '\n' ';')" "1 decision: denied;granted: 0;" "--at-most is denied if nothing fits"
like "$out" '^retry after: (1d|23h[0-9]+m)$' "a denial of --at-most says when one token is there"
is "$err" "" "--at-most may say more than the capacity"
run shmlimit take "$segment" r batch --at-most 2 --cost 2
is "$rc $err" "2 shmlimit: --at-most and --cost: cannot be combined" "--at-most goes without --cost"
run shmlimit take "$segment" r batch r other --all --at-most 2
is "$rc $err" "2 shmlimit: --at-most: of one rule and one key: cannot be combined with --all or --keys-from" "--at-most goes without --all"
run shmlimit take "$segment" r --keys-from - --at-most 2
is "$rc $err" "2 shmlimit: --at-most: of one rule and one key: cannot be combined with --all or --keys-from" "--at-most goes without --keys-from"
shmlimit rule set "$segment" places --limit "3 at once"
run shmlimit take "$segment" places batch --at-most 2
is "$rc $err" "2 shmlimit: rule places: --at-most: a rule of its algorithm grants all or nothing" "--at-most is refused where it cannot be said"
shmlimit rule set "$segment" plans --algorithm gcra
is "$(shmlimit take "$segment" plans batch --at-most 9 --limit 5/d --json | jq -c .granted)" 5 "--at-most by a limit of the call"

# Modes.
run shmlimit take "$segment" seen key
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "0 decision: allowed" "a dry run allows what fits"
run shmlimit take "$segment" seen key
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "0 decision: allowed (dry run: would be denied)" \
	"it allows what doesn't fit, too, and says so"
is "$(shmlimit peek "$segment" seen key --json | jq -c '[.allowed, .shadow_denied]')" "[true,true]" "in JSON as well"
for i in 1 2 3; do
	run shmlimit take "$segment" off key
	is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "0 decision: allowed" "a rule that is off allows everything"
done

# JSON, and nothing.
run shmlimit take "$segment" r json --json
is "$rc $(printf '%s' "$out" | jq -c 'del(.reset_after_ns)')" \
	'0 {"allowed":true,"shadow_denied":false,"limit":3,"remaining":2,"retry_after_ns":0}' "take --json prints the facts"
like "$(printf '%s' "$out" | jq .reset_after_ns)" '^8640000000000[01]$' "with times in nanoseconds"
run shmlimit take "$segment" r json --json --cost 3
is "$rc $(printf '%s' "$out" | jq -c '[.allowed, .remaining]')" "1 [false,2]" "a denial is JSON, too"
run shmlimit take "$segment" r json --json --cost 4
is "$rc $(printf '%s' "$out" | jq -c .retry_after_ns)" "1 null" "never is null"
is "$(shmlimit refund "$segment" r json --json | jq -c '[.allowed, .remaining]')" "[true,3]" "refund --json prints JSON"
run shmlimit take "$segment" r quiet --quiet --cost 3
is "$rc $out$err" "0 " "--quiet prints nothing when allowed"
run shmlimit take "$segment" r quiet --quiet
is "$rc $out$err" "1 " "--quiet prints nothing when denied"
run shmlimit peek "$segment" r quiet --quiet
is "$rc $out$err" "1 " "peek --quiet prints nothing"
run shmlimit refund "$segment" r quiet --quiet
is "$rc $out$err" "0 " "refund --quiet prints nothing"

# Keys are bytes.
run shmlimit take "$segment" r -- --cost
is $rc 0 "a key may begin with a dash behind --"
run shmlimit take "$segment" r "$(printf 'a\nb\377 ')" --cost 3
is $rc 0 "a key may have any bytes"
run shmlimit peek "$segment" r "$(printf 'a\nb\377 ')" --json
is "$(printf '%s' "$out" | jq -c .remaining)" 0 "a key of any bytes is found by them"
run shmlimit peek "$segment" r "$(printf 'a\nb\377')" --json
is "$(printf '%s' "$out" | jq -c .remaining)" 3 "a key with a byte less is another one"
run shmlimit take "$segment" r "$(printf '%01024d' 0)"
is $rc 0 "a key may be 1024 bytes long"
run shmlimit take --cost 2 "$segment" --quiet r order
is $rc 0 "options may stand between the operands"

# Errors: exit status, message.
for verb in take peek reserve acquire charge refund; do
	tokens=cost
	case $verb in charge | refund) tokens=tokens ;; esac
	run shmlimit $verb "$SEGMENT.none" r key
	is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "$verb needs a segment"
	run shmlimit $verb "$segment" none key
	is "$rc $out$err" "3 shmlimit: rule none: no such rule in segment $segment (shmlimit rule set $segment none \
--capacity N --rate N/s makes it; shmlimit rule list $segment lists them)" "$verb needs a rule"
	run shmlimit $verb "$segment" 'no name' key
	is "$rc $out$err" "2 shmlimit: rule no name: bad name: must be 1 to 63 letters, digits and . _ : @ + -" \
		"$verb needs a rule's name"
	run shmlimit $verb a/b r key
	is "$rc $out$err" "2 shmlimit: segment a/b: bad name: must be 1 to 239 bytes without '/' and control \
characters, the first not '.'" "$verb needs a segment's name"
	run shmlimit $verb "$segment" r ''
	is "$rc $out$err" "2 shmlimit: key of 0 bytes: must be 1 to 1024" "$verb needs a key"
	run shmlimit $verb "$segment" r "$(printf '%01025d' 0)"
	is "$rc $out$err" "2 shmlimit: key of 1025 bytes: must be 1 to 1024" "$verb needs a shorter key"
	run shmlimit $verb "$segment" r wrong --$tokens 1KB
	is "$rc $out$err" "2 shmlimit: --$tokens 1KB: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" \
		"$verb needs a number"
	run shmlimit $verb "$segment" r wrong --$tokens -1
	is "$rc $out$err" "2 shmlimit: --$tokens -1: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" \
		"$verb needs a number that is not negative"
	run shmlimit $verb "$segment" r wrong --$tokens 18446744073709551616
	is "$rc $out$err" "2 shmlimit: --$tokens 18446744073709551616: must be 0 to 18446744073709551615" \
		"$verb needs a number of 64 bits"
	run shmlimit $verb "$segment" r wrong --json --quiet
	is "$rc $out$err" "2 shmlimit: --json and --quiet: cannot be combined" \
		"$verb cannot print JSON and nothing"
done
run shmlimit peek "$segment" r wrong --json
is "$(printf '%s' "$out" | jq .remaining)" 3 "what was refused took nothing"

# Keys from a file.
shmlimit rule set "$segment" lines --capacity 2 --rate 1/d
printf 'a\nb\na\n\na\nx\033y' >"$TMP/keys"
run shmlimit take "$segment" lines --keys-from "$TMP/keys"
is "$rc $out" "2 allowed	a
allowed	b
allowed	a
denied	a
allowed	x\\x1by" "--keys-from decides each line of a file, in order"
is "$err" "shmlimit: $TMP/keys:4: key of 0 bytes: must be 1 to 1024, none of them NUL" "a line that is no key is named, and no more"
printf 'a\nb\n' >"$TMP/keys"
shmlimit take "$segment" lines --keys-from - --json <"$TMP/keys" >"$TMP/.out"
is "$? $(jq -c '[.key, .allowed, .remaining, .limit]' "$TMP/.out" | tr '\n' ' ')" '1 ["a",false,0,2] ["b",true,0,2] ' \
	"--keys-from - reads standard input, and --json prints an object a line"
run shmlimit take "$segment" lines --keys-from "$TMP/keys" --quiet --cost 0
is "$rc $out" "0 " "--quiet prints nothing, --cost counts for each"
run shmlimit take "$segment" lines --keys-from /no/such
is "$rc $err" "2 shmlimit: /no/such: No such file or directory" \
	"a file that is missing is an error"
run shmlimit take "$segment" lines key --keys-from "$TMP/keys"
is "$rc $err" "2 shmlimit: take: key: one operand too many; usage: shmlimit take NAME RULE KEY, or NAME RULE KEY RULE KEY ... --all" \
	"--keys-from stands instead of a key"

# Several limits.
shmlimit rule set "$segment" few --capacity 1 --rate 1/d
shmlimit rule set "$segment" many --capacity 9 --rate 1/d
run shmlimit take "$segment" many k1 few k2 --all --json
is "$rc $(printf '%s' "$out" | jq -c '[.allowed, .denied_by, [.limits[] | [.rule, .key, .allowed, .remaining]]]')" \
	'0 [true,null,[["many","k1",true,8],["few","k2",true,0]]]' "--all takes from each limit"
run shmlimit take "$segment" many k1 few k2 --all
is "$rc $(printf '%s\n' "$out" | sed 's/  */ /g; s/ 1d/ T/g; s/ 2d/ T/')" "1 decision: denied
denied by: few
RULE KEY LIMIT REMAINING RETRY-AFTER RESET-AFTER
many k1 9 7 0s T
few k2 1 0 T T" "--all says which limit denied"
is "$(shmlimit peek "$segment" many k1 --json | jq .remaining)" 8 "--all takes from none then"
run shmlimit take "$segment" many k1 few k2 --all --quiet
is "$rc $out" "1 " "--all --quiet prints nothing"
run shmlimit take "$segment" many k1 few k3 --all --cost 2 --json
is "$rc $(printf '%s' "$out" | jq -c '[.denied_by, .limits[1].retry_after_ns]')" '1 ["few",null]' "--cost counts for each limit"
wrong_all() {
	message=$1
	shift
	run shmlimit take "$segment" "$@" --all
	is "$rc $out$err" "$message" "take $* --all is refused"
}
wrong_all "2 shmlimit: take: few: missing key (usage: NAME RULE KEY RULE KEY ...)" many k1 few
wrong_all "2 shmlimit: take --all: each limit has its key as an operand (usage: NAME RULE KEY RULE KEY ...)" \
	many --key-ip 203.0.113.9
wrong_all "2 shmlimit: key of 0 bytes: must be 1 to 1024" many k1 few ''
wrong_all "2 shmlimit: take --all: 17 limits: must be 16 or less" $(yes 'many k' | head -n 17)
run shmlimit take "$segment" many k1 absent k2 --all
is $rc 3 "a rule that is missing exits 3"

done_testing
