#!/bin/sh
# pause: nothing of a key passes while it is paused, whatever asks; a process that waits goes on after it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit 1

segment=$SEGMENT.s
tab=$(printf '\t')
shmlimit create "$segment" --slots 64 --store-keys 60
shmlimit rule set "$segment" api --capacity 5 --rate 100/s --max-wait 10s
# is_paused KEY...: it has all its tokens, and is denied?
is_paused() { shmlimit peek "$segment" api "$@" --quiet; [ $? -eq 1 ]; }
said() { printf '%s' "$out" | tr '\n' ,; }

run shmlimit pause "$segment" api alice --for 2h
is "$rc $(said)$err" "0 key: alice,rule: api,ends in: 2h" "a pause prints the key, the rule and the time"
is "$(shmlimit rule show "$segment" '~pause' --json | jq -c '[.algorithm, .protected]')" '["counter",true]' \
	"the first pause makes the rule, protected"
is_paused alice
ok $? "a paused key is denied"
is_paused bob
is $? 1 "another key is allowed"
run shmlimit take "$segment" api alice
like "$rc $(said)" '^1 decision: denied,limit: 5,remaining: 5,retry after: (2h|1h)' "a denial says how long it is paused"
run shmlimit pause "$segment" api alice --for 1h
like "$rc $(said)" '^0 key: alice,rule: api,ends in: (2h|1h5[0-9]m)' "a longer pause stays"
run shmlimit pause "$segment" api alice --for 3h --json
is "$rc $(printf '%s' "$out" | jq -c '[.rule, .key, .ends_after_ns > 10700000000000]')" '0 ["api","alice",true]' \
	"a longer one takes its place; --json"
run shmlimit inspect "$segment" --rule api --key alice
like "$out" "paused for: [23]h" "inspect shows it"
is "$(shmlimit inspect "$segment" --rule api --key bob --json | jq .paused_ns)" 0 "inspect says that another key is not paused"
like "$(shmlimit keys "$segment" --rule '~pause')" "^api alice$tab~pause$tab" "keys lists it"
like "$(shmlimit top "$segment" --count 1)" 'api alice' "top shows it"

# The manual's example, with this segment.
run sh -c "$(cd "$SOURCE" && block tools/shmlimit/shmlimit.1 mdoc 'shmlimit pause' | sed "s/^\$ //; s/pause web/pause $segment/")"
is "$rc $(said)$err" "0 key: example.org,rule: api,ends in: 30s" "the example of the manual"

shmlimit pause "$segment" api --key-ip 203.0.113.9 --for 1h >out
like "$(shmlimit inspect "$segment")" 'api 203\.0\.113\.9' "a pause of an address reads as one"
shmlimit grow "$segment" --slots 256 >out
is_paused alice && is_paused --key-ip 203.0.113.9
ok $? "pauses survive grow"
shmlimit save "$segment" state
shmlimit destroy "$segment"
shmlimit load "$segment" state >out
is_paused alice && is_paused --key-ip 203.0.113.9
ok $? "pauses survive save and load"
run shmlimit pause "$segment" api alice --for 0
is "$rc $(said)" "0 key: alice,rule: api,ends in: 0s" "--for 0 ends a pause"
is_paused alice
is $? 1 "a key whose pause was ended is allowed"

shmlimit pause "$segment" api carol --for 1s >out
run shmlimit acquire "$segment" api carol --max-wait 10ms
is $rc 1 "acquire that may not wait as long is denied"
run shmlimit acquire "$segment" api carol --max-wait 60s
is $rc 0 "acquire waits until the pause is over"
is_paused carol
is $? 1 "the pause of carol is over"
shmlimit pause "$segment" api carol --for 1s >out
run shmlimit exec "$segment" api carol --max-wait 10ms -- echo ran
is "$rc $out" "1 " "exec that may not wait as long does not run its command"
run shmlimit exec "$segment" api carol --max-wait 60s -- shmlimit peek "$segment" api carol --quiet
is $rc 0 "exec runs its command when the pause is over"
shmlimit rule set "$segment" jobs --limit '2 at once'
shmlimit pause "$segment" jobs carol --for 2h >out
run shmlimit hold "$segment" jobs carol -- echo ran
like "$rc $out$err" '^1 shmlimit: rule jobs: denied, and not run: the key is paused for (2h|1h59m)' "hold of a paused key says so"

run shmlimit pause "$segment" api alice
is "$rc $err" "2 shmlimit: pause: missing --for DURATION, how long the pause lasts, such as --for 30s, or 0 to end it" \
	"a pause needs a time"
run shmlimit pause "$segment" api alice --for 400d
is "$rc $err" "2 shmlimit: --for 400d: must be at most 366d, and the period of the rule ~pause" "a time that is too long"
run shmlimit pause "$segment" typo alice --for 1s
is $rc 3 "a rule that is missing"
run shmlimit pause "$segment" '~pause' alice --for 1s
is "$rc $err" "2 shmlimit: rule ~pause: cannot be paused: it is ~pause, or the rule ~pause is no counter" "pauses are not paused"
shmlimit disable "$segment"
run shmlimit pause "$segment" api alice --for 1s
is "$rc $err" "2 shmlimit: rule api: the key is not paused: the segment is full (see shmlimit grow), or it or the rule ~pause is off" \
	"a pause that is not in force is none"
shmlimit enable "$segment"
for mode in dry-run block off; do
	shmlimit rule set "$segment" api --mode $mode
	run shmlimit pause "$segment" api erin --for 1s
	is "$rc $out$err" "2 shmlimit: rule api: the key is not paused: the rule's mode is $mode, and only an enforced rule \
obeys pauses (shmlimit rule set $segment api --mode enforce)" "pause refuses a rule whose mode is $mode"
done
shmlimit rule set "$segment" api --mode enforce
is_paused erin
is $? 1 "the key was not paused"
was=$(shmlimit inspect "$segment" --json | jq -c .counters)
shmlimit pause "$segment" api frank --for 1h >out
is "$(shmlimit inspect "$segment" --json | jq -c .counters)" "$was" "a pause is no decision in the counters of all rules"
shmlimit rule remove "$segment" '~pause'
is_paused --key-ip 203.0.113.9
is $? 1 "without the rule there are no pauses"
done_testing
