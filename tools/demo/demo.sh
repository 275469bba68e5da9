#!/bin/sh
# demo: one limit for all workers of a prefork web server, under real load.
#
#	tools/demo/demo.sh BUILD
#
# First 4 workers each limit for themselves, then 1, 4 and 16 share one limit:
# start shmlimit-demo, let wrk ask as one client, kill a worker halfway, and
# compare what was allowed with what the limit permits. Fails if a shared limit
# admits more. On a busy machine part of a limit may stay unused; the output says so. Leaves nothing
# behind, also when interrupted.
#
# SPDX-License-Identifier: BSD-2-Clause

set -eu

CAPACITY=100
RATE=100                # a second
LOAD_S=${DEMO_SECONDS:-3}
KILL_AFTER_S=$(awk "BEGIN { print $LOAD_S / 2 }")
CONNECTIONS=16
SLACK=10                # tokens that may go unused: the load starts and ends within 0.1 s of wrk's clock reads

LC_ALL=C
export LC_ALL

[ $# -eq 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
here=${0%/*}
PATH=$1/bin:$PATH
segment=shmlimit-demo.$$
server=
load=
dir=

fail() {
	echo "demo: $*" >&2
	exit 2
}

# Ends what was started and is still running, by its pid.
clean() {
	for pid in $load $server; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	shmlimit destroy "$segment" 2>/dev/null || :
	[ -z "$dir" ] || rm -rf "$dir"
}

# What the segment has counted as allowed since it was made, over all rules: they come last.
allowed_so_far() {
	shmlimit inspect "$segment" --json | sed -n 's/.*"allowed": \([0-9]*\).*/\1/p' | tail -n 1
}

new_segment() {
	shmlimit create "$segment" --slots 1024
	shmlimit rule set "$segment" demo --capacity $CAPACITY --rate $RATE/s
}

# start_server WORKERS [OPTION]: sets $server and $port.
start_server() {
	rm -f "$dir/port"
	shmlimit-demo --segment "$segment" --rule demo --workers "$1" --port-file "$dir/port" ${2:-} 2>"$dir/log" &
	server=$!
	tries=0
	until [ -s "$dir/port" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 200 ] || ! kill -0 $server 2>/dev/null; then
			fail "$1 workers: the server doesn't start: $(cat "$dir/log")"
		fi
		sleep 0.05
	done
	read -r port <"$dir/port"
}

stop_server() {
	kill $server
	pid=$server
	server=
	wait "$pid" || fail "the server failed: $(cat "$dir/log")"
}

# run LIMITS WORKERS [OPTION]: prints a line of the table; sets $verdict.
run() {
	limits=$1
	shift
	shmlimit reset "$segment" --all >/dev/null
	before=$(allowed_so_far)
	start_server "$@"

	wrk -t 2 -c $CONNECTIONS -d ${LOAD_S}s -s "$here/count.lua" "http://127.0.0.1:$port/?client=alice" \
		>"$dir/wrk" 2>&1 &
	load=$!
	sleep $KILL_AFTER_S
	kill -KILL "$(sed -n '/: started$/{s/.*worker \([0-9]*\):.*/\1/p;q;}' "$dir/log")"
	wait $load || fail "wrk: $(cat "$dir/wrk")"
	load=

	stop_server
	counted=$(grep '^counted ' "$dir/wrk") || fail "wrk counted nothing: $(cat "$dir/wrk")"
	# shellcheck disable=SC2086 # six numbers
	set -- "$1" ${counted#counted }
	[ "$5" -eq 0 ] || fail "$1 workers: $5 answers that were neither 200 nor 429: $(cat "$dir/log")"
	lost=$(($(allowed_so_far) - before - $3))
	[ $lost -ge 0 ] || lost=0       # the killed worker had decided and answered, but not yet counted
	replaced=$(grep -c 'killed by signal 9 .* replaced by' "$dir/log" || :)
	permitted=$(awk "BEGIN { print int($CAPACITY + $RATE * $6) }")
	if [ "$limits" = one ]; then
		verdict=ok
		[ $(($3 + lost + SLACK)) -ge "$permitted" ] || verdict=BUSY
		[ "$3" -le "$permitted" ] || verdict=EXCEEDED
	else
		verdict=$(awk "BEGIN { printf \"%.1f times the limit\", $3 / $permitted }")
	fi
	printf '%-6s  %7d  %8d  %8d  %7d  %9d  %4d  %8d  %9d  %s\n' \
		"$limits" "$1" "$2" "$4" "$3" "$permitted" "$lost" "$replaced" "$7" "$verdict"
}

for command in shmlimit shmlimit-demo wrk; do
	command -v $command >/dev/null || fail "$command: not found (shmlimit: make; wrk: apt install wrk)"
done
trap clean EXIT
trap 'exit 130' INT TERM HUP
dir=$(mktemp -d)
new_segment

cat <<EOF
A prefork web server on 127.0.0.1. The limit of a client: a burst of $CAPACITY, then $RATE requests a second.
One client asks for $LOAD_S s over $CONNECTIONS connections. Halfway a worker gets SIGKILL; the master replaces it.

each    every worker has a limit of its own, as with a limiter in a process's memory
one     all workers share one limit, in shared memory

limits  workers  requests    denied  allowed  permitted  lost  replaced  answering
EOF
bad= busy=
run each 4 --separate
shmlimit destroy "$segment"
new_segment
for workers in 1 4 16; do
	run one $workers
	[ "$verdict" != EXCEEDED ] || bad=yes
	[ "$verdict" != BUSY ] || busy=yes
done
cat <<EOF

permitted   capacity + rate x time, from before the first request to the last answer
lost        allowed, but the answer never arrived: its worker was killed, or time was up
answering   processes that answered: the workers and the replacement

EOF
shmlimit inspect "$segment"
[ -z "$busy" ] || echo "demo: the machine was busy, so a part of the limit stayed unused where it says BUSY; run it again when it is idle"
[ -z "$bad" ] || { echo "demo: the limit was exceeded; see above" >&2; exit 1; }
