#!/bin/sh
# hold: a command runs while it holds a place; the place is free again when it has ended, however it ended.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64
run shmlimit rule set "$segment" r --algorithm hold --capacity 2 --period 1h
is "$rc $out$err" "0 " "a rule of places is set"
run shmlimit rule show "$segment" r
is "$(printf '%s\n' "$out" | sed -n 's/^ *\(algorithm\|capacity\|period\): */\1: /p' | tr '\n' ';')" \
	"algorithm: hold;capacity: 2;period: 1h;" "a hold rule is shown as it was set"
shmlimit rule set "$segment" short --algorithm hold --capacity 1 --period 300ms
shmlimit rule set "$segment" funnel --capacity 1 --rate 1/d
shmlimit rule set "$segment" many --capacity 1000 --rate 1000/s
free() { shmlimit peek "$segment" "$1" "$2" --json | jq .remaining; }
# until_free RULE KEY N: wait until this many places are free.
until_free() { until [ "$(free "$1" "$2")" = "$3" ]; do sleep 0.01; done; }

run shmlimit hold "$segment" r key -- sh -c 'shmlimit peek "$0" r key --json | jq .remaining; echo "$@"' "$segment" one --json
is "$rc $out$err" "0 1
one --json" "a command runs while it holds a place, with its own options"
is "$(free r key)" 2 "when it has ended its place is free"
run shmlimit hold "$segment" r key -- sh -c 'exit 7'
is "$rc $(free r key)" "7 2" "the exit status is the command's"
shmlimit hold "$segment" r key -- sh -c 'kill -KILL $$'
is "$? $(free r key)" "137 2" "a command that is killed leaves its place, and the status says so"
shmlimit hold "$segment" r key -- ./no-such-command 2>err
is "$? $(cat err) $(free r key)" "127 shmlimit: ./no-such-command: No such file or directory 2" "a command that is missing exits 127"
: >plain
shmlimit hold "$segment" r key -- ./plain 2>err
is "$? $(free r key)" "126 2" "a command that cannot be run exits 126"
run shmlimit hold "$segment" r --key-ip 203.0.113.9 -- echo two words
is "$rc $out" "0 two words" "the key may be given by an option"
shmlimit hold "$segment" r key -- sh -c 'kill -PIPE $$; echo survived' >out
is "$? $(cat out)" "141 " "the command has the default for SIGPIPE"
# signals COMMAND...: which signals a command of that ignores of those that this one ignores, and whether it blocks others.
signals() {
	"$@" sed -n 's/^SigIgn:[[:space:]]*/ignored=0x/p; s/^SigBlk:[[:space:]]*/blocked=/p' /proc/self/status >signals
	. ./signals
	# SIGPIPE is 13, SIGXFSZ 25.
	printf '%d %s\n' "$((ignored >> 12 & 0x1001))" "$blocked"
}
blocked_here=$(signals env)
is "$(signals shmlimit hold "$segment" r key --)" "0 ${blocked_here#* }" "a command of hold neither ignores nor blocks what shmlimit does"
is "$(signals shmlimit exec "$segment" many key --)" "0 ${blocked_here#* }" "a command of exec neither ignores nor blocks what shmlimit does"

# All places held.
shmlimit hold "$segment" r key -- sh -c 'until [ -e go ]; do sleep 0.01; done' &
first=$!
shmlimit hold "$segment" r key -- sh -c 'until [ -e go ]; do sleep 0.01; done' &
second=$!
until_free r key 0
run shmlimit hold "$segment" r key -- touch ran
is "$rc $err" "1 shmlimit: rule r: denied, and not run: all 2 places are held" "where all places are held, it says so"
is "$(ls | grep ran)" "" "a command without a place is not run"
run shmlimit hold "$segment" r key --denied-status 75 --wait 50ms -- touch ran
is "$rc $(ls | grep ran)" "75 " "--wait is the longest wait, and --denied-status the exit status after it"
run shmlimit take "$segment" r key --quiet
is "$rc" 1 "take is denied too"
run shmlimit refund "$segment" r key
is "$rc $err" "2 shmlimit: rule r: its algorithm does not have this operation (shmlimit rule show $segment r)" \
	"refund says that a place is no token"
run shmlimit hold "$segment" r other -- echo other
is "$rc $out" "0 other" "another key has places of its own"
shmlimit hold "$segment" r key --wait 1h -- touch later &
third=$!
touch go
wait $first $second
wait $third
is "$? $(ls | grep later)" "0 later" "a command that waits runs when a place is left"
is "$(free r key)" 2 "all places are free when the commands have ended"

# By a share of the places of another limit.
shmlimit rule set "$segment" all --algorithm hold --capacity 4 --period 1h
shmlimit rule set "$segment" each --algorithm hold --capacity 4 --period 1h
rm -f go
share() { shmlimit hold "$segment" each "$@" --share 1 --of all -- sh -c 'until [ -e go ]; do sleep 0.01; done' & }
share alice
until_free all all 3
share alice
until_free all all 2
run shmlimit hold "$segment" each alice --share 1 --of all -- touch ran
is "$rc $err" "1 shmlimit: rule each: denied, and not run: the key's share of rule all is 2 now, and held" \
	"a key that holds its share is denied, and the message names the share"
