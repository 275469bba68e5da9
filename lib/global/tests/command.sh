#!/bin/sh
# command: `shmlimit global`, beside a redis-server on a Unix socket.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/cli/json.inc"

# In the package redis-tools the server's binary is redis-check-rdb; the name by which it is run decides what it does.
[ -x /usr/bin/redis-check-rdb ] || skip_all "no redis-server"
command -v redis-cli >/dev/null || skip_all "no redis-cli"
ln -s /usr/bin/redis-check-rdb "$TMP/redis-server"
socket=$TMP/redis.sock
"$TMP/redis-server" --port 0 --unixsocket "$socket" --unixsocketperm 700 --save '' --dir "$TMP" --logfile /dev/null &
server=$!
trap 'kill -9 $server 2>/dev/null; wait $server 2>/dev/null; tap_clean' EXIT
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
	kill -0 $server || exit 1
done
there() { redis-cli -s "$socket" "$@"; }

segment=$SEGMENT.s
url=unix://$socket
# No test depends on speed.
patient='--deadline 5s'
shmlimit create "$segment" --slots 64
printf '[login]\nalgorithm = lease\ncapacity = 15\nrate = 1/d\n\n[plain]\ncapacity = 2\nrate = 1/d\n' >"$TMP/rules"
run shmlimit apply "$segment" "$TMP/rules"
is "$rc" 0 "a file of rules can have leases"
like "$(shmlimit rule show "$segment" login)" '^algorithm: lease$' "a rule of a file is a lease"

run shmlimit global ping "$segment" "$url" $patient
is "$rc $(printf '%s\n' "$out" | sed 's/: .*//' | tr '\n' ',')" "0 version,mode,role,round trip,eviction,clients," "ping says what it found"
like "$(printf '%s\n' "$out" | sed -n '1,3p' | tr '\n' ';')" '^version: [6-9][0-9.]*;mode: standalone;role: master;$' "namely this"
run shmlimit global ping "$segment" "$url" $patient --json
is "$(printf '%s\n' "$out" | jq -c 'keys')" \
	'["clients","clients_max","eviction","memory_max","mode","role","round_trip_ns","version"]' "ping has the same as JSON"
there config set maxmemory-policy allkeys-lru >/dev/null
run shmlimit global ping "$segment" "$url" $patient
is "$rc $err" "0 " "an eviction policy does no harm without a memory limit"
there config set maxmemory 100mb >/dev/null
run shmlimit global ping "$segment" "$url" $patient
like "$rc $err" '^1 shmlimit: backend: maxmemory-policy is allkeys-lru: limits in use may be evicted' "ping refuses a server that evicts"
there config set maxmemory 0 maxmemory-policy noeviction maxclients 1 >/dev/null
run shmlimit global ping "$segment" "$url" $patient
like "$rc $err" '^1 shmlimit: backend: 1 of 1 connections are in use' "ping refuses a server without connections to spare"
there config set maxclients 10000 >/dev/null
there replicaof 127.0.0.1 1 >/dev/null
run shmlimit global ping "$segment" "$url" $patient
like "$rc $err" '^1 shmlimit: backend: is a replica: limits need the primary' "ping refuses a replica"
there replicaof no one >/dev/null
there acl setuser poor on '>pass' '~*' -@all +@connection +@scripting >/dev/null
run shmlimit global ping "$segment" "unix://poor:pass@$socket" $patient
is "$rc $(printf '%s\n' "$out" | sed -n 's/^eviction: //p')" "0 not known (needs +info)" "a user without INFO is told what is not known"

# shellcheck disable=SC2086
take() { run shmlimit global take "$segment" "$url" "$@" $patient; }
take login key
is "$rc $(printf '%s\n' "$out" | sed -n 1,3p | tr '\n' ';')" "0 decision: allowed;limit: 15;remaining: 14;" \
	"the first of fifteen leaves fourteen"
