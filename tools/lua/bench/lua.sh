#!/bin/sh
# lua: nginx's Lua module with tools/lua beside lua-resty-limit-traffic, four workers.
#
#	THEIRS=/path/to/lua-resty-limit-traffic/lib tools/lua/bench/lua.sh BUILD [--quick] [--rows FILE]
#
# Debian has no package of lua-resty-limit-traffic: without THEIRS there are only our figures. No figure is of anything but
# nginx, its Lua module and the limiter: each location has one, and answers with a line. See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

CONNECTIONS=16
WORKERS=4
LIMIT=100
HOLD=5

. "${0%/*}/../../../bench/kit.sh"
here=$(cd "${0%/*}" && pwd)
seconds=2
rounds=5
limited=10
calls=100000
kinds='req count conn'
if [ $quick = yes ]; then
	seconds=1
	rounds=1
	limited=1
	calls=1000
	kinds=req
fi
modules=/usr/lib/nginx/modules
for command in nginx wrk curl shmlimit; do
	command -v $command >/dev/null || { echo "not measured: no $command"; exit 0; }
done
[ -e $modules/ngx_http_lua_module.so ] || { echo 'not measured: no libnginx-mod-http-lua'; exit 0; }
who=ours
[ ! -f "${THEIRS:-}/resty/limit/req.lua" ] || who='theirs ours'

dir=$(mktemp -d)
clean_too() {
	clean
	rm -f /dev/shm/shmlimit.*."$segment".*
}
trap clean_too EXIT
mkdir "$dir/lua" "$dir/lib" "$dir/body"
cp -r "${here%/bench}/resty" "$dir/lua"
[ "$who" = ours ] || cp -r "$THEIRS/resty/limit" "$dir/lua/resty"
cp -P "$build"/libshmlimit.so* "$dir/lib"
chmod -R go+rX "$dir"
LD_LIBRARY_PATH=$dir/lib
export LD_LIBRARY_PATH

