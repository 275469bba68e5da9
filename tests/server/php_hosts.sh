#!/bin/sh
# php_hosts: PHP-FPM twice, as two hosts of four children, each with a segment of its own, that share one limit through
# a backend; and what they answer while it is gone. Configuration and script are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

fpm=$(php_fpm) || skip_all "no php-fpm"
need jq cgi-fcgi setpriv
php -m | grep -qx apcu || skip_all "no php-apcu"
need_backend

use() { eval "host=$1 master=\$$1_master SEGMENT=$prefix.$1"; }
pids() { sed -n 's/.*child \([0-9]*\) started.*/\1/p' "$TMP/$host.log"; }
started() { [ "$(pids | wc -l)" -ge "$1" ]; }
ready() { grep -q 'ready to handle connections' "$TMP/$host.log" && started 4; }

cat >"$TMP/hello.php" <<'END'
<?php
echo "hello\n";
END
# begin HOST OPTION: of its gate. Of its rule no token comes back within the test.
begin() {
	host=$1
	SEGMENT=$prefix.$1
	shmlimit create "$SEGMENT" --slots 1024
	shmlimit rule set "$SEGMENT" client --algorithm lease --capacity 100 --rate 1/h
	mkdir "$TMP/$host"
	block tools/php/README.md ini opcache.preload | own >"$TMP/$host/php.ini"
	block tools/php/README.md php "Gate('web'" | own | sed "s/, rate: '[^']*'//; s/create=yes'/deadline=5000ms', backend: '-'$2/" >"$TMP/$host/limit.php"
	cat >"$TMP/$host/fpm.conf" <<-END
		[global]
		daemonize = no
		error_log = $TMP/$host.log
		log_level = debug
		[web]
		user = $(id -un)
		listen = $TMP/$host/socket
		pm = static
		pm.max_children = 4
		catch_workers_output = yes
		php_admin_value[error_log] = $TMP/$host.err
		$(block tools/php/README.md ini auto_prepend_file | own | sed "s,$TMP,$TMP/$host,")
		env[SHMLIMIT_BACKEND] = "$backend_url"
	END
	: >"$TMP/$host.log"
	: >"$TMP/$host.err"
	timeout 600 "$fpm" -F -R -c "$TMP/$host/php.ini" -y "$TMP/$host/fpm.conf" 2>"$TMP/$host/said" &
	master=$!
	servers="$servers $master"
	eval "$1_master=$master"
	within ready || { diag "$(cat "$TMP/$host/said" "$TMP/$host.log")"; exit 1; }
}

# ask HOST ADDRESS: a request of this client; prints the whole answer.
ask() {
	env -i SCRIPT_FILENAME="$TMP/hello.php" SCRIPT_NAME=/hello.php REQUEST_METHOD=GET REMOTE_ADDR="$2" \
		timeout 60 cgi-fcgi -bind -connect "$TMP/$1/socket" </dev/null 2>&1 | tr -d '\r'
}
# code: the status of the answer on standard input; 000 if it is none.
code() { awk '/^Status: / { s = $2 } /^Content-type: / { c = 200 } END { print s ? s : c ? c : "000" }'; }
# asks N HOST ADDRESS
asks() {
	for i in $(seq "$1"); do
		ask "$2" "$3" | code
	done
}
tally() { asks "$@" | sort | uniq -c | awk '{ printf "%s%d times %s", (NR > 1 ? ", " : ""), $1, $2 }'; }

expired() { shmlimit inspect "$prefix.$1" --json | jq .leases.expired; }
forget() {
	: >"$TMP/codes"
	expired_before=$(($(expired one) + $(expired two)))
}
# crowds N ADDRESS: four that ask so often, two of each host; the codes of all are added to $TMP/codes.
crowds() {
	loads=
	for of in one.1 one.2 two.1 two.2; do
		asks "$1" ${of%.*} "$2" >"$TMP/codes.$of" &
		loads="$loads $!"
	done
	# shellcheck disable=SC2086 # a list of words
	wait $loads
	cat "$TMP"/codes.* >>"$TMP/codes"
}
# spent ADDRESS: what was served, to which more is added, and what expired, since it was forgotten last, is the capacity.
spent() {
	asks 1 one "$1" >>"$TMP/codes"
	asks 1 two "$1" >>"$TMP/codes"
	[ $(($(count 200) + $(expired one) + $(expired two) - expired_before)) -eq 100 ]
}
lines() { sed -n "s/.*\] \(backend .*\)/\1/p" "$TMP/$host.err"; }
begun() { [ "$(allowed)" -gt $((before + 5)) ]; }
decides() {
	answer=$(ask "$host" "$1")
	field RateLimit | grep -q '^"client";r=9[0-9];'
}

