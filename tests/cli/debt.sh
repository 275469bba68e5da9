#!/bin/sh
# reserve, charge: tokens taken in advance and tokens paid for later, and how long each caller waits for them. The
# rules refill one token a day. So the time that a test takes shows in no token, and waits are compared in whole days.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" r --capacity 3 --rate 1/d --max-wait 5d
shmlimit rule set "$segment" guava --capacity 3 --rate 1/d --max-wait 5d --next-pays yes
shmlimit rule set "$segment" none --capacity 3 --rate 1/d
shmlimit rule set "$segment" seen --capacity 1 --rate 1/d --max-wait 1d --mode dry-run
shmlimit rule set "$segment" off --capacity 1 --rate 1/d --max-wait 1d --mode off

# facts RULE KEY OPTION...: allowed, remaining, days to wait, days to retry.
facts() {
	shmlimit reserve "$segment" "$@" --json |
		jq -r 'def days: if . then . / 86400e9 | ceil else . end;
			"\(.allowed) \(.remaining) \(.wait_ns | days) \(.retry_after_ns | days)"'
}

run shmlimit reserve "$segment" r key
is "$rc $(printf '%s\n' "$out" | sed 's/: .*//' | tr '\n' ',')" \
	"0 decision,limit,remaining,retry after,reset after,wait," "a reservation is answered in six lines"
is "$(printf '%s\n' "$out" | sed -n '3p;6p' | tr '\n' ';')" "remaining: 2;wait: 0s;" \
	"what the funnel has is not waited for"
run shmlimit reserve "$segment" r key --cost 4
is $rc 0 "what it lacks can be reserved"
like "$out" '^wait: 2d$' "to be waited for: two days"
is "$(facts r key)" "true 0 3 0" "the next one waits behind those before"
is "$(facts r key --cost 3)" "false 0 0 1" "a wait that the rule does not allow is denied, until it would be"
is "$(facts r key --cost 2)" "true 0 5 0" "a wait that was denied takes nothing"
is "$(facts r key --cost 9)" "false 0 0 null" "what no wait would bring is never"
run shmlimit reserve "$segment" r key
is $rc 1 "a denial exits 1"
is "$(printf '%s\n' "$out" | sed -n '1p;6p' | tr '\n' ';')" "decision: denied;wait: 0s;" \
	"acquire does not wait for what is denied"
is "$(shmlimit peek "$segment" r key --json | jq -c '[.allowed, .remaining, (.retry_after_ns / 86400e9 | ceil)]')" \
	"[false,0,6]" "a take is denied until the debt is back, and its own token"
is "$(shmlimit refund "$segment" r key --tokens 4 --json | jq -c '[.remaining, (.reset_after_ns / 86400e9 | ceil)]')" \
	"[0,4]" "a refund goes to the debt first"
is "$(facts r key)" "true 0 2 0" "a refund shortens the wait"

is "$(facts r short --cost 5 --max-wait 1d)" "false 3 0 null" "--max-wait allows less than the rule"
is "$(facts r short --cost 5 --max-wait 2d)" "true 0 2 0" "--max-wait allows a wait of its own length"
is "$(facts r short --max-wait 0)" "false 0 0 3" "--max-wait 0 is for what is there"
is "$(facts r long --cost 9 --max-wait 52w)" "false 3 0 null" "--max-wait allows no more than the rule"
is "$(facts none key --cost 3) $(facts none key)" "true 0 0 0 false 0 0 1" "a rule without waits gives what it has"
is "$(facts r zero --cost 0 --max-wait 0)" "true 3 0 0" "a cost of 0 is always allowed"
run shmlimit reserve "$segment" r quiet --quiet --cost 8
is "$rc $out$err" "0 " "--quiet prints nothing when allowed"
run shmlimit reserve "$segment" r quiet --quiet
is "$rc $out$err" "1 " "--quiet prints nothing when denied"

# Who pays.
is "$(facts guava key --cost 5)" "true 0 0 0" "where the next one pays, a debt is not waited for by its maker"
is "$(facts guava key)" "true 0 2 0" "where the next one pays, the next one waits for the debt"
is "$(facts guava key)" "true 0 3 0" "with next-pays, the next caller waits for the debt of the one before it"

# Modes.
shmlimit take "$segment" seen key --quiet
is "$(facts seen key) $(facts seen key)" "true 0 1 0 true 0 0 1" "a dry run allows what it would deny, without a wait"
is "$(facts off key --cost 9)" "true 1 0 0" "a rule that is off lets everything go on"

# What happened already.
run shmlimit charge "$segment" r used --tokens 5
is "$rc $(printf '%s\n' "$out" | sed -n '1p;3p' | tr '\n' ';')" "0 decision: allowed;remaining: 0;" \
	"a charge is always done"
is "$(printf '%s\n' "$out" | sed -n '6,$p')" "charged: all" "the sixth line says that all was charged"
debt() { shmlimit inspect "$segment" --rule "$1" --json | jq -r '[.occupancy.shown[].debt_ns / 86400e9 | ceil] | max'; }
is "$(facts r used)" "true 0 3 0" "into debt"
shmlimit reset "$segment" --rule r >/dev/null
shmlimit charge "$segment" r used --tokens 5 --quiet
is "$(debt r)" 2 "inspect shows the debt"
run shmlimit charge "$segment" r used --tokens 18446744073709551615 --quiet
is "$rc $out$err" "1 " "a charge that cannot take all of it exits 1, quietly"
run shmlimit charge "$segment" r used --tokens 1
is "$rc $(printf '%s\n' "$out" | sed -n '1p;4p;6p' | tr '\n' ';')" \
	"1 decision: allowed;retry after: 0s;charged: not all: the rule's max-wait allows no more debt;" "a charge that cannot take all of it says so"
run shmlimit charge "$segment" r used --tokens 1 --json
is "$rc $(printf '%s' "$out" | jq -c '[.allowed, .shadow_denied, .charged_all, .retry_after_ns]')" "1 [true,false,false,0]" \
	"a charge that cannot take all of it says so in JSON"
is "$(shmlimit charge "$segment" r fresh --json | jq .charged_all)" true "a charge that takes all of it says so in JSON"
is "$(debt r)" 5 "into no more debt than the rule's longest wait"
shmlimit charge "$segment" none key --tokens 9 --quiet
is "$(debt none)" 0 "a charge makes no debt under a rule without waits"
is "$(shmlimit charge "$segment" r one --json | jq -c '[.allowed, .remaining, has("wait_ns")]')" "[true,2,false]" \
	"without --tokens it is one"
counts() { shmlimit inspect "$segment" --json | jq -c '.counters | [.allowed, .denied]'; }
before=$(counts)
shmlimit charge "$segment" r one --quiet
is "$(counts)" "$before" "a charge is counted nowhere"

# Errors.
for verb in reserve acquire; do
	run shmlimit $verb "$segment" r key --max-wait soon
	is "$rc $out$err" "2 shmlimit: --max-wait soon: not a duration (for example 2s, 500ms or 1m; or 0)" \
		"$verb needs a duration"
	run shmlimit $verb "$segment" r key --max-wait 1
	is "$rc $out$err" "2 shmlimit: --max-wait 1: unit missing: write 1s if these are seconds (or ns, us, ms, s, m, h, d, w, month or y)" "$verb needs its unit"
done

done_testing
