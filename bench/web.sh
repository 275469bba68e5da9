#!/bin/sh
# web: what does limiting cost a request?
#
#	bench/web.sh BUILD [--quick] [--rows FILE]
#
# nginx and Apache with a page of 200 bytes, with 1 worker and with 4, without a
# limit, with limit_req, mod_qos, mod_evasive and, where they were built, with
# our modules, which send header fields to all clients (the default) or only to denied ones ("quiet", as
# the others do); the demo's server without and with shmlimit. One client, and
# no request is denied. A single worker has one core, and the client another. Servers
# listen on 127.0.0.1 and end with this script.
# --quick: a single worker only, beside its client.
# See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

CONNECTIONS=16

. "${0%/*}/kit.sh"
seconds=1
rounds=10
counts='1 4'
client=1
if [ $quick = yes ]; then
	rounds=1
	counts=1
	client=0
fi
nginx_module=$build/nginx/ngx_http_shmlimit_module.so
apache_module=$build/apache/mod_shmlimit.so
apache_modules=/usr/lib/apache2/modules

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

# start_server NAME PORT LOG COMMAND...
start_server() {
	name=$1
	at=http://127.0.0.1:$2/free
	log=$3
	shift 3
	"$@" 2>"$log" &
	servers="$servers $!"
	within curl -sf -o /dev/null "$at" || fail "$name doesn't start: $(cat "$log"; cat "$dir"/*.log)"
}

# on CPU WORKERS: the words that pin a command, where that is a single worker or its client.
on() {
	[ "$2" != 1 ] || [ "$(nproc)" -eq 1 ] || echo "taskset -c $1"
}

# start_nginx PORT WORKERS
start_nginx() {
	load= segment_line= ours= quiet=
	if [ -f "$nginx_module" ]; then
		load="load_module $nginx_module;"
		segment_line="shmlimit_segment $segment;"
		ours='shmlimit $binary_remote_addr rule=demo;'
		quiet='shmlimit $binary_remote_addr rule=demo fields=denied;'
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
				location /quiet { $quiet }
			}
		}
	CONF
	start_server nginx "$1" "$dir/nginx.log" $(on 0 "$2") nginx -p "$dir" -c "$dir/nginx.conf"
}

# start_apache KIND PORT WORKERS: a server that limits so, or (free) not at all.
start_apache() {
	conf=$dir/apache.$1.$3
	cat >"$conf" <<-CONF
		LoadModule mpm_event_module $apache_modules/mod_mpm_event.so
		LoadModule authz_core_module $apache_modules/mod_authz_core.so
		LoadModule setenvif_module $apache_modules/mod_setenvif.so
		ServerName localhost
		Listen 127.0.0.1:$2
		ServerLimit $3
		StartServers $3
		ThreadsPerChild $CONNECTIONS
		MinSpareThreads 1
		MaxSpareThreads $(($3 * CONNECTIONS))
		MaxRequestWorkers $(($3 * CONNECTIONS))
		MaxKeepAliveRequests 0
		KeepAliveTimeout 60
		PidFile $conf.pid
		DefaultRuntimeDir $dir
		ErrorLog $conf.log
		DocumentRoot $dir/html
	CONF
	[ "$(id -u)" -ne 0 ] || printf '%s\n' 'User www-data' 'Group www-data' >>"$conf"
	case $1 in
	mod_qos)
		# Not linked with the library that it needs; it counts in 16 bits.
		cat <<-CONF
			LoadFile $(ldconfig -p | sed -n 's/^[[:space:]]*libpcre\.so\.3 .* //p' | head -n 1)
			LoadModule qos_module $build/peers$apache_modules/mod_qos.so
			QS_ClientEntries 10000
			SetEnvIf Request_URI . QS_Limit=yes
			QS_ClientEventLimitCount 32767 1
		CONF
		;;
	mod_evasive)
		cat <<-CONF
			LoadModule evasive20_module $build/peers$apache_modules/mod_evasive20.so
			DOSHashTableSize 3097
			DOSPageCount 1000000000
			DOSSiteCount 1000000000
		CONF
		;;
	shmlimit*)
		cat <<-CONF
			LoadModule shmlimit_module $apache_module
			ShmlimitSegment $segment
			ShmlimitRule demo "%{REMOTE_ADDR}" $([ "$1" = shmlimit ] || echo fields=denied)
		CONF
		;;
	esac >>"$conf"
	# In a session of its own: to stop its children it signals its process group.
	start_server "Apache, $1" "$2" "$conf.err" $(on 0 "$3") setsid apache2 -d "$dir" -f "$conf" -DFOREGROUND
}

