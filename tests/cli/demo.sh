#!/bin/sh
# shmlimit-demo: HTTP over the limiter, and a master that keeps its workers.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

need shmlimit-demo curl jq

server=
end_server() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
}
trap 'end_server; tap_clean' EXIT

# within COMMAND...: repeat it until it succeeds, for 10 s at most.
within() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || return 1
		sleep 0.05
	done
}

# start OPTION...: sets $server and $url; the master's log is in $TMP/log.
start() {
	rm -f "$TMP/port"
	shmlimit-demo --segment "$SEGMENT" --workers 4 --port-file "$TMP/port" "$@" 2>"$TMP/log" &
	server=$!
	within test -s "$TMP/port" || { diag "$(cat "$TMP/log")"; exit 1; }
	url=http://127.0.0.1:$(cat "$TMP/port")
}

# stop: ends the master as an operator would; sets $rc.
stop() {
	kill "$server"
	wait "$server"
	rc=$?
	server=
}

get() { curl -s --max-time 60 "$@"; }
fields() { get -o "$TMP/body" -D - "$@" | tr -d '\r'; }
field() { printf '%s\n' "$answer" | sed -n "s/^$1: //p"; }
codes() { get -o "$TMP/body" -w '%{http_code}\n' "$@"; }
count() { grep -c "^$1\$" "$TMP/codes"; }
started() { sed -n 's/.*worker \([0-9]*\): started$/\1/p' "$TMP/log"; }
successors() { sed -n 's/.* replaced by \([0-9]*\)$/\1/p' "$TMP/log"; }
replaced() { [ "$(grep -c 'killed by signal 9 .* replaced by' "$TMP/log")" -eq "$1" ]; }
silent() { ! get -o "$TMP/body" "$url/"; }
allowed() { shmlimit inspect "$SEGMENT" --json | jq .counters.allowed; }

# Slow enough that no token comes back within a test.
shmlimit create "$SEGMENT" --slots 1024
shmlimit rule set "$SEGMENT" demo --capacity 15 --rate 15/h
start

answer=$(fields "$url/?client=alice")
like "$answer" '^HTTP/1.1 200 ' "a client within the limit gets 200"
is "$(field RateLimit-Policy)" '"demo";q=15;w=3600' "the policy is the capacity, and the seconds that fill it"
is "$(field RateLimit)" '"demo";r=14;t=240' "the state is what remains, and the seconds until it is all back"
is "$(field Retry-After)" "" "an allowed request gets no Retry-After"

codes "$url/?client=alice&n=[1-29]" >"$TMP/codes"
is "$(count 200) $(count 429)" "14 15" "the capacity is served, then nothing"

answer=$(fields "$url/?client=alice")
like "$answer" '^HTTP/1.1 429 ' "a client over the limit gets 429"
like "$(field Retry-After)" '^2(40|[0-3][0-9])$' "Retry-After is the time that a token takes"
is "$(field RateLimit)" "\"demo\";r=0;t=$(field Retry-After)" "RateLimit points to the same moment"
is "$(field RateLimit-Policy)" '"demo";q=15;w=3600' "the policy stands on denials too"

is "$(codes "$url/?client=bob")" 200 "each client has a limit of its own"
is "$(codes "$url/")" 200 "a client without a name is served"
run shmlimit peek "$SEGMENT" demo 127.0.0.1
like "$out" '^remaining: 14$' "a client without a name is limited by its address"
is "$(codes -I "$url/?client=bob")" 200 "HEAD is served"
is "$(codes -d x "$url/?client=bob")" 405 "POST is refused"
is "$(codes "$url/?client=$(printf '%01025d' 0)")" 400 "a name longer than a key is refused"
is "$(codes "$url/?client=$(printf '%01024d' 0)")" 200 "the longest key is a name"
run shmlimit peek "$SEGMENT" demo bob
like "$out" '^remaining: 13$' "what is refused for its form takes no token"
is "$(get -o "$TMP/body" -w '%{num_connects} ' "$url/?client=[1-3]")" "1 0 0 " "connections are kept alive"

codes "$url/?client=carol&n=[1-10]" >"$TMP/codes"
victims=0
for pid in $(started); do
	kill -KILL "$pid"
	victims=$((victims + 1))
	within replaced $victims
	ok $? "worker $victims, killed, is replaced"
	codes "$url/?client=carol&n=[1-10]" >>"$TMP/codes"
done
is "$(count 200) $(count 429)" "15 35" "the limit holds over all workers and their successors, exactly"

before=$(allowed)
codes -Z --parallel-max 8 "$url/?client=dave&n=[1-10000]" >"$TMP/codes" 2>"$TMP/err" &
load=$!
begun() { [ "$(allowed)" -gt "$before" ]; }
within begun
kill -KILL "$(successors | head -n 1)"
kill -0 $load
ok $? "the load goes on when a worker is killed"
within replaced 5
ok $? "a worker killed under load is replaced"
wait $load
[ "$(count 200)" -le 15 ] && [ "$(count 429)" -gt 0 ]
ok $? "no client is served more than the limit meanwhile"
run shmlimit peek "$SEGMENT" demo dave
like "$out" '^remaining: 0$' "no token of the limit is left over"

