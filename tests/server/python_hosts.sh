#!/bin/sh
# python_hosts: gunicorn twice, with WSGI and with ASGI, as two hosts of four workers, each with a segment of its own,
# that share one limit through a backend; and what they answer while it is gone. The applications are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2046 # an option and its value
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need gunicorn curl jq setpriv
python3 -c 'import uvicorn' 2>/dev/null || skip_all "no python3-uvicorn"
need_backend

# use HOST: the one that the verbs speak of.
use() { eval "host=$1 url=\$$1_url server=\$$1_server SEGMENT=$prefix.$1"; }
workers() { sed -n 's/.*Booting worker with pid: //p' "$TMP/$host.log"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
listening() { grep -q 'Listening at' "$TMP/$host.log" && booted 4; }
# No test depends on speed, so the backend has time.
app_of() { block tools/python/README.md python "import Gate, Limit, $1" | own | sed "s|client)\]|&, backend=\"$backend_url\", deadline_ms=5000$2|"; }
wsgi_app() { app_of wsgi ', fail_open=True'; }
asgi_app() { app_of asgi ''; }
# begin HOST CLASS. Of its rule no token comes back within the test.
begin() {
	host=$1
	SEGMENT=$prefix.$1
	shmlimit create "$SEGMENT" --slots 1024
	shmlimit rule set "$SEGMENT" client --algorithm lease --capacity 300 --rate 1/h
	"$1_app" >"$TMP/$1.py"
	: >"$TMP/$1.log"
	timeout 600 gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 4 --threads 4 \
		--timeout 120 --preload --worker-class "$2" "$1:app" 2>"$TMP/$1.log" &
	server=$!
	servers="$servers $server"
	within listening || { diag "$(cat "$TMP/$1.log")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/$1.log")
	eval "$1_url=$url $1_server=$server"
}
# A client of its own, by the address that it asks from.
from() { printf -- '--interface 127.0.0.%s' "$1"; }
# uvicorn has the names of fields in small letters.
field() { printf '%s\n' "$answer" | tr -d '\r' | sed -n "s/^$1: //Ip"; }

expired() { shmlimit inspect "$prefix.$1" --json | jq .leases.expired; }
forget() {
	: >"$TMP/codes"
	expired_before=$(($(expired wsgi) + $(expired asgi)))
}
# crowds N CURL...: this many to each of both hosts at once; the codes of all are added to $TMP/codes.
crowds() {
	n=$1
	shift
	crowd "$wsgi_url/?[1-$n]" "$@" >"$TMP/codes.wsgi" &
	load=$!
	crowd "$asgi_url/?[1-$n]" "$@" >"$TMP/codes.asgi"
	wait $load
	cat "$TMP/codes.wsgi" "$TMP/codes.asgi" >>"$TMP/codes"
}
# spent CURL...: what was served, to which more is added, and what expired, since it was forgotten last, is the capacity.
spent() {
	codes "$wsgi_url/" "$@" >>"$TMP/codes"
	codes "$asgi_url/" "$@" >>"$TMP/codes"
	[ $(($(count 200) + $(expired wsgi) + $(expired asgi) - expired_before)) -eq 300 ]
}
lines() { grep "^backend " "$TMP/$host.log"; }
begun() { [ "$(allowed)" -gt $((before + 50)) ]; }
decides() {
	answer=$(get -o "$TMP/body" -D - "$url/" "$@")
	field RateLimit | grep -q '^"client";r=2[0-9][0-9];'
}

prefix=$SEGMENT
trap 'end_servers; SEGMENT=$prefix; tap_clean' EXIT
connections=4
start_backend
begin wsgi gthread
begin asgi uvicorn.workers.UvicornWorker

# One limit over both.
use wsgi
answer=$(get -o "$TMP/body" -D - $(from 2) "$url/")
is "$(field RateLimit-Policy) $(cat "$TMP/body")" '"client";q=300;w=1080000 hello' \
	"a client within a limit of many hosts is served, with the header fields of any limit"
like "$(field RateLimit)" '^"client";r=299;' "a client within a limit of many hosts gets what is left"
use asgi
answer=$(get -o "$TMP/body" -D - $(from 2) "$url/")
like "$(field RateLimit)" '^"client";r=298;' "another host has what the first one left"

forget
crowds 200 $(from 3)
[ "$(count 200)" -le 300 ] && [ "$(count 200)" -gt 0 ]
ok $? "both at once serve no more than the capacity"
is "$(grep -v '^200$\|^429$\|^503$' "$TMP/codes" | sort | uniq -c)" "" "both at once refuse what is beyond the capacity"
within spent $(from 3)
ok $? "what both served and what has expired is the capacity, exactly"

# A rate that is felt.
for host in wsgi asgi; do
	shmlimit rule set "$prefix.$host" client --capacity 50 --rate 100/s
done
forget
begun_ms=$(date +%s%3N)
crowds 200 $(from 4)
[ "$(count 200)" -gt 0 ] && [ "$(count 200)" -le $((51 + ($(date +%s%3N) - begun_ms) / 10)) ]
ok $? "both hosts at once serve no more than the capacity and what refills meanwhile"
for host in wsgi asgi; do
	shmlimit rule set "$prefix.$host" client --capacity 300 --rate 1/h
done

# A worker is killed, idle and under load.
forget
codes "$url/?[1-150]" $(from 5) >>"$TMP/codes"
kill -KILL "$(workers | head -n 1)"
within booted 5
ok $? "a worker that is killed is replaced"
crowds 200 $(from 5)
within spent $(from 5)
ok $? "the limit goes on where it was, exactly"
is "$(lines)$(use wsgi && lines)" "" "while the backend answers nothing is reported about it"

forget
before=$(allowed)
crowds 1000 $(from 6) &
load=$!
within begun
kill -KILL "$(workers | sed -n 2p)"
kill -0 $load
ok $? "the load goes on when a worker is killed"
wait $load
[ "$(count 200)" -le 300 ] && [ "$(count 200)" -gt 0 ]
ok $? "no more than the capacity is served while a worker is killed"
lost=$(count 000)
[ "$(grep -c '^200$\|^429$\|^503$' "$TMP/codes")" -eq $((2000 - lost)) ] && [ "$lost" -le $connections ]
ok $? "only requests of the killed worker fail"

# The backend is gone.
kill_backend
is "$(tally "$wsgi_url/?[1-40]" $(from 7))" "40 times 200" "without the backend a gate that fails open lets requests pass"
is "$(tally "$asgi_url/?[1-40]" $(from 7))" "40 times 503" "without the backend a gate that fails closed blames no client"
for host in wsgi asgi; do
	use $host
	lines | grep -q 'no connection .*: must be running and reachable from here'
	ok $? "$host says that it is gone"
	is "$(lines | sort | uniq -c | awk '$1 > 4')" "" "no worker of $host reports twice that the backend is gone"
done

start_backend
for host in wsgi asgi; do
	use $host
	within decides $(from 8)
	ok $? "when the backend is back $host decides again"
done
is "$(codes "$asgi_url/" $(from 3))" 429 "a client that was denied before the outage still is"

kill -TERM "$wsgi_server" "$asgi_server"
for host in wsgi asgi; do
	use $host
	wait "$server"
	is $? 0 "$host ends"
done
done_testing
