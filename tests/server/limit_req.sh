#!/bin/sh
# limit_req: what the tests of nginx's limit_req (limit_req.t, limit_req2.t, limit_req_delay.t and limit_req_dry_run.t of nginx-tests)
# say of it holds for limits that migrate.md gives in its place.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl jq pgrep setpriv
need_module "$nginx_module" nginx-dev

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 2)
		    log_format limited '\$uri:\$shmlimit_status';
		    access_log $TMP/nginx.log limited;
		    large_client_header_buffers 4 128k;
		    shmlimit_segment $SEGMENT;
		    server {
		        listen 127.0.0.1:$port;
		        root $TMP/html;
		        add_header X-Status \$shmlimit_status always;
		        location /one/ { shmlimit \$remote_addr rule=one; }
		        location /status/ { shmlimit \$remote_addr rule=one status=501; }
		        location /key/ { shmlimit \$http_x_key rule=key; }
		        location /fast/ { shmlimit \$remote_addr rule=fast; }
		        location /long/ { alias $TMP/html/; shmlimit \$remote_addr rule=long delay=60s; }
		        location /two/ { shmlimit \$arg_b rule=plenty; shmlimit \$arg_a rule=key; }
		        location /delay/ { shmlimit \$remote_addr rule=delay delay=1h; }
		        location /dry/ { shmlimit \$remote_addr rule=one dry_run; }
		        location /dry_delay/ { shmlimit \$remote_addr rule=delay delay=1h dry_run; }
		        location /quiet/ { shmlimit \$remote_addr rule=one; shmlimit_log_level warn; }
		    }
		}
	END
}

# Rates are so low that no token comes back within the test, or so high that one is there for the next request.
shmlimit create "$SEGMENT" --slots 64 --mode 666
shmlimit rule set "$SEGMENT" one --capacity 2 --rate 1/h
shmlimit rule set "$SEGMENT" key --capacity 1 --rate 1/h
shmlimit rule set "$SEGMENT" plenty --capacity 9 --rate 1/h
shmlimit rule set "$SEGMENT" fast --capacity 2 --rate 1000/s
shmlimit rule set "$SEGMENT" long --capacity 1 --rate 2/s --max-wait 60s
shmlimit rule set "$SEGMENT" delay --capacity 2 --rate 1/h --max-wait 1h
start nginx
seq 100000 >"$TMP/html/large"

statuses() { codes "$@" | tr '\n' ' '; }
said_by() { get -o "$TMP/body" -D - "$url$1" | tr -d '\r' | sed -n 's/^HTTP[^ ]* \([0-9]*\).*/\1/p; s/^X-Status: //p' | tr '\n' ' '; }

is "$(said_by /dry/)" "404 PASSED " "a dry run says that a request passes"
shmlimit reset "$SEGMENT" --all >/dev/null
is "$(statuses "$url/one/?[1-3]")" "404 404 429 " "with a burst of one, two requests are served and the next is denied"
is "$(statuses "$url/status/")" "501 " "a denial in another location can have another status"
is "$(said_by /dry/)" "404 REJECTED_DRY_RUN " "a dry run serves what it would have denied"
is "$(said_by /one/)" "429 REJECTED " "without the dry run that is denied"
logged() { grep -c "\[$1\] .* $2, client: 127.0.0.1, .*request: \"GET /$3/" "$TMP/nginx.err"; }
is "$(logged error 'limiting requests by rule "one"' one)" 2 "each denial is an error in the log, with its rule and client"
is "$(logged error 'limiting requests, dry run, by rule "one"' dry)" 1 "what a dry run would have denied is an error in the log, too"
is "$(said_by /quiet/)" "429 REJECTED " "another location denies, too"
is "$(logged warn 'limiting requests by rule "one"' quiet)" 1 "shmlimit_log_level chooses the level"
is "$(said_by /dry_delay/ && said_by /dry_delay/ && said_by /dry_delay/)" "404 PASSED 404 PASSED 404 DELAYED_DRY_RUN " \
	"a dry run serves what it would have delayed, and says so"
is "$(logged warn 'delayed request, dry run, by rule "delay"' dry_delay)" 1 "a delay is logged one level lower"
shmlimit reset "$SEGMENT" --rule delay >/dev/null
is "$(said_by /)" "200 " "a request without a limit has no status of one"
is "$(shmlimit peek "$SEGMENT" one 127.0.0.1 --json | jq '.retry_after_ns <= 3600e9')" true "denied requests are not counted: the next is allowed after one refill"
grep -q '^/index.html:-$' "$TMP/nginx.log"
ok $? "the log has a hyphen for a request without a limit"
served() { [ "$(statuses "$url/fast/")" = "404 " ]; }
served && served && within served
ok $? "a key that is full again is served"

is "$(statuses -H 'X-Key: short' "$url/key/?[1-2]")" "404 429 " "a key is limited"
{
	printf 'header = "X-Key: '
	printf '%65600s' '' | tr ' ' x
	echo '"'
} >"$TMP/long.curl"
is "$(statuses -K "$TMP/long.curl" "$url/key/?[1-2]")" "404 429 " "a key of 65600 bytes is limited, too"

is "$(statuses "$url/two/?b=1&n=[1-2]")" "404 404 " "of two limits the first allows several requests"
is "$(statuses "$url/two/?a=1&n=[1-2]")" "404 429 " "of two limits the second allows one request"
is "$(statuses "$url/two/?a=2&b=2&n=[1-3]") $(shmlimit peek "$SEGMENT" plenty 2 --json | jq .remaining)" "404 429 429  8" \
	"under both limits one request is allowed, and what the second denies costs nothing in the first"
is "$(statuses "$url/two/?n=[1-3]")" "404 404 404 " "a request without a key is not limited"

get -o "$TMP/first" "$url/long/large"
get -o "$TMP/second" --limit-rate 2M "$url/long/large"
cmp -s "$TMP/first" "$TMP/html/large" && cmp -s "$TMP/second" "$TMP/html/large"
ok $? "a large response that was delayed is whole, also for a client that reads it slowly"

within grep -q '^/long/large:DELAYED$' "$TMP/nginx.log"
ok $? "the access log says that it was delayed"
is "$(logged warn 'delayed request by rule "long"' long)" 1 "the error log has the delay, one level below that of denials"

is "$(statuses "$url/delay/?[1-2]")" "404 404 " "burst=2 delay=1 serves two requests at once"
curl -s -o "$TMP/body.later" --max-time 600 "$url/delay/" &
client=$!
servers="$servers $client"
within waits delay 127.0.0.1 1
ok $? "burst=2 delay=1 delays the third request"
is "$(statuses "$url/delay/")" "429 " "burst=2 delay=1 denies the fourth request"
kill "$client"
wait "$client" 2>/dev/null
stop
is "$rc$left" 0 "the server ends"
shmlimit destroy "$SEGMENT"
done_testing
