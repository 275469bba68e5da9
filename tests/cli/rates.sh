#!/bin/sh
# rates: each way to write a rate means what it says, to the nanosecond; what
# means nothing is refused, and says why.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 16

# TEXT COUNT PERIOD_NS SHOWN
while read -r text count period_ns shown; do
	run shmlimit rule set "$segment" r --capacity 15 --rate "$text"
	is "$rc $err" "0 " "$text is a rate"
	run shmlimit rule show "$segment" r --json
	is "$(printf '%s' "$out" | jq -r '"\(.refill) \(.period_ns) \(.rate)"')" "$count $period_ns $shown" \
		"$text is $count tokens a $period_ns ns, and is shown as $shown"
	shmlimit rule remove "$segment" r
	run shmlimit rule set "$segment" r --capacity 15 --rate "$shown"
	is $rc 0 "what is shown, $shown, is a rate"
	run shmlimit rule show "$segment" r --json
	is "$(printf '%s' "$out" | jq -r '"\(.refill) \(.period_ns)"')" "$count $period_ns" "the rate that is read is the one that was shown"
	shmlimit rule remove "$segment" r
done <<END
30/60s 30 60000000000 30/m
7/60s 7 60000000000 7/m
5/m 5 60000000000 5/m
5/1m 5 60000000000 5/m
5/min 5 60000000000 5/m
5/mins 5 60000000000 5/m
5/minute 5 60000000000 5/m
5/10minutes 5 600000000000 5/10m
1000/s 1000 1000000000 1000/s
1000/sec 1000 1000000000 1000/s
1000/second 1000 1000000000 1000/s
1/2seconds 1 2000000000 1/2s
1/90s 1 90000000000 1/1m30s
1/1m30s 1 90000000000 1/1m30s
1/1.5m 1 90000000000 1/1m30s
5/1.5s 5 1500000000 5/1.5s
100/day 100 86400000000000 100/d
100/d 100 86400000000000 100/d
100/2days 100 172800000000000 100/2d
1/h 1 3600000000000 1/h
1/hour 1 3600000000000 1/h
1/36hours 1 129600000000000 1/1d12h
1/1day12hours 1 129600000000000 1/1d12h
1/w 1 604800000000000 1/w
1/week 1 604800000000000 1/w
1/7d 1 604800000000000 1/w
1/2weeks 1 1209600000000000 1/2w
1/500ms 1 500000000 1/500ms
1/1000ms 1 1000000000 1/s
1/ms 1 1000000 1/ms
3/us 3 1000 3/us
1/250us 1 250000 1/250us
1/1500ns 1 1500 1/1.5us
1/1s1ns 1 1000000001 1/1.000000001s
1.5k/s 1500 1000000000 1500/s
150M/m 150000000 60000000000 150000000/m
2Ki/s 2048 1000000000 2048/s
1kI/s 1024 1000000000 1024/s
007/060s 7 60000000000 7/m
0.5/s 1 2000000000 1/2s
2.5/s 5 2000000000 5/2s
2.5/min 5 120000000000 5/2m
0.1/s 1 10000000000 1/10s
99.99/h 9999 360000000000000 9999/4d4h
1e-05/s 1 100000000000000 1/1d3h46m40s
END

# TEXT: what is said about it. tests/unit/limit_text has the rest.
while IFS='|' read -r text message; do
	run shmlimit rule set "$segment" r --capacity 15 --rate "$text"
	is "$rc $out$err" "2 shmlimit: rule r: rate $text: $message" "'$text' is no rate"
	run shmlimit rule list "$segment" --json
	is "$out" "[]" "'$text' sets no rule"
done <<'END'
|not a limit: must be such as 5/minute, "10/s burst 20", "20 at once", block or unlimited
30|a period is missing, such as /s or /minute: did you mean "30/s"?
5/1.5ns|the period is finer than a nanosecond
5/30m1h|a unit must be shorter than the one before it, as in 1h30m
5/fortnight|fortnight is not a unit: must be ns, us, ms, s, m, h, d, w, month or y
0.0123456789/s|too many digits: did you mean "0.012345679/s"?
5/minut|minut is not a unit: did you mean "5/minute"?
1/18446744074s|the period is too long: must be 213503d23h34m33.709551614s or less
END

# TEXT: what the rule is then
while IFS='|' read -r text rule; do
	run shmlimit rule set "$segment" r --rate "$text"
	is "$rc $err" "0 " "$text makes a rule"
	run shmlimit rule show "$segment" r --json
	is "$(printf '%s' "$out" | jq -r '"\(.algorithm) \(.capacity) \(.rate) \(.mode)"')" "$rule" "$text is: $rule"
	shmlimit rule export "$segment" >"$TMP/rules"
	shmlimit rule remove "$segment" r
	shmlimit apply "$segment" "$TMP/rules" >/dev/null
	run shmlimit rule show "$segment" r --json
	is "$(printf '%s' "$out" | jq -r '"\(.algorithm) \(.capacity) \(.rate) \(.mode)"')" "$rule" "$text is exported and applied"
	shmlimit rule remove "$segment" r
