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
start nginx
nginx_url=$url
start apache prefork
apache_url=$url

is "$(tally "$nginx_url/login?[1-3]")" "3 times 200" "three requests to nginx"
is "$(tally "$apache_url/login?[1-3]")" "2 times 200, 1 times 429" "and three to Apache are six of one client"
is "$(tally "$nginx_url/login")" "1 times 429" "who is then denied by nginx too"
is "$(tally "$apache_url/login" -H "$(from 2001:db8::1)")" "1 times 200" "another client is served"
is "$(tally "$nginx_url/login?[1-5]" -H "$(from 2001:db8::2)")" "4 times 200, 1 times 429" \
	"and is the same to both by his /64"

client=$(from 10.0.0.1)
crowd "$nginx_url/?[1-800]" -H "$client" >"$TMP/nginx.codes" &
load=$!
crowd "$apache_url/?[1-800]" -H "$client" >"$TMP/apache.codes"
wait $load
cat "$TMP/nginx.codes" "$TMP/apache.codes" >"$TMP/codes"
is "$(count 200) $(count 429)" "1000 600" "both at once serve the capacity, exactly"
grep -q 200 "$TMP/nginx.codes" && grep -q 200 "$TMP/apache.codes"
ok $? "and each a part of it"
done_testing
