#!/bin/sh
# throttle: redis-cell's five numbers. No title here depends on how long a
# command takes, but that it is less than two seconds after the first.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --rules 4

run shmlimit throttle "$segment" laoqian:reply 15 30 60
is "$rc $out$err" "0 0 15 14 -1 2" "the first of 15 leaves 14, and two seconds until the funnel is full"

day=86400
run shmlimit throttle "$segment" slow 3 1 $day
is "$rc $out" "0 0 3 2 -1 $day" "another key may have another limit"
run shmlimit throttle "$segment" slow 3 1 $day 2
like "$rc $out" '^0 0 3 0 -1 25[0-9]{4}$' "QUANTITY takes more than one"
run shmlimit throttle "$segment" slow 3 1 $day
like "$rc $out" '^1 1 3 0 86[0-9]{3} 25[0-9]{4}$' "a denial exits 1, and says when to try again"
run shmlimit throttle "$segment" slow 3 1 $day 4
like "$rc $out" '^1 1 3 0 -1 25[0-9]{4}$' "what can never be is not to be tried again"
run shmlimit throttle "$segment" slow 3 1 $day 0
like "$rc $out" '^0 0 3 0 -1 25[0-9]{4}$' "a quantity of 0 only looks"
run shmlimit throttle "$segment" slow 15 30 60
like "$rc $out" '^[01] [01] 15 [0-9]+ (-1|[0-2]) ([0-9]|[12][0-9]|30)$' \
	"under another limit a key owes no more than that one's time to full, unlike in redis-cell"
run shmlimit throttle "$segment" other 3 1 $day 3
is "$rc $out" "0 0 3 0 -1 $((3 * day))" "each key has its own"
run shmlimit throttle "$segment" bytes 1000000000 1000000000 $day 400000000
is "$rc $out" "0 0 1000000000 600000000 -1 34560" "a limit may be 1 GB a day"
run shmlimit throttle -- "$segment" -key 3 1 $day 3
is "$rc $out" "0 0 3 0 -1 $((3 * day))" "a key may begin with a dash behind --"

# The seeds' IsActionAllowed("berryjam", "reply", 15, 0.5).
run shmlimit throttle "$segment" berryjam:reply 15 0.5 1
is "$rc $out$err" "0 0 15 14 -1 2" "half a token a second is one in two"
run shmlimit throttle "$segment" thirds 7 2.5 60 7
is "$rc $out$err" "0 0 7 0 -1 168" "2.5 a minute is one in 24 seconds"

is "$(shmlimit rule list "$segment" --json | jq -r '.[].name' | tr '\n' ' ')" "~throttle " "all limits have one rule"
is "$(shmlimit inspect "$segment" --json | jq -c '[.rules[0].counters | .allowed, .denied]')" "[8,3]" "it has their counters"
shmlimit disable "$segment"
run shmlimit throttle "$segment" other 3 1 $day 3
like "$rc $out" '^0 0 3 ' "a segment that is switched off allows everything"
shmlimit enable "$segment"

# refused MESSAGE OPERAND...
refused() {
	message=$1
	shift
	run shmlimit throttle "$segment" "$@"
	is "$rc $out$err" "2 shmlimit: $message" "throttle $(printf %.40s "$*") is refused"
}

digits="not a whole number (for example 1500, 1.5k, 2M or 64Ki)"
refused "key of 0 bytes: must be 1 to 1024" '' 15 30 60
refused "key of 1025 bytes: must be 1 to 1024" "$(printf '%01025d' 0)" 15 30 60
refused "capacity 0: must be 1 or more" key 0 30 60
refused "capacity few: $digits" key few 30 60
refused "count 0: must be above 0" key 15 0 60
refused "count 0.00: must be above 0" key 15 0.00 60
refused "count 30/m: not a number (for example 30 or 0.5)" key 15 30/m 60
refused 'count 0.0123456789/1s: too many digits: did you mean "0.012345679/1s"?' key 15 0.0123456789 1
refused "period 0: must be 1 to 18446744073" key 15 30 0
refused "period 60s: not a whole number of seconds" key 15 30 60s
refused "period 18446744074: must be 1 to 18446744073" key 15 30 18446744074
refused "quantity some: $digits" key 15 30 60 some
refused "quantity : $digits" key 15 30 60 ''
refused "quantity 18446744073709551616: must be 0 to 18446744073709551615" key 15 30 60 18446744073709551616
refused "rule ~throttle: capacity 281474976710656 is out of range (1 to 527040 at this rate)" key 281474976710656 1 60

run shmlimit throttle "$SEGMENT.none" key 15 30 60
is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "throttle needs a segment"

done_testing