done <<'END'
5/minute|funnel 5 5/m enforce
10/s burst 20|funnel 20 10/s enforce
0.1/s burst 10|funnel 10 1/10s enforce
2.5/min|funnel 3 5/2m enforce
2.5/min window|window 5 5/2m enforce
1000/hour strict|funnel 500 500/h enforce
3/h window|window 3 3/h enforce
4 at once for 10 minutes|hold 4 4/10m enforce
0/s|funnel 1 1/s block
unlimited|funnel 281474976710656 1000000000/s off
END

# The rate of a rule that is there.
rule() { shmlimit rule show "$segment" r --json | jq -r '"\(.capacity) \(.rate) \(.mode)"'; }
for algorithm in funnel lease gcra; do
	apart() { shmlimit rule show "$segment" "$algorithm" --json | jq -r '"\(.capacity) \(.rate)"'; }
	shmlimit rule set "$segment" "$algorithm" --algorithm "$algorithm" --rate "5/m burst 10"
	shmlimit rule set "$segment" "$algorithm" --rate 6/m
	is "$(apart)" "10 6/m" "$algorithm: a plain rate leaves the capacity as it is"
	shmlimit rule set "$segment" "$algorithm" --rate 7/m --capacity 20
	is "$(apart)" "20 7/m" "$algorithm: a capacity can go beside it"
	shmlimit rule remove "$segment" "$algorithm"
done
shmlimit rule set "$segment" gcra --algorithm gcra
shmlimit rule set "$segment" gcra --rate 5/m
is "$(shmlimit rule show "$segment" gcra --json | jq -r '"\(.capacity) \(.rate)"')" "5 5/m" "a rule that had no limit gets a whole one"
shmlimit rule set "$segment" r --rate "5/m burst 10"
shmlimit rule set "$segment" r --rate 6/m
is "$(rule)" "10 6/m enforce" "a plain rate leaves the capacity as it is"
shmlimit rule set "$segment" r --rate "6/m burst 7"
is "$(rule)" "7 6/m enforce" "a burst sets it"
shmlimit rule set "$segment" r --rate "100/h strict"
is "$(rule)" "50 50/h enforce" "a strict limit sets it"
shmlimit rule set "$segment" r --rate block
is "$(rule)" "1 1/s block" "a rule can be blocked by its rate"
run shmlimit take "$segment" r user:42
is $rc 1 "a blocked rule denies"
shmlimit rule set "$segment" r --rate 9/m
is "$(rule)" "9 9/m enforce" "a rate ends what the rate block began"
shmlimit rule set "$segment" r --mode block
shmlimit rule set "$segment" r --rate 8/m
is "$(rule)" "9 8/m block" "a mode that an operator set stays"
run shmlimit rule set "$segment" r --rate "20 at once"
is "$rc $err" "2 shmlimit: rule r: is a funnel: an algorithm cannot be changed: remove the rule first (shmlimit rule \
remove $segment r)" "places are no rate of a funnel"
shmlimit rule remove "$segment" r

run shmlimit rule set "$segment" r --capacity 281474976710656 --rate 1/s
is "$rc $err" "2 shmlimit: rule r: capacity 281474976710656 is out of range (1 to 4611686018 at this rate)" \
	"a capacity that takes too long to fill is refused with the largest one"
run shmlimit rule set "$segment" r --capacity 4611686018 --rate 1/s
is "$rc $err" "0 " "the largest one is accepted"
run shmlimit rule set "$segment" r --capacity 4611686019 --rate 1/s
is "$rc $err" "2 shmlimit: rule r: capacity 4611686019 is out of range (1 to 4611686018 at this rate)" \
	"one more is refused"
run shmlimit rule set "$segment" r --capacity 1 --rate 18446744073709551615/ns
is "$rc $err" "2 shmlimit: rule r: rate 18446744073709551615/ns is out of range (one token in 146 years to 10^11 a \
second, in numbers that are round enough to be counted exactly)" "the largest rate that can be written is refused"

# What is limited besides requests: bytes, tokens of a language model, microseconds of a processor.
# large CAPACITY RATE SHOWN RESOLUTION
while IFS='|' read -r capacity rate shown resolution what; do
	run shmlimit rule set "$segment" large --capacity "$capacity" --rate "$rate"
	is "$rc $out$err" "0 " "$what is a rule"
	is "$(shmlimit rule show "$segment" large | sed -n '/^capacity/p;/^rate/p;/^resolution/p' | tr '\n' ' ')" \
		"capacity: $capacity rate: $shown resolution: $resolution " "$what is shown with its resolution"
	shmlimit take "$segment" large key --cost "$capacity" >/dev/null
	is $? 0 "$what admits its capacity at once"
	shmlimit reset "$segment" --rule large >/dev/null
done <<END
10000000|125000000/s|125000000/s|0.004ns|10 MB at 125 MB a second
1000000000|1000000000/d|1000000000/d|0.006ns|1 GB a day
150000000|150000000/m|150000000/m|0.007ns|150 million tokens a minute
8000000|8000000/s|8000000/s|0.004ns|8 processors in microseconds
100000000000|100000000000/30d|100000000000/30d|0.007ns|100 GB a month
281474976710656|100000000000/s|100000000000/s|0.005ns|the largest capacity at the largest rate
END

done_testing
