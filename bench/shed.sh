#!/bin/sh
# shed: what is a limit that finds its number worth to a real server?
#
#	bench/shed.sh BUILD [--quick] [--rows FILE]
#
# nginx before uvicorn, and before Node's cluster: two workers, whose application takes 20 ms of CPU. Twice as many
# requests as two cores bear come at random times for 60 s: without a limit, and with "auto at once". Servers listen on
# Unix sockets and end with this script. --quick: 6 s.
# See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

. "${0%/*}/kit.sh"
here=$(cd "$(dirname "$0")" && pwd)
seconds=60
[ $quick = no ] || seconds=6
module=$build/nginx/ngx_http_shmlimit_module.so
[ -e "$module" ] || fail "no module for nginx: make nginx"
python=/usr/bin/python3
dir=$(mktemp -d)
chmod 755 "$dir"

cat >"$dir/application.py" <<'END'
import time

async def asgi(scope, receive, send):
    began = time.thread_time()
    while time.thread_time() - began < 0.02:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
    await send({"type": "http.response.body", "body": b"served\n"})
END
cat >"$dir/application.js" <<'END'
const cluster = require('node:cluster')
const spent = () => { const { user, system } = process.cpuUsage(); return user + system }

if (cluster.isPrimary) {
  cluster.fork()
  cluster.fork()
  process.on('SIGTERM', () => process.exit())
} else {
  require('node:http').createServer((request, response) => {
    const began = spent()
    while (spent() - began < 20000);
    response.end('served\n')
  }).listen(process.argv[2])
}
END

# configure NAME [DIRECTIVE]
configure() {
	cat >"$dir/$1.conf" <<-END
		load_module $module;
		worker_processes 1;
		daemon off;
		pid $dir/$1.pid;
		error_log $dir/$1.err crit;
		events { worker_connections 16384; }
		http {
		    access_log off;
		    client_body_temp_path $dir/body;
		    proxy_temp_path $dir/proxy;
		    fastcgi_temp_path $dir/fastcgi;
		    uwsgi_temp_path $dir/uwsgi;
		    scgi_temp_path $dir/scgi;
		    proxy_read_timeout 300s;
		    $([ $# -lt 2 ] || echo "shmlimit_segment $segment create=yes;")
		    server {
		        listen unix:$dir/$1.sock backlog=16384;
		        ${2-}
		        location / { proxy_pass http://unix:$dir/application.sock; }
		    }
		}
	END
}
configure none
configure auto 'shmlimit all rule=all "rate=auto at once";'

answers() { [ "$(curl -s --max-time 5 --unix-socket "$1" http://localhost/)" = served ]; }

end() {
	kill "$1"
	wait "$1" || :
}

# measure NAME COMMAND...: the command serves the application.
measure() {
	name=$1
	shift
	for limit in none auto; do
		(cd "$dir" && exec setpriv --pdeathsig TERM "$@") >"$dir/application.log" 2>&1 &
		application=$!
		servers="$servers $application"
		within answers "$dir/application.sock" || fail "$name does not serve: $(cat "$dir/application.log")"
		chmod 666 "$dir/application.sock"
		nginx -e "$dir/$limit.err" -c "$dir/$limit.conf" -p "$dir" &
		front=$!
		servers="$servers $front"
		within answers "$dir/$limit.sock" || fail "nginx does not serve: $(cat "$dir/$limit.err")"
		$python "$here/kit/open_loop.py" "$dir/$limit.sock" 200 "$seconds" 0.2 >"$dir/result"
		read -r asked good served denied failed p50 p99 <"$dir/result"
		printf '%-8s %-5s %6d asked %6d in time %6d served %6d denied %4d failed   p50 %6d ms   p99 %6d ms\n' \
			"$name" $limit "$asked" "$good" "$served" "$denied" "$failed" "$p50" "$p99"
		echo "shed,$name,$limit,$asked,$good,$served,$denied,$failed,$p50,$p99" >>"$rows"
		end $front
		end $application
		rm -f "$dir"/*.sock
	done
	shmlimit destroy "$segment"
}

measure uvicorn $python -m uvicorn --uds "$dir/application.sock" --workers 2 --no-access-log --log-level error application:asgi
measure node node "$dir/application.js" "$dir/application.sock"
