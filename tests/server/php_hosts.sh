#!/bin/sh
# php_hosts: PHP-FPM twice, as two hosts of four children, each with a segment of its own, that share one limit through
# a backend; and what they answer while it is gone. Configuration and script are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/hosts.inc"

fpm=$(php_fpm) || skip_all "no php-fpm"
need jq cgi-fcgi setpriv
php -m | grep -qx apcu || skip_all "no php-apcu"
need_backend

one=one two=two capacity=100 lost_max=1
# APCu has what was reported.
reporters=1
workers() { sed -n 's/.*child \([0-9]*\) started.*/\1/p' "$TMP/$host.log"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
ready() { grep -q 'ready to handle connections' "$TMP/$host.log" && booted 4; }
lines() { sed -n "s/.*\] \(backend .*\)/\1/p" "$TMP/$host.err"; }

cat >"$TMP/hello.php" <<'EOF'
<?php
echo "hello\n";
EOF
# No test depends on speed, so the backend has time.
begin() {
	make_host "$1"
	mkdir "$TMP/$1"
	open=
	[ "$1" = two ] || open=', failOpen: true'
	block tools/php/README.md ini opcache.preload | own >"$TMP/$1/php.ini"
	block tools/php/README.md php "Gate('web'" | own | sed "s/, rate: '[^']*'//; s/create=yes'/deadline=5000ms', backend: '-'$open/" >"$TMP/$1/limit.php"
	cat >"$TMP/$1/fpm.conf" <<-EOF
		[global]
		daemonize = no
		error_log = $TMP/$1.log
		log_level = debug
		[web]
		user = $(id -un)
		listen = $TMP/$1/socket
		pm = static
		pm.max_children = 4
		catch_workers_output = yes
		php_admin_value[error_log] = $TMP/$1.err
		$(block tools/php/README.md ini auto_prepend_file | own | sed "s,$TMP,$TMP/$1,")
		env[SHMLIMIT_BACKEND] = "$backend_url"
	EOF
	: >"$TMP/$1.err"
	timeout 600 "$fpm" -F -R -c "$TMP/$1/php.ini" -y "$TMP/$1/fpm.conf" 2>"$TMP/$1/said" &
	eval "$1_server=$!"
	servers="$servers $!"
	within ready || { diag "$(cat "$TMP/$1/said" "$TMP/$1.log")"; exit 1; }
}

ask() {
	env -i SCRIPT_FILENAME="$TMP/hello.php" SCRIPT_NAME=/hello.php REQUEST_METHOD=GET REMOTE_ADDR="10.0.0.$2" \
		timeout 60 cgi-fcgi -bind -connect "$TMP/$1/socket" </dev/null 2>&1 | tr -d '\r'
}
# code: the status of the answer on standard input; 000 if it is none.
code() { awk '/^Status: / { s = $2 } /^Content-type: / { c = 200 } END { print s ? s : c ? c : "000" }'; }
asks() {
	for i in $(seq "$1"); do
		ask "$2" "$3" | code
	done
}
# Two connections to each host.
crowds() {
	loads=
	for of in one.1 one.2 two.1 two.2; do
		asks $(($1 / 2)) ${of%.*} "$2" >"$TMP/codes.$of" &
		loads="$loads $!"
	done
	# shellcheck disable=SC2086 # a list of words
	wait $loads
	cat "$TMP"/codes.* >>"$TMP/codes"
}
share_one_limit
done_testing
