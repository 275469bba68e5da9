#!/bin/sh
# forwarded: nginx and Apache say once in each process that all clients behind a proxy are one, where a request has a field that
# proxies write and the key is the proxy's address; not where the proxy is configured, nor with proxy_warning=no.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need curl pgrep setpriv

# configure_nginx OPTIONS LINE KEY
configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 1)
		    access_log off;
		    $2
		    shmlimit_segment $SEGMENT create=yes $1;
		    server {
		        listen 127.0.0.1:$port;
		        root $TMP/html;
		        location / { shmlimit $3 rule=page rate=1000/h; }
		        location /two/ { shmlimit key rule=other rate=1000/h; shmlimit $3 rule=page; }
		        location /constant/ { shmlimit constant rule=page; }
		    }
		}
	END
}

configure_apache() {
	cat >"$TMP/apache.conf" <<-END
		$(apache_begin prefork remoteip)
		$(apache_workers 1)
		Listen 127.0.0.1:$port
		DocumentRoot $TMP/html
		$2
		ShmlimitSegment $SEGMENT create=yes $1
		ShmlimitRule page "$3" rate=1000/h
	END
}

# warned FIELD: how often the server has said it of the field
warned() { grep -c "a request from 127.0.0.1 has a field $1: behind a proxy all clients are one" "$TMP/$host.err"; }
all() { grep -c 'behind a proxy all clients are one' "$TMP/$host.err"; }

# try_server NAME ADDRESS CONFIGURED ADVICE: its variable of the client's address, how a proxy is configured, and what the message names
try_server() {
	start "$1" '' '' "$2"
	codes "$url/" >"$TMP/codes"
	is "$(all)" 0 "$1: a request without such a field says nothing"
	for i in 1 2 3; do codes -H "X-Forwarded-For: 203.0.113.$i" "$url/" >"$TMP/codes"; done
	within [ "$(warned X-Forwarded-For)" = 1 ]
	is "$(warned X-Forwarded-For)" 1 "$1: the log warns once of a proxy that is not configured"
	like "$(grep 'behind a proxy' "$TMP/$host.err")" "its address is the key [(]$4; if it is no proxy: proxy_warning=no[)]" "$1: the message says what to set"
	stop
	for field in Forwarded X-Real-IP CF-Connecting-IP x-forwarded-for; do
		start "$1" '' '' "$2"
		codes -H "$field: 203.0.113.9" "$url/" >"$TMP/codes"
		within grep -q 'behind a proxy' "$TMP/$host.err"
		is "$(all)" 1 "$1: $field is such a field"
		stop
	done
	start "$1" proxy_warning=no '' "$2"
	codes -H 'X-Forwarded-For: 203.0.113.9' "$url/" >"$TMP/codes"
	stop
	is "$(all)" 0 "$1: proxy_warning=no says nothing"
	start "$1" '' "$3" "$2"
	for client in 203.0.113.9 10.0.0.7; do codes -H "X-Forwarded-For: $client" "$url/" >"$TMP/codes"; done
	stop
	is "$(all)" 0 "$1: a proxy that is configured says nothing, also of a private client"
	start "$1" '' '' constant
	codes -H 'X-Forwarded-For: 203.0.113.9' "$url/" >"$TMP/codes"
	stop
	is "$(all)" 0 "$1: a key that is not the address says nothing"
}

tried=
if command -v nginx >/dev/null && [ -f "$nginx_module" ]; then
	# shellcheck disable=SC2016 # nginx's variable
	try_server nginx '$remote_addr' 'set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;' 'set_real_ip_from names proxies'
	# shellcheck disable=SC2016 # nginx's variable
	start nginx '' '' '$remote_addr'
	codes -H 'X-Forwarded-For: 203.0.113.9' "$url/constant/" >"$TMP/codes"
	is "$(all)" 0 "nginx: another key of another place says nothing"
	codes -H 'X-Forwarded-For: 203.0.113.9' "$url/two/" >"$TMP/codes"
	within grep -q 'behind a proxy' "$TMP/$host.err"
	is "$(all)" 1 "nginx: one of several keys that is the address is enough"
	stop
	tried=yes
fi
if command -v apache2 >/dev/null && [ -f "$apache_module" ]; then
	try_server apache "%{REMOTE_ADDR}" 'RemoteIPHeader X-Forwarded-For
		RemoteIPInternalProxy 127.0.0.1' "mod_remoteip's RemoteIPInternalProxy names proxies"
	tried=yes
fi
[ -n "$tried" ] || skip_all "there is neither nginx nor Apache with its module"
shmlimit destroy "$SEGMENT"
done_testing
