#!/bin/sh
# web: what does limiting cost a request?
#
#	bench/web.sh BUILD [--quick] [--rows FILE]
#
# nginx with a page of 200 bytes, without and with limit_req; the demo's server
# without and with shmlimit. No request is denied. Servers listen on 127.0.0.1
# and end with this script. See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

CONNECTIONS=16

LC_ALL=C
export LC_ALL

build=$1
shift
seconds=2
rounds=5
rows=/dev/null
while [ $# -gt 0 ]; do
	case $1 in
	--quick)
		seconds=1
		rounds=1
		;;
	--rows)
		rows=$2
		shift
		;;
	*)
		echo "usage: $0 BUILD [--quick] [--rows FILE]" >&2
		exit 2
		;;
	esac
	shift
done

# Where the Makefile unpacked it: installing it would start it, as a service of the machine.
PATH=$build/bin:$build/peers/usr/sbin:$PATH
segment=bench.web.$$
servers=
dir=

clean() {
	for pid in $servers; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	shmlimit destroy "$segment" 2>/dev/null || :
	[ -z "$dir" ] || rm -rf "$dir"
}

fail() {
	echo "bench: web: $*" >&2
	exit 1
}

# within COMMAND...: repeat it until it succeeds, for 5 s at most.
within() {
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return 1
		sleep 0.05
	done
}

# A port that is free now: the kernel chooses it for a server of ours, which is ended again.
free_port() {
	shmlimit-demo --no-limit --workers 1 --port-file "$dir/free" 2>/dev/null &
	pid=$!
	within test -s "$dir/free" || fail "the demo's server doesn't start"
	read -r port <"$dir/free"
	rm "$dir/free"
	kill $pid
	wait $pid || :
}

start_nginx() {
	mkdir -p "$dir/html" "$dir/body"
	printf '%0200d' 0 >"$dir/html/free"
	printf '%0200d' 0 >"$dir/html/limited"
	chmod -R a+rX "$dir"
	cat >"$dir/nginx.conf" <<-CONF
		daemon off;
		worker_processes 2;
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
			limit_req_zone \$binary_remote_addr zone=one:1m rate=1000000r/s;
			server {
				listen 127.0.0.1:$1;
				root $dir/html;
				location /free { }
				location /limited { limit_req zone=one burst=1000000 nodelay; }
			}
		}
	CONF
	nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.log" &
	servers="$servers $!"
	nginx_url=http://127.0.0.1:$1
	within curl -sf -o /dev/null "$nginx_url/free" || fail "nginx doesn't start: $(cat "$dir/nginx.log")"
}

# start_demo NAME OPTION...
start_demo() {
	name=$1
	shift
	shmlimit-demo "$@" --workers 2 --port-file "$dir/$name.port" 2>"$dir/$name.log" &
	servers="$servers $!"
	within test -s "$dir/$name.port" || fail "the demo's server doesn't start: $(cat "$dir/$name.log")"
}

# measure SUBJECT URL: a line "SUBJECT requests/s p99-in-us" in $dir/measured.
measure() {
	wrk -t 1 -c $CONNECTIONS -d "${seconds}s" --latency "$2" >"$dir/wrk" 2>&1 || fail "wrk: $(cat "$dir/wrk")"
	! grep -q Non-2xx "$dir/wrk" || fail "$1: denied"
	awk -v subject="$1" '
		$1 == "99%" { p99 = $2 + 0; if ($2 ~ /ms$/) p99 *= 1000; else if ($2 !~ /us$/) p99 *= 1000000 }
		$1 == "Requests/sec:" { rate = $2 }
		END { print subject "\t" rate "\t" p99 }' "$dir/wrk" >>"$dir/measured"
}

# median SUBJECT COLUMN
median() {
	awk -F '\t' -v subject="$1" -v column="$2" '$1 == subject { print $column }' "$dir/measured" | sort -g |
		awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

for command in shmlimit shmlimit-demo nginx wrk curl; do
	command -v $command >/dev/null || { echo "not measured: no $command"; exit 0; }
done
trap clean EXIT
trap 'exit 130' INT TERM HUP
dir=$(mktemp -d)
shmlimit create "$segment" --slots 1024
shmlimit rule set "$segment" demo --capacity 100000000 --rate 1000/s
free_port
start_nginx "$port"
start_demo free --no-limit
start_demo limited --segment "$segment"

round=-1
while [ $round -lt $rounds ]; do
	measure 'nginx' "$nginx_url/free"
	measure 'nginx, limit_req' "$nginx_url/limited"
	measure 'demo' "http://127.0.0.1:$(cat "$dir/free.port")/?client=alice"
	measure 'demo, shmlimit' "http://127.0.0.1:$(cat "$dir/limited.port")/?client=alice"
	[ $round -ge 0 ] || [ $rounds -eq 1 ] || : >"$dir/measured"     # the first is for warming up
	round=$((round + 1))
	[ $rounds -gt 1 ] || break
done
printf '%-20s %12s %10s %10s\n' '' requests/s 'p99, us' '/ without'
for subject in nginx 'nginx, limit_req' demo 'demo, shmlimit'; do
	rate=$(median "$subject" 2)
	p99=$(median "$subject" 3)
	ratio=$(awk "BEGIN { print $rate / $(median "${subject%%,*}" 2) }")
	printf '%-20s %12.0f %10.0f %10.3f\n' "$subject" "$rate" "$p99" "$ratio"
	printf 'web\t%s\t%s\t%s\t%s\n' \
		"$subject" "$CONNECTIONS connections" requests/s "$rate" \
		"$subject" "$CONNECTIONS connections" 'p99 us' "$p99" \
		"$subject" "$CONNECTIONS connections" '/ without' "$ratio" >>"$rows"
done