# start_demo NAME OPTION...
start_demo() {
	name=$1
	shift
	shmlimit-demo "$@" --workers 2 --port-file "$dir/$name.port" 2>"$dir/$name.log" &
	servers="$servers $!"
	within test -s "$dir/$name.port" || fail "the demo's server doesn't start: $(cat "$dir/$name.log")"
}

# cpu_ns PID: that a server's processes and their threads have had.
cpu_ns() {
	for child in "$1" $(cat "/proc/$1/task/$1/children"); do
		cat "/proc/$child/task/"*/schedstat
	done | awk '{ ns += $1 } END { printf("%.0f\n", ns) }'
}

# measure SUBJECT URL PID WORKERS: a line "SUBJECT requests/s p99-in-us CPU-us-a-request" in $dir/measured.
# Only mod_qos may deny, and only what is beyond the 32,767 requests of a second that its 16 bits count.
measure() {
	before=$(cpu_ns "$3")
	$(on $client "$4") wrk -t 1 -c $CONNECTIONS -d "${seconds}s" --latency "$2" >"$dir/wrk" 2>&1 || fail "wrk: $(cat "$dir/wrk")"
	denied=$(sed -n 's/^ *Non-2xx or 3xx responses: *//p' "$dir/wrk")
	case $1:$denied in
	*:) ;;
	*mod_qos:*)
		awk -v denied="$denied" '/ requests in / { print denied, $1; exit denied > $1 - 32000 }' "$dir/wrk" \
			>>"$dir/denied" || fail "$1: denied"
		;;
	*) fail "$1: denied" ;;
	esac
	awk -v subject="$1" -v cpu="$(cpu_ns "$3")" -v before="$before" '
		/ requests in / { requests = $1 }
		$1 == "99%" { p99 = $2 + 0; if ($2 ~ /ms$/) p99 *= 1000; else if ($2 !~ /us$/) p99 *= 1000000 }
		$1 == "Requests/sec:" { rate = $2 }
		END { print subject "\t" rate "\t" p99 "\t" (cpu - before) / 1000 / requests }' "$dir/wrk" >>"$dir/measured"
}

for command in shmlimit shmlimit-demo nginx wrk curl setsid; do
	command -v $command >/dev/null || { echo "not measured: no $command"; exit 0; }
done
dir=$(mktemp -d)
# Root's, as the module wants it, and open to nginx's workers.
shmlimit create "$segment" --slots 1024 --mode 0666
shmlimit rule set "$segment" demo --capacity 100000000 --rate 1000/s
mkdir "$dir/html" "$dir/body"
for page in free limited ours quiet; do
	printf '%0200d' 0 >"$dir/html/$page"
done
chmod -R a+rX "$dir"

