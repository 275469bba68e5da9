#!/bin/sh
# outage: `shmlimit check` is critical as long as the host's agent cannot reach its backend, and no longer.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# In the package redis-tools the server's binary is redis-check-rdb; the name by which it is run decides what it does.
[ -x /usr/bin/redis-check-rdb ] || skip_all "no redis-server"
command -v redis-cli >/dev/null || skip_all "no redis-cli"
ln -s /usr/bin/redis-check-rdb "$TMP/redis-server"
socket=$TMP/redis.sock
"$TMP/redis-server" --port 0 --unixsocket "$socket" --unixsocketperm 700 --save '' --dir "$TMP" --logfile /dev/null &
server=$!
agent=
trap 'kill -9 $server $agent 2>/dev/null; wait 2>/dev/null; tap_clean' EXIT
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
	kill -0 $server || exit 1
done

segment=$SEGMENT.s
url=unix://$socket
shmlimit create "$segment" --slots 64
shmlimit rule set "$segment" page --algorithm lease --capacity 1000 --rate 1/d
shmlimit agent "$segment" "$url" --deadline 5s --open 1s 2>"$TMP/agent.err" &
agent=$!

key=0
# Each request has a key of its own, so it needs the backend.
request() {
	key=$((key + 1))
	shmlimit global take "$segment" "$url" page "user:$key" --deadline 5s --quiet 2>/dev/null
}
check() { run shmlimit check "$segment" --interval 1ms "$@"; }
check_is() { request; check && [ "$rc" -eq "$1" ]; }
serves() { shmlimit global status "$segment" >"$TMP/status" && grep -q '^connections: 1$' "$TMP/status"; }

until serves; do request; done
until check_is 0; do :; done
like "$rc $out" "^0 SHMLIMIT OK - segment $segment: healthy, " "a segment whose backend answers is healthy"
# Each answer takes half a second, and requests wait for 50 ms, as they do by default.
far() {
	redis-cli -s "$socket" client pause 500 >/dev/null
	key=$((key + 1))
	shmlimit global take "$segment" "$url" page "user:$key" --deadline 50ms --quiet 2>/dev/null
	run shmlimit check "$segment" --state "$TMP/far"
	case $out in *'to answer'*) ;; *) false ;; esac
}
until far; do :; done
like "$rc $out" "^1 SHMLIMIT WARNING - segment $segment: the backend takes [^ ]+ to answer, \
too long for requests with a shorter deadline [(]default 50ms[)], [0-9]+ decision" "a backend that is far away, as requests have found, is a warning"
redis-cli -s "$socket" client unpause >/dev/null
until request; do :; done
check
is "$rc" 0 "without such requests a backend that was far away is none"

shmlimit check "$segment" --state "$TMP/state" >/dev/null
kill -9 $server
wait $server 2>/dev/null
until check_is 2; do :; done
like "$out" "^SHMLIMIT CRITICAL - segment $segment: the backend [^ ]*redis.sock[^ ]* does not answer, " \
	"a backend that is gone is critical, without an option"
for i in 1 2 3; do
	check
	is "$rc" 2 "a backend that is still gone is still critical, while no request comes ($i)"
done
for i in 1 2 3; do request; done
run shmlimit check "$segment" --state "$TMP/state" --max-on-failure 2
like "$rc $out" "^2 .* on_failure [0-9]+, .* on_failure=[0-9]+;;2;0 " "what on_failure decided is counted, and has a limit"
for look in stat top; do
	shmlimit $look "$segment" --interval 200ms --count 1000 --json >"$TMP/$look" &
	looks=$!
	until grep -Eq '"on_failure(_per_s)?": *(0\.)?[1-9]' "$TMP/$look"; do
		kill -0 $looks || break
		request
	done
	kill $looks
	ok $? "$look shows what on_failure decides"
	wait $looks
done
run shmlimit check "$segment" --interval 1ms --max-on-failure 0 --rule page
like "$rc $out" "^2 .* on_failure=0;;0;0 " "nothing is counted in an interval without requests"
"$TMP/redis-server" --port 0 --unixsocket "$socket" --unixsocketperm 700 --save '' --dir "$TMP" --logfile /dev/null &
server=$!
until check_is 0; do :; done
like "$out" "^SHMLIMIT OK - segment $segment: healthy, " "a backend that is back is healthy again"
until grep -q 'again$' "$TMP/agent.err"; do request; done
is "$(grep -c 'answers again$' "$TMP/agent.err")" 1 "the agent reports once that the backend answers again"
kill $agent
wait $agent
check
is "$rc" 0 "without an agent no server is known to fail"
done_testing
