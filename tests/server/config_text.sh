#!/bin/sh
# config_text: what nginx and Apache say of a configuration that is wrong has no byte of it that a terminal acts on.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

# ESC [, DEL, CSI as a byte and as the character U+009B, a carriage return, and a line feed with a false message.
evil=$(printf 'e\033[31m\177\233\302\2332J\r\nFALSE')

# refused WHAT: it was, and its words repeat what was given, as text.
refused() {
	is "$rc" 1 "$host refuses $1"
	is "$(LC_ALL=C tr -d '\040-\176\n' <"$TMP/.err" | wc -c) $(grep -c '^FALSE' "$TMP/.err")" "0 0" "$1: what $host says is text only"
	grep -q '"[^"]*2J' "$TMP/.err"
	ok $? "$1: $host says which word is wrong"
}

# nginx_lines WHAT LINES: with these lines nginx's configuration is refused.
nginx_lines() {
	{
		nginx_begin 1
		printf '%s\nserver { listen unix:%s; } }\n' "$2" "$TMP/nginx.sock"
	} >"$TMP/nginx.conf"
	run check_nginx
	refused "$1"
}
apache_lines() {
	{
		printf 'ServerRoot %s\nServerName localhost\nPidFile %s/apache.pid\nErrorLog %s/apache.err\nListen 127.0.0.1:1\n' \
			"$TMP" "$TMP" "$TMP"
		printf 'LoadModule %s\n' "mpm_event_module $apache_modules/mod_mpm_event.so" \
			"authz_core_module $apache_modules/mod_authz_core.so" "shmlimit_module $apache_module"
		printf '%s\n' "$2"
	} >"$TMP/apache.conf"
	run apache2 -t -f "$TMP/apache.conf"
	refused "$1"
}

host=nginx
if command -v nginx >/dev/null && [ -f "$nginx_module" ]; then
	nginx_lines "a segment's name" "shmlimit_segment \"$evil\";"
	nginx_lines "an option" "shmlimit_segment web \"$evil\";"
	nginx_lines "a backend's URL" "shmlimit_segment web \"backend=$evil\";"
	nginx_lines "a backend's option" "shmlimit_segment web backend=redis://127.0.0.1:1 \"deadline=$evil\";"
	nginx_lines "a rule's name" "shmlimit_segment web; shmlimit \$remote_addr \"rule=$evil\";"
	nginx_lines "a limit's option" "shmlimit_segment web; shmlimit \$remote_addr rule=page \"$evil\";"
	nginx_lines "a limit" "shmlimit_segment web create=yes; shmlimit \$remote_addr rule=page \"rate=$evil\";"
	nginx_lines "a charge" "shmlimit_segment web; shmlimit \$remote_addr rule=page \"charge=$evil\";"
	nginx_lines "a rule that needs another option" \
		"shmlimit_segment web create=yes; shmlimit \$remote_addr rule=page \"rate=5/m 2J$evil\";"
else
	ok 0 "what nginx says is text only # SKIP nginx, or its module, is missing"
fi

host=apache
if command -v apache2 >/dev/null && [ -f "$apache_module" ]; then
	evil=$(printf 'e\033[31m\177\233\302\2332J\r')
	apache_lines "a segment's name" "ShmlimitSegment \"$evil\""
	apache_lines "an option" "ShmlimitSegment web \"$evil\""
	apache_lines "a backend's URL" "ShmlimitSegment web \"backend=$evil\""
	apache_lines "a rule's name" "ShmlimitSegment web
		ShmlimitRule \"$evil\" %{REMOTE_ADDR}"
	apache_lines "a limit's option" "ShmlimitSegment web
		ShmlimitRule page %{REMOTE_ADDR} \"$evil\""
	apache_lines "a limit" "ShmlimitSegment web create=yes
		ShmlimitRule page %{REMOTE_ADDR} \"rate=$evil\""
	apache_lines "a key" "ShmlimitSegment web
		ShmlimitRule page \"%{REMOTE_ADDR$evil}\""
else
	ok 0 "what Apache says is text only # SKIP Apache, or its module, is missing"
fi
done_testing
