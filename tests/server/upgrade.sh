#!/bin/sh
# upgrade: a version with another layout is installed while servers run. What runs goes on with its segment, what starts
# afterwards makes its own, and no request fails. The later version is today's source with the next LAYOUT_VERSION.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
need make gcc nginx curl jq perl pgrep setpriv
need_module "$BUILD/nginx/ngx_http_shmlimit_module.so" nginx-dev
need_backend

later=$TMP/later
layout=${SHM%.} layout=${layout##*.}
next=$((layout + 1))
mkdir "$later"
(cd "$SOURCE" && tar cf - Makefile include lib tools tests/*.mk) | tar xf - -C "$later"
sed -i "s/^#define LAYOUT_VERSION ${layout}u/#define LAYOUT_VERSION ${next}u/" "$later/lib/segment/layout.h"
env -u MAKEFLAGS make -s -j2 -C "$later" O=b CFLAGS=-O1 all nginx $([ ! -f "$BUILD/node/build/Release/shmlimit.node" ] || echo build-node) >"$TMP/made" 2>&1
ok $? "a version with layout $next can be built"
[ -f "$later/b/nginx/ngx_http_shmlimit_module.so" ] || { tail -n 5 "$TMP/made" >&2; exit 1; }
# Installed in $TMP/lib, as a package is: each file is replaced by another one.
install() {
	mkdir -p "$TMP/lib"
	for file in libshmlimit.so.1 libshmlimit-gate.so.1 libshmlimit-global.so.1 nginx/ngx_http_shmlimit_module.so bin/shmlimit; do
		cp -L "$1/$file" "$TMP/lib/new" && mv "$TMP/lib/new" "$TMP/lib/${file##*/}"
	done
}
chmod 755 "$BUILD"
LD_LIBRARY_PATH=$TMP/lib
export LD_LIBRARY_PATH
PATH=$TMP/lib:$PATH
# now COMMAND...: by the version that is installed; before COMMAND...: by the first one, as a program that still runs.
now() { "$TMP/lib/shmlimit" "$@"; }
before() { LD_LIBRARY_PATH=$BUILD "$BUILD/bin/shmlimit" "$@"; }
layouts() { now list --json | jq -c "[.[] | select(.name == \"$SEGMENT$1\") | .layout_version]"; }
start_backend

# ---- nginx: a reload, and an upgrade of the binary ----

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$([ "$(id -u)" -ne 0 ] || echo 'user www-data;')
		load_module $TMP/lib/ngx_http_shmlimit_module.so;
		env LD_LIBRARY_PATH;
		worker_processes 2;
		pid $TMP/nginx.pid;
		error_log $TMP/nginx.err notice;
		events { }
		http {
		    client_body_temp_path $TMP/nginx.body;
		    proxy_temp_path $TMP/nginx.proxy;
		    fastcgi_temp_path $TMP/nginx.fastcgi;
		    uwsgi_temp_path $TMP/nginx.uwsgi;
		    scgi_temp_path $TMP/nginx.scgi;
		    access_log off;
		    root $TMP/html;
		    shmlimit_segment $SEGMENT create=yes fail=closed backend=$backend_url deadline=10000ms;
		    server {
		        listen 127.0.0.1:$port;
		        location /host/ { alias $TMP/html/; shmlimit \$arg_key rule=host "rate=5/h" local; }
		        location /hosts/ { alias $TMP/html/; shmlimit \$arg_key rule=hosts "rate=5/h"; }
		    }
		}
	END
}
# As a daemon: one that its starter waits for refuses an upgrade.
start_nginx() {
	mkdir -p "$TMP/html"
	echo page >"$TMP/html/index.html"
	for _ in 1 2 3 4 5; do
		port=$(some_port)
		: >"$TMP/nginx.err"
		configure_nginx
		"$(command -v nginx)" -e "$TMP/nginx.err" -c "$TMP/nginx.conf" && break
	done
	within test -s "$TMP/nginx.pid" || { diag "$(cat "$TMP/nginx.err")"; exit 1; }
	master=$(cat "$TMP/nginx.pid")
	servers="$servers $master"
	url=http://127.0.0.1:$port
	host=nginx
	within of_master "$master"
}
# end_nginx PID: when its requests are done.
end_nginx() { kill -QUIT "$1" && within exited "$1"; }
load() {
	until [ -e "$TMP/enough" ]; do
		codes "$url/host/?key=load.$1.[1-50]"
	done >"$TMP/load"
}
of_master() { [ "$(pgrep -P "$1" | wc -l)" -ge 2 ]; }
reloaded() { of_master "$master" && ! kill -0 $old 2>/dev/null; }
second() { new=$(cat "$TMP/nginx.pid") && [ "$new" != $master ] && of_master "$new"; }
exited() { ! kill -0 "$1" 2>/dev/null; }

