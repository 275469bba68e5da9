#!/bin/sh
# cors: a page of another origin can read a 429 of nginx, as the guide configures it, and preflights are not counted. The tests of
# Python's routes try the guide's FastAPI.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl perl setpriv
need_module "$nginx_module" nginx-dev

configure_nginx() {
	{
		nginx_begin 2
		block lib/doc/cors.md nginx | sed -e "s|segment web|segment $SEGMENT|" -e "s|127.0.0.1:8081|127.0.0.1:$port|" -e "s|/var/www/html|$TMP/html|"
		echo '}'
	} >"$TMP/nginx.conf"
}

# asked METHOD: the status of a request of the page, and the header fields that the page needs to read a refusal.
asked() {
	curl -s -o "$TMP/body" -D - -X "$1" -H 'Origin: https://shop.example' -H 'Access-Control-Request-Method: GET' "$url/" | tr -d '\r' |
		sed -nE 's,^HTTP/1\.. ([0-9]*).*,\1,p; s/^(access-control-allow-origin: .*|retry-after:).*/\L\1/Ip' | tr '\n' ' '
}

start nginx
shmlimit reset "$SEGMENT" --all >/dev/null
is "$(asked OPTIONS)$(asked OPTIONS)$(asked OPTIONS)$(asked OPTIONS)" "$(for i in 1 2 3 4; do printf '204 access-control-allow-origin: https://shop.example '; done)" \
	"nginx answers preflights"
is "$(asked GET)$(asked GET)$(asked GET)" "$(for i in 1 2 3; do printf '200 access-control-allow-origin: https://shop.example '; done)" \
	"nginx does not count preflights"
is "$(asked GET)" "429 retry-after: access-control-allow-origin: https://shop.example " "a 429 of nginx, and how long to wait, can be read by the page"
done_testing