# server NAME MODULES: the locations of one of them.
server() {
	for what in 'free' "req|req|1e9, 1e9" "count|count|1e9, 1e6" "req.limit|req|1e-4, $((LIMIT - 1))" \
		"count.limit|count|$LIMIT, 36000"; do
		module=${what#*|}
		new=${module#*|}
		module=${module%%|*}
		key="\"$module \" .. ngx.var.remote_addr"
		[ "${what%%.limit*}" = "$what" ] || key='ngx.var.arg_round'
		code="local delay, err = lim:incoming($key, true)
			if not delay then return ngx.exit(err == \"rejected\" and 429 or 500) end"
		[ "$what" != free ] || code= module=req new='1, 1'
		cat <<-END
			location /$1/${what%%|*} { content_by_lua_block {
				local lim = assert(require("$2.$module").new("$3", $new))
				$code
				ngx.say("ok")
			} }
		END
	done
	cat <<-END
		location /$1/loop { content_by_lua_block {
			local module, calls, least = require("$2." .. ngx.var.arg_kind), $calls, math.huge
			local name, conn, key = "$3", ngx.var.arg_kind == "conn", ngx.var.arg_kind .. " loop"
			local a, b, c = 1e9, ngx.var.arg_kind == "count" and 1e6 or 1e9
			if conn then name, a, b, c = "$3$4", 1000, 0, 1 end
			for round = 1, 7 do
				ngx.update_time()
				local begun = ngx.now()
				for i = 1, calls do
					local lim = assert(module.new(name, a, b, c))
					assert(lim:incoming(key, true))
					if conn then lim:leaving(key) end
				end
				ngx.update_time()
				least = math.min(least, (ngx.now() - begun) / calls * 1e9)
			end
			ngx.say(string.format("%.0f", least))
		} }
		location /$1/conn { content_by_lua_block {
			local lim = assert(require("$2.conn").new("$3$4", 1000, 0, 1))
			if not lim:incoming("conn " .. ngx.var.remote_addr, true) then return ngx.exit(429) end
			lim:leaving("conn " .. ngx.var.remote_addr)
			ngx.say("ok")
		} }
		location /$1/held {
			access_by_lua_block {
				local lim = assert(require("$2.conn").new("$3$4", 10, 0, 1, $HOLD))
				if not lim:incoming("held", true) then return ngx.exit(429) end
				ngx.ctx.lim = lim
			}
			content_by_lua_block { ngx.sleep(tonumber(ngx.var.arg_for)) ngx.say("ok") }
			log_by_lua_block { if ngx.ctx.lim then ngx.ctx.lim:leaving("held") end }
		}
	END
}

port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
{
	cat <<-CONF
		load_module $modules/ndk_http_module.so;
		load_module $modules/ngx_http_lua_module.so;
		daemon off;
		worker_processes $WORKERS;
		pid $dir/pid;
		error_log $dir/log;
		env LD_LIBRARY_PATH;
		events { worker_connections 256; }
		http {
			access_log off;
			keepalive_requests 1000000;
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/body;
			fastcgi_temp_path $dir/body;
			uwsgi_temp_path $dir/body;
			scgi_temp_path $dir/body;
			lua_package_path "$dir/lua/?.lua;;";
			lua_shared_dict store 12m;
			lua_shared_dict keys 12m;
			server {
				listen 127.0.0.1:$port reuseport;
				location /free { return 200; }
				location /memory { content_by_lua_block {
					local dict = ngx.shared.keys
					local before, n = dict:free_space(), 20000
					for i = 1, n do assert(require("resty.limit.req").new("keys", 1, 1):incoming("203.0.113." .. i, true)) end
					ngx.say((before - dict:free_space()) / n)
				} }
	CONF
	server ours resty.shmlimit "$segment" .conn
	[ "$who" = ours ] || server theirs resty.limit store ''
	printf '}\n}\n'
} >"$dir/nginx.conf"
nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/err" &
master=$!
servers="$servers $master"
url=http://127.0.0.1:$port
within curl -sf -o "$dir/out" "$url/free" || fail "nginx doesn't start: $(cat "$dir/err" "$dir/log")"

row() {
	printf '%-50s %12s %s\n' "$1" "$3" "$2"
	printf 'lua\t%s\t%s workers\t%s\t%s\n' "$1" "$WORKERS" "$2" "$3" >>"$rows"
}
cpu_us() { cat "/proc/$master/task/$master/children" | tr ' ' '\n' | while read -r pid; do cat "/proc/$pid/schedstat"; done | awk '{ ns += $1 } END { printf "%.0f\n", ns / 1000 }'; }
# load PATH SECONDS: sets $requests, $denied and $cpu, the processor time of a request in us.
load() {
	before=$(cpu_us)
	wrk -t 1 -c $CONNECTIONS -d "$2s" "$url$1" >"$dir/wrk" 2>&1 || fail "wrk: $(cat "$dir/wrk")"
	after=$(cpu_us)
	requests=$(awk '/ requests in / { print $1 }' "$dir/wrk")
	denied=$(awk '/Non-2xx or 3xx/ { n = $NF } END { print n + 0 }' "$dir/wrk")
	rate=$(awk '/^Requests\/sec/ { printf "%.0f", $2 }' "$dir/wrk")
	cpu=$(awk -v used=$((after - before)) -v n="$requests" 'BEGIN { printf "%.2f", used / n }')
}

# Requests that are allowed, in rounds that take turns.
for round in $(seq $rounds); do
	for each in $who; do
		for kind in free $kinds; do
			load "/$each/$kind" "$seconds"
			[ "$denied" = 0 ] || fail "$each, $kind: denied"
			echo "$rate $cpu" >>"$dir/$each.$kind"
		done
	done
done
middle() { sort -n -k "$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'; }
for kind in free $kinds; do
	for each in $who; do
		row "$each: $kind" requests/s "$(middle "$dir/$each.$kind" 1)"
		row "$each: $kind" 'CPU us' "$(middle "$dir/$each.$kind" 2)"
	done
done

# One worker alone, without requests.
for kind in $kinds; do
	for each in $who; do
		row "$each: $kind, new() and incoming()" ns "$(curl -s "$url/$each/loop?kind=$kind")"
	done
done

# How many of a limit of 100 pass, in a second of requests, again and again with another key.
for kind in $(echo "$kinds" | sed "s/ conn//"); do
	for each in $who; do
		most=0
		for round in $(seq $limited); do
			load "/$each/$kind.limit?round=$kind.$round" 1
			passed=$((requests - denied))
			[ $passed -le $most ] || most=$passed
		done
		row "$each: $kind, passed of a limit of $LIMIT, most of $limited" requests $most
	done
done

# Memory of a key.
[ "$who" = ours ] || row 'theirs: memory' 'bytes a key' "$(curl -s "$url/memory" | awk '{ printf "%.0f", $1 }')"
row 'ours: memory, at 80 % load' 'bytes a key' 20

# Ten requests in progress, and their workers are killed.
for each in $who; do
	for i in 1 2 3 4 5 6 7 8 9 10; do
		curl -s -o "$dir/held.$i" "$url/$each/held?for=60" &
	done
	code() { curl -s -o "$dir/out" -w '%{http_code}' "$url/$each/held?for=0"; }
	full() { [ "$(code)" = 429 ]; }
	open() { [ "$(code)" = 200 ]; }
	within full || fail "$each: ten requests do not fill ten places"
	begun=$(date +%s%N)
	kill -KILL $(cat "/proc/$master/task/$master/children")
	if within open; then
		row "$each: conn, until a killed worker's places are free" s "$(awk -v ns=$(($(date +%s%N) - begun)) 'BEGIN { printf "%.1f", ns / 1e9 }')"
	else
		row "$each: conn, until a killed worker's places are free" s never
	fi
	wait_for=$(jobs -p | grep -vx "$master" || :)
	[ -z "$wait_for" ] || kill $wait_for 2>/dev/null || :
done
