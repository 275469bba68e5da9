#!/bin/sh
# haproxy_endings: the place of a request is left when it ends, however that is: answered by a server, by an applet, by HAProxy
# itself or not at all.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/haproxy.inc"

need curl haproxy perl python3 setpriv
[ -z "$no_haproxy" ] || skip_all "$no_haproxy"

cat >"$TMP/limits.lua" <<-END
	local shmlimit = require "shmlimit"
	local limiter = assert(shmlimit.open("$SEGMENT"))
	require("shmlimit.haproxy")(limiter)
	$app_service
END
configure_haproxy() {
	cat >"$TMP/haproxy.cfg" <<-END
		$(haproxy_begin)
		    timeout tunnel 600s
		    timeout tarpit 100ms
		    retries 0
		frontend web
		    bind 127.0.0.1:$port
		    filter lua.shmlimit_leave
		    http-request set-var(txn.all) str(all)
		    http-request lua.shmlimit_enter busy txn.all if !{ path /absent }
		    http-request deny deny_status 429 if { var(txn.shmlimit_denied) -m bool }
		    http-request lua.shmlimit_take none txn.all if { path /denied }
		    http-request deny deny_status 429 if { var(txn.shmlimit_denied) -m bool }
		    http-request lua.shmlimit_enter second txn.all if { path /two }
		    http-request return status 200 if { path /return }
		    http-request deny deny_status 403 if { path /deny }
		    http-request redirect location / if { path /redirect }
		    http-request auth if { path /auth }
		    http-request tarpit deny_status 403 if { path /tarpit }
		    http-request silent-drop if { path /drop }
		    http-request reject if { path /reject }
		    http-request use-service lua.app if { path /applet }
		    http-response deny deny_status 403 if { capture.req.uri -m beg /response-deny }
		    http-response return status 200 if { capture.req.uri -m beg /response-return }
		    use_backend none if { path /noserver }
		    use_backend refused if { path /refused }
		    use_backend impatient if { path /timeout }
		    default_backend app
		frontend without
		    bind 127.0.0.1:$second_port
		    http-request set-var(txn.all) str(all)
		    http-request lua.shmlimit_enter busy txn.all
		    http-request return status 200
		backend none
		backend refused
		    server s 127.0.0.1:1
		backend impatient
		    timeout server 500ms
		    server s 127.0.0.1:$upstream
		backend app
		    server s 127.0.0.1:$upstream
	END
}

create_places
shmlimit rule set "$SEGMENT" second --algorithm hold --capacity $PLACES --period 2d
start_upstream
second_port=$(some_port)
start haproxy
what=HAProxy

endings normal keep_alive stream head exception exception_during denied redirect error gone_before gone_during body_abandoned timeout \
	websocket websocket_server websocket_refused
# HAProxy is one process: a killed one leaves no others.
KILLS=0 at_random 20 normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,gone_before,gone_during,body_abandoned

# What HAProxy answers itself, more often than there are places.
for path in return deny auth tarpit reject applet response-deny response-return noserver refused two; do
	for _ in $(seq $((PLACES + 1))); do
		code=$(codes "$url/$path")
	done
	ok "$([ "$code" != 429 ] && echo 0 || echo 1)" "requests to /$path never find all places taken"
	within all_free
	ok $? "all places are free after answers to /$path"
done
is "$(remaining second all)" $PLACES "a request with two places leaves both"
get --max-time 1 -o "$TMP/body" "$url/drop"
within all_free
ok $? "the place of a request that is dropped silently is free"
is "$(codes -k "http://127.0.0.1:$second_port/") $(remaining busy all)" "200 $PLACES" "without the filter no place is taken, which could not be left"
ok "$([ "$(said 'shmlimit_enter needs the line "filter lua.shmlimit_leave"')" -ge 1 ] && echo 0 || echo 1)" "that is logged"

begins
finishes() {
	cut_off USR1
	wait "$master" || :
}
ends reload finishes
# On SIGTERM HAProxy ends at once, and no Lua runs: its places end as those of a process that is killed.
not_here internal recycled sigterm
all_endings
is "$(grep -c 'lua_traceback\|Lua.*error\|\[ALERT\]' "$TMP/haproxy.err")" 0 "no error of Lua was logged"
done_testing
