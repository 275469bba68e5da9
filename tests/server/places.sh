#!/bin/sh
# places: how many requests at once. The place of a request is free when it has ended: served, aborted by the client, or
# killed with its worker.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl perl pgrep setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev

shmlimit create "$SEGMENT" --slots 1024 --mode 666
make_rules
shmlimit rule set "$SEGMENT" reports --algorithm hold --capacity 2 --period 1h
shmlimit rule set "$SEGMENT" few --capacity 4 --rate 1/h

# hold NAME: a request that stays in flight: its response is not read, and fits into no socket's buffers. Sets $held.
hold() {
	rm -f "$TMP/$1"
	perl "$SOURCE/tests/server/hold.pl" "$port" /held/large "$TMP/$1" &
	held=$!
	servers="$servers $held"
	within test -s "$TMP/$1"
}
status() { cat "$TMP/$1"; }
leave() {
	kill "-$1" "$2"
	wait "$2" 2>/dev/null
}
free() { [ "$(remaining reports all)" = "$1" ]; }

# Beside the limit few, which denies after 4 requests.
limits_places() {
	truncate -s 64M "$TMP/html/large"
	mkdir -p "$TMP/html/held"
	cp "$TMP/html/index.html" "$TMP/html/held"
	mv "$TMP/html/large" "$TMP/html/held"

	hold first
	first=$held
	hold second
	is "$(status first) $(status second)" "200 200" "$host: as many requests are served at once as there are places"
	ask "$url/held/"
	like "$answer" '^HTTP/1.1 429 ' "$host: one more is denied while they last"
	is "$(field RateLimit-Policy) $(field RateLimit) $(field Retry-After)" '"reports";q=2;qu="concurrent-requests" "reports";r=0 ' \
		"$host: the denied request is told how many at once, and no time"
	is "$(remaining few all)" 2 "$host: a request without a place takes no token of another limit"
	leave USR1 "$first"
	within free 1
	ok $? "$host: a place is free after its request was served"
	leave KILL "$held"
	within free 2
	ok $? "$host: a place is free after its client went away"
	codes "$url/held/?[1-2]" >"$TMP/codes"
	ask "$url/held/"
	like "$(field RateLimit)" '^"few";r=0;' "$host: a request that another limit denies is told so"
	within free 2
	ok $? "$host: a request that another limit denied leaves its place"
	shmlimit reset "$SEGMENT" --all >/dev/null
}

# The period is short: places end by themselves.
survives_a_kill() {
	shmlimit rule set "$SEGMENT" reports --period 2s
	hold first
	hold second
	for victim in $(workers); do
		kill -KILL "$victim"
		within gone "$victim"
	done
	within free 2
	ok $? "$host: places of killed workers are free after the rule's period"
	shmlimit rule set "$SEGMENT" reports --period 1h
	shmlimit reset "$SEGMENT" --all >/dev/null
}

# A fast shutdown, which cuts requests off.
ends() {
	hold first
	stop
	is "$rc$left $(remaining reports all)" "0 2" "$host${1+ }$*: workers that end on SIGTERM leave their requests' places"
	leave KILL "$held"
	shmlimit reset "$SEGMENT" --all >/dev/null
}

start nginx -e 's|^    location /trial|    location /held/ { shmlimit all rule=reports; shmlimit all rule=few; }\n&|'
limits_places
survives_a_kill
ends
held_location='s|^    <Location "/trial|    <Location "/held/">\n ShmlimitRule few all\n ShmlimitRule reports all\n </Location>\n&|'
start apache event -e "$held_location"
limits_places
survives_a_kill
ends event
start apache prefork -e "$held_location"
ends prefork
done_testing
