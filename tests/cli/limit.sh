#!/bin/sh
# limit: take, peek, reserve, acquire, charge and refund by a limit of --limit, under one gcra rule.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" plans --algorithm gcra
shmlimit rule set "$segment" default --algorithm gcra --limit '2/d burst 3' --max-wait 1d
shmlimit rule set "$segment" funnel --rate 5/d

# facts ARGUMENT...: the exit status, and the limit and what remains of it
facts() {
	run shmlimit "$@" --json
	printf '%s %s' "$rc" "$(printf '%s' "$out" | jq -c '[.limit, .remaining]')"
}

is "$(facts take "$segment" plans free --limit 2/d)" "0 [2,1]" "a take by its own limit"
is "$(facts take "$segment" plans paid --limit '100/d burst 200')" "0 [200,199]" "beside it a key with another limit"
is "$(facts peek "$segment" plans free --limit 2/d)" "0 [2,1]" "peek by a limit takes nothing"
is "$(facts take "$segment" plans free --limit 2/d)" "0 [2,0]" "the last token"
is "$(facts take "$segment" plans free --limit 2/d)" "1 [2,0]" "what is spent is denied"
is "$(facts refund "$segment" plans free --limit 2/d --tokens 1)" "0 [2,1]" "a refund by a limit gives back"
is "$(facts charge "$segment" plans free --limit 2/d)" "0 [2,0]" "a charge by a limit takes"
is "$(facts charge "$segment" plans free --limit 2/d)" "1 [2,0]" "a charge makes no debt without a max-wait"
is "$(facts take "$segment" plans free --limit '1/d burst 30')" "1 [30,0]" \
	"what is spent is spent by a longer limit, too"
like "$(shmlimit peek "$segment" plans free --limit 5/h --json | jq .reset_after_ns)" '^3[56][0-9]{11}$' \
	"by a shorter limit a key owes no more than its time to full"
is "$(facts take "$segment" plans none --limit block)" "1 [0,0]" "block denies"
is "$(facts take "$segment" plans none --limit unlimited)" '0 ["18446744073709551615","18446744073709551615"]' "unlimited allows"

# Places.
shmlimit rule set "$segment" jobs --limit '3 at once for 1h'
is "$(facts take "$segment" jobs a --limit '2 at once')" "0 [2,1]" "a take by a number of places"
is "$(facts take "$segment" jobs a --limit '2 at once') $(facts take "$segment" jobs a --limit '2 at once')" "0 [2,0] 1 [2,0]" \
	"as many are taken"
is "$(facts peek "$segment" jobs a --limit '9 at once')" "0 [3,1]" "at most the rule's places count"
run shmlimit take "$segment" plans a --limit '2 at once'
is "$rc $err" "2 shmlimit: rule plans: has no places, which --limit '2 at once' needs (shmlimit rule set $segment jobs \
--limit '2 at once' makes one that has)" "a number of places needs a rule that has some"
for verb in charge refund "take --at-most 2"; do
	# shellcheck disable=SC2086 # a verb with its option
	run shmlimit $verb "$segment" jobs a --limit '2 at once'
	is "$rc $err" "2 shmlimit: --limit '2 at once': a number of places is for take and hold" "$verb by a number of places is refused"
done