take login key --cost 14 --json
is "$rc $(printf '%s\n' "$out" | jq -c '[.allowed, .remaining]')" "0 [true,0]" "--cost takes the others"
take login key
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "1 decision: denied" "a take from an empty funnel is denied"
like "$out" '^retry after: (1d|23h)' "a denied take says until when: a token takes a day"
is "$err" "" "a denial is no error"
take login key --quiet
is "$rc $out" "1 " "--quiet prints nothing"
take login "$(printf 'k}{y\001')" --quiet
is "$rc" 0 "a key can have any bytes"
take plain key --quiet
is "$rc $err" "0 shmlimit: warning: rule plain: not a lease, so its tokens are those of this host alone (set one with --algorithm lease)" \
	"a rule of this host only is asked here, with a warning"

run shmlimit global inspect "$segment" "$url" login key $patient
is "$rc $(printf '%s\n' "$out" | sed -n '1,2p;4,5p' | tr '\n' ';')" "0 limit: 15;remaining: 0;lease: 10s;held here: 0;" \
	"inspect shows the funnel there, and what is held here"
run shmlimit global inspect "$segment" "$url" login never $patient --json
is "$(printf '%s\n' "$out" | jq -c '[.limit, .remaining, .reset_after_ns, .held]')" '[15,15,0,0]' "inspect of a key that was never asked for has a full funnel as JSON"
is "$(there exists 'shmlimit:{login/never}')" 0 "inspect of a key that was never asked for leaves nothing behind"
like "$(there get 'shmlimit:{login/key}')" '^[0-9]{16} 12959[0-9]{8}(\.[0-9]+)?$' "the backend has a time, and the time to full then"
like "$(there pttl 'shmlimit:{login/key}')" '^12[0-9]{8}$' "the backend forgets the key once it is full"

# What 1.0 stores of a funnel whose five tokens come back in five days: while no host holds any, and while one does.
# shellcheck disable=SC2046 # two words: seconds and microseconds
now=$(printf '%010d%06d' $(there time))
for form in "$now 432000000000" "$now 432000000000 5000000 86400000000 0 0 0"; do
	there set 'shmlimit:{login/of 1.0}' "$form" px 432000000 >/dev/null
	take login 'of 1.0'
	is "$rc $(printf '%s\n' "$out" | sed -n 's/^remaining: //p')" "0 9" "what 1.0 stored is read: $(printf '%s\n' "$form" | wc -w) numbers"
done

# Other hosts.
shmlimit create "$segment.2" --slots 64
shmlimit rule set "$segment.2" login --algorithm lease --capacity 15 --rate 1/d
run shmlimit global take "$segment.2" "$url" login key $patient
is $rc 1 "another host meets the same funnel"
take login other --quiet
shmlimit rule set "$segment.2" login --capacity 16
run shmlimit global take "$segment.2" "$url" login other $patient
is "$rc $err" "0 " "a rule that is changed is in force at once"
take login other
is "$rc $err" "0 " "a host with another rule shares the key's time"
for i in 1 2 3 4 5; do run shmlimit global take "$segment.2" unix:///nowhere/redis.sock login shared $patient --on-failure local --local-share 250 --quiet; done
is $rc 1 "without a backend a host has its share"
is "$(shmlimit rule show "$segment.2" '~local:login' | sed -n 's/^capacity: //p')" 4 "a host's share is a rule of its own"
run shmlimit global take "$segment.2" unix:///nowhere/redis.sock login shared $patient --on-failure error
like "$rc $err" "^[2-9] .*(this host's circuit breaker is open|no connection)" "without a backend a request can be an error"
run shmlimit global reset "$segment.2" "$url" login $patient
is "$rc $(there exists 'shmlimit:{login/other}')" "0 0" "reset deletes the funnels of a rule"
run shmlimit global take "$segment.2" "$url" login other $patient
is "$rc $(printf '%s\n' "$out" | sed -n 3p)" "0 remaining: 15" "a funnel that was reset is full"
run shmlimit global reset "$segment.2" "$url" login other $patient --json
is "$rc $(there exists 'shmlimit:{login/other}')" "0 0" "a single key can be reset, too"
members reset . "$out"

like "$(shmlimit inspect "$segment")" 'lease' "inspect shows what was leased"

# Internal rules: the breaker's and the hosts' shares are not the user's.
run shmlimit global take "$segment.2" unix:///nowhere/redis.sock login third $patient --on-failure local --local-share 1000 --quiet
for i in 1 2 3; do run shmlimit global take "$segment.2" unix:///nowhere/redis.sock login third $patient --quiet; done
like "$(shmlimit rule list "$segment.2" | awk '{ print $1 }' | tr '\n' ' ')" '~local:login .*~backend|~backend .*~local:login' \
	"internal rules are in the list of rules"
