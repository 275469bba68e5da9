#!/bin/sh
# readmes: what the READMEs of nginx and Apache, their guide, and shmlimit(1), have for one location or another: the
# servers accept it, and the commands beside it work. Other tests show what each word does.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

# accepts NAME EXAMPLE: the server $host accepts a configuration with this example.
accepts() {
	printf '%s\n' "$2" | sed "s/egment web/egment $SEGMENT/; s|/run/redis|$TMP|" | "$host"_with >"$TMP/$host.conf"
	run "check_$host"
	is "$rc" 0 "$host: the README's example is accepted: $1"
	[ "$rc" -eq 0 ] || diag "$err" "$(cat "$TMP/$host.err")"
}
nginx_with() {
	nginx_begin 1
	cat
	echo '}'
}
apache_with() {
	for name in mpm_event authz_core; do echo "LoadModule ${name}_module $apache_modules/mod_$name.so"; done
	printf '%s\n' "LoadModule shmlimit_module $apache_module" 'ServerName localhost' "ErrorLog $TMP/apache.err"
	cat
}
segment() { printf '%s\n' "$1" | sed -n '/egment web/p'; }
limits() { printf '%s\n' "$1" | sed '/egment web/d'; }

host=nginx
if [ -f "$nginx_module" ] && command -v nginx >/dev/null; then
	places=$(block tools/nginx/README.md nginx '20 at once')
	accepts "shares" "$(segment "$places")
		server { $(block tools/nginx/README.md nginx 'share=4') }"
	accepts "wait, ban, and how many at once" "$(segment "$places")
		server { $(limits "$places") $(block tools/nginx/README.md nginx 'location /search') $(block tools/nginx/README.md nginx 'rule=ban')
			$(block tools/nginx/README.md nginx 'charge=$bytes_sent')
			location /denied { $(block tools/shmlimit/shmlimit.1 mdoc 'rule=ban') } }"
	accepts "many hosts" "$(block tools/nginx/README.md indented backend=)"
else
	ok 0 "$host # SKIP it or its module is not there"
fi
host=apache
if [ -f "$apache_module" ] && command -v apache2 >/dev/null; then
	accepts "shares" "$(segment "$(block tools/apache/README.md apache '20 at once')")
		$(block tools/apache/README.md apache 'share=4')"
	accepts "wait, ban, and how many at once" "$(block tools/apache/README.md apache '20 at once')
		$(block tools/apache/README.md apache /search) $(block tools/apache/README.md apache 'Rule ban')"
	accepts "many hosts" "$(block tools/apache/README.md indented backend=)"
else
	ok 0 "$host # SKIP it or its module is not there"
fi

shmlimit destroy "$SEGMENT" 2>/dev/null
block tools/apache/README.md indented 'make apache' | sed "/^make \|^apxs /d; s/ web / $SEGMENT /; s/www-data/$(id -gn)/" >"$TMP/commands"
is "$(block tools/nginx/README.md indented 'make nginx' | grep -c '^shmlimit ') $(wc -l <"$TMP/commands")" "4 4" "each makes a segment with three rules"
{
	cat "$TMP/commands"
	block lib/doc/modules.md sh 'shmlimit ban' | sed "s/ web\b/ $SEGMENT/"
} >"$TMP/all"
run sh -e "$TMP/all"
is "$rc $err" "0 " "the commands of Apache's and the guide can be run, and a client banned"
done_testing
