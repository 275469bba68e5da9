#!/bin/sh
# limit_conn: what the tests of nginx's limit_conn (limit_conn.t, limit_conn_complex.t and limit_conn_dry_run.t of nginx-tests) say of
# it holds for a rule of how many at once.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl openssl perl pgrep setpriv
need_module "$nginx_module" nginx-dev

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 2)
		    log_format limited '\$uri:\$shmlimit_status:\$connection:\$status';
		    access_log $TMP/nginx.log limited;
		    shmlimit_segment $SEGMENT create=yes;
		    server {
		        listen 127.0.0.1:$port;
		        listen unix:$TMP/h2.sock ssl http2;
		        ssl_certificate $TMP/h2.pem;
		        ssl_certificate_key $TMP/h2.key;
		        root $TMP/html;
		        add_header X-Status \$shmlimit_status always;
		        location /one/ { shmlimit \$remote_addr rule=one "rate=1 at once for 1h"; }
		        location /again/ { shmlimit \$remote_addr rule=one; }
		        location /second/ { shmlimit \$remote_addr rule=second "rate=1 at once for 1h"; }
		        location /five/ { shmlimit \$remote_addr rule=five "rate=5 at once for 1h"; }
		        location /custom/ { shmlimit \$remote_addr rule=custom "rate=1 at once for 1h" status=501; }
		        location /key/ { shmlimit \$arg_k rule=key "rate=1 at once for 1h"; }
		        location /complex/ { shmlimit \$remote_addr\$arg_c rule=complex "rate=1 at once for 1h"; }
		        location /dry/ { shmlimit \$remote_addr rule=one dry_run; }
		        location /streams/ { shmlimit all rule=streams "rate=2 at once for 1h"; limit_rate 1k; }
		    }
		}
	END
}

# hold PATH: a request that stays in flight. Sets $held.
hold() {
	rm -f "$TMP/held"
	perl "$SOURCE/tests/server/hold.pl" "$port" "$1" "$TMP/held" &
	held=$!
	servers="$servers $held"
	within test -s "$TMP/held"
}
# Its client goes away; the worker notices that when it has the time.
close_held() {
	kill -KILL "$held"
	wait "$held" 2>/dev/null
}
status() { codes "$url$1"; }
becomes() { [ "$(status "$1")" = "$2" ]; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=h -keyout "$TMP/h2.key" -out "$TMP/h2.pem" 2>/dev/null ||
	skip_all "openssl makes no certificate"
start nginx
for name in one custom key complex streams; do
	mkdir -p "$TMP/html/$name"
	truncate -s 64M "$TMP/html/$name/large"
done

ask_status() { get -o "$TMP/body" -D - "$url$1" | tr -d '\r' | sed -n 's/^HTTP[^ ]* \([0-9]*\).*/\1/p; s/^X-Status: //p' | tr '\n' ' '; }
is "$(ask_status /one/absent)" "404 PASSED " "a request that has a place passes"
hold /one/large
is "$(cat "$TMP/held") $(ask_status /one/absent)" "200 429 REJECTED " "a second one is denied while the first is in flight"
is "$(status /again/absent)" 429 "a request to another location with the same rule is denied"
is "$(status /second/absent)" 404 "a request under another rule passes"
is "$(ask_status /dry/absent)" "404 REJECTED_DRY_RUN " "a request in a dry run is served, and said to be denied"
is "$(status /five/absent) $(status /one/absent)" "404 429" "a request that passes under a larger limit lets none pass under the smaller one"
is "$(ask_status /absent)" "404 " "a request without a limit has no status of one"
close_held
within becomes /one/absent 404
ok $? "when the first has ended, a request passes again"
grep -q '^/absent:-:' "$TMP/nginx.log"
ok $? "the log has a hyphen for a request without a limit"
is "$(grep -c '^/dry/absent:REJECTED_DRY_RUN:' "$TMP/nginx.log")" 1 "the log says what a dry run would have denied"

hold /custom/large
is "$(status /custom/absent)" 501 "a limit can have a status of its own"
close_held

long=$(printf '%2000s' '' | tr ' ' x)
hold "/key/large?k=short"
is "$(status '/key/absent?k=short') $(status '/key/absent?k=other')" "429 404" "a key is denied, and another one is not"
is "$(status /key/absent) $(status '/key/absent?k=')" "404 404" "a request with an empty key is not limited"
close_held
hold "/key/large?k=$long"
is "$(status "/key/absent?k=$long") $(status "/key/absent?k=${long}y")" "429 404" "a key of 2000 bytes is limited as a short one is"
close_held
hold "/complex/large?c=1"
is "$(status '/complex/absent?c=1') $(status '/complex/absent?c=2')" "429 404" "a key of several variables is limited as a whole"
close_held

# As limit_conn counts: each request of a connection of HTTP/2.
curl -s -k -Z --unix-socket "$TMP/h2.sock" -o "$TMP/body.#1" "https://localhost/streams/large?[1-5]" 2>/dev/null &
held=$!
servers="$servers $held"
streams() { grep '^/streams/large:' "$TMP/nginx.log" | cut -d : -f "$1" | sort | uniq -c | tr -s ' \n' ' '; }
denied() { [ "$(streams 2)" = ' 3 REJECTED ' ]; }
within denied
ok $? "of five requests at once over HTTP/2 three are denied while two are in flight"
close_held
passed() { [ "$(streams 2)" = ' 2 PASSED 3 REJECTED ' ]; }
within passed
ok $? "the two have passed"
like "$(streams 3)" '^ 5 [0-9]* $' "all five were on one connection"
stop
is "$rc$left" 0 "the server ends"
shmlimit destroy "$SEGMENT"
done_testing