is "$(shmlimit rule export "$segment.2" | grep '^\[')" "[*]
[login]" "internal rules are not exported"
printf '[login]\n' >"$TMP/prune"
run shmlimit apply "$segment.2" "$TMP/prune" --prune
is "$rc $out" "0 " "internal rules are not pruned"
is "$(shmlimit metrics "$segment.2" | grep -c backend\")" 0 "metrics have no series of the breaker"
sum() { shmlimit metrics "$segment.2" | sed -n "s/^shmlimit_$1_decisions_total{.*} //p" | awk '{ n += $1 } END { print n }'; }
is "$(sum segment)" "$(sum rule)" "decisions of the breaker are in no sum"
is "$(shmlimit inspect "$segment.2" --json | jq '[.rules[].name, .occupancy.shown[].rule | select(. == "~backend")] | length')" 0 \
	"inspect shows neither the breaker nor its keys"
run shmlimit rule set "$segment.2" '~mine' --capacity 1 --rate 1/s
like "$rc $err" '^2 shmlimit: rule ~mine: bad name' "a user cannot set an internal rule"

# The manual has all that is printed as JSON.
members decision . "$(shmlimit global take "$segment" "$url" login json $patient --json)"
like "$printed" '^breaker_ns$' "global take prints one member more than take"
members "global inspect" . "$(shmlimit global inspect "$segment" "$url" login json $patient --json)"
is "$printed" "$(documented "global inspect")" "global inspect prints all that the manual has"
members "global ping" . "$(shmlimit global ping "$segment" "$url" $patient --json)"
is "$printed" "$(documented "global ping")" "global ping prints all that the manual has"

# The agent. A service manager is a socket that prints what it gets.
run shmlimit global status "$segment"
is "$rc $(printf '%s\n' "$out" | head -n 1)" "1 agent: none" "a segment without an agent has none"
agents=
end_agents() {
	for pid in $agents; do kill "$pid"; done 2>/dev/null
	for pid in $agents; do wait "$pid"; done 2>/dev/null
}
trap 'end_agents; kill -9 $server 2>/dev/null; wait $server 2>/dev/null; tap_clean' EXIT
serves() { [ "$(shmlimit global status "$segment" --json | jq -c '[.serving, .connections]')" = '[true,1]' ]; }
shmlimit agent "$segment" "$url" --deadline 5s --lease 10s 2>"$TMP/agent.err" &
agents=$!
i=0
until serves || [ $i = 600 ]; do i=$((i + 1)); sleep 0.1; done
serves
ok $? "an agent serves"
run shmlimit global status "$segment"
is "$rc $(printf '%s\n' "$out" | sed 's/: .*//' | tr '\n' ',')" \
	"0 agent,pid,running,connections,round trip,breaker,waiting,answered,failed,late,spoiled,full,misses,unpaid," "the status has these lines"
like "$out" "^pid: $agents\$" "the status has the agent's process id"
members "global status" . "$(shmlimit global status "$segment" --json)"
is "$printed" "$(documented "global status")" "global status prints all that the manual has"
answered=$(shmlimit global status "$segment" --json | jq .answered)
take login agent-key
is "$rc $(printf '%s\n' "$out" | sed -n 1,3p | tr '\n' ';')" "0 decision: allowed;limit: 15;remaining: 14;" \
	"a take that the agent answers says the same"
is "$(shmlimit global status "$segment" --json | jq .answered)" $((answered + 1)) "the agent counts it"
is "$(shmlimit metrics "$segment" | sed -n 's/^shmlimit_agent_server_//p' | tr '\n' ' ')" \
	"failing{segment=\"$segment\",server=\"$socket?db=0\"} 0 breaker_openings_total{segment=\"$segment\",server=\"$socket?db=0\"} 0 " \
	"metrics have the agent's server"