shmlimit rule remove "$SEGMENT" demo
is "$(codes "$url/?n=[1-3]" | sort -u)" 503 "when the limiter fails, nobody is served"
stop
is $rc 0 "SIGTERM ends the master, with status 0"
silent
ok $? "nobody listens any more"
for pid in $(successors); do
	kill -0 "$pid" 2>/dev/null && diag "worker $pid lives" && rc=1
done
is $rc 0 "no worker outlives the end"

shmlimit rule set "$SEGMENT" demo --capacity 15 --rate 15/h
start --fail-open
shmlimit rule remove "$SEGMENT" demo
answer=$(fields "$url/")
like "$answer" '^HTTP/1.1 200 ' "with --fail-open everybody is served when the limiter fails"
is "$(field RateLimit)" "" "without promises"
codes "$url/?n=[1-20]" >"$TMP/codes"
logged=$(grep -c 'rule demo: no such rule' "$TMP/log")
[ "$logged" -ge 1 ] && [ "$logged" -le 4 ]
ok $? "each worker logs the failure once"
kill -KILL "$server"
wait "$server" 2>"$TMP/err"
server=
within silent
ok $? "workers die with a master that is killed"

shmlimit rule set "$SEGMENT" demo --capacity 15 --rate 15/h
start --separate
codes -Z --parallel-max 8 "$url/?client=erin&n=[1-1000]" >"$TMP/codes" 2>"$TMP/err"
is "$(shmlimit rule list "$SEGMENT" | grep -c '^worker-')" 4 "with --separate each worker makes a rule of its own"
is "$(count 200)" "$(shmlimit inspect "$SEGMENT" --json |
	jq '[.rules[] | select(.name | startswith("worker-")) | .counters.allowed] | add')" \
	"a worker with --separate decides by its own rule alone"
stop
shmlimit rule remove "$SEGMENT" demo

run shmlimit-demo --segment "$SEGMENT.none"
like "$rc $err" "^1 shmlimit-demo: segment $SEGMENT.none: no such segment" "a missing segment is named"
run shmlimit-demo --segment "$SEGMENT"
like "$rc $err" "^1 shmlimit-demo: segment $SEGMENT: rule demo: no such rule" "a missing rule is named"
run shmlimit-demo --no-limit --workers 0
like "$rc $err" "^2 shmlimit-demo: --workers 0: must be" "zero workers are refused"
run shmlimit-demo
is $rc 2 "a segment or --no-limit is required"

# The whole of `make demo`, with less load. On a busy machine a limit may not be used up.
what="make demo shows that 1, 4 and 16 workers share a limit, and leaves nothing behind"
if command -v wrk >/dev/null; then
	export SOURCE TMP
	DEMO_SECONDS=1 run sh -c 'echo $$ >"$TMP/pid" && exec "$SOURCE/tools/demo/demo.sh" "$1"' demo "$BUILD"
	is "$(printf '%s\n' "$out" | sed -nE 's/ (BUSY|ok)$/ kept/; s/^(each|one) +([0-9]+) .* ([a-zA-Z]+)$/\1 \2 \3/p' | tr '\n' ' ')$err$(
		ls /dev/shm | grep -F "shmlimit-demo.$(cat "$TMP/pid")")" "each 4 limit one 1 kept one 4 kept one 16 kept " "$what"
else
	ok 0 "$what # SKIP wrk is not installed"
fi

# A load that reports these counts: in 3 s the limit permits 400.
mkdir "$TMP/loads"
printf '#!/bin/sh\necho "counted 10000 $ALLOWED $((10000 - ALLOWED)) 0 3.0 4"\n' >"$TMP/loads/wrk"
chmod 755 "$TMP/loads/wrk"
# verdicts ALLOWED: the exit status, the verdict of each line about one limit, and the last line.
verdicts() {
	PATH=$TMP/loads:$PATH ALLOWED=$1 DEMO_SECONDS=0.2 run "$SOURCE/tools/demo/demo.sh" "$BUILD"
	printf '%s\n' "$rc" "$(printf '%s\n' "$out" | sed -n 's/^one  *[0-9].* //p' | tr '\n' ' ')" "$(printf '%s\n' "$out" "$err" | sed -n 's/^demo: \([^,;]*\).*/\1/p')" | tr '\n' ' '
}
is "$(verdicts 400)" "0 ok ok ok   " "what a limit permits is ok"
is "$(verdicts 386)" "0 BUSY BUSY BUSY  the machine was busy " "a shortfall is no breach: the machine was busy"
is "$(verdicts 401)" "1 EXCEEDED EXCEEDED EXCEEDED  the limit was exceeded " "one request more than a limit permits is a breach"
done_testing