install "$BUILD"
start_nginx
is "$(tally "$url/host/?key=a&[1-7]")" "5 times 200, 2 times 429" "nginx: a client is limited on this host"
is "$(tally "$url/hosts/?key=a&[1-7]")" "5 times 200, 2 times 429" "nginx: a client is limited by the backend"
install "$later/b"
is "$(layouts '')" "[$layout]" "the later version lists the segment with its layout"
run now inspect "$SEGMENT"
like "$rc $err" "^3 .*has layout version $layout, and this shmlimit has $next" "the later version says what it is"
load reload &
loading=$!
old=$(workers | head -n 1)
kill -HUP $master
within reloaded
ok $? "nginx reloads its configuration"
is "$(tally "$url/host/?key=a&[1-3]") $(tally "$url/hosts/?key=a&[1-3]")" "3 times 429 3 times 429" \
	"nginx: workers after a reload go on with the limits"
is "$(tally "$url/hosts/?key=b&[1-7]")" "5 times 200, 2 times 429" "nginx: and lease from the backend"
is "$(layouts '')" "[$layout]" "a reload makes no segment: the process has the old module"
before --owner www-data save "$SEGMENT" "$TMP/saved"
now load "$SEGMENT" "$TMP/saved"
ok $? "the later version loads what the first saved"
kill -USR2 $master
within second
ok $? "nginx starts its new binary"
servers="$servers $new"
end_nginx $master
is "$(tally "$url/host/?key=a&[1-3]") $(tally "$url/hosts/?key=a&[1-3]")" "3 times 429 3 times 429" \
	"nginx: the new binary goes on with the limits that were loaded, and with the backend's"
is "$(tally "$url/host/?key=c&[1-7]") $(tally "$url/hosts/?key=c&[1-7]")" \
	"5 times 200, 2 times 429 5 times 200, 2 times 429" "nginx: new clients are limited by it"
is "$(layouts '')" "[$layout,$next]" "each version has its segment"
touch "$TMP/enough"
wait $loading
is "$(grep -cvE '^(200|429)$' "$TMP/load")" 0 "no request failed during reload and upgrade"
is "$(grep -c 'segment .*: ' "$TMP/nginx.err")" 0 "nothing is reported of the segment"
end_nginx "$new"
now destroy "$SEGMENT" --layout "$layout" && now destroy "$SEGMENT"
is "$? $(layouts '')" "0 []" "destroy removes both"

# ---- A program that has its libraries within it, except the one for many hosts ----

cat >"$TMP/within.c" <<'END'
#include <stdio.h>
#include <shmlimit_gate.h>
static void report(void *arg, int bad, const char *text) { (void)arg; printf("%d %s\n", bad, text); }
int main(int argc, char **argv)
{
	struct shmlimit_gate_key key = { .bytes = "a", .length = 1 };
	char buffer[SHMLIMIT_GATE_BUFFER];
	struct shmlimit_gate_answer answer = { .struct_size = sizeof(answer), .buffer = buffer, .buffer_size = sizeof(buffer) };
	struct shmlimit_gate *gate;
	if (argc != 2 || shmlimit_gate_open(argv[1], &gate) != 0)
		return 1;
	shmlimit_gate_report(gate, report, NULL);
	printf("%d\n", shmlimit_gate_ask(gate, &key, 1, &answer));
	return 0;
}
END
gcc -I "$SOURCE/include" -o "$TMP/within" "$TMP/within.c" "$BUILD/libshmlimit-gate.a" "$BUILD/libshmlimit.a" -lcrypto -lurcu-bp
ok $? "a program is linked with static libraries"
spec="segment=$SEGMENT create=yes backend=$backend_url deadline=10000ms rule=hosts rate=5/h"
like "$("$TMP/within" "$spec")" "libshmlimit-global.so.1 is of another version: restart" \
	"a program with an earlier libshmlimit within it passes no handle to the later library"
