#!/bin/sh
# exec: a command runs when its tokens are there; a turn that is not used passes.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" r --capacity 2 --rate 1/d --max-wait 10d
shmlimit rule set "$segment" quick --capacity 1 --rate 20/s --max-wait 1m
shmlimit rule set "$segment" none --capacity 1 --rate 1/d
shmlimit rule set "$segment" seen --capacity 1 --rate 1/d --mode dry-run
remaining() { shmlimit peek "$segment" "$1" "$2" --json | jq .remaining; }
debt() { shmlimit keys "$segment" --json --rule "$1" | jq -s 'map(.debt_ns) | add'; }

run shmlimit exec "$segment" r key -- echo one --json
is "$rc $out$err" "0 one --json" "a command runs at once if the tokens are there, with its own options"
is "$(remaining r key)" 1 "it took a token"
run shmlimit exec "$segment" r key --cost 1 -- sh -c 'exit 7'
is $rc 7 "the exit status is the command's"
run shmlimit exec "$segment" r --key-ip 203.0.113.9 --cost 2 -- echo two words
is "$rc $out" "0 two words" "the key may be given by an option"
is "$(shmlimit peek "$segment" r --key-ip 203.0.113.9 --json | jq .remaining)" 0 "--cost takes more tokens"
run shmlimit exec "$segment" quick key -- true
run shmlimit exec "$segment" quick key --cost 4 -- echo later
is "$rc $out" "0 later" "a command that has to wait runs later"
shmlimit exec "$segment" r --key-hex 00 -- sh -c 'kill -PIPE $$; echo survived' >out
is "$(kill -l $?) $(cat out)" "PIPE " "the command has the default for SIGPIPE"

# Denied.
shmlimit take "$segment" none key --quiet
run shmlimit exec "$segment" none key -- touch ran
like "$rc $err" '^1 shmlimit: rule none: denied, and not run: it would fit after (1d|23h59m)$' "denied, it says so"
is "$(ls)" "$(ls | grep -v ran)" "a command that is denied is not run"
run shmlimit exec "$segment" none key --denied-status 75 -- touch ran
is $rc 75 "--denied-status is the exit status then"
run shmlimit exec "$segment" r key --max-wait 1s -- touch ran
is "$rc $(ls | grep ran)" "1 " "--max-wait is the longest wait"
run shmlimit exec "$segment" seen key -- true
run shmlimit exec "$segment" seen key -- true
is $rc 0 "a dry run runs the command"

# A limit of the call.
shmlimit rule set "$segment" plans --algorithm gcra
left() { shmlimit peek "$segment" plans a --limit "$1" --json | jq .remaining; }
run shmlimit exec "$segment" plans a --limit '4/d' --cost 3 -- echo ran
is "$rc $out $(left 4/d)" "0 ran 1" "--limit is the limit"
run shmlimit exec "$segment" plans a --limit 4/d --cost 2 -- touch ran
is "$rc $(ls | grep ran)" "1 " "beyond it nothing is run"
shmlimit exec "$segment" plans a --limit 4/d -- ./no-such-command 2>err
is "$? $(left 4/d)" "127 0" "a command that is missing costs its token"
run shmlimit exec "$segment" plans b --limit 20/s --cost 20 -- true
run shmlimit exec "$segment" plans b --limit 20/s --max-wait 10s -- echo later
is "$rc $out" "0 later" "it may be waited for"
run shmlimit exec "$segment" r key --limit 4/d -- touch ran
is "$rc $err" "125 shmlimit: rule r: not a gcra rule, which --limit needs (shmlimit rule set $segment plans --algorithm gcra \
makes one)" "--limit needs a gcra rule"
run shmlimit exec "$segment" plans key -- touch ran
is "$rc $err" "125 shmlimit: rule plans: has no limit of its own: give one with --limit, or set it (shmlimit rule set \
$segment plans --rate 5/minute)" "a gcra rule without a limit wants one"

# Turns pass unused: the rule's refill takes days.
shmlimit exec "$segment" r other -- ./no-such-command 2>err
is "$? $(cat err)" "127 shmlimit: ./no-such-command: No such file or directory" "a command that is missing exits 127"
is "$(remaining r other)" 1 "a command that is missing has had its turn"
: >plain
shmlimit exec "$segment" r other -- ./plain 2>err
is "$? $(remaining r other)" "126 0" "a command that cannot be run exits 126 and has had its turn"
shmlimit take "$segment" r waiting --cost 2 --quiet
days=0
for signal in INT TERM HUP QUIT; do
	env --default-signal shmlimit exec "$segment" r waiting -- touch ran &
	pid=$!
	# It waits when it owes a day more.
	for _ in $(seq 2000); do
		[ "$(debt r)" -le $((days * 86400000000000 + 1000000000)) ] || break
		sleep 0.01
	done
	kill -$signal $pid
	wait $pid
	status=$?
	days=$((days + 1))
	is "$(kill -l $status) $(ls | grep ran)" "$signal " "SIG$signal while it waits ends it"
	run shmlimit reserve "$segment" r waiting --json --max-wait 0
	is "$(printf '%s\n' "$out" | jq '.retry_after_ns / 86400e9 | ceil')" $((days + 1)) "its turn passes unused: the next one waits behind it"
done

wrong() {
	message=$1
	shift
	run shmlimit exec "$segment" "$@"
	is "$rc $out$err" "125 shmlimit: $message" "exec $* is refused"
}
wrong "exec: COMMAND... is missing; usage: shmlimit exec NAME RULE KEY COMMAND..." r key
wrong "exec: COMMAND... is missing; usage: shmlimit exec NAME RULE COMMAND..." r --key-ip 203.0.113.9
wrong "exec: -l: no such option (shmlimit exec --help lists them; -- stands before an operand with a dash)" r key ls -l
wrong "--denied-status 256: must be 0 to 255" r key --denied-status 256 -- true
run shmlimit exec "$SEGMENT.none" r key -- true
is $rc 125 "a segment that is missing exits 125, which is no status of the command"

done_testing
