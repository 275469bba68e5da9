#!/bin/sh
# apache_agent: with agent=thread a thread of one of Apache's children is the host's agent, and asks the Redis server for all
# of them.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/apache.inc"

need apache2 curl jq perl pgrep ps setsid setpriv
need_module "$apache_module" apache2-dev
need_backend

# A token an hour: none comes back within the test. No test depends on speed: the deadline is far.
make_rules() {
	shmlimit rule set "$SEGMENT" page --algorithm lease --capacity 5 --rate 1/h
	shmlimit rule set "$SEGMENT" login --capacity 5 --rate 1/h
	shmlimit rule set "$SEGMENT" site --capacity 1000 --rate 1/h
}

status() { shmlimit global status "$SEGMENT" --json | jq "$1"; }
# Each request is of a client that was not seen yet, so that the backend is needed.
clients=0
another_serves() {
	clients=$((clients + 1))
	codes "$url/index.html" -H "$(from "10.1.$((clients / 250)).$((clients % 250 + 1))")" >/dev/null
	[ "$(status '.serving and .connections == 1')" = true ] && [ "$(status .pid)" != "$1" ]
}
# all_answer: each child has decided about one of these requests, and all of them passed.
all_answer() {
	clients=$((clients + 1))
	connections=4 crowd "$url/index.html?[1-4]" -H "$(from "10.2.$((clients / 250)).$((clients % 250 + 1))")" >>"$TMP/codes"
	[ "$(cut -d ' ' -f 1 "$TMP/apache.log" | sort -u | grep -cxF "$(workers)")" -eq "$(workers | wc -l)" ]
}
backend_connections() { there client list | grep -cv 'cmd=client'; }
exact() { is "$(codes "$url/index.html?[1-6]" -H "$(from "$1")" | tr '\n' ' ')" "200 200 200 200 200 429 " "$2"; }

start_backend
make_segment
start apache prefork -e "s|fail=open|fail=open backend=$backend_url deadline=10000ms agent=thread|"
within four

within another_serves 0
ok $? "there is an agent"
first=$(status .pid)
is "$(workers | grep -cx "$first") $(ps -o comm= -L -p "$first" | grep -c shmlimit-agent)" "1 1" "the agent is a thread of a child"
exact 10.0.0.1 "the limit is exact with the thread of a child"
: >"$TMP/codes"
: >"$TMP/apache.log"
connections_before=$(backend_connections)
within all_answer
ok $? "all children serve requests that need the backend"
is "$(sort -u "$TMP/codes")" 200 "none of those requests is denied"
is "$(backend_connections)" "$connections_before" "children that the agent serves make no connections of their own"

kill -KILL "$first"
within another_serves "$first"
ok $? "a thread of another child replaces that of a killed one"
second=$(status .pid)
is "$(workers | grep -cx "$second") $(ps -o comm= -L -p "$second" | grep -c shmlimit-agent)" "1 1" "the new agent is a thread of a child, too"
exact 10.0.0.2 "the limit is exact with the thread that replaced another"
stop
is "$rc$left" 0 "a server whose child is the agent ends when it is told to"
done_testing