is "$(ls | grep ran) $(free all all) $(free each alice)" " 2 2" "a denial by a share leaves the place of the other limit"
run shmlimit hold "$segment" each bob --share 0.5 --of all=all -- sh -c 'shmlimit peek "$0" all all --json | jq .remaining' "$segment"
is "$rc $out$err" "0 1" "another key enters, and holds a place of both limits"
shmlimit hold "$segment" each carol --share 100 --of all -- sh -c 'until [ -e go ]; do sleep 0.01; done' &
until_free all all 1
shmlimit hold "$segment" each carol --share 100 --of all -- sh -c 'until [ -e go ]; do sleep 0.01; done' &
until_free all all 0
run shmlimit hold "$segment" each dave --share 100 --of all -- touch ran
is "$rc $err" "1 shmlimit: rule all: denied, and not run: all 4 places are held" "a denial by the other limit names it"
touch go
wait
is "$(free all all) $(free each alice) $(free each carol)" "4 4 4" "all places of both limits are free when the commands have ended"
for wrong in "--share 1" "--of all"; do
	run shmlimit hold "$segment" each k $wrong -- true
	is "$rc $err" "125 shmlimit: --share and --of: each needs the other" "$wrong alone is refused"
done
for wrong in 0 -1 x 0.0001 1000001 4.; do
	run shmlimit hold "$segment" each k --share "$wrong" --of all -- true
	is "$rc $err" "125 shmlimit: --share $wrong: must be 0.001 to 1000000, with up to three decimals" "--share $wrong is refused"
done
run shmlimit hold "$segment" each k --share 1 --of =all -- true
is "$rc $err" "125 shmlimit: --of =all: must be RULE or RULE=KEY" "--of without a rule is refused"
run shmlimit hold "$segment" each k --share 1 --of none -- true
is "$rc ${err%% (*}" "125 shmlimit: rule none: no such rule in segment $segment" "--of of a rule that is missing is refused"
run shmlimit hold "$segment" each k --share 1 --of funnel -- true
is "$rc $err" "125 shmlimit: rule funnel: has no places: must be set with --algorithm hold" "--of of a rule without places is refused"

# Killed.
shmlimit rule set "$segment" one --algorithm hold --capacity 1 --period 1h
shmlimit hold "$segment" one key -- sh -c 'echo $$ >pid; exec sleep 1000' &
first=$!
until [ -s pid ]; do sleep 0.01; done
until_free one key 0
kill -KILL $first
{ wait $first; } 2>/dev/null
run shmlimit hold "$segment" one key -- true
is "$rc" 1 "if hold is killed, the command that it runs has the place"
kill -KILL "$(cat pid)"
run shmlimit hold "$segment" one key --wait 1h -- echo next
is "$rc $out" "0 next" "if the command is killed, too, the next one runs at once"

# Signals.
for signal in INT TERM HUP QUIT; do
	env --default-signal shmlimit hold "$segment" r key -- sleep 1000 &
	pid=$!
	until_free r key 1
	kill -$signal $pid
	wait $pid
	is "$(kill -l $(($? - 128))) $(free r key)" "$signal 2" "SIG$signal is handed on to the command, and the place is left"
done
shmlimit take "$segment" r waiting --quiet
shmlimit take "$segment" r waiting --quiet
env --default-signal shmlimit hold "$segment" r waiting --wait 1h -- touch never &
pid=$!
# It waits once it was denied.
until [ "$(shmlimit inspect "$segment" --json | jq '.rules[] | select(.name == "r") | .counters.denied')" -gt 5 ]; do sleep 0.01; done
kill -TERM $pid
wait $pid
is "$(kill -l $?) $(ls | grep never)" "TERM " "a signal ends the wait, and nothing runs"

# The time that its place has left grows when it is renewed.
left() { shmlimit peek "$segment" "$1" "$2" --json | jq .reset_after_ns; }
shmlimit rule set "$segment" renewed --algorithm hold --capacity 1 --period 2s
shmlimit hold "$segment" renewed key -- sh -c 'until [ -e stop ]; do sleep 0.01; done' &
pid=$!
until_free renewed key 0
before=$(left renewed key)
until now=$(left renewed key); [ "$now" -gt "$before" ]; do
	before=$now
	sleep 0.01
done
touch stop
wait $pid
is "$?" 0 "a place is renewed while its command runs"
rm pid
shmlimit hold "$segment" short key -- sh -c 'echo $$ >pid; exec sleep 1000' &
pid=$!
until [ -s pid ]; do sleep 0.01; done
kill -KILL $pid
wait $pid 2>/dev/null
sleep 0.4 # longer than the period
run shmlimit hold "$segment" short key -- echo beside
is "$rc $out" "1 " "the command has its place after the period, too, if hold was killed"
kill "$(cat pid)"
run shmlimit hold "$segment" short key --wait 1h -- echo freed
is "$rc $out" "0 freed" "its place is free when it has ended"
# By a limit of its own.
run shmlimit hold "$segment" r by -- shmlimit hold "$segment" r by --limit '1 at once' -- touch ran
is "$rc $err" "1 shmlimit: rule r: denied, and not run: 1 or more places are held" "--limit: as many places as it says"
run shmlimit hold "$segment" r by --limit '1 at once' -- shmlimit hold "$segment" r by --limit '9 at once' -- \
	shmlimit hold "$segment" r by --limit '9 at once' -- touch ran
