#!/bin/sh
# proxy: whose limit a request behind a proxy counts against, with gunicorn and uvicorn. The applications are
# README.md's. The test asks from 127.0.0.1, which is a proxy or a client.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"

need gunicorn curl
python3 -c 'import uvicorn' 2>/dev/null || skip_all "no python3-uvicorn"

# app KIND PROXY [behind]: $TMP/KIND.py, with the line of README.md that believes the header.
app() {
	{
		block tools/python/README.md python "import Gate, Limit, $1" | own
		[ $# -lt 3 ] || block tools/python/README.md python "$1.client_behind" | own
	} | sed "s/192.0.2.10/$2/" >"$TMP/$1.py"
}
# start COMMAND...: sets $server and $url.
start() {
	: >"$TMP/log"
	PYTHONPATH=$PYTHONPATH:$TMP timeout 600 "$@" 2>"$TMP/log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/log")"; exit 1; }
	url=$(sed -n 's/.*\(http:[^ ]*\).*/\1/p' "$TMP/log")
}
# gunicorn's words, and uvicorn's.
listening() { grep -q 'Listening at.*http:\|running on http:' "$TMP/log"; }
ends() {
	kill -TERM $server
	wait $server
}
gunicorn_of() { start gunicorn --bind 127.0.0.1:0 --workers 1 "$@"; }
uvicorn_of() { start python3 -m uvicorn --host 127.0.0.1 --port 0 "$@"; }

# got HEADER: what is left to the client of a request with this X-Forwarded-For.
got() { get -o "$TMP/body" -D - -H "X-Forwarded-For: $1" "$url/" | tr -d '\r' | sed -n 's/^RateLimit: .*;r=\([0-9]*\);.*/\1/Ip'; }
all() {
	shmlimit reset "$SEGMENT" --all >/dev/null
	# shellcheck disable=SC2046,SC2005 # in one line
	echo $(got 203.0.113.1) $(got 203.0.113.2) $(got '203.0.113.3, 203.0.113.1')
}

shmlimit create "$SEGMENT" --slots 1024
shmlimit rule set "$SEGMENT" client --capacity 15 --rate 1/h
by_client='14 14 13'
by_peer='14 13 12'

app wsgi 127.0.0.1 behind
gunicorn_of wsgi:app
is "$(all)" "$by_client" "WSGI: behind a proxy of ours, the last address that it passes on is the client"
ends
app wsgi 192.0.2.10 behind
gunicorn_of wsgi:app
is "$(all)" "$by_peer" "WSGI: what is no proxy of ours is the client, whatever it sends"
ends

app asgi 127.0.0.1 behind
uvicorn_of --no-proxy-headers asgi:app
is "$(all)" "$by_client" "uvicorn: behind a proxy of ours, the last address that it passes on is the client"
ends
gunicorn_of --worker-class uvicorn.workers.UvicornWorker --forwarded-allow-ips '' asgi:app
is "$(all)" "$by_client" "UvicornWorker: behind a proxy of ours, the last address that it passes on is the client"
ends
app asgi 192.0.2.10 behind
uvicorn_of --no-proxy-headers asgi:app
is "$(all)" "$by_peer" "uvicorn: what is no proxy of ours is the client, whatever it sends"
ends
uvicorn_of asgi:app
is "$(all)" "$by_peer" "uvicorn, by default: a local process cannot choose whose limit its requests count against"
is "$(grep -c -e '--no-proxy-headers' "$TMP/log")" 1 "uvicorn, by default: and the log says so, once"
ends

app asgi 127.0.0.1
uvicorn_of --forwarded-allow-ips 127.0.0.1 asgi:app
is "$(all)" "$by_client" "uvicorn that reads the header itself: the last address that the proxy passes on is the client"
is "$(codes "$url/" -H 'X-Forwarded-For: 127.0.0.1')" 200 "uvicorn that reads the header itself: one that names only proxies is served"
ends
uvicorn_of --forwarded-allow-ips 192.0.2.10 asgi:app
is "$(all)" "$by_peer" "uvicorn that reads the header itself: what is no proxy of ours is the client"
ends
done_testing
