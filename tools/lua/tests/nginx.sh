#!/bin/sh
# nginx: the modules for LuaJIT in nginx, with four workers under load that are killed and reloaded.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/nginx.inc"

need curl wrk jq setpriv

# A limit of each kind that lets 100 requests pass and no more within the test.
http='
	lua_package_path "/path/to/shmlimit/tools/lua/?.lua;;";
	lua_shared_dict seen 1m;
	init_by_lua_block { inherited = assert(require("resty.shmlimit.req").new("SEGMENT.init", 0.0001, 99)) }
	server {
		listen 127.0.0.1:PORT reuseport;
		location /req { content_by_lua_block {
			local lim = assert(require("resty.shmlimit.req").new("SEGMENT", 0.0001, 99))
			local delay, err = lim:incoming(ngx.var.arg_key, true)
			if not delay then return ngx.exit(err == "rejected" and 429 or 500) end
			ngx.say("ok")
		} }
		location /inherited { content_by_lua_block {
			local delay, err = inherited:incoming(ngx.var.arg_key, true)
			if not delay then return ngx.exit(err == "rejected" and 429 or 500) end
			ngx.say("ok")
		} }
		location /count { content_by_lua_block {
			local lim = assert(require("resty.shmlimit.count").new("SEGMENT", 100, 36000))
			local delay, err = lim:incoming(ngx.var.arg_key, true)
			if not delay then return ngx.exit(err == "rejected" and 429 or 500) end
			ngx.say("ok")
		} }
		location /traffic { content_by_lua_block {
			local a = assert(require("resty.shmlimit.req").new("SEGMENT", 0.0001, 99))
			local b = assert(require("resty.shmlimit.count").new("SEGMENT", 1000, 36000))
			local delay, err = require("resty.shmlimit.traffic").combine({ b, a }, { ngx.var.arg_key, ngx.var.arg_key })
			if not delay then return ngx.exit(err == "rejected" and 429 or 500) end
			ngx.say("ok")
		} }
		location /gate { content_by_lua_block {
			gate = gate or assert(require("resty.shmlimit.gate").new("segment=SEGMENT create=yes rule=client rate=100/year"))
			local allowed, status = gate:ask(ngx.var.arg_key)
			gate:fields(ngx.header)
			if not allowed then return ngx.exit(status) end
			ngx.say("ok")
		} }
		location /conn {
			access_by_lua_block {
				local lim = assert(require("resty.shmlimit.conn").new("SEGMENT.conn", 8, 2, 0.001, tonumber(ngx.var.arg_hold)))
				local delay, err = lim:incoming(ngx.var.arg_key, true)
				if not delay then return ngx.exit(err == "rejected" and 429 or 500) end
				local now, seen = ngx.shared.seen:incr("now", 1, 0), ngx.shared.seen
				if now > (seen:get("most") or 0) then seen:set("most", now) end
				ngx.ctx.lim, ngx.ctx.key = lim, ngx.var.arg_key
			}
			content_by_lua_block { ngx.sleep(tonumber(ngx.var.arg_for or 0.001)) ngx.say("ok") }
			log_by_lua_block {
				if ngx.ctx.lim then
					ngx.shared.seen:incr("now", -1)
					assert(ngx.ctx.lim:leaving(ngx.ctx.key, 0.001))
				end
			}
		}
		location /held { content_by_lua_block {
			local lim = assert(require("resty.shmlimit.conn").new("SEGMENT.conn", 8, 2, 0.001))
			if not lim:incoming("held", true) then return ngx.exit(429) end
			ngx.sleep(0.001)
			assert(lim:leaving("held"))
			ngx.say("ok")
		} }
		location /most { content_by_lua_block { ngx.say(ngx.shared.seen:get("most")) } }
		location /delay { content_by_lua_block {
			local lim = assert(require("resty.shmlimit.req").new("SEGMENT", 20, 20))
			local delay = assert(lim:incoming("delay", true))
			ngx.sleep(delay)
			ngx.say("ok")
		} }
		location /absent { return 404; }
	}'
start lua "$http"
within four

for kind in req count traffic gate inherited; do
	crowd "$url/$kind?key=$kind&[1-1000]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "100 900" "$kind: of 1,000 requests to four workers the limit's 100 pass, and no others"
done
is "$(get -D - -o "$TMP/body" "$url/gate?key=gate" | tr -d '\r' | sed -n 's/^ratelimit-policy: //ip')" '"client";q=100;w=31536000' \
	"the gate sets header fields"
is "$(codes "$url/req") $(codes "$url/count?key=")" "500 500" "a request without a key is an error"
is "$(grep -c 'lua entry thread aborted' "$TMP/lua.err")" 0 "no error is raised by a request without a key"

kill -KILL $(workers | head -n 1)
within four
reload
crowd "$url/inherited?key=inherited&[1-40]" >"$TMP/codes"
is "$(count 429)" 40 "a handle that the master opened is its workers', also after a kill and a reload"

