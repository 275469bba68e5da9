#!/bin/sh
# haproxy: the module for HAProxy's Lua, 5.3 or 5.4, in HAProxy with four threads, as gateways.md configures it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/haproxy.inc"

need curl haproxy setpriv
[ -z "$no_haproxy" ] || skip_all "$no_haproxy"

# configure_haproxy: that of gateways.md, and what it leaves open. Root's HAProxy changes its user and its root directory.
configure_haproxy() {
	{
		block tools/lua/gateways.md lua shmlimit.haproxy | own | sed 's|100/minute|100/day|'
		cat <<-END
			core.register_service("app", "http", function(applet)
				core.msleep(tonumber(applet.qs:match("sleep=(%d+)") or 0))
				applet:set_status(tonumber(applet.qs:match("status=(%d+)") or 200))
				applet:start_response()
				applet:send("ok\n")
			end)
		END
	} >"$TMP/limits.lua"
	{
		block tools/lua/gateways.md haproxy default_backend | own | sed -e "s|/usr/local/lib/lua/5.3|$BUILD/lua/$lua|" -e "s|/path/to/shmlimit/tools/lua|$SOURCE/tools/lua|" \
			-e "s|/etc/haproxy/limits.lua|$TMP/limits.lua|" -e "s|127.0.0.1:8080|127.0.0.1:$port|" \
			-e "s|^global|&\\n    nbthread 4\\n    pidfile $TMP/haproxy.pid$as_user|" \
			-e "s|set-var(txn.key) src|& unless { path /absent }|" \
			-e "s|^frontend|defaults\\n    mode http\\n    timeout client 60s\\n    timeout server 60s\\n    timeout connect 5s\\n&|" \
			-e "s|default_backend app|http-request use-service lua.app|"
	} >"$TMP/haproxy.cfg"
}
as_user=
[ "$(id -u)" -ne 0 ] || as_user="\\n    user nobody\\n    chroot $TMP/empty"
mkdir -p "$TMP/empty"

start haproxy
connections=3 # more could find no place
crowd "$url/?[1-400]" >"$TMP/codes"
is "$(count 200) $(count 429)" "100 300" "four threads let the limit pass, and no more"
is "$(shmlimit peek "$SEGMENT" client --key-text 127.0.0.1 | sed -n 's/^remaining: //p')" 0 "the shell sees the client's limit by its address"
like "$(get -D - -o "$TMP/body" "$url/" | tr -d '\r')" '^retry-after: [1-9]' "the answer says how long to wait"
shmlimit reset "$SEGMENT" --rule client >/dev/null
is "$(codes "$url/")" 200 "what the shell resets passes"
shmlimit take "$SEGMENT" client --key-text 127.0.0.1 --cost 99 --quiet
is "$(codes "$url/")" 429 "what the shell takes counts in HAProxy"

# Places. The rule's rate is out of the way.
shmlimit rule set "$SEGMENT" client --capacity 10000 --rate 10000/s
free() { shmlimit peek "$SEGMENT" busy --key-text 127.0.0.1 | sed -n 's/^remaining: //p'; }
four_free() { [ "$(free)" = 4 ]; }
full() { [ "$(free)" = 0 ]; }
crowd "$url/?sleep=1&[1-40]" >"$TMP/codes"
within four_free
ok $? "the places of $(count 200) requests that are over were left"
for i in 1 2 3 4; do
	get --max-time 0.2 -o "$TMP/body.$i" "$url/?sleep=400"
done
within four_free
ok $? "places of clients that went away are left"

# An HAProxy that is killed, and another one.
shmlimit rule set "$SEGMENT" busy --algorithm hold --capacity 4 --period 3s
for i in 1 2 3 4; do
	get -o "$TMP/body.$i" "$url/?sleep=60000" &
done
within full
crowd "$url/?[1-8]" >"$TMP/codes"
is "$(count 200) $(count 429)" "0 8" "while four requests are in progress, others are rejected"
kill -KILL "$master"
wait "$master" 2>/dev/null
start haproxy
within four_free
ok $? "its places come back"
is "$(codes "$url/")" 200 "another HAProxy has the places"

# Bans, and a limit on errors, which take nothing of a request that they let pass.
codes_of() { for i in $(seq "$1"); do codes "$2"; done | tr '\n' ' '; }
shmlimit rule set "$SEGMENT" errors --capacity 3 --rate 3/day
is "$(codes_of 5 "$url/?status=404")" "404 404 404 429 429 " "answers that count are taken, and the client is denied when it has made its errors"
is "$(codes "$url/")" 429 "a client with too many errors is denied other requests, too"
shmlimit reset "$SEGMENT" --rule errors >/dev/null
is "$(codes_of 5 "$url/?status=200")" "200 200 200 200 200 " "answers that do not count take nothing"
is "$(shmlimit peek "$SEGMENT" errors --key-text 127.0.0.1 | sed -n 's/^remaining: //p')" 3 "a peek takes nothing"
shmlimit ban "$SEGMENT" 127.0.0.1 --for 1h >/dev/null
is "$(codes_of 2 "$url/")" "403 403 " "a client that the shell bans is denied with the next request"
shmlimit unban "$SEGMENT" 127.0.0.1 >/dev/null
is "$(codes "$url/")" 200 "a client whose ban ended passes"

# Errors: the rule is gone.
shmlimit rule remove "$SEGMENT" client
is "$(codes "$url/")" 200 "where a rule is missing, the guide's rules let the request pass"
like "$(cat "$TMP/haproxy.err")" 'shmlimit: rule client: no such rule' "the log says so"
stop
is "$(grep -c 'lua_traceback\|Lua.*error\|\[ALERT\]' "$TMP/haproxy.err")" 0 "no error of Lua was logged"
done_testing