gcc -I "$SOURCE/include" -o "$TMP/beside" "$TMP/within.c" -L "$BUILD" -lshmlimit-gate -lshmlimit
mkdir "$TMP/mixed"
cp -L "$BUILD/libshmlimit.so.1" "$BUILD/libshmlimit-gate.so.1" "$later/b/libshmlimit-global.so.1" "$TMP/mixed"
like "$(LD_LIBRARY_PATH=$TMP/mixed "$TMP/beside" "$spec")" "libshmlimit-global.so.1 is of another version: restart" \
	"a program with an earlier libshmlimit beside it does not share its area with the later library"
is "$(LD_LIBRARY_PATH=$BUILD "$TMP/within" "$spec" | tail -n 1)" "$(LD_LIBRARY_PATH=$BUILD "$TMP/within" "$spec" | tail -n 1)" \
	"with the library of its version it asks the backend"
rm -f /dev/shm/shmlimit.*."$SEGMENT"

# ---- gunicorn: HUP ----

listening() { grep -q 'Listening at' "$TMP/gunicorn"; }
booted() { [ "$(grep -c 'Booting worker' "$TMP/gunicorn")" -ge "$1" ] && [ "$(pgrep -P $server | wc -l)" -eq 2 ]; }
# A master that imported the application has the old library mapped: its new workers go on with that.
gunicorn_hup() {
	cat >"$TMP/app.py" <<END
from shmlimit import Gate, Limit, wsgi
def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
app = wsgi.Middleware(hello, Gate("$SEGMENT", [Limit("host", lambda environ: environ["PATH_INFO"], rate="5/h")], $2))
END
	install "$BUILD"
	: >"$TMP/gunicorn"
	rm -f "$TMP/enough"
	PATH=/usr/bin:$PATH PYTHONPATH=$SOURCE/tools/python PYTHONDONTWRITEBYTECODE=1 \
		setpriv --pdeathsig TERM gunicorn --chdir "$TMP" --bind 127.0.0.1:0 --workers 2 $1 app:app 2>"$TMP/gunicorn" &
	server=$!
	servers="$servers $server"
	within listening && within booted 2 || { diag "$(cat "$TMP/gunicorn")"; exit 1; }
	url=$(sed -n 's/.*Listening at: \(http:[^ ]*\).*/\1/p' "$TMP/gunicorn" | head -n 1)
	is "$(tally "$url/a?[1-7]")" "5 times 200, 2 times 429" "gunicorn $1: a client is limited"
	install "$later/b"
	kill -HUP $server
	within booted 4
	ok $? "gunicorn $1: HUP replaces the workers"
	is "$(tally "$url/a?[1-3]")" "$3" "gunicorn $1: $4"
	is "$(tally "$url/b?[1-7]")" "5 times 200, 2 times 429" "gunicorn $1: another client is limited"
	is "$(layouts '')" "$5" "gunicorn $1: the segments are those of the workers"
	is "$(grep -ci "segment $SEGMENT" "$TMP/gunicorn")" 0 "gunicorn $1: nothing is reported"
	kill -TERM $server
	wait $server
	rm -f /dev/shm/shmlimit.*."$SEGMENT"
}
if command -v gunicorn >/dev/null; then
	gunicorn_hup "" "" "3 times 200" "new workers limit in a segment of their own" "[$layout,$next]"
	gunicorn_hup --preload "backend='$backend_url'" "3 times 429" "workers of the master that has the old library go on with the limit" "[$layout]"
fi

# ---- PHP-FPM: a reload ----

