#!/bin/sh
# acquire: it returns when the tokens are there. Only lower bounds are looked
# at: a slow machine may take any time.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" r --capacity 2 --rate 20/s --max-wait 1m
shmlimit rule set "$segment" guava --capacity 2 --rate 20/s --max-wait 1m --next-pays yes
shmlimit rule set "$segment" slow --capacity 1 --rate 1/d --max-wait 5d
shmlimit rule set "$segment" seen --capacity 1 --rate 1/d --mode dry-run

# Hundredths of a second since boot: steps of 10 ms, so that a difference may be short by one.
now() { awk '{ printf "%d", $1 * 100 }' /proc/uptime; }

# takes_at_least HUNDREDTHS SINCE TITLE
takes_at_least() {
	elapsed=$(($(now) - $2))
	[ $elapsed -ge $(($1 - 1)) ]
	ok $? "$3"
	[ $elapsed -ge $(($1 - 1)) ] || diag "took $elapsed hundredths of a second, not $1"
}

start=$(now)
failed=0
for i in 1 2 3 4 5 6 7 8; do
	shmlimit acquire "$segment" r key --quiet || failed=$((failed + 1))
done
is $failed 0 "every one gets its token"
takes_at_least 30 "$start" "8 of capacity 2 at 20 a second take 300 ms"

start=$(now)
for i in 1 2 3 4; do
	for j in 1 2 3; do
		shmlimit acquire "$segment" r shared --quiet || echo "$i $j" >>"$TMP/failed"
	done &
done
wait
[ ! -e "$TMP/failed" ]
ok $? "processes that acquire at once all get their tokens"
takes_at_least 50 "$start" "12 tokens of capacity 2 at 20 a second take 500 ms, whichever processes ask"

start=$(now)
run shmlimit acquire "$segment" r big --cost 8 --json
is "$rc $(printf '%s' "$out" | jq -c '[.allowed, .remaining, (.wait_ns / 1e8 | ceil)]')" "0 [true,0,3]" \
	"more than the capacity can be acquired, and says what was waited for"
takes_at_least 30 "$start" "8 at once take 300 ms, too"

start=$(now)
shmlimit acquire "$segment" guava key --cost 8 --quiet
run shmlimit acquire "$segment" guava key
is "$rc $(printf '%s\n' "$out" | sed -n '1p')" "0 decision: allowed" "the next caller pays, and gets its own token"
takes_at_least 30 "$start" "the next caller gets its token when what the first one owed is paid"
shmlimit rule set "$segment" owed --capacity 2 --rate 1/d --max-wait 9d --next-pays yes
is "$(shmlimit reserve "$segment" owed key --cost 8 --json | jq -c '[.allowed, .wait_ns]') $(shmlimit reserve "$segment" owed key --json | jq -c '[.allowed, (.wait_ns / 86400e9 | ceil)]')" \
	"[true,0] [true,6]" "the first caller waits for nothing, the next one for what the first one owes"

# None of these would end within days, if they waited.
shmlimit take "$segment" slow key --quiet
run shmlimit acquire "$segment" slow key --max-wait 1s
is "$rc $(printf '%s\n' "$out" | sed -n '1p;6p' | tr '\n' ';')" "1 decision: denied;wait: 0s;" \
	"what would take too long is denied at once"
run shmlimit acquire "$segment" slow key --cost 9 --quiet
is "$rc $out$err" "1 " "a wait that the rule does not allow is denied at once"
is "$(shmlimit reserve "$segment" slow key --json | jq -r '.wait_ns / 86400e9 | ceil')" 1 "a wait that was denied takes nothing"
shmlimit rule set "$segment" patient --capacity 1 --rate 1/d
shmlimit take "$segment" patient key --quiet
# What is advised where a rule allows no wait, of each algorithm.
while read -r name words; do
	# shellcheck disable=SC2086 # several words
	shmlimit rule set "$segment" "no-$name" $words
	shmlimit take "$segment" "no-$name" key --quiet
	run shmlimit acquire "$segment" "no-$name" key
	case $err in
	*"(shmlimit rule set "*) run sh -c "$(printf '%s\n' "$err" | sed 's/.*(\(shmlimit rule set .*\))$/\1/')" ;;
	*) run shmlimit rule set "$segment" "no-$name" --max-wait 10s; rc=$((rc == 2 ? 0 : 1)) ;;
	esac
	is $rc 0 "$name: a max-wait is advised if the rule can have one"
done <<-END
	funnel --limit 1/d
	gcra --algorithm gcra --limit 1/d
	window --limit 1/d --algorithm window
	warmup --algorithm warmup --rate 1/h --warmup 10h
	counter --algorithm counter --capacity 1 --period 1d
	block --limit block
END
shmlimit rule set "$segment" jobs --limit '2 at once'
for verb in acquire reserve; do
	run shmlimit $verb "$segment" jobs key
	is "$rc $out$err $(shmlimit peek "$segment" jobs key --json | jq .remaining)" "2 shmlimit: rule jobs: has places, which are held while a command runs: use shmlimit hold \
$segment jobs KEY --wait 10s -- COMMAND 2" "$verb enters no place, which it would not leave"
done
run shmlimit exec "$segment" jobs key -- echo ran
is "$rc $out$(shmlimit peek "$segment" jobs key --json | jq .remaining)" "125 2" "exec enters none either"
hint="shmlimit: rule patient: its max-wait is 0, so no wait is allowed (shmlimit rule set $segment patient --max-wait 10s)"
for verb in acquire reserve; do
	run shmlimit $verb "$segment" patient key
	is "$rc $(printf '%s\n' "$out" | sed -n 1p) $err" "1 decision: denied $hint" "$verb under a rule without a wait says so"
	run shmlimit $verb "$segment" patient key --json
	is "$rc $(printf '%s' "$out" | jq .allowed) $err" "1 false $hint" "$verb --json under a rule without a wait says so on standard error"
	run shmlimit $verb "$segment" patient key --quiet
	is "$rc $out$err" "1 " "$verb --quiet under a rule without a wait says nothing"
	run shmlimit $verb "$segment" patient key --max-wait 0
	is "$rc $err" "1 " "$verb --max-wait 0 has no advice about a wait"
	run shmlimit $verb "$segment" patient other
	is "$rc $err" "0 " "$verb that is allowed has no advice about a wait"
	shmlimit refund "$segment" patient other --quiet
done
shmlimit take "$segment" seen key --quiet
run shmlimit acquire "$segment" seen key --quiet
is "$rc $out$err" "0 " "a dry run goes on at once"

done_testing
