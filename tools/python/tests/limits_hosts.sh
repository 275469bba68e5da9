#!/bin/sh
# limits_hosts: Flask-Limiter on four hosts of four gunicorn workers, which share "5/hour" by a backend: exactly five
# of a client's requests pass, whatever is killed. A host is a segment.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need gunicorn curl
python3 -c 'import flask_limiter' 2>/dev/null || skip_all "no python3-flask-limiter"
need_backend

prefix=$SEGMENT
hosts='1 2 3 4'
trap 'end_servers; for host in $hosts 5; do shmlimit destroy "$prefix.$host" 2>/dev/null; done; tap_clean' EXIT

log() { echo "$TMP/$host.log"; }
workers() { sed -n 's/.*Booting worker with pid: //p' "$(log)"; }
listening() { grep -q 'Listening at' "$(log)" && [ "$(workers | wc -l)" -ge 4 ]; }
# begin HOST OPTIONS [ARGUMENT]
begin() {
	host=$1
	options=$(printf '%s' "deadline_ms=1000$2" | sed 's/&/\\&/g')
	block lib/doc/hosts.md python | sed -e 's|5/minute|5/hour|; s|flask_limiter.util.get_remote_address|lambda: flask.request.args["client"]|' \
		-e "s|shmlimit://web|shmlimit://$prefix.$host|; s|redis://.*\"|$backend_url\&$options\"${3:-}|" >"$TMP/limiter"
	cat >"$TMP/app$host.py" <<-END
	import flask, flask_limiter, shmlimit.limits
	app = flask.Flask(__name__)
	$(cat "$TMP/limiter")
	@app.route("/")
	def hello():
	    return "hello"
	END
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 --timeout 120 --preload "app$host:app" 2>"$(log)" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$(log)")"; exit 1; }
	eval "server_$host=$server url_$host=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$(log)")"
}
url() { eval "echo \$url_$1"; }
# everywhere CLIENT N: as many requests to each host, all hosts at once. The codes are in $TMP/codes.
everywhere() {
	loads=
	for host in $hosts; do
		crowd "$(url "$host")/?client=$1&n=[1-$2]" >"$TMP/codes.$host" &
		loads="$loads $!"
	done
	wait $loads
	for host in $hosts; do cat "$TMP/codes.$host"; done >"$TMP/codes"
}
# What the backend has counted of a client, and whether that is the limit; each host asks once more.
counted() { there hget "shmlimit:{limits/LIMITER/$1/hello/5/1/hour}" count; }
reached() {
	for host in $hosts; do codes "$(url "$host")/?client=$1"; done >>"$TMP/more"
	[ "$(counted "$1")" = 5 ]
}

connections=4
start_backend
begin 1 ''
begin 2 '&on_failure=deny'
begin 3 '&on_failure=allow'
begin 4 '&local_share=400'
begin 5 '&on_failure=error' ', in_memory_fallback_enabled=True'

everywhere ada 10
is "$(count 200) $(count 429)" "5 35" "four hosts of four workers serve exactly five requests of a client"
is "$(counted ada)" 5 "the backend has counted five"
everywhere bob 10
is "$(count 200)" 5 "another client has five of its own"

# Of each host a worker, of the first one all workers, and what is the agent on the second.
: >"$TMP/more"
everywhere eve 10 &
load=$!
for host in $hosts; do kill -KILL "$(workers | head -n 1)"; done
host=1
kill -KILL $(workers) 2>/dev/null
kill -KILL "$(shmlimit global status "$prefix.2" --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')" 2>/dev/null
wait $load
within reached eve
ok $? "when workers and agents were killed the backend still counts to five"
# Fewer are where a killed agent had the answer, or a killed worker the request.
[ "$(cat "$TMP/codes" "$TMP/more" | grep -c 200)" -le 5 ]
ok $? "while workers and agents are killed no more than five are served"

kill_backend
[ "$(codes "$(url 5)/?client=ann&n=[1-10]" | grep -c 200)" -ge 5 ]
ok $? "without the backend Flask-Limiter falls back to its own memory on on_failure=error"
everywhere ann 10
for host in $hosts; do cp "$TMP/codes.$host" "$TMP/codes"; echo "$(count 200)"; done >"$TMP/served"
is "$(tr '\n' ' ' <"$TMP/served")" "0 0 10 2 " "without the backend each host answers as its on_failure says: deny, allow, a share"
is "$(codes "$(url 1)/?client=ada")" 429 "without the backend a denial that is known stays"

start_backend
: >"$TMP/more"
within reached dan
ok $? "when the backend is back the hosts count there again"
everywhere max 10
is "$(count 200)" 5 "when the backend is back exactly five requests of a client are served"
done_testing