# Waits.
is "$(facts take "$segment" plans waits --limit 1/d)" "0 [1,0]" "a token a day is taken"
is "$(facts reserve "$segment" plans waits --limit 1/d)" "1 [1,0]" "the rule's max-wait holds for a limit: none"
is "$(facts reserve "$segment" plans waits --limit 1/d --max-wait 1d)" "0 [1,0]" "--max-wait allows a wait of its own"
is "$(facts reserve "$segment" default waits --limit 1/d)" "0 [1,0]" "another rule"
is "$(facts reserve "$segment" default waits --limit 1/d)" "0 [1,0]" "whose max-wait allows a wait of a day"
is "$(facts reserve "$segment" default waits --limit 1/d)" "1 [1,0]" "a longer wait is denied"
run shmlimit acquire "$segment" plans now --limit 50/s --json
is "$rc $(printf '%s' "$out" | jq .wait_ns)" "0 0" "acquire by a limit"
run shmlimit acquire "$segment" plans now --limit 50/s --cost 60 --max-wait 2s --json
is "$rc $(printf '%s' "$out" | jq '.wait_ns > 100000000 and .wait_ns <= 220000000')" "0 true" "it waits for the tokens that are missing"
run shmlimit acquire "$segment" plans waits --limit 1/d --max-wait 1ms
is "$rc $out" "1 $(shmlimit peek "$segment" plans waits --limit 1/d)
wait: 0s" "a longer wait is denied at once"
run shmlimit acquire "$segment" plans waits --limit 1/d
is "$rc $err" "1 shmlimit: rule plans: its max-wait is 0, so no wait is allowed (shmlimit rule set $segment plans \
--max-wait 10s)" "with advice"

is "$(shmlimit take "$segment" plans none --limit unlimited)" 'decision: allowed
limit: unlimited
retry after: 0s
reset after: 0s' "no limit is shown as none"
run shmlimit inspect "$segment" --rule plans --key alice
is "$err" "shmlimit: rule plans: has no limit of its own: set one (shmlimit rule set $segment plans --rate 5/minute)" \
	"what is left of a key is not known without a limit"

# A default.
is "$(facts take "$segment" default own)" "0 [3,2]" "a call that brings no limit has the rule's"
is "$(shmlimit rule show "$segment" default --json | jq -c '[.algorithm, .capacity, .rate]')" '["gcra",3,"2/d"]' "it is shown"
run shmlimit rule set "$segment" default --limit 3/d --rate 4/d
is "$rc $err" "2 shmlimit: --limit 3/d: the same as --rate 4/d: give one of them" "one word for it at a time"
for verb in take peek reserve acquire charge refund; do
	run shmlimit $verb "$segment" plans own
	is "$rc $err" "2 shmlimit: rule plans: has no limit of its own: give one with --limit, or set it (shmlimit rule set \
$segment plans --rate 5/minute)" "$verb without any limit says what to do"
	run shmlimit $verb "$segment" funnel own --limit 5/m
	is "$rc $err" "2 shmlimit: rule funnel: not a gcra rule, which --limit needs (shmlimit rule set $segment plans \
--algorithm gcra makes one)" "$verb by a limit needs a rule for it"
	run shmlimit $verb "$segment" plans own --limit 5/fortnight
	like "$rc $err" '^2 shmlimit: --limit 5/fortnight: fortnight is not a unit: ' "$verb names a limit that it cannot read"
	run shmlimit $verb "$segment" plans own --limit '5 at once for 5m'
	like "$rc $err" '^2 shmlimit: --limit 5 at once for 5m: ' "$verb refuses what is no rate"
	run shmlimit $verb "$segment" plans own --limit '1/y burst 3'
	is "$rc $err" "2 shmlimit: --limit 1/y burst 3: out of range: at most a burst of 2^48, all of which comes back \
within 366 days" "$verb names a limit that is out of range"
done
is "$(facts peek "$segment" plans own --limit 5/m)" "0 [5,5]" "what was refused took nothing"

# Keys from a file.
printf 'a\nb\na\n' >"$TMP/keys"
run shmlimit take "$segment" plans --keys-from "$TMP/keys" --limit 1/d
is "$rc $out" "1 allowed	a
allowed	b
denied	a" "--keys-from decides each line by the limit"
run shmlimit take "$segment" funnel --keys-from "$TMP/keys" --limit 1/d
is "$rc $(printf '%s\n' "$err" | head -n 1)" "2 shmlimit: $TMP/keys:1: rule funnel: not a gcra rule, which --limit needs (shmlimit rule set $segment plans \
--algorithm gcra makes one)" "--keys-from names a rule that --limit is not for"
run shmlimit take "$segment" plans a funnel b --all --limit 1/d
is "$rc $err" "2 shmlimit: take --all: --limit 1/d: for one rule only: leave --all out" "--all is for rules with limits of their own"
done_testing