# subject NAME URL WORKERS EVERY: a line of it, with tabs, and the PID of the server that was started last; to be
# measured in each round, or in each second one.
subject() { printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${servers##* }" >>"$dir/subjects"; }
for workers in $counts; do
	free_port
	start_nginx "$port" $workers
	url=http://127.0.0.1:$port
	subject "nginx, $workers" "$url/free" $workers 1
	subject "nginx, $workers, limit_req" "$url/limited" $workers 1
	if [ -f "$nginx_module" ]; then
		subject "nginx, $workers, shmlimit quiet" "$url/quiet" $workers 1
		subject "nginx, $workers, shmlimit" "$url/ours" $workers 1
	fi
done
apaches='mod_qos mod_evasive'
[ ! -f "$apache_module" ] || apaches="$apaches shmlimit-quiet shmlimit"
command -v apache2 >/dev/null && [ -d "$build/peers$apache_modules" ] || apaches=
for workers in $counts; do
	for kind in ${apaches:+free} $apaches; do
		free_port
		start_apache "$kind" "$port" $workers
		[ "$kind" = free ] && kind= || kind=", $(echo "$kind" | tr - ' ')"
		subject "Apache, $workers$kind" "http://127.0.0.1:$port/free" $workers 2
	done
done
start_demo free --no-limit
subject demo "http://127.0.0.1:$(cat "$dir/free.port")/?client=alice" 2 2
start_demo limited --segment "$segment"
subject 'demo, shmlimit' "http://127.0.0.1:$(cat "$dir/limited.port")/?client=alice" 2 2

tab=$(printf '\t')
round=-1
while [ $round -lt $rounds ]; do
	# There and back: a busy subject changes the state of the machine for the next one.
	$([ $((round % 2)) -eq 0 ] && echo cat || echo tac) "$dir/subjects" >"$dir/turn"
	while IFS=$tab read -r name url workers every pid; do
		if [ $round -lt 0 ] || [ $((round % every)) -eq 0 ]; then
			measure "$name" "$url" "$pid" "$workers"
		fi
	done <"$dir/turn"
	[ $round -ge 0 ] || [ $rounds -eq 1 ] || : >"$dir/measured"     # the first is for warming up
	round=$((round + 1))
	[ $rounds -gt 1 ] || break
done
# In rounds that took turns: a ratio is the median of each round's. The server's own limiter is the first beside it.
awk -F '\t' -v rows="$rows" -v at="$CONNECTIONS connections" '
	function median(list,    v, n, i, j, x) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (j = i - 1; j > 0 && v[j] + 0 > x + 0; j--)
				v[j + 1] = v[j]
			v[j + 1] = x
		}
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	function ratio(name, to,    list, i) {
		for (i = 1; i <= rounds[name]; i++)
			list = list " " rate[name, i] / rate[to, i]
		return median(list)
	}
	function more(name, than,    list, i) {
		for (i = 1; i <= rounds[name]; i++)
			list = list " " cpu[name, i] - cpu[than, i]
		return median(list)
	}
	function row(name, unit, value) {
		printf("web\t%s\t%s\t%s\t%s\n", name, at, unit, value) >>rows
	}
	FILENAME ~ /measured$/ { rate[$1, ++rounds[$1]] = $2; cpu[$1, rounds[$1]] = $4
		rates[$1] = rates[$1] " " $2; p99s[$1] = p99s[$1] " " $3; cpus[$1] = cpus[$1] " " $4; next }
	FNR == 1 { printf("%-28s %12s %10s %10s %10s %10s %10s\n", "", "requests/s", "p99, us", "CPU, us", "more", "/ without", "/ own") }
	{
		n = split($1, part, ", ")
		server = n > 1 && part[2] ~ /^[14]$/ ? part[1] ", " part[2] : part[1]
		if (server != before)
			own = ""
		else if (own == "" && part[n] !~ /shmlimit/)
			own = $1
		before = server
		printf("%-28s %12.0f %10.0f %10.2f %10.2f %10.3f", $1, median(rates[$1]), median(p99s[$1]), \
			median(cpus[$1]), more($1, server), ratio($1, server))
		row($1, "requests/s", median(rates[$1]))
		row($1, "p99 us", median(p99s[$1]))
		row($1, "CPU us", median(cpus[$1]))
		row($1, "CPU us more", more($1, server))
		row($1, "/ without", ratio($1, server))
		if (own != "") {
			printf(" %10.3f", ratio($1, own))
			row($1, "/ own", ratio($1, own))
		}
		print ""
	}' "$dir/measured" "$dir/subjects"
[ ! -e "$dir/denied" ] || awk '{ denied += $1; asked += $2 } END {
	printf("mod_qos denied %d of %d requests: those beyond 32,767 a second\n", denied, asked) }' "$dir/denied"
