#!/bin/sh
# hosts: two nginx, as on two hosts, share a limit through Redis by the gate for LuaJIT. A request that waits for Redis lets
# nginx serve others.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/nginx.inc"
. "$SOURCE/tests/server/backend.inc"

need curl setpriv
need_backend
start_backend

# host NAME: its nginx. A request that waits counts the rounds of a timer of its worker.
host() {
	start lua "lua_package_path '$TMP/?.lua;;';
		server {
			listen 127.0.0.1:PORT reuseport;
			location /absent { return 404; }
			location /ask { content_by_lua_block {
				gate = gate or assert(require('resty.shmlimit.gate').new('segment=SEGMENT.$1 create=yes backend=$backend_url deadline=10000ms fail=closed rule=client rate=100/year'))
				local allowed, status, _, _, outcome, err = gate:ask(ngx.var.arg_key)
				if err then ngx.log(ngx.WARN, err) end
				if not allowed then return ngx.exit(status) end
				ngx.say(outcome)
			} }
			location /wait { content_by_lua_block {
				gate = gate or assert(require('resty.shmlimit.gate').new('segment=SEGMENT.$1 create=yes backend=$backend_url deadline=10000ms fail=closed rule=client rate=100/year'))
				gate:attach()
				local rounds, over = 0, false
				ngx.thread.spawn(function() while not over do rounds = rounds + 1 ngx.sleep(0.001) end end)
				local one = ngx.thread.spawn(function() return gate:ask('wait ' .. ngx.var.arg_key) end)
				local two = ngx.thread.spawn(function() return gate:enter('other ' .. ngx.var.arg_key) end)
				local ok, allowed = ngx.thread.wait(one)
				local ok2, allowed2, _, _, _, outcome, _, places = ngx.thread.wait(two)
				over = true
				ngx.say(rounds, ' ', tostring(allowed), ' ', tostring(allowed2), ' ', outcome, ' ', tostring(next(gate.waiting)))
			} }
			location /gone { content_by_lua_block {
				local before, mine = {}, nil
				for waits in pairs(gate.waiting) do before[waits] = true end
				local one = ngx.thread.spawn(function() return gate:ask('gone ' .. ngx.var.arg_key) end)
				for waits in pairs(gate.waiting) do mine = not before[waits] and waits or mine end
				ngx.thread.kill(one)
				if mine then gate.waiting[mine].polled = 0 end
				gate:ask('next ' .. ngx.var.arg_key)
				ngx.say(mine and 'waited' or 'did not wait', ' ', tostring(mine and gate.waiting[mine]))
			} }
			location /closed { content_by_lua_block {
				local brief = assert(require('resty.shmlimit.gate').new('segment=SEGMENT.$1 backend=$backend_url deadline=10000ms rule=client'))
				local one = ngx.thread.spawn(function() return brief:ask('closed ' .. ngx.var.arg_key) end)
				brief:close()
				local _, allowed, _, _, _, outcome = ngx.thread.wait(one)
				ngx.say(tostring(allowed), ' ', outcome)
			} }
		}"
	within four
}
host one
one=$url
host two
connections=8
# A host leases for a moment what it then has over: until the end of that the other one may lack it.
for at in "$one" "$url" "$one"; do crowd "$at/ask?key=a&[1-100]"; done >"$TMP/codes"
[ "$(count 200)" -le 100 ] && [ "$(count 200)" -ge 90 ] && [ $(($(count 200) + $(count 429))) = 300 ]
ok $? "two hosts with four workers each let the limit pass, and no more: $(count 200)"
is "$(there dbsize)" 1 "Redis has one key"

# Redis stands still while two requests of a worker wait for it. In the end it goes on.
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do get "$url/wait?key=first$i" >"$TMP/body"; done # each worker has its gate
kill -STOP "$backend"
{
	sleep 1
	kill -CONT "$backend"
} &
like "$(get "$url/wait?key=second")" '^[0-9]{2,} true true passed nil$' "requests that wait for Redis let others go on, and are decided in the end"
wait $!
kill -STOP "$backend"
for i in 1 2 3 4 5 6 7 8; do
	get "$url/gone?key=$i" >"$TMP/gone.$i" &
	get "$url/closed?key=$i" >"$TMP/closed.$i" &
done
sleep 1
kill -CONT "$backend"
within sh -c "[ \$(cat '$TMP'/gone.* | wc -l) = 8 ] && [ \$(cat '$TMP'/closed.* | wc -l) = 8 ]"
is "$(cat "$TMP"/gone.* | sort | uniq -c | sed 's/^ *//')" "8 waited nil" "a request whose client has gone is cancelled by the next one"
is "$(cat "$TMP"/closed.* | sort | uniq -c | sed 's/^ *//')" "8 nil failed" "a request that waits in a gate that is closed fails"
is "$(grep -c 'ngx.sleep(0)' "$TMP/lua.err")" 0 "no request polls without a pause"
is "$(crashes)" "" "no worker crashed, and no error was logged"
stop
done_testing