is "$rc $err" "1 shmlimit: rule r: denied, and not run: 2 or more places are held" "--limit: at most as many as the rule has"
run shmlimit hold "$segment" r by --limit block -- touch ran
is "$rc $err" "1 shmlimit: rule r: denied, and not run: it is blocked" "--limit block denies"
run shmlimit hold "$segment" r by --limit 5/s -- touch ran
is "$rc $err" "125 shmlimit: --limit 5/s: must be a number of places, such as '20 at once'" "--limit is no rate"
run shmlimit hold "$segment" r by --limit '2 at once for 5m' -- touch ran
is "$rc $err" "125 shmlimit: --limit 2 at once for 5m: how long a place is held is the rule's: must end with \"at once\"" \
	"--limit says no time"
is "$(ls | grep ran)" "" "none of them was run"
is "$(free r by)" 2 "their places are left"
shmlimit rule set "$segment" cut --limit '1 at once at most 50ms each'
shmlimit hold "$segment" cut key -- sh -c 'echo $$ >pid2; exec sleep 1000' &
pid=$!
until [ -s pid2 ]; do sleep 0.01; done
kill -KILL $pid
wait $pid 2>/dev/null
run shmlimit hold "$segment" cut key --wait 1h -- echo after
is "$rc $out" "0 after" "a place that is cut off ends though the command goes on"
kill "$(cat pid2)"
shmlimit hold "$segment" cut key -- sh -c 'until [ -e cut.go ]; do sleep 0.01; done' 2>cut.err &
pid=$!
until [ -s cut.err ]; do sleep 0.01; done
run shmlimit hold "$segment" cut key --wait 1h -- echo after
is "$rc $out" "0 after" "it ends though hold lives"
touch cut.go
wait $pid
is "$? $(cat cut.err)" "0 shmlimit: rule cut: the place ended after 50ms: the command goes on without one" \
	"hold says once that it ended"

# Lost: reset, and another has it.
shmlimit rule set "$segment" lost --algorithm hold --capacity 1 --period 300ms
shmlimit hold "$segment" lost key -- sh -c 'until [ -e lost.go ]; do sleep 0.01; done' 2>lost.err &
pid=$!
until_free lost key 0
until [ -s lost.err ]; do
	shmlimit reset "$segment" --rule lost --key key >/dev/null
	shmlimit take "$segment" lost key --quiet
	sleep 0.05
done
is "$(cat lost.err)" "shmlimit: rule lost: the place was lost, and all are held: the command goes on without one" \
	"hold says that its place was lost"
shmlimit reset "$segment" --rule lost --key key >/dev/null
until_free lost key 0
ok 0 "it has a place again when one is free"
touch lost.go
wait $pid
is "$? $(cat lost.err | wc -l) $(free lost key)" "0 1 1" "that place is given back, too"

shmlimit rule set "$segment" one --algorithm hold --capacity 1 --period 1h
run shmlimit hold "$segment" one key -- shmlimit hold "$segment" one key -- true
is "$rc $err" "1 shmlimit: rule one: denied, and not run: its only place is held" "a rule of one place says that it is held"
shmlimit rule set "$segment" seen --algorithm hold --capacity 1 --period 1h --mode dry-run
run shmlimit hold "$segment" seen key -- shmlimit hold "$segment" seen key -- echo both
is "$rc $out" "0 both" "a dry run runs the command"

wrong() {
	message=$1
	shift
	run shmlimit "$@"
	[ "$1" = hold ] && failed=125 || failed=2
	is "$rc $out$err" "$failed shmlimit: $message" "$* is refused"
}
wrong "rule funnel: has no places: must be set with --algorithm hold" hold "$segment" funnel key -- true
wrong "--denied-status 256: must be 0 to 255" hold "$segment" r key --denied-status 256 -- true
wrong "hold: COMMAND... is missing; usage: shmlimit hold NAME RULE KEY COMMAND..." hold "$segment" r key
wrong "rule new: new, its period is missing: must have capacity and period, or rate" rule set "$segment" new --algorithm hold --capacity 1
wrong 'rule r: rate 1/s: places are meant: must be such as "20 at once"' rule set "$segment" r --rate 1/s
wrong "rule r: period 300d is out of range (1ns to 208d)" rule set "$segment" r --period 300d
wrong "rule r: window too large, or too many places: must be 65536 or less" rule set "$segment" r --capacity 65537
run shmlimit hold "$SEGMENT.none" r key -- true
is $rc 125 "a segment that is missing exits 125, which is no status of the command"

shmlimit rule export "$segment" >rules.ini
run shmlimit apply "$segment" rules.ini
is "$rc $out$err" "0 " "exported rules of places are the same when they are applied"
run shmlimit verify "$segment"
is $rc 0 "the segment is sound"

done_testing