is "$(shmlimit metrics "$segment" | grep -v 'round_trip\|agent_server' | sed -n 's/^shmlimit_agent_\([a-z_]*\){.*} /\1 /p' | tr '\n' ';')" "$(shmlimit global status "$segment" --json |
	jq -r '"serving 1;waiting_requests \(.waiting);connections \(.connections);breaker_open 0;answered_total \(.answered);" +
		"failed_total \(.failed);late_total \(.late);spoiled_total \(.spoiled);full_total \(.full);misses_total \(.misses);unpaid_tokens_total \(.unpaid);"')" "metrics have what the status shows"
trips=$(shmlimit metrics "$segment" | sed -n 's/^shmlimit_agent_round_trip_seconds_\([a-z]*\){.*} /\1 /p')
is "$(printf '%s\n' "$trips" | awk '$1 == "count" { n = $2 } $1 == "bucket" { last = $2; n_buckets++ } END { print n_buckets, (n == last), (n > 0) }')" \
	"12 1 1" "each answer of the backend is in a bucket of the histogram"
ok "$(printf '%s\n' "$trips" | awk '$1 == "bucket" { if ($2 < before) bad = 1; before = $2 } $1 == "sum" { if ($2 <= 0) bad = 1 } END { print bad + 0 }')" \
	"buckets count what is not longer than their bound, and the sum is not zero"
kill "$agents"
wait "$agents"
is "$? $(cat "$TMP/agent.err")" "0 " "SIGTERM ends an agent"
agents=
run shmlimit global status "$segment"
is "$rc" 1 "an agent that ended is none"
run shmlimit agent none "$url"
is $rc 3 "an agent needs a segment"
for open in 0 1us 2h; do
	run shmlimit agent "$segment" "$url" --open $open
	is "$rc $err" "2 shmlimit: --open $open: must be 1ms to 1h" "an agent's time to leave a backend alone has a range: not $open"
done
if command -v python3 >/dev/null; then
	shmlimit create "$segment.3" --slots 64
	python3 - "$TMP/notify" "$segment.3" "$url" >"$TMP/notified" <<-'END'
		import os, socket, subprocess, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		s.settimeout(60)
		agent = subprocess.Popen(["shmlimit", "agent", sys.argv[2], sys.argv[3]], stderr=subprocess.PIPE,
		                         env=dict(os.environ, NOTIFY_SOCKET=sys.argv[1]))
		seen = set()
		while not {"READY=1", "WATCHDOG=1", "STATUS=Asks the backend for this host"} <= seen:
		    seen |= set(s.recv(4096).decode().split("\n"))
		print("ready")
		subprocess.run(["shmlimit", "destroy", sys.argv[2]])
		while "STOPPING=1" not in seen:
		    seen |= set(s.recv(4096).decode().split("\n"))
		print("stopping", agent.wait(), agent.stderr.read().decode())
	END
	is "$(cat "$TMP/notified")" "ready
stopping 2 shmlimit: segment $segment.3: was destroyed or replaced: start the agent again" \
		"an agent tells its service manager how it is, and ends when its segment is gone"
fi