# Under wrk, with workers killed and reloaded. A worker that is killed may have let a request pass that gets no answer: what the
# segment counts is what passed.
owner=
[ "$(id -u)" -ne 0 ] || owner='--owner www-data'
# shellcheck disable=SC2086 # two words
passed() { shmlimit $owner inspect "$SEGMENT" --json 2>/dev/null | jq ".rules[] | select(.name == \"$1\").counters.allowed"; }
shmlimit destroy "$SEGMENT"
made() { get "$url/req?key=new" "$url/count?key=new" >"$TMP/body" && [ -n "$(passed '~count')" ]; }
within made
ok $? "a segment that was destroyed is made again"
sleep 1.2 # until each worker has looked
req_before=$(passed '~req') count_before=$(passed '~count')
cat >"$TMP/both.lua" <<'END'
local kinds, i = { "/req?key=wrk", "/count?key=wrk" }, 0
request = function() i = i + 1 return wrk.format("GET", kinds[i % 2 + 1]) end
END
wrk -t1 -c8 -d2 -s "$TMP/both.lua" "$url" >"$TMP/wrk" 2>&1 &
load=$!
for round in 1 2 3; do
	for pid in $(workers | head -n 2); do kill -KILL "$pid"; done
	within four
	[ $round = 2 ] || reload
	sleep 0.2
done
wait $load
requests=$(awk '/requests in/ { print $1 }' "$TMP/wrk")
[ "$requests" -gt 200 ]
ok $? "wrk asks while six workers are killed and all are reloaded twice: $requests requests"
crowd "$url/req?key=wrk&[1-200]" "$url/count?key=wrk&[1-200]" >"$TMP/codes"
is "$(($(passed '~req') - req_before)) $(($(passed '~count') - count_before))" "100 100" "the limit's 100 requests passed of each kind, and no others"

# Places.
connections=30
crowd "$url/conn?key=c&for=0.02&[1-300]" >"$TMP/codes"
is "$(($(count 200) + $(count 429))) $(($(count 429) > 0))" "300 1" "conn: each request is answered, and some are rejected"
is "$(get "$url/most")" 10 "conn: at most 10 are in progress at once"
is "$(codes "$url/conn?key=c&for=0")" 200 "conn: when all are over, another passes"
# Ten that are in progress when their workers are killed; the places last for 5 s.
for i in 1 2 3 4 5 6 7 8 9 10; do
	get -o "$TMP/body.$i" "$url/conn?key=killed&hold=5&for=60" &
done
within sh -c "[ \"\$(curl -s -o '$TMP/body' -w '%{http_code}' '$url/conn?key=killed&hold=5&for=0')\" = 429 ]"
ok $? "conn: while ten are in progress another is rejected"
for pid in $(workers); do kill -KILL "$pid"; done
within four
within sh -c "[ \"\$(curl -s -o '$TMP/body' -w '%{http_code}' '$url/conn?key=killed&hold=5&for=0')\" = 200 ]"
ok $? "conn: the places of workers that were killed come back"
connections=1 crowd "$url/conn?key=killed&hold=5&for=0&[1-20]" >"$TMP/codes"
is "$(count 200)" 20 "conn: all of them are there"

# Requests that take longer than a place is held. Others make their workers renew the places.
longs=
for i in 1 2 3 4 5 6 7 8 9 10; do
	get -o "$TMP/body.$i" "$url/conn?key=long&hold=1&for=60" &
	longs="$longs $!"
done
full() { [ "$(codes "$url/conn?key=long&hold=1&for=0")" = 429 ]; }
within full
connections=20
crowd "$url/conn?key=more&hold=1&for=0.01&[1-100]" >"$TMP/codes"
sleep 2.5
connections=4
crowd "$url/conn?key=long&hold=1&for=0&[1-20]" >"$TMP/codes"
is "$(count 429)" 20 "conn: requests that take longer than a place is held keep their places"
# shellcheck disable=SC2086 # a list
kill $longs

# Eleven at once, 20 a second: the last one waits for half a second.
begun=$(date +%s%N)
connections=11 crowd "$url/delay?[1-11]" >"$TMP/codes"
[ "$(count 200)" = 11 ] && [ $((($(date +%s%N) - begun) / 1000000)) -ge 499 ]
ok $? "delay: requests that exceed the rate wait for their turn"
is "$(crashes)" "" "no worker crashed, and no error was logged"
stop
is "$rc $left" "0 " "nginx ends as it should"

# The README's server: 5 of 21 requests at once are in progress at first, 3 more with a delay, and the rest is rejected.
start lua "$(block tools/lua/README.md nginx) server { listen 127.0.0.1:$(some_port); location /absent { return 404; } }"
mkdir -p "$TMP/html"
connections=21
sed -i "s|access_by_lua_block|root $TMP/html; access_by_lua_block|" "$TMP/lua.conf"
reload
crowd "$url/index.html?[1-21]" >"$TMP/codes"
is "$(($(count 200) >= 5)) $(($(count 429) > 0)) $(($(count 200) + $(count 429)))" "1 1 21" "the README's server lets some pass and rejects others"
is "$(crashes)" "" "the README's server logs no error"
stop

# A Lua state for each request: nothing stays behind. Not /conn: after a request that ended in its access phase, the module
# (0.10.23) runs another phase's code as that of log_by_lua_block then.
start lua "lua_code_cache off; $http"
within four
rm -f "$SHM$SEGMENT"*
crowd "$url/req?key=off&[1-300]" "$url/gate?key=off&[1-300]" "$url/held?[1-300]" >"$TMP/codes"
is "$(($(count 200) >= 201)) $(($(count 200) + $(count 429))) $(count 500)" "1 900 0" "lua_code_cache off: 900 requests are answered, and the limits are those of all workers"
maps() { for pid in $(workers); do grep -c "$SHM$SEGMENT" "/proc/$pid/maps"; done | sort -n | tail -n 1; }
[ "$(maps)" -le 40 ]
ok $? "lua_code_cache off: no segment stays mapped: $(maps) maps at most in a worker"
is "$(crashes)" "" "lua_code_cache off: no worker crashed, and no error was logged"
stop
done_testing
