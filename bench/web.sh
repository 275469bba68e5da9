#!/bin/sh
# web: what does limiting cost a request?
#
#	bench/web.sh BUILD [--quick] [--rows FILE]
#
# nginx with a page of 200 bytes, with 1 worker and with 4, without a limit, with
# limit_req and, where it was built, with our module; the demo's server without
# and with shmlimit. One client, and no request is denied. Servers listen on
# 127.0.0.1 and end with this script. See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

CONNECTIONS=16

LC_ALL=C
export LC_ALL

build=$(cd "$1" && pwd)
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
module=$build/nginx/ngx_http_shmlimit_module.so
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

# start_nginx PORT WORKERS
start_nginx() {
	mkdir -p "$dir/html" "$dir/body"
	for page in free limited ours; do
		printf '%0200d' 0 >"$dir/html/$page"
	done
	chmod -R a+rX "$dir"
	load= segment_line= ours=
	if [ -f "$module" ]; then
		load="load_module $module;"
		segment_line="shmlimit_segment $segment;"
		ours='shmlimit $binary_remote_addr rule=demo;'
	fi
	cat >"$dir/nginx.conf" <<-CONF
		$load
		daemon off;
		worker_processes $2;
		pid $dir/nginx.$2.pid;
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
			$segment_line
			server {
				listen 127.0.0.1:$1;
				root $dir/html;
				location /free { }
				location /limited { limit_req zone=one burst=1000000 nodelay; }
				location /ours { $ours }
			}
		}
	CONF
	nginx -p "$dir" -c "$dir/nginx.conf" 2>"$dir/nginx.log" &
	servers="$servers $!"
	within curl -sf -o /dev/null "http://127.0.0.1:$1/free" || fail "nginx doesn't start: $(cat "$dir/nginx.log")"
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
# Root's, as the module wants it, and open to nginx's workers.
shmlimit create "$segment" --slots 1024 --mode 0666
shmlimit rule set "$segment" demo --capacity 100000000 --rate 1000/s
subjects=
for workers in 1 4; do
	free_port
	start_nginx "$port" $workers
	eval "url$workers=http://127.0.0.1:$port"
	for limit in '' ', limit_req' ', shmlimit'; do
		[ "$limit" = ', shmlimit' ] && [ ! -f "$module" ] || subjects="$subjects;nginx, $workers$limit"
	done
done
subjects=${subjects#;}
start_demo free --no-limit
start_demo limited --segment "$segment"

round=-1
while [ $round -lt $rounds ]; do
	for workers in 1 4; do
		eval "url=\$url$workers"
		measure "nginx, $workers" "$url/free"
		measure "nginx, $workers, limit_req" "$url/limited"
		[ ! -f "$module" ] || measure "nginx, $workers, shmlimit" "$url/ours"
	done
	measure 'demo' "http://127.0.0.1:$(cat "$dir/free.port")/?client=alice"
	measure 'demo, shmlimit' "http://127.0.0.1:$(cat "$dir/limited.port")/?client=alice"
	[ $round -ge 0 ] || [ $rounds -eq 1 ] || : >"$dir/measured"     # the first is for warming up
	round=$((round + 1))
	[ $rounds -gt 1 ] || break
done
printf '%-20s %12s %10s %10s\n' '' requests/s 'p99, us' '/ without'
IFS=';'
for subject in $subjects demo 'demo, shmlimit'; do
	rate=$(median "$subject" 2)
	p99=$(median "$subject" 3)
	without=${subject%, limit_req}
	without=${without%, shmlimit}
	ratio=$(awk "BEGIN { print $rate / $(median "$without" 2) }")
	printf '%-20s %12.0f %10.0f %10.3f\n' "$subject" "$rate" "$p99" "$ratio"
	printf 'web\t%s\t%s\t%s\t%s\n' \
		"$subject" "$CONNECTIONS connections" requests/s "$rate" \
		"$subject" "$CONNECTIONS connections" 'p99 us' "$p99" \
		"$subject" "$CONNECTIONS connections" '/ without' "$ratio" >>"$rows"
done
