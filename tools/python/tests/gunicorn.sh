#!/bin/sh
# gunicorn: WSGI and ASGI under gunicorn, with four workers that inherit
# the handle from a master that opened it before it forked. The applications are
# those of README.md.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"

for command in curl jq perl; do
	command -v $command >/dev/null || skip_all "no $command"
done
command -v gunicorn >/dev/null || skip_all "no gunicorn"
python3 -c 'import uvicorn' 2>/dev/null || skip_all "no python3-uvicorn"
for app in wsgi asgi; do
	block tools/python/README.md python "import Gate, Limit, $app" | own >"$TMP/$app.py"
done

# uvicorn has the names of fields in small letters.
field() { printf '%s\n' "$answer" | sed -n "s/^$1: //Ip"; }
answer_of() { get -o "$TMP/body" -D - "$@" | tr -d '\r'; }
workers() { sed -n 's/.*Booting worker with pid: //p' "$TMP/log"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
listening() { grep -q 'Listening at' "$TMP/log" && booted 4; }
# start APP CLASS: sets $server and $url.
start() {
	rm -f "$TMP/access"
	: >"$TMP/log"
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 --threads 4 --preload --worker-class "$2" \
		--access-logfile "$TMP/access" --access-logformat '%(p)s %(s)s %({shmlimit.status}e)s' "$1:app" 2>"$TMP/log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/log")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/log")
}

begun() { [ "$(allowed)" -gt $((before + 50)) ]; }
answers() { [ "$(codes "$url/")" = "$1" ]; }
# A rule so slow that no token comes back within a test.
rule() {
	shmlimit rule set "$SEGMENT" client --capacity "$1" --rate 1/h
	shmlimit reset "$SEGMENT" --all >/dev/null
}

# laws APP CLASS
laws() {
	kind="$1, ${2##*.}"
	rule 15
	start "$1" "$2"

	answer=$(answer_of "$url/")
	like "$answer" '^HTTP/1.1 200 ' "$kind: a client within the limit gets the application's answer"
	is "$(cat "$TMP/body")" hello "$kind: with its body"
	is "$(field RateLimit-Policy)" '"client";q=15;w=54000' "$kind: a response has the policy"
	is "$(field RateLimit)" '"client";r=14;t=3600' "$kind: a response has what is left of the limit"
	codes "$url/?[1-19]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "14 5" "$kind: the capacity is served, then nothing"
	answer=$(answer_of "$url/")
	like "$(field Retry-After)" '^3[56][0-9][0-9]$' "$kind: Retry-After is the time that a token takes"
	# uvicorn's worker has an access log of its own, which cannot show it.
	[ "$1" = asgi ] || is "$(cut -d ' ' -f 2- "$TMP/access" | sort | uniq -c | tr -s ' \n' ' ')" \
		" 15 200 passed 6 429 rejected " "$kind: the access log says what became of each"

	rule 15
	codes "$url/?[1-6]" >"$TMP/codes"
	kill -KILL "$(workers | head -n 1)"
	within booted 5
	ok $? "$kind: a worker that is killed is replaced"
	codes "$url/?[1-14]" >>"$TMP/codes"
	is "$(count 200) $(count 429)" "15 5" "$kind: before and after, the capacity is served, exactly"

	rule 2000
	before=$(allowed)
	codes -Z --parallel-max 8 "$url/?[1-4000]" >"$TMP/codes" 2>"$TMP/err" &
	load=$!
	within begun
	kill -KILL "$(workers | sed -n 2p)"
	kill -0 $load
	ok $? "$kind: the load goes on when a worker is killed"
	wait $load
	lost=$(count 000)
	within booted 6
	ok $? "$kind: a worker that is killed under load is replaced, too"
	# One on each of curl's connections, of which it asks some again by itself.
	[ "$(count 200)" -le 2000 ] && [ "$(count 200)" -ge 1992 ]
	ok $? "$kind: the capacity is served, but for what the killed one had in hand"
	[ $(($(count 200) + $(count 429) + lost)) -eq 4000 ] && [ "$lost" -le 8 ]
	ok $? "$kind: only requests of the killed worker fail"
	if [ "$1" = wsgi ]; then
		[ "$(cut -d ' ' -f 1 "$TMP/access" | sort -u | wc -l)" -gt 1 ]
		ok $? "$kind: more than one worker served it"
	fi
	diag "$kind: $(count 200) served, $(count 429) refused, $lost lost"

	shmlimit destroy "$SEGMENT"
	within answers 503
	ok $? "$kind: without a segment nobody is served"
	codes "$url/?[1-40]" >"$TMP/codes"
	told=$(grep -c "segment $SEGMENT: no such segment: requests that need it are refused" "$TMP/log")
	[ "$told" -ge 1 ] && [ "$told" -le 4 ]
	ok $? "$kind: each worker reports a missing segment once"
	shmlimit create "$SEGMENT" --slots 1024
	rule 1000000
	within answers 200
	ok $? "$kind: a segment that is created again is opened again"

	kill -TERM "$server"
	wait "$server"
	is $? 0 "$kind: the server ends"
}

