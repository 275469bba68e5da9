#!/bin/sh
# forwarded: nginx's Lua modules, the plugins for Kong and APISIX in their stand-ins, and HAProxy say once in a process that behind a proxy all
# clients are one; not where the proxy is configured, nor if it is turned off.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
need curl setpriv

SAID='a request from 127.0.0.1 has a field X-Forwarded-For: behind a proxy all clients are one'
said() { grep -c "$SAID" "$TMP/$host.err"; }
says() { [ "$(said)" -ge 1 ]; }
# ask_of NUMBER TITLE PATH [FIELD]: how often three requests with the field are reported by what runs, and stop it.
ask_of() {
	got=$(codes "$url/$3") && got="$got $(said)"
	for i in 1 2 3; do got="$got $(codes -H "${4:-X-Forwarded-For: 203.0.113.9}" "$url/$3")"; done
	[ "$1" = 0 ] || within says
	stop
	is "$got: $(said)" "200 0 200 200 200: $1" "$2"
	shmlimit destroy "$SEGMENT" 2>/dev/null
}

nginx_of() {
	start lua "lua_package_path '$TMP/?.lua;;';
		$1
		init_by_lua_block { package.preload.cjson = nil require 'plugins' $2 }
		server {
			listen 127.0.0.1:PORT;
			location /absent { return 404; }
			location /gate { content_by_lua_block {
				gate = gate or assert(require('resty.shmlimit.gate').new('segment=SEGMENT create=yes $3 rule=a rate=100/year rule=b rate=100/year'))
				ngx.exit(gate:ask('all', { ngx.var.remote_addr, 1 }) and 200 or 500) } }
			location /user { content_by_lua_block {
				gate = gate or assert(require('resty.shmlimit.gate').new('segment=SEGMENT create=yes rule=a rate=100/year'))
				ngx.exit(gate:ask('user:42') and 200 or 500) } }
			location /req { content_by_lua_block {
				ngx.exit(assert(require('resty.shmlimit.req').new('SEGMENT', 9, 99)):incoming(ngx.var.remote_addr, true) and 200 or 500) } }
			location /count { content_by_lua_block {
				ngx.exit(assert(require('resty.shmlimit.count').new('SEGMENT', 99, 3600)):incoming(ngx.var.remote_addr, true) and 200 or 500) } }
			location /conn { content_by_lua_block {
				local lim = assert(require('resty.shmlimit.conn').new('SEGMENT', 8, 2, 0.001))
				local delay = lim:incoming(ngx.var.remote_addr, true)
				lim:leaving(ngx.var.remote_addr)
				ngx.exit(delay and 200 or 500) } }
			location /kong { access_by_lua_block { require('plugins').access('kong', 'a', { spec = 'segment=SEGMENT create=yes $3 rule=a rate=100/year', keys = { 'ip' } }) }
				content_by_lua_block { ngx.exit(200) } log_by_lua_block { require('plugins').log('kong') } }
			location /apisix { access_by_lua_block { require('plugins').access('apisix', 'a', { spec = 'segment=SEGMENT create=yes $3 rule=a rate=100/year', keys = { 'remote_addr' } }) }
				content_by_lua_block { ngx.exit(200) } log_by_lua_block { require('plugins').log('apisix') } }
		}"
	within four
}
if command -v nginx >/dev/null && [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ]; then
	. "$SOURCE/tools/lua/tests/nginx.inc"
	cp -r "$SOURCE/tools/lua/kong" "$SOURCE/tools/lua/apisix" "$SOURCE/tools/lua/tests/plugins.lua" "$TMP"
	chmod -R go+rX "$TMP"
	# One worker says it once.
	eval "$(sed -n '/^configure_lua/,/^}/p' "$SOURCE/tools/lua/tests/nginx.inc" | sed 's/worker_processes 4/worker_processes 1/')"
	four() { [ "$(workers | wc -l)" -eq 1 ]; }
	for what in gate req count conn kong apisix; do
		nginx_of '' '' ''
		ask_of 1 "$what: it is reported once" $what
	done
	like "$(cat "$TMP/lua.err")" 'set_real_ip_from, or trusted_ips in Kong, names proxies; if it is no proxy: proxy_warning=no' "nginx: it says what to write"
	for field in Forwarded X-Real-IP CF-Connecting-IP; do
		nginx_of '' '' ''
		SAID=${SAID%%has*}"has a field $field:"
		ask_of 1 "nginx: $field is such a field" gate "$field: 203.0.113.9"
	done
	SAID='behind a proxy all clients are one'
	nginx_of '' '' ''
	ask_of 0 "nginx: a key that is not the address says nothing" user
	for what in gate kong apisix; do
		nginx_of '' '' proxy_warning=no
		ask_of 0 "$what: proxy_warning=no says nothing" $what
	done
	nginx_of '' 'require("resty.shmlimit.forwarded").off()' ''
	ask_of 0 "req: off() says nothing" req
	nginx_of 'set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;' '' ''
	ask_of 0 "nginx: a proxy that is configured says nothing, also of a private client" req 'X-Forwarded-For: 10.0.0.7'
else
	ok 0 "nginx # SKIP libnginx-mod-http-lua is not installed"
fi

. "$SOURCE/tools/lua/tests/haproxy.inc"
# configure_haproxy OPTIONS LINE
configure_haproxy() {
	cat >"$TMP/limits.lua" <<-END
		local shmlimit = require "shmlimit"
		local limiter = assert(shmlimit.open("$SEGMENT", { create = true }))
		assert(limiter:rule_ensure("client", "1000/day"))
		require("shmlimit.haproxy")(limiter$1)
		$app_service
	END
	cat >"$TMP/haproxy.cfg" <<-END
		$(haproxy_begin)
		frontend web
		    bind 127.0.0.1:$port
		    $2
		    http-request set-var(txn.key) src unless { path /absent }
		    http-request lua.shmlimit_peek ban txn.key unless { path /response }
		    http-request lua.shmlimit_take client txn.key unless { path /response }
		    http-response lua.shmlimit_take client txn.key
		    http-request use-service lua.app
	END
}
if [ -z "$no_haproxy" ]; then
	SAID='behind a proxy all clients are one'
	start haproxy '' ''
	ask_of 1 "HAProxy: four threads report it once" ''
	like "$(cat "$TMP/haproxy.err")" 'a request from 127.0.0.1 has a field X-Forwarded-For: .*http-request set-src.*proxy_warning = false' "HAProxy: it says what to write"
	is "$(grep -c 'traceback\|Lua.*error\|\[ALERT\]' "$TMP/haproxy.err")" 0 "HAProxy: no error of Lua was logged"
	start haproxy '' ''
	is "$(codes "$url/response") $(shmlimit peek "$SEGMENT" client --key-text 127.0.0.1 | sed -n 's/^remaining: //p')" "200 999" "HAProxy: a rule of responses takes"
	stop
	shmlimit destroy "$SEGMENT"
	for no in false '"no"'; do
		start haproxy ", { proxy_warning = $no }" ''
		ask_of 0 "HAProxy: proxy_warning = $no says nothing" ''
	done
	start haproxy '' 'http-request set-src hdr_ip(x-forwarded-for,-1)'
	ask_of 0 "HAProxy: set-src says nothing, also of a private client" '' 'X-Forwarded-For: 10.0.0.7'
else
	ok 0 "HAProxy # SKIP $no_haproxy"
fi
done_testing
