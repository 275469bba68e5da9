#!/bin/sh
# endings: in nginx and Apache, in front of an application, the place of a request is left when it ends, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"
. "$SOURCE/tests/server/endings.inc"

need curl perl pgrep python3 setpriv

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 2)
		    shmlimit_segment $SEGMENT;
		    map \$http_upgrade \$connection_upgrade { default upgrade; '' ''; }
		    proxy_http_version 1.1;
		    proxy_request_buffering off;
		    proxy_set_header Upgrade \$http_upgrade;
		    proxy_set_header Connection \$connection_upgrade;
		    server {
		        listen 127.0.0.1:$port;
		        shmlimit all rule=busy;
		        location / { proxy_pass http://127.0.0.1:$upstream; }
		        location /absent { shmlimit off; return 404; }
		        location /denied { shmlimit all rule=busy; shmlimit all rule=none; proxy_pass http://127.0.0.1:$upstream; }
		        location /timeout { proxy_read_timeout 500ms; proxy_pass http://127.0.0.1:$upstream; }
		        location /error {
		            proxy_intercept_errors on;
		            error_page 404 /page;
		            proxy_pass http://127.0.0.1:$upstream;
		        }
		    }
		}
	END
}
configure_apache() {
	cat >"$TMP/apache.conf" <<-END
		$(apache_begin prefork alias proxy proxy_http rewrite)
		$(apache_workers $workers)
		MaxConnectionsPerChild $recycle
		Listen 127.0.0.1:$port
		DocumentRoot $TMP/html
		ShmlimitSegment $SEGMENT
		ErrorDocument 404 /normal
		<Location />
		    ShmlimitRule busy all
		</Location>
		<Location /absent>
		    ShmlimitRule off
		    Redirect 404
		</Location>
		<Location /denied>
		    ShmlimitRule busy all
		    ShmlimitRule none all
		</Location>
		<Location /redirect>
		    # After the limits; mod_alias redirects before.
		    RewriteEngine on
		    RewriteRule .* /normal [R,L]
		</Location>
		ProxyPass /absent !
		ProxyPass /redirect !
		ProxyErrorOverride On 404
		ProxyPass /timeout http://127.0.0.1:$upstream/timeout timeout=1
		ProxyPass /websocket http://127.0.0.1:$upstream/websocket upgrade=websocket
		ProxyPass / http://127.0.0.1:$upstream/ flushpackets=on
	END
}

# In front of the same application.
common() {
	create_places
	start "$what"
	endings normal keep_alive stream head exception exception_during denied redirect error gone_before gone_during body_abandoned timeout \
		websocket websocket_server websocket_refused
	# nginx has 256 connections, Apache a process for each.
	at_random $at_once normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,gone_before,gone_during,body_abandoned
	begins
	ends reload cut_off HUP
}

start_upstream
recycle=0
for what in apache nginx; do
	eval "module=\$${what}_module"
	command -v $what >/dev/null || command -v ${what}2 >/dev/null || module=
	if [ ! -f "$module" ]; then
		ok 0 "$what: places are left # SKIP $what, or its module, is missing"
		continue
	fi
	workers=$WORKERS
	[ $what = apache ] || at_once=20
	common
	if [ $what = nginx ]; then
		endings internal
		not_here recycled
	else
		not_here internal
		stop
		recycle=2 workers=4
		start apache
		within four
		before=$(workers)
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			codes "$url/normal" >/dev/null
		done
		replaced() { [ "$(workers)" != "$before" ]; }
		ends recycled within replaced
	fi
	begins
	ends sigterm stop
	all_endings
	shmlimit destroy "$SEGMENT"
done
done_testing
