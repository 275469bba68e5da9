#!/bin/sh
# hosts: PHP-FPM twice, as two hosts of four children, each with a segment of its own, that share one limit through
# a backend; and what they answer while it is gone. Configuration and script are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/php/tests/fpm.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/hosts.inc"

need jq setpriv
php -m | grep -qx apcu || skip_all "no php-apcu"
need_backend

one=one two=two capacity=100 lost_max=1
# APCu has what was reported.
reporters=1
workers() { children "$TMP/$host"; }
booted() { [ "$(workers | wc -l)" -ge "$1" ]; }
lines() { sed -n "s/.*\] \(backend .*\)/\1/p" "$TMP/$host/errors"; }

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
	pool="env[SHMLIMIT_BACKEND] = \"$backend_url\""
	start_fpm "$TMP/$1" 4 -c "$TMP/$1/php.ini"
	within booted 4
	eval "$1_server=$server"
}

ask() { fcgi "$TMP/$1" hello.php "10.0.0.$2"; }
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
