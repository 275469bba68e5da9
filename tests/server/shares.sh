#!/bin/sh
# shares: places that tenants share, and the number of places that a request brings.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl perl pgrep setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev

# hold PATH FIELD...: a request that stays in flight. Sets $got to its status.
n=0
holders=
hold() {
	n=$((n + 1))
	path=$1
	shift
	perl "$SOURCE/tests/server/hold.pl" "$port" "$path" "$TMP/held$n" "$@" &
	servers="$servers $!"
	holders="$holders $!"
	within test -s "$TMP/held$n"
	got=$(cat "$TMP/held$n")
}
leave_all() {
	for pid in $holders; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	holders=
	within all_free
}
places() { remaining "$1" all 2>/dev/null; }
all_free() { [ "$(places all)" = 8 ] && [ "$(places many)" = 8 ]; }
# fill PATH FIELD...: held requests until one is denied. Sets $held to their number.
fill() {
	held=0
	hold "$@"
	while [ "$got" = 200 ] && [ $held -lt 20 ]; do
		held=$((held + 1))
		hold "$@"
	done
}
has_said() { [ "$(said "$1")" -gt 0 ]; }

shared() {
	mkdir -p "$TMP/html/shared" "$TMP/html/many"
	truncate -s 64M "$TMP/html/shared/large"
	truncate -s 64M "$TMP/html/many/large"
	hold /shared/large "X-Tenant: a"
	hold /many/large
	leave_all
	fill /shared/large "X-Tenant: a"
	is "$held $got" "4 429" "$host: with a share of 1 a tenant that is alone holds half of the places"
	within has_said 'by rule "each"'
	ok $? "$host: the log says that its share denied it"
	fill /shared/large "X-Tenant: b"
	is $held 2 "$host: another tenant has places that are free"
	fill /shared/large "X-Tenant: c" "X-Share: 100"
	is $held 2 "$host: a request may bring a larger share"
	within has_said 'by rule "all"'
	ok $? "$host: the log says that the total denied it"
	leave_all
	ok $? "$host: all places are left"
	fill /shared/large "X-Tenant: a" "X-Share: many"
	is $held 4 "$host: where a request brings what is no share, the limit's own decides"
	within has_said 'rule "each": "many" is no share: the limit'
	ok $? "$host: that is logged"
	leave_all
	fill /many/large "X-Places: 3 at once"
	is "$held" 3 "$host: a request may bring a number of places"
	fill /many/large
	is "$held" 5 "$host: without one the rule's decides"
	leave_all
}

start nginx -e 's|^    location /trial|    location /shared/ { shmlimit all rule=all "rate=8 at once for 1h"; shmlimit $http_x_tenant rule=each share=1 share=$http_x_share; }\n'\
'    location /many/ { shmlimit all rule=many "rate=8 at once for 1h" rate=$http_x_places; }\n&|' -e 's/fail=open/create=yes fail=closed/'
shared
stop
# refuse LINE WHAT: nginx -t says it.
refuse() {
	sed "s|^ *location /shared/.*|    location /shared/ { $1 }|" "$TMP/nginx.conf" >"$TMP/wrong.conf"
	like "$(nginx -t -c "$TMP/wrong.conf" 2>&1)" "$2" "nginx: $1 is refused"
}
refuse 'shmlimit $arg_t rule=each share=1;' 'share=, which needs a limit of places before it here'
refuse 'shmlimit all rule=all "rate=8/s"; shmlimit $arg_t rule=each share=1;' 'share=, which needs a limit of places before it here'
refuse 'shmlimit all rule=all "rate=8 at once"; shmlimit $arg_t rule=each share=0;' '"share=0" must be share=N, such as 4 or 0.5'
shmlimit destroy "$SEGMENT"

start apache event -e 's|^    <Location "/trial|    <Location "/shared/">\n ShmlimitRule all all "rate=8 at once for 1h"\n'\
' ShmlimitRule each "%{req:X-Tenant}" share=1 "share=%{req:X-Share}"\n </Location>\n'\
' <Location "/many/">\n ShmlimitRule many all "rate=8 at once for 1h" "rate=%{req:X-Places}"\n </Location>\n&|' -e 's/fail=open/create=yes fail=closed/'
shared
stop
sed 's|^ ShmlimitRule all all.*||' "$TMP/apache.conf" >"$TMP/wrong.conf"
like "$(apache2 -d "$TMP" -f "$TMP/wrong.conf" -t 2>&1)" 'share= needs a limit of places before it here' "apache: a share of no limit is refused"
done_testing
