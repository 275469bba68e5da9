#!/bin/sh
# endings_http2: in nginx and Apache, requests side by side in one connection of HTTP/2 leave their places when they end, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"
. "$SOURCE/tests/server/endings.inc"

need curl pgrep python3 setpriv

configure_nginx() {
	http2_port=$(some_port)
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 2)
		    shmlimit_segment $SEGMENT;
		    proxy_http_version 1.1;
		    proxy_request_buffering off;
		    server {
		        listen 127.0.0.1:$port;
		        listen 127.0.0.1:$http2_port http2;
		        shmlimit all rule=busy;
		        location / { proxy_pass http://127.0.0.1:$upstream; }
		        location /absent { shmlimit off; return 404; }
		    }
		}
	END
}
# A stream is a request in a thread of its own.
configure_apache() {
	http2_port=$port
	cat >"$TMP/apache.conf" <<-END
		$(apache_begin event http2 alias proxy proxy_http)
		StartServers 2
		ThreadsPerChild 8
		MaxRequestWorkers 32
		Protocols h2c http/1.1
		Listen 127.0.0.1:$port
		DocumentRoot $TMP/html
		ShmlimitSegment $SEGMENT
		<Location />
		    ShmlimitRule busy all
		</Location>
		<Location /absent>
		    ShmlimitRule off
		    Redirect 404
		</Location>
		ProxyPass /absent !
		ProxyPass / http://127.0.0.1:$upstream/ flushpackets=on
	END
}

# In the background it becomes the client.
ending() { $become python3 "$SOURCE/tests/server/endings_http2.py" "$http2_port" "$1" $PLACES shmlimit peek "$SEGMENT" busy all; }
become=
# leaves NAME TITLE
leaves() {
	ending "$1" 2>"$TMP/ending"
	ok $? "$what, HTTP/2: all places are held until then, and free when $2"
	[ ! -s "$TMP/ending" ] || again
}
all_held() { [ "$(remaining busy all)" = 0 ]; }
streams() {
	become=exec
	ending held >/dev/null 2>&1 &
	become=
	held=$!
	servers="$servers $held"
	within all_held
	ok $? "$what, HTTP/2: the streams of a connection hold all places"
}

start_upstream
for what in nginx apache; do
	eval "module=\$${what}_module"
	command -v $what >/dev/null || command -v ${what}2 >/dev/null || module=
	case $what in
	nginx) nginx -V 2>&1 | grep -q with-http_v2_module || module= ;;
	*) [ -f "$apache_modules/mod_http2.so" ] || module= ;;
	esac
	if [ ! -f "$module" ]; then
		ok 0 "$what, HTTP/2: places are left # SKIP $what, its HTTP/2, or the module, is missing"
		continue
	fi
	create_places
	start $what
	ending normal
	ok $? "$what, HTTP/2: all places are free when the responses of a connection were sent"
	leaves reset "the streams are reset while their responses are sent"
	leaves reset_before "the streams are reset before their responses begin"
	leaves reset_body "the streams are reset while the requests' bodies are sent"
	ending reset_at_once 2>"$TMP/ending"
	ok $? "$what, HTTP/2: all places are free when each stream is reset at once"
	[ ! -s "$TMP/ending" ] || again
	leaves goaway "the client ends the connection by GOAWAY"
	leaves gone "the client goes away"
	streams
	kill -HUP "$master"
	kill -KILL "$held"
	wait "$held" 2>/dev/null
	within all_free
	ok $? "$what, HTTP/2: all places are free when the server was reloaded while the responses streamed"
	streams
	stop
	within all_free
	ok $? "$what, HTTP/2: all places are free when the server ends while the responses stream"
	kill -KILL "$held" 2>/dev/null
	wait "$held" 2>/dev/null
	shmlimit destroy "$SEGMENT"
done
done_testing
