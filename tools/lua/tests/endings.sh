#!/bin/sh
# endings: in nginx with its Lua module, in front of an application, the place of a request is left when it ends, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/nginx.inc"

need curl perl pgrep python3 setpriv

http='
	lua_package_path "/path/to/shmlimit/tools/lua/?.lua;;";
	map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
	proxy_http_version 1.1;
	proxy_request_buffering off;
	proxy_set_header Upgrade $http_upgrade;
	proxy_set_header Connection $connection_upgrade;
	init_by_lua_block {
		limited = function(spec, ...)
			local gate = assert(require("resty.shmlimit.gate").new(spec))
			return function(...)
				local allowed, status, _, _, _, err, places = gate:enter(...)
				if places then
					require("resty.shmlimit.request").at_end(function() assert(gate:leave(places)) end)
				end
				return allowed or ngx.exit(status)
			end
		end
		busy = limited("segment=SEGMENT rule=busy")
		none = limited("segment=SEGMENT rule=none")
	}
	exit_worker_by_lua_block { require("resty.shmlimit.request").cut_off() }
	server {
		listen 127.0.0.1:PORT;
		access_by_lua_block { busy("all") }
		log_by_lua_block { require("resty.shmlimit.request").ended() }
		location / { proxy_pass http://127.0.0.1:UPSTREAM; }
		location /absent { return 404; }
		location /denied {
			access_by_lua_block { busy("all") none("all") }
			proxy_pass http://127.0.0.1:UPSTREAM;
		}
		location /timeout { proxy_read_timeout 500ms; proxy_pass http://127.0.0.1:UPSTREAM; }
		location /error {
			proxy_intercept_errors on;
			error_page 404 /normal;
			proxy_pass http://127.0.0.1:UPSTREAM;
		}
		location /exec { content_by_lua_block { ngx.exec("/normal") } }
	}
'

create_places
start_upstream
http=$(printf '%s\n' "$http" | sed "s|UPSTREAM|$upstream|")
what=Lua
start lua "$http"

endings normal keep_alive stream head exception exception_during denied redirect error internal gone_before gone_during body_abandoned \
	timeout websocket websocket_server websocket_refused
at_random 20 normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,gone_before,gone_during,body_abandoned
is "$(codes "$url/exec")" 200 "a request is sent on by Lua"
within all_free
ok $? "it leaves both places that it entered"
begins
ends reload cut_off HUP
begins
ends sigterm stop
not_here recycled
all_endings
is "$(crashes | grep -c 'lua\|shmlimit\|exited on')" 0 "nothing of Lua is logged as an error"
done_testing
