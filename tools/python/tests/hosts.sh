#!/bin/sh
# hosts: gunicorn twice, with WSGI and with ASGI, as two hosts of four workers, each with a segment of its own,
# that share one limit through a backend; and what they answer while it is gone. The applications are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/hosts.inc"

need gunicorn curl jq setpriv
python3 -c 'import uvicorn' 2>/dev/null || skip_all "no python3-uvicorn"
need_backend

one=wsgi two=asgi capacity=300 reporters=4
connections=4
lost_max=$connections
workers() { sed -n 's/.*Booting worker with pid: //p' "$TMP/$host.log"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
listening() { grep -q 'Listening at' "$TMP/$host.log" && booted 4; }
lines() { grep "^backend " "$TMP/$host.log"; }

# No test depends on speed, so the backend has time.
begin() {
	make_host "$1"
	class=gthread open=', fail_open=True'
	[ "$1" = wsgi ] || class=uvicorn.workers.UvicornWorker open=
	block tools/python/README.md python "import Gate, Limit, $1" | own |
		sed "s|client)\]|&, backend=\"$backend_url\", deadline_ms=5000$open|" >"$TMP/$1.py"
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 --threads 4 \
		--timeout 120 --preload --worker-class $class "$1:app" 2>"$TMP/$1.log" &
	eval "$1_server=$!"
	servers="$servers $!"
	within listening || { diag "$(cat "$TMP/$1.log")"; exit 1; }
	sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/$1.log" >"$TMP/$1.url"
}

# A client of its own, by the address that it asks from.
ask() { get -i --interface "127.0.0.$2" "$(cat "$TMP/$1.url")" | tr -d '\r'; }
asks() { codes --interface "127.0.0.$3" "$(cat "$TMP/$2.url")/?[1-$1]"; }
crowds() {
	crowd --interface "127.0.0.$2" "$(cat "$TMP/wsgi.url")/?[1-$1]" >"$TMP/codes.wsgi" &
	load=$!
	crowd --interface "127.0.0.$2" "$(cat "$TMP/asgi.url")/?[1-$1]" >"$TMP/codes.asgi"
	wait $load
	cat "$TMP/codes.wsgi" "$TMP/codes.asgi" >>"$TMP/codes"
}
share_one_limit
done_testing