prefix=$SEGMENT
trap 'end_servers; SEGMENT=$prefix; tap_clean' EXIT
start_backend
# No test depends on speed, so the backend has time.
begin one ', failOpen: true'
begin two ''

# One limit over both.
answer=$(ask one 10.0.0.2)
is "$(field RateLimit-Policy) $(printf '%s\n' "$answer" | tail -n 1)" '"client";q=100;w=360000 hello' \
	"a client within a limit of many hosts is served, with the header fields of any limit"
like "$(field RateLimit)" '^"client";r=99;' "a client within a limit of many hosts gets what is left"
answer=$(ask two 10.0.0.2)
like "$(field RateLimit)" '^"client";r=98;' "another host has what the first one left"

forget
crowds 40 10.0.0.3
[ "$(count 200)" -le 100 ] && [ "$(count 200)" -gt 0 ]
ok $? "both at once serve no more than the capacity"
is "$(grep -v '^200$\|^429$\|^503$' "$TMP/codes" | sort | uniq -c)" "" "both at once refuse what is beyond the capacity"
within spent 10.0.0.3
ok $? "what both served and what has expired is the capacity, exactly"

# A rate that is felt.
for host in one two; do
	shmlimit rule set "$prefix.$host" client --capacity 20 --rate 10/s
done
forget
begun_ms=$(date +%s%3N)
crowds 30 10.0.0.4
[ "$(count 200)" -gt 0 ] && [ "$(count 200)" -le $((21 + ($(date +%s%3N) - begun_ms) / 100)) ]
ok $? "both hosts at once serve no more than the capacity and what refills meanwhile"
for host in one two; do
	shmlimit rule set "$prefix.$host" client --capacity 100 --rate 1/h
done

# A child is killed, idle and under load.
use two
forget
asks 30 two 10.0.0.5 >>"$TMP/codes"
kill -KILL "$(pids | head -n 1)"
within started 5
ok $? "a child that is killed is replaced"
crowds 30 10.0.0.5
within spent 10.0.0.5
ok $? "the limit goes on where it was, exactly"
is "$(lines)$(use one && lines)" "" "while the backend answers nothing is reported about it"

forget
before=$(allowed)
crowds 60 10.0.0.6 &
load=$!
within begun
kill -KILL "$(pids | sed -n 2p)"
kill -0 $load
ok $? "the load goes on when a child is killed"
wait $load
[ "$(count 200)" -le 100 ] && [ "$(count 200)" -gt 0 ]
ok $? "no more than the capacity is served while a child is killed"
lost=$(count 000)
[ "$(grep -c '^200$\|^429$\|^503$' "$TMP/codes")" -eq $((240 - lost)) ] && [ "$lost" -le 1 ]
ok $? "only the request of the killed child fails"

# The backend is gone.
kill_backend
is "$(tally 20 one 10.0.0.7)" "20 times 200" "without the backend a gate that fails open lets requests pass"
is "$(tally 20 two 10.0.0.7)" "20 times 503" "without the backend a gate that fails closed blames no client"
for host in one two; do
	use $host
	lines | grep -q 'no connection .*: must be running and reachable from here'
	ok $? "$host says that it is gone"
	is "$(lines | sort | uniq -d)" "" "no child of $host reports twice that the backend is gone"
done

start_backend
for host in one two; do
	use $host
	within decides 10.0.0.8
	ok $? "when the backend is back $host decides again"
done
is "$(asks 1 two 10.0.0.3)" 429 "a client that was denied before the outage still is"

# shellcheck disable=SC2154 # as begin sets them
kill -TERM "$one_master" "$two_master"
for host in one two; do
	use $host
	wait "$master"
	is $? 0 "$host ends"
done
done_testing
