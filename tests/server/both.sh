#!/bin/sh
# both: one client, limited across nginx and Apache by one segment.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl jq perl pgrep setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev

connections=4
make_segment
# Each has a place whose key is a header.
start nginx -e 's|^    location /trial|    location /keyed { shmlimit $http_x_key rule=login; try_files $uri /index.html; }\n&|'
nginx_url=$url
start apache prefork -e 's|^    <Location "/trial|    <Location "/keyed">\n ShmlimitRule login "%{HTTP:X-Key}"\n FallbackResource /index.html\n </Location>\n&|'
apache_url=$url

is "$(tally "$nginx_url/login?[1-3]")" "3 times 200" "three requests to nginx"
is "$(tally "$apache_url/login?[1-3]")" "2 times 200, 1 times 429" "six requests, three to each server, are those of one client"
is "$(tally "$nginx_url/login")" "1 times 429" "a client that Apache denies is denied by nginx too"
is "$(tally "$apache_url/login" -H "$(from 2001:db8::1)")" "1 times 200" "another client is served"
is "$(tally "$nginx_url/login?[1-5]" -H "$(from 2001:db8::2)")" "4 times 200, 1 times 429" \
	"a client is the same to both servers by its /64"

# A key that is too long is one key in all of them: five requests are served.
long=$(printf '%01100d' 7)
keyed() { codes "$1/keyed" -H "X-Key: $long${2-}"; }
python() {
	PATH=/usr/bin:$PATH LD_LIBRARY_PATH=$BUILD PYTHONPATH=$SOURCE/tools/python PYTHONDONTWRITEBYTECODE=1 python3 -c '
import sys, shmlimit
print(shmlimit.Gate(sys.argv[1], [shmlimit.Limit("login", lambda request: sys.argv[2])]).ask({}).status)' "$SEGMENT" "$long"
}
php_gate() {
	LD_LIBRARY_PATH=$BUILD php -r 'require $argv[1];
		echo (new Shmlimit\Gate($argv[2]))->ask(new Shmlimit\Limit("login", $argv[3]))->status, "\n";' \
		"$BUILD/php/Shmlimit/preload.php" "$SEGMENT" "$long"
}
served="$(keyed "$nginx_url") $(keyed "$apache_url") $(keyed "$nginx_url")"
is "$served" "200 200 200" "keys longer than 1,024 bytes are limited"
if command -v php >/dev/null && php -m | grep -qx FFI; then
	is "$(python) $(php_gate)" "passed passed" "in Python and PHP too"
else
	is "$(python) $(python)" "passed passed" "in Python too"
fi
is "$(keyed "$nginx_url") $(keyed "$apache_url") $(python)" "429 429 rejected" "a long key is one key in all of them"
digest=$(printf %s "$long" | sha512sum | cut -d ' ' -f 1)
is "$(shmlimit peek "$SEGMENT" login --key-hex "$digest" | sed -n 's/^remaining: //p')" 0 "the command knows it by its SHA-512"
is "$(keyed "$nginx_url" 1) $(keyed "$apache_url" 2)" "200 200" "long keys that begin alike are different keys"

client=$(from 10.0.0.1)
crowd "$nginx_url/?[1-800]" -H "$client" >"$TMP/nginx.codes" &
load=$!
crowd "$apache_url/?[1-800]" -H "$client" >"$TMP/apache.codes"
wait $load
cat "$TMP/nginx.codes" "$TMP/apache.codes" >"$TMP/codes"
is "$(count 200) $(count 429)" "1000 600" "both at once serve the capacity, exactly"
grep -q 200 "$TMP/nginx.codes" && grep -q 200 "$TMP/apache.codes"
ok $? "each server serves a part of the capacity"
done_testing
