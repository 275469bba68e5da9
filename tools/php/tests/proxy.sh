#!/bin/sh
# proxy: whose limit a request counts against, where nginx is in front of PHP-FPM and a proxy in front of nginx.
# All configurations are README.md's. The test asks through a Unix socket, which is the proxy, or is not.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/php/tests/fpm.inc"

need nginx curl setpriv

block tools/php/README.md ini opcache.preload | own >"$TMP/php.ini"
block tools/php/README.md php "Gate('web'" | own | sed "s/, spec: 'create=yes'//; s/, rate: '[^']*'//" >"$TMP/limit.php"
mkdir "$TMP/html"
echo '<?php echo "hello";' >"$TMP/html/index.php"
start_fpm "$TMP" 2 -c "$TMP/php.ini"

# start_nginx PROXY
start_nginx() {
	{
		[ "$(id -u)" -ne 0 ] || echo 'user www-data;'
		cat <<-END
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
		END
		block tools/php/README.md nginx | sed -e "s|127.0.0.1:8083|unix:$TMP/nginx.sock|" -e "s|/var/www/html|$TMP/html|" \
			-e "s|include fastcgi|include /etc/nginx/fastcgi|" -e "s|/run/php/php8.2-fpm.sock|$TMP/socket|" \
			-e "s|192.0.2.10|$1|"
		echo '}'
	} >"$TMP/nginx.conf"
	rm -f "$TMP/nginx.sock"
	setpriv --pdeathsig TERM nginx -e "$TMP/nginx.err" -c "$TMP/nginx.conf" &
	server=$!
	servers="$servers $server"
	within ask 203.0.113.9 >"$TMP/body" || { diag "$(cat "$TMP/nginx.err")"; exit 1; }
}
ask() { curl -s --fail --max-time 60 -D - --unix-socket "$TMP/nginx.sock" -H "X-Forwarded-For: $1" http://localhost/index.php; }
got() { ask "$1" | tr -d '\r' | sed -n 's/^RateLimit: .*;r=\([0-9]*\);.*/\1/p'; }
all() {
	shmlimit reset "$SEGMENT" --all >/dev/null
	# shellcheck disable=SC2046,SC2005 # in one line
	echo $(got 203.0.113.1) $(got 203.0.113.2) $(got '203.0.113.3, 203.0.113.1')
}

shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" client --capacity 15 --rate 1/h
start_nginx unix:
is "$(all)" "14 14 13" "behind a trusted proxy, the last address that it passes on is the client"
kill -TERM $server
wait $server
start_nginx 192.0.2.10
is "$(all)" "14 13 12" "a peer that is no trusted proxy is the client, whatever it sends"
done_testing
