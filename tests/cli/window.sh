#!/bin/sh
# window, warmup: the other algorithms, as rules and as answers. Periods are
# days, so that the time a test takes shows in no count.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64

refused() {
	message=$1
	shift
	run shmlimit rule set "$segment" "$@"
	is "$rc $out$err" "2 shmlimit: rule $1: $message" "rule set $* is refused"
}

# ---- window ----
run shmlimit rule set "$segment" w --algorithm window --rate 3/d
is "$rc $out$err" "0 " "a window needs its rate only"
run shmlimit rule show "$segment" w
is "$(printf '%s\n' "$out" | sed -n '3,9p' | tr '\n' ';')" \
	"algorithm: window;capacity: 3;rate: 3/d;count-refused: no;max-wait: 0s;protected: no;mode: enforce;" "a window is shown as it was set"
is "$(shmlimit rule show "$segment" w --json | jq -c '[.algorithm, .capacity, .refill, .period_ns, .count_refused]')" \
	'["window",3,3,86400000000000,false]' "in JSON, too"
answers=
for cost in 1 1 2 1 1; do
	shmlimit take "$segment" w key --cost $cost --quiet
	answers="$answers $?"
done
is "$answers" " 0 0 1 0 1" "a window admits its capacity, and no more"
run shmlimit peek "$segment" w key --json
is "$(printf '%s' "$out" | jq -c '[.limit, .remaining, (.retry_after_ns / 86400e9 | ceil)]')" '[3,0,1]' \
	"a full window says when its first request leaves it"
shmlimit refund "$segment" w key --quiet
run shmlimit take "$segment" w key --quiet
is $rc 0 "what is given back can be taken again"
run shmlimit inspect "$segment"
like "$out" '^w +window +3 +3/d +enforce +4 +2 ' "inspect shows windows among the rules"
like "$out" '^w +[0-9a-f]{12} +0 +- +(1d|23h59m)' "inspect shows windows that are not empty"
run shmlimit rule set "$segment" w --rate 5/d
is $rc 0 "a window can be made larger"
is "$(shmlimit peek "$segment" w key --json | jq .remaining)" 2 "a window that was made larger remembers what it admitted"
run shmlimit rule set "$segment" w --count-refused yes --rate 3/d
shmlimit take "$segment" w late --cost 2 --quiet
shmlimit take "$segment" w late --cost 2 --quiet
is "$(shmlimit peek "$segment" w late --json | jq .remaining)" 0 "a refusal can be made to count"
run shmlimit reset "$segment" --rule w --key late
is "$(shmlimit peek "$segment" w late --json | jq .remaining)" 3 "a refusal that counts can be forgotten"

# ---- warmup ----
run shmlimit rule set "$segment" u --algorithm warmup --rate 2/d --warmup 4d --max-wait 52w
is "$rc $out$err" "0 " "a warm-up needs rate and warm-up"
run shmlimit rule show "$segment" u
is "$(printf '%s\n' "$out" | sed -n '3,10p' | tr '\n' ';')" \
	"algorithm: warmup;capacity: 8;rate: 2/d;warmup: 4d;cold-factor: 3;max-wait: 52w;protected: no;mode: enforce;" \
	"a warm-up's capacity follows from the rest"
waits=
for i in 1 2 3 4 5 6 7 8; do
	waits="$waits $(shmlimit reserve "$segment" u key --json | jq '.wait_ns / 86400e9 * 1000 | round / 1000')"
done
is "$waits" " 0 1.375 2.5 3.375 4 4.5 5 5.5" "from cold each token takes less, until it is warm: as in Guava"
run shmlimit rule set "$segment" u --cold-factor 2.125
is "$(shmlimit rule show "$segment" u | sed -n 's/^cold-factor: //p')" 2.125 "the cold factor can be a fraction"

# ---- files ----
shmlimit rule export "$segment" >export.ini
run shmlimit apply "$segment" export.ini
is "$rc $out$err" "0 " "what is exported changes nothing"
shmlimit rule remove "$segment" u
shmlimit rule remove "$segment" w
run shmlimit apply "$segment" export.ini
is "$rc $out$err" "0 + rule w algorithm window rate 3/d count-refused yes
+ rule u algorithm warmup rate 2/d warmup 4d cold-factor 2.125 max-wait 52w" "apply makes rules of windows again"
printf '[w]\nrate = 65537/d\n' >large.ini
run shmlimit apply "$segment" large.ini
is "$rc $out" "2 " "a file with too large a window is refused"
like "$err" "^shmlimit: large\.ini:1: rule w: window too large, or too many places: must be 65536 or less$" "apply refuses a window that is larger than any, with file and line"
printf '[n]\nalgorithm = warmup\nrate = 6/d\n' >warm.ini
run shmlimit apply "$segment" warm.ini
is "$err" "shmlimit: warm.ini:1: rule n: new, its warmup is missing: must have rate and warmup" "a rule with half a warm-up is refused"

# ---- what is wrong ----
refused "window too large, or too many places: must be 65536 or less" big --algorithm window --rate 65537/d
run shmlimit rule set "$segment" bucket --algorithm token-bucket --capacity 3 --rate 3/h
is "$rc $(shmlimit rule show "$segment" bucket --json | jq -r .algorithm)" "0 funnel" "token-bucket is another word for funnel"
refused "algorithm bucket: must be funnel, token-bucket, warmup, window, lease, counter, hold or gcra" x --algorithm bucket
refused "capacity: a window has none of its own: leave it out" x --algorithm window --rate 1/d --capacity 1
refused "capacity: a warmup has none of its own: leave it out" x --algorithm warmup --rate 1/d --warmup 2d --capacity 1
refused "next-pays: a window has none of its own: leave it out" w --next-pays yes
refused "warmup: a window has none of its own: leave it out" w --warmup 1d
refused "is a window: an algorithm cannot be changed: remove the rule first (shmlimit rule remove $segment w)" \
	w --algorithm funnel
refused "new, its warmup is missing: must have rate and warmup" x --algorithm warmup --rate 1/d
refused "cold-factor 0.5: must be 1 to 1000" u --cold-factor 0.5
refused "cold-factor 1.: not a factor (for example 3 or 2.5, with at most three decimals)" u --cold-factor 1.
refused "rate 1/d with warmup 1h: cannot be represented: must be a warmup of a token or more, of a fiftieth of the cold factor or more, and times of less than \
decades" x --algorithm warmup --rate 1/d --warmup 1h
refused "rate 1/600w with period 600w: cannot be represented: must be times of less than nine years together" \
	x --algorithm window --rate 1/600w
run shmlimit verify "$segment"
is "$rc $out" "0 $segment: sound" "the segment is sound"
done_testing