# What is wrong.
block lib/global/shmlimit_global.3.in mdoc 'ACL SETUSER' | tr -d '\\\n' | xargs redis-cli -s "$socket" >/dev/null
for command in "take login another" "reset login another" "reset login"; do
	# shellcheck disable=SC2086
	run shmlimit global ${command%% *} "$segment" "unix://limiter:password@$socket" ${command#* } $patient
	is "$rc $err" "0 " "a user with the rights of shmlimit_global(3) may do it: $command"
done
block lib/global/shmlimit_global.3.in mdoc rediss: >"$TMP/urls"
while read -r tls; do
	run shmlimit global ping "$segment" "$tls"
	is "$rc $(printf '%s' "$err" | grep -c "backend's URL")" "2 0" "a URL of shmlimit_global(3) is one: $tls"
done <"$TMP/urls"
SHMLIMIT_BACKEND=$url run shmlimit global ping "$segment" - $patient
is $rc 0 "the URL can come from the environment"
run shmlimit global ping "$segment" -
is "$rc $err" "2 shmlimit: \$SHMLIMIT_BACKEND is not set (it holds the backend's URL)" "a URL that is to come from the environment must be there"
shmlimit agent "$segment" "unix://poor:pass@$socket" 2>"$TMP/shown" &
shown=$!
until [ -s "$TMP/shown" ]; do sleep 0.1; done
kill "$shown"
wait "$shown"
like "$(cat "$TMP/shown")" "^shmlimit: warning: the process list shows the password of the URL .*SHMLIMIT_BACKEND" \
	"an agent warns of a password that the process list shows"
is "$(grep -c 'pass@' "$TMP/shown")" 0 "the warning does not repeat the password"
run shmlimit global ping "$segment" redis://me:secret@host:99999
is "$rc $err" "2 shmlimit: backend's URL: port: must be a number from 1 to 65535" "a bad URL is said to be one"
run shmlimit global ping "$segment" 'rediss://host?ca=/ca.pem'
is "$rc $err" "2 shmlimit: backend's URL: file: must be cacert=FILE, cert=FILE or key=FILE" "an unknown parameter of a URL is refused"
run shmlimit global ping "$segment" unix:///nowhere/redis.sock
is "$rc $err" "2 shmlimit: backend /nowhere/redis.sock?db=0: no connection (No such file or directory): must be running \
and reachable from here" "a backend that is not there is said not to be"
run shmlimit global take "$segment" unix:///nowhere/redis.sock login another
is "$rc $(printf '%s\n' "$out" | sed -n 1p)" "1 decision: denied" "a take without a backend is denied"
like "$err" 'no connection' "by saying so"
like "$(shmlimit metrics "$segment" | grep '^shmlimit_rule_on_failure')" \
	'^shmlimit_rule_on_failure_requests_total\{segment="'"$segment"'",rule="login"\} [1-9][0-9]*$' \
	"metrics count what on_failure decided for each rule of leases"
# The breaker is open now, for a time that a busy machine may let pass: then the take before opens it again.
tries=0
until case $err in *breaker*) ;; *) [ $((tries += 1)) -gt 1000 ] ;; esac do
	run shmlimit global take "$segment" unix:///nowhere/redis.sock login another --json
done
like "$err" "^shmlimit: backend: not asked for [0-9.hms]+: this host's circuit breaker is open after a failure \(shmlimit global ping \
says what is wrong\)$" "while the breaker is open the backend is not asked, which is said"
is "$rc $(printf '%s' "$out" | jq -c '[.allowed, .breaker_ns > 0]')" "1 [false,true]" "JSON has how long the breaker is open"
run shmlimit global take "$segment" "$url" login fine $patient --json
is "$rc $err $(printf '%s' "$out" | jq .breaker_ns)" "0  0" "another backend's breaker is closed"
run shmlimit global inspect "$segment" "$url" plain key
is "$rc $err" "2 shmlimit: rule plain: not a lease (set one with --algorithm lease)" \
	"a rule of this host only is not there"
run shmlimit global take "$segment" "$url" none key
is $rc 3 "no such rule"
run shmlimit global take none "$url" login key
is $rc 3 "no such segment"
while IFS='|' read -r option value range; do
	run shmlimit global take "$segment" "$url" login key "$option" "$value"
	is "$rc $err" "2 shmlimit: $option $value: must be $range" "$option out of range is refused by its name"
done <<END
--deadline|1us|100us to 10s
--lease|11s|1ms to 10s
--prefix|{a}|64 bytes or less, without '{'
END
run shmlimit global take "$segment" "$url" login key --on-failure cry
is "$rc $err" "2 shmlimit: --on-failure cry: must be deny, allow, local or error" "no such way to fail"
for half in "--on-failure local" "--local-share 250"; do
	run shmlimit global take "$segment" "$url" login key $half
	is "$rc $err" "2 shmlimit: --on-failure local and --local-share: each needs the other" "$half alone is refused"
done

# The event loop of the manual.
{
	printf '#include <shmlimit_global.h>\nint ask(struct shmlimit_global *, struct shmlimit_request, struct shmlimit_result);\n'
	printf 'int ask(struct shmlimit_global *global, struct shmlimit_request request, struct shmlimit_result r)\n{\n'
	block lib/global/shmlimit_global.3.in mdoc ticket
	printf 'return answer;\n}\n'
} >"$TMP/ask.c"
run gcc -std=c11 -Wall -Wextra -pedantic -Werror -I"$SOURCE/include" -c "$TMP/ask.c" -o "$TMP/ask.o"
is "$rc $err" "0 " "shmlimit_global.3: its event loop compiles without warnings"
done_testing