# Workers of another user, which create segment and rule with the first request.
others() {
	sed 's/wsgi.client)/wsgi.client, rate="15 per hour")/' "$TMP/wsgi.py" >"$TMP/creates.py"
	mkdir "$TMP/lib"
	cp -rL "$BUILD/libshmlimit.so.1" "$BUILD/libshmlimit-gate.so.1" "$SOURCE/tools/python/shmlimit" "$TMP/lib"
	: >"$TMP/log"
	LD_LIBRARY_PATH=$TMP/lib PYTHONPATH=$TMP/lib timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 \
		--preload --user www-data --group www-data creates:app 2>"$TMP/log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/log")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/log")
	crowd "$url/?[1-40]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "15 25" "workers of another user create the segment with the first request, and share it"
	kill -TERM "$server"
	wait "$server"
	shmlimit destroy "$SEGMENT"
}
[ "$(id -u)" -ne 0 ] || others

# Two at once, over four workers; /held/large is more than sockets can take.
wsgi_held='
from shmlimit import Gate, Limit, wsgi
def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return (b"x" * 2**20 for _ in range(64)) if environ["PATH_INFO"] == "/held/large" else [b"hello"]
app = wsgi.Middleware(hello, Gate("%s", [Limit("p", lambda environ: "all", rate="2 at once for 1h")]))
'
asgi_held='
from shmlimit import Gate, Limit, asgi
async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(64 if scope["path"] == "/held/large" else 0):
        await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
    await send({"type": "http.response.body"})
app = asgi.Middleware(hello, Gate("%s", [Limit("p", lambda scope: "all", rate="2 at once for 1h")]))
'
hold() {
	rm -f "$TMP/held.$1"
	perl "$SOURCE/tests/server/hold.pl" "${url##*:}" /held/large "$TMP/held.$1" &
	held=$!
	servers="$servers $held"
	within test -s "$TMP/held.$1"
}
free() { [ "$(shmlimit peek "$SEGMENT.held" p all | sed -n 's/^remaining: //p')" = "$1" ]; }
# places APP CLASS
places() {
	kind="$1, ${2##*.}"
	start "$1" "$2"
	hold 1
	first=$held
	hold 2
	is "$(cat "$TMP/held.1" "$TMP/held.2" | tr '\n' ' ')" "200 200 " "$kind: as many requests are served at once as there are places"
	answers 429
	ok $? "$kind: one more is denied while they last"
	kill -USR1 "$first"
	wait "$first"
	within free 1
	ok $? "$kind: a place is free after its response was sent"
	kill -KILL "$held"
	wait "$held" 2>/dev/null
	within free 2
	ok $? "$kind: a place is free after its client went away"
	kill -TERM "$server"
	wait "$server"
	shmlimit destroy "$SEGMENT.held"
}
# shellcheck disable=SC2059 # the segment is the format's argument
{
	printf "$wsgi_held" "$SEGMENT.held" >"$TMP/wsgi_held.py"
	printf "$asgi_held" "$SEGMENT.held" >"$TMP/asgi_held.py"
}
places wsgi_held gthread
places asgi_held uvicorn.workers.UvicornWorker

shmlimit create "$SEGMENT" --slots 1024
laws wsgi sync
laws wsgi gthread
laws asgi uvicorn.workers.UvicornWorker
done_testing
