#!/bin/sh
# count: counts that expire. Times to live are hours, so that no title depends on how long
# a command takes, except one count, which is waited for.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit 1

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --rules 4 --store-keys 64
run shmlimit rule set "$segment" app --algorithm counter
is "$rc $out$err" "0 " "a counter needs neither capacity nor rate"

run shmlimit count "$segment" app alice --ttl 1h
like "$rc $out" '^0 1 1 (3600.0[01][0-9]|3599.[0-9]{3})$' "prints the count, what was added, and the seconds that it lives"
run shmlimit count "$segment" app alice --by 9 --bound 10 --ttl 5h
like "$rc $out" '^0 10 9 3(600|59.)' "a bound may be reached, and the time to live stays"
run shmlimit count "$segment" app alice --bound 10
like "$rc $out" '^1 10 0 3(600|59.)' "beyond it the exit status is 1, and nothing is changed"
run shmlimit count "$segment" app alice --by 5 --bound 12 --saturate
like "$rc $out" '^0 12 2 ' "with --saturate what fits is added"
run shmlimit count "$segment" app alice --by=-20
like "$rc $out" '^1 12 0 ' "no count is below 0"
run shmlimit count "$segment" app alice --by=-2 --restart --ttl 2h
like "$rc $out" '^0 10 -2 7(200|19.)' "a number below 0 takes away, and the time may begin again"
run shmlimit count "$segment" app alice --by 0 --json
is "$(echo "$out" | jq -c '[.allowed, .count, .applied, .ttl_ns > 7000000000000]')" '[true,10,0,true]' "0 reads; JSON"
run shmlimit count "$segment" app alice --by 0 --quiet
is "$rc $out$err" "0 " "--quiet prints nothing"
run shmlimit count "$segment" app bob --by 0
is "$rc $out" "0 0 0 0.000" "a key that was never counted counts 0"

shmlimit count "$segment" app short --ttl 20ms >out
for i in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(shmlimit count "$segment" app short --by 0)" = "0 0 0.000" ] || sleep 0.02
done
run shmlimit count "$segment" app short --ttl 1h
like "$rc $out" '^0 1 1 ' "a count that has ended begins again"

run shmlimit rule set "$segment" login --algorithm counter --capacity 3 --period 1h
for i in 1 2 3; do shmlimit take "$segment" login carol --quiet || echo "not allowed: $i"; done >out
is "$(cat out)" "" "to take it is a window of a period"
run shmlimit take "$segment" login carol --json
is "$rc $(echo "$out" | jq -c '[.limit, .remaining, .retry_after_ns > 3000000000000]')" '1 [3,0,true]' \
	"that denies until it ends"
run shmlimit refund "$segment" login carol --quiet
run shmlimit take "$segment" login carol --quiet
is "$rc" 0 "what was given back can be taken again"
run shmlimit rule set "$segment" login --capacity 5
is "$(shmlimit peek "$segment" login carol --json | jq -c '[.limit, .remaining]')" '[5,2]' \
	"a larger capacity leaves the count as it is"

is "$(shmlimit rule show "$segment" login | sed -n 's/  */ /g; /^\(algorithm\|capacity\|period\|resolution\)/p' | tr '\n' ,)" \
	"algorithm: counter,capacity: 5,period: 1h,resolution: 524.288us," "rule show says what a counter was set with, and its tick"
shmlimit rule export "$segment" >rules
is "$(sed -n '/^\[login\]/,$p' rules | tr '\n' ,)" "[login],algorithm = counter,capacity = 5,period = 1h,protected = no,mode = enforce," \
	"rules are exported"
shmlimit rule remove "$segment" login
run shmlimit apply "$segment" rules
is "$rc $(shmlimit rule show "$segment" login --json | jq -c '[.algorithm, .capacity, .period_ns]')" \
	'0 ["counter",5,3600000000000]' "an exported counter can be applied again"
is "$(shmlimit inspect "$segment" --key alice --rule app --json | jq -c '.key | [.limit, .remaining] | .[0] - .[1]')" 10 \
	"inspect shows what is left to the capacity"

shmlimit save "$segment" state
shmlimit load "$segment.copy" state
run shmlimit count "$segment.copy" app alice --by 0
like "$rc $out" '^0 10 0 71' "counts and times are saved and loaded"
shmlimit destroy "$segment.copy"
shmlimit grow "$segment" --slots 256
run shmlimit count "$segment" app alice
like "$rc $out" '^0 11 1 71' "a count moves to a larger table"
run shmlimit verify "$segment"
is "$rc" 0 "the segment is sound"

# refused MESSAGE OPERAND...
refused() {
	message=$1
	shift
	run shmlimit "$@"
	is "$rc $err" "2 shmlimit: $message" "$(printf %.60s "$*") is refused"
}

shmlimit rule set "$segment" funnel --capacity 5 --rate 1/s
refused "rule funnel: not a counter (set one with --algorithm counter)" count "$segment" funnel alice
refused "--ttl 2y: a count of rule app lives for its period, 366d, at most" count "$segment" app alice --ttl 2y
refused "--ttl 0: must be more than 0" count "$segment" app alice --ttl 0
refused "rule x: period: a funnel has none of its own: leave it out" \
	rule set "$segment" x --capacity 1 --rate 1/s --period 1h
refused "rule x: rate 1/s burst 2: this algorithm has no burst" \
	rule set "$segment" x --algorithm counter --rate "1/s burst 2"
refused "rule x: capacity 5 with period 13515d: out of range (at most 2^48 and 36 years)" \
	rule set "$segment" x --algorithm counter --capacity 5 --period 13515d
shmlimit destroy "$segment"
done_testing