PATH=$PATH:/usr/sbin
if php -m 2>/dev/null | grep -qx FFI && command -v cgi-fcgi >/dev/null && fpm=$(php_fpm); then
	cat >"$TMP/fpm.conf" <<-END
		[global]
		daemonize = no
		error_log = $TMP/fpm.log
		[web]
		user = $(id -un)
		listen = $TMP/fpm.sock
		pm = static
		pm.max_children = 2
		php_admin_value[error_log] = $TMP/fpm.errors
	END
	printf 'opcache.enable=1\nopcache.preload=%s\nopcache.preload_user=%s\nffi.enable=preload\n' "$BUILD/php/Shmlimit/preload.php" \
		"$(id -un)" >"$TMP/php.ini"
	cat >"$TMP/app.php" <<-END
		<?php
		(new Shmlimit\\Gate('$SEGMENT', spec: 'create=yes'))->enforce(new Shmlimit\\Limit('host', 'a', rate: '5/h'));
		echo 'hello';
	END
	php() {
		for _ in $(seq "$1"); do
			env -i SCRIPT_FILENAME="$TMP/app.php" SCRIPT_NAME=/app.php REQUEST_METHOD=GET \
				cgi-fcgi -bind -connect "$TMP/fpm.sock" </dev/null 2>&1 | tr -d '\r' |
				awk '/^Status: / { s = $2 } /^Content-type: / { c = 200 } END { print s ? s : c ? c : "000" }'
		done | uniq -c | awk '{ printf "%s%d times %s", (NR > 1 ? ", " : ""), $1, $2 }'
	}
	ready() { [ "$(grep -c 'ready to handle connections' "$TMP/fpm.log")" -ge "$1" ]; }
	install "$BUILD"
	: >"$TMP/fpm.errors"
	setpriv --pdeathsig TERM "$fpm" -F -R -c "$TMP/php.ini" -y "$TMP/fpm.conf" 2>"$TMP/fpm.err" &
	server=$!
	servers="$servers $server"
	within ready 1 || { diag "$(cat "$TMP/fpm.err" "$TMP/fpm.log")"; exit 1; }
	is "$(php 7)" "5 times 200, 2 times 429" "PHP-FPM: a client is limited"
	install "$later/b"
	is "$(php 2)" "2 times 429" "PHP-FPM: children go on with the limit while the later version is installed"
	kill -USR2 $server
	within ready 2
	is "$(php 7) $(layouts '')" "5 times 200, 2 times 429 [$layout,$next]" "PHP-FPM: after a reload it limits in a segment of its own"
	is "$(cat "$TMP/fpm.errors")" "" "PHP-FPM: nothing is reported"
	kill -TERM $server
	wait $server
	rm -f /dev/shm/shmlimit.*."$SEGMENT"
fi

# ---- Node: the workers of a cluster are replaced one by one ----

if [ -f "$BUILD/node/build/Release/shmlimit.node" ] && [ -f "$later/b/node/build/Release/shmlimit.node" ]; then
	cat >"$TMP/cluster.js" <<-'END'
		const cluster = require('node:cluster')
		const { once } = require('node:events')
		if (cluster.isWorker) {
		  const { ShmlimitStore } = require(`${process.env.FROM}/stores/express-rate-limit.js`)
		  const store = new ShmlimitStore({ segment: process.env.SEGMENT })
		  store.init({ windowMs: 3600e3 })
		  process.on('message', () => process.send(store.increment('a').totalHits))
		} else {
		  const ask = async (worker) => { worker.send(0); return (await once(worker, 'message'))[0] }
		  ;(async () => {
		    const said = []
		    const old = [1, 2].map(() => cluster.fork({ FROM: process.argv[2] }))
		    for (const worker of old) said.push(await ask(worker))
		    const later = [1, 2].map(() => cluster.fork({ FROM: process.argv[3] }))
		    for (const worker of [...later, ...old]) said.push(await ask(worker))
		    console.log(said.join(' '))
		    process.exit()
		  })()
		}
	END
	is "$(SEGMENT=$SEGMENT node "$TMP/cluster.js" "$BUILD/node" "$later/b/node" 2>&1)" "1 2 1 2 3 4" \
		"Node: old workers go on counting while new ones count in a segment of their own"
	rm -f /dev/shm/shmlimit.*."$SEGMENT"
fi

# ---- An agent of one version, and programs of the other ----

serving() { [ "$("$1" global status "$SEGMENT" --json 2>/dev/null | jq .serving)" = true ]; }
take() { "$1" global take "$SEGMENT" "$backend_url" shared "$2" >/dev/null 2>&1 && echo yes || echo no; }
# beside NAME AGENT PROGRAMS
beside() {
	there flushall >/dev/null
	for which in before now; do
		$which create "$SEGMENT" --slots 64
		$which rule set "$SEGMENT" shared --algorithm lease --capacity 5 --rate 1/h
	done
	case $2 in before) command=$BUILD/bin/shmlimit ;; *) command=$TMP/lib/shmlimit ;; esac
	setpriv --pdeathsig TERM "$command" agent "$SEGMENT" "$backend_url" 2>"$TMP/agent.err" &
	agent=$!
	servers="$servers $agent"
	within serving "$2"
	ok $? "an agent of the $1 version serves"
	is "$(for _ in 1 2 3; do take "$3" a; done | tr '\n' ' ')$(for _ in 1 2 3; do take "$2" a; done | tr '\n' ' ')" \
		"yes yes yes yes yes no " "programs of the other version share the limit with its own, without it"
	kill -TERM $agent
	wait $agent
	is $? 0 "the agent ends"
	before destroy "$SEGMENT" && now destroy "$SEGMENT"
}
install "$later/b"
beside first before now
beside later now before
done_testing
