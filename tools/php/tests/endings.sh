#!/bin/sh
# endings: under PHP-FPM behind nginx, by the classes over FFI and by the extension, the place of a request is left when it ends,
# however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"
. "$SOURCE/tools/php/tests/fpm.inc"

need curl nginx perl pgrep python3 setpriv

# Each path is one of endings.py, or an end of a script that PHP brings about. /timeout works for ever.
cat >"$TMP/app.php" <<END
<?php
use Shmlimit\{Gate, Limit};

if (!class_exists(Gate::class)) {
    require '$BUILD/php/Shmlimit/preload.php';
}

function wait(callable \$ends): void
{
    for (; !\$ends(); clearstatcache()) {
        usleep(20000);
    }
}

function work(): void
{
    if (\$_SERVER['QUERY_STRING'] === 'work') {
        \$socket = stream_socket_client('unix://$ENDINGS_WORK');
        stream_set_timeout(\$socket, 600);
        fread(\$socket, 1);
    }
}

function part(): void
{
    echo 'part';
    flush();
}

\$path = \$_SERVER['DOCUMENT_URI'];
if (\$path !== '/absent') {
    (new Gate('$SEGMENT'))->enforce(new Limit('busy', 'all'));
}
if (\$path === '/denied') {
    (new Gate('$SEGMENT'))->enforce(new Limit('none', 'all'));
}
if (in_array(\$path, ['/stream', '/parts', '/exception-during'], true)) {
    part();
    work();
    while (\$path === '/stream') {
        usleep(20000);
        part();
    }
    if (\$path === '/exception-during') {
        throw new RuntimeException(\$path);
    }
    return part();
}
work();
match (\$path) {
    '/slow', '/body' => wait(fn () => \$_SERVER['QUERY_STRING'] === 'work' || file_exists('$ENDINGS_GO')),
    '/timeout' => wait(fn () => false),
    '/exception' => throw new RuntimeException(\$path),
    '/redirect' => header('Location: /normal'),
    '/error' => http_response_code(404),
    '/internal' => header('X-Accel-Redirect: /normal'),
    '/exit' => exit(),
    '/fatal' => missing(),
    '/memory' => (function () { for (\$all = null;;) { \$one = new stdClass(); \$one->next = \$all; \$all = \$one; } })(),
    '/time' => (function () { set_time_limit(1); for (;;); })(),
    default => header('Content-Length: 3'),
};
echo "ok\n";
END

configure_fpm() {
	cat >"$TMP/nginx.conf" <<-END
		$([ "$(id -u)" -ne 0 ] || echo 'user www-data;')
		daemon off;
		pid $TMP/nginx.pid;
		error_log $TMP/nginx.err;
		events { worker_connections 128; }
		http {
		    access_log off;
		    client_body_temp_path $TMP/nginx.body;
		    proxy_temp_path $TMP/nginx.proxy;
		    fastcgi_temp_path $TMP/nginx.fastcgi;
		    uwsgi_temp_path $TMP/nginx.uwsgi;
		    scgi_temp_path $TMP/nginx.scgi;
		    server {
		        listen 127.0.0.1:$port;
		        include /etc/nginx/fastcgi_params;
		        fastcgi_param SCRIPT_FILENAME $TMP/app.php;
		        fastcgi_buffering off;
		        fastcgi_request_buffering off;
		        location / { fastcgi_pass unix:$TMP/socket; }
		    }
		}
	END
	setpriv --pdeathsig TERM nginx -e "$TMP/nginx.err" -c "$TMP/nginx.conf" &
	nginx=$!
	servers="$servers $nginx"
}
# Of PHP-FPM, whose master is $master.
run_fpm() {
	cat >"$TMP/fpm.conf" <<-END
		[global]
		daemonize = no
		pid = $TMP/fpm.pid
		error_log = $TMP/fpm.log
		process_control_timeout = $patience
		[web]
		user = $(id -un)
		listen = $TMP/socket
		listen.mode = 0666
		pm = static
		pm.max_children = $workers
		pm.max_requests = $requests
		request_terminate_timeout = $timeout
		catch_workers_output = yes
		php_admin_value[error_log] = $TMP/errors
		php_admin_value[display_errors] = 0
		php_admin_value[memory_limit] = 16M
	END
	exec setpriv --pdeathsig TERM "$fpm" -F -R -c "$TMP/php.ini" -y "$TMP/fpm.conf" 2>"$TMP/fpm.err"
}
# serve REQUESTS TIMEOUT PATIENCE
serve() {
	requests=$1 timeout=$2 patience=$3
	start fpm
}
end_nginx() {
	kill -TERM "$nginx"
	wait "$nginx"
}

create_places
for how in FFI "the extension"; do
	what="PHP-FPM, $how"
	if [ "$how" = FFI ]; then
		block tools/php/README.md ini opcache.preload | own >"$TMP/php.ini"
	elif [ -f "$BUILD/php/shmlimit.so" ]; then
		with_extension
		echo "${extension#-d }" >"$TMP/php.ini"
	else
		ok 0 "$what: places are left # SKIP the extension was not built: php-dev is not installed"
		continue
	fi
	workers=$WORKERS
	serve 0 600 0
	endings normal keep_alive stream head exception exception_during denied redirect error internal gone_before gone_during body_abandoned
	for path in exit fatal memory time; do
		answers=
		for _ in $(seq $((PLACES + 1))); do
			answers="$answers $(codes "$url/$path")"
		done
		within all_free
		is "$? $(echo "$answers" | grep -c 429)" "0 0" "$what: scripts that end by $path leave their places"
	done
	at_random $at_once normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,internal,gone_before,gone_during,body_abandoned
	begins
	ends reload cut_off USR2
	begins
	ends sigterm cut_off TERM
	wait "$master"
	end_nginx
	# Each child serves a few requests; a request that is cut off by the time-out ends its child.
	workers=4
	serve 3 1 1
	endings timeout
	before=$(workers)
	for _ in $(seq 16); do
		codes "$url/normal" >/dev/null
	done
	replaced() { ! workers | grep -qxF "$before"; }
	ends recycled within replaced
	stop
	end_nginx
	not_here websocket websocket_server websocket_refused
	all_endings
done
done_testing
