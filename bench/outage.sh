#!/bin/sh
# outage: does a Redis server that stands still delay requests of nginx that do not need it?
#
#	bench/outage.sh BUILD [--quick] [--rows FILE]
#
# One worker of nginx, an agent and a Redis server; three clients at once, of a location without a limit, of one with a limit
# of this host, and of one whose limit Redis shares, with 10,000 keys. First all is well; then the Redis server is
# stopped (SIGSTOP) for as long; then it goes on.
# See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

. "${0%/*}/kit.sh"
seconds=20
[ $quick = no ] || seconds=1
module=$build/nginx/ngx_http_shmlimit_module.so

for command in shmlimit nginx redis-check-rdb redis-cli wrk curl; do
	command -v $command >/dev/null || { echo "not measured: no $command"; exit 0; }
done
[ -f "$module" ] || { echo "not measured: no module for nginx"; exit 0; }
dir=$(mktemp -d)
mkdir "$dir/html" "$dir/body"
printf '%0200d' 0 >"$dir/html/page"
chmod -R a+rwX "$dir"

# In the package redis-tools the server's binary is redis-check-rdb; the name by which it is run decides what it does.
ln -s "$(command -v redis-check-rdb)" "$dir/redis-server"
"$dir/redis-server" --port 0 --unixsocket "$dir/redis.sock" --unixsocketperm 777 --save '' --dir "$dir" >"$dir/redis.log" &
redis=$!
servers=$redis
within redis-cli -s "$dir/redis.sock" ping >/dev/null || fail "redis-server does not start: $(cat "$dir/redis.log")"
shmlimit create "$segment" --slots 64K --mode 0666
shmlimit rule set "$segment" here --capacity 100000000 --rate 1000/s
shmlimit rule set "$segment" shared --algorithm lease --capacity 1000 --rate 1000/s
shmlimit agent "$segment" "unix://$dir/redis.sock" 2>"$dir/agent.log" &
servers="$servers $!"

# The kernel chooses a port that is free now, for a server of ours, which is ended again.
shmlimit-demo --no-limit --workers 1 --port-file "$dir/free" 2>/dev/null &
pid=$!
within test -s "$dir/free" || fail "the demo's server does not start"
read -r port <"$dir/free"
kill $pid
wait $pid || :
cat >"$dir/nginx.conf" <<-END
	load_module $module;
	daemon off;
	worker_processes 1;
	pid $dir/nginx.pid;
	error_log $dir/nginx.log;
	events { worker_connections 256; }
	http {
		access_log off;
		keepalive_requests 1000000;
		client_body_temp_path $dir/body;
		proxy_temp_path $dir/body;
		fastcgi_temp_path $dir/body;
		uwsgi_temp_path $dir/body;
		scgi_temp_path $dir/body;
		shmlimit_segment $segment fail=open backend=unix://$dir/redis.sock;
		server {
			listen 127.0.0.1:$port;
			root $dir/html;
			location /free/ { alias $dir/html/; }
			location /here/ {
				alias $dir/html/;
				shmlimit \$binary_remote_addr rule=here;
			}
			location /shared/ {
				alias $dir/html/;
				shmlimit \$arg_key rule=shared;
			}
		}
	}
END
url=http://127.0.0.1:$port
nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.err" &
servers="$servers $!"
within curl -sf -o /dev/null "$url/free/page" || fail "nginx does not start: $(cat "$dir/nginx.err")"
# leased: a request for a key that was never asked for gets its tokens from the backend. Else fail=open lets it pass without fields.
leased() {
	asked=$((${asked:-0} + 1))
	curl -sf -o /dev/null -D - "$url/shared/page?key=new:$asked" | grep -qi '^ratelimit:'
}
within leased || fail "no agent serves: $(cat "$dir/agent.log")"

# Each connection waits a few milliseconds after each response, so that the worker is not busy all the time.
cat >"$dir/pace.lua" <<'END'
local at
function init(args)
	at = args[1]
	math.randomseed(os.time())
end
function delay()
	return 2
end
function request()
	return wrk.format("GET", "/" .. at .. "/page?key=" .. math.random(10000))
end
function done(summary, latency)
	local errors = summary.errors
	print("measured", summary.requests, latency:percentile(99.9), latency.max, errors.status + errors.timeout + errors.read)
end
END

# ask PHASE: all three clients at once, for $seconds s; lines "PHASE LOCATION REQUESTS P99.9 MAX ERRORS", in microseconds.
ask() {
	clients=
	for location in free here shared; do
		wrk -t 1 -c 4 -d "${seconds}s" --timeout 10s -s "$dir/pace.lua" "$url" -- $location >"$dir/$location.$1" 2>&1 &
		clients="$clients $!"
	done
	for pid in $clients; do
		wait "$pid" || fail "wrk: $(cat "$dir"/*."$1")"
	done
	for location in free here shared; do
		sed -n "s/^measured/$1 $location/p" "$dir/$location.$1"
	done >>"$dir/measured"
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

ask before
kill -STOP $redis
ask stopped
kill -CONT $redis
since=$(now_ms)
within leased || fail "Redis goes on, and no request is decided with it: $(cat "$dir/agent.log")"
back=$(($(now_ms) - since))

awk -v back="$back" -v rows="$rows" '
	BEGIN {
		name["free"] = "no limit"
		name["here"] = "limit of this host"
		name["shared"] = "limit of many hosts"
		printf("%-20s %-8s %9s %10s %9s %9s\n", "nginx, one worker", "Redis", "requests", "p99.9, us", "/ before", "max, us")
	}
	$6 > 0 { print "bench: outage: " $6 " requests to " $2 " failed" >"/dev/stderr"; failed = 1; exit 1 }
	$1 == "before" { before[$2] = $4 }
	{
		printf("%-20s %-8s %9d %10d %9.2f %9d\n", name[$2], $1 == "before" ? "runs" : "stopped", $3, $4, $4 / before[$2], $5)
		if ($1 == "stopped")
			printf("outage\t%s\tstopped\tp99.9 / before\t%.4g\n", name[$2], $4 / before[$2]) >>rows
	}
	END {
		if (failed)
			exit 1
		printf("a request is decided with Redis again %d ms after its return\n", back)
		printf("outage\tits return\tstopped\tms\t%d\n", back) >>rows
	}' "$dir/measured"
