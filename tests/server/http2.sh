#!/bin/sh
# http2: many requests in one connection are limited, delayed and charged as exactly as others, and a reload lets a request
# that waits have its turn.
#
# No test depends on speed: a limit allows no request earlier than its refills, however busy the machine is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl jq pgrep setpriv openssl
need_module "$nginx_module" nginx-dev
nginx -V 2>&1 | grep -q with-http_v2_module || skip_all "nginx has no HTTP/2"
curl --version | grep -q HTTP2 || skip_all "curl has no HTTP/2"

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 4)
		    log_format http2 '\$pid \$server_protocol \$connection \$status \$arg_tokens \$uri \$bytes_sent';
		    access_log $TMP/nginx.log http2;
		    shmlimit_segment $SEGMENT create=yes;
		    server {
		        listen 127.0.0.1:$port;
		        listen unix:$TMP/http2 ssl http2;
		        ssl_certificate $TMP/http2.pem;
		        ssl_certificate_key $TMP/http2.key;
		        root $TMP/html;
		        location /limited/ { alias $TMP/html/; shmlimit all rule=limited "rate=500/200 days"; }
		        location /fast/ { alias $TMP/html/; shmlimit all rule=fast "rate=20/s burst 1" delay=30s; }
		        location /slow/ { alias $TMP/html/; shmlimit all rule=slow "rate=1/h burst 1" delay=1h; }
		        location /turn/ { alias $TMP/html/; shmlimit \$arg_key rule=turn "rate=1/10s burst 1" delay=60s; }
		        location /used/ { alias $TMP/html/; shmlimit all rule=used "rate=1000000/200 days" estimate=10 charge=\$arg_tokens; }
		        location /held/ { alias $TMP/html/; limit_rate 10; shmlimit all rule=used "rate=1000000/200 days" estimate=10 charge=\$arg_tokens; }
		        location /sent/ { alias $TMP/html/; shmlimit all rule=sent estimate=1000 charge=\$bytes_sent; }
		        location /going/ { alias $TMP/html/; limit_rate 1k; shmlimit all rule=sent estimate=1000 charge=\$bytes_sent; }
		    }
		}
	END
}

# streams URL...: requests side by side in one connection; prints their statuses. In a subshell, which becomes curl. WHY TLS: curl 7.88 opens no second stream
# in a connection without it.
streams() {
	exec curl -s -k --unix-socket "$TMP/http2" -Z --parallel-max 60 --max-time 300 -o /dev/null \
		-w '%{http_code}\n' "$@" 2>"$TMP/curl.err"
}
now_ms() { date +%s%3N; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=h -keyout "$TMP/http2.key" \
	-out "$TMP/http2.pem" 2>"$TMP/openssl.err" || skip_all "openssl makes no certificate"
what=http2
shmlimit create "$SEGMENT" --slots 1024 --mode 666
shmlimit rule set "$SEGMENT" sent --algorithm counter --capacity 1T --period 300d
start nginx
head -c 100000 /dev/zero >"$TMP/html/large"
for connection in 1 2 3 4; do
	streams "https://h/limited/index.html?[1-300]" >"$TMP/codes.$connection" &
	servers="$servers $!"
	clients="${clients-} $!"
done
# shellcheck disable=SC2086 # words
wait $clients
cat "$TMP"/codes.[1-4] >"$TMP/codes"
is "$(count 200) $(count 429)" "500 700" "1200 requests in four connections pass the limit as often as it says"
[ "$(grep -c ' HTTP/2.0 .* /limited' "$TMP/nginx.log")" = 1200 ] && [ "$(grep '/limited' "$TMP/nginx.log" | cut -d ' ' -f 3 | sort -u | wc -l)" -le 4 ]
ok $? "these were requests side by side in few connections"

from_ms=$(now_ms)
is "$(streams "https://h/fast/index.html?[1-11]" | sort | uniq -c | tr -s ' ')" " 11 200" "all requests of a connection that wait are served"
took=$(($(now_ms) - from_ms))
ok $((took < 500)) "none of them is served before its turn, ten refills later: $took ms"
is "$(streams "https://h/slow/index.html")" 200 "a request whose token is there is served"
streams "https://h/slow/index.html" "https://h/index.html?[1-9]" >"$TMP/codes" &
client=$!
servers="$servers $client"
others_served() { [ "$(grep -c ' HTTP/2.0 .* 200 - /index.html' "$TMP/nginx.log")" = 9 ]; }
within waits slow all 1
ok $? "the next one in the connection waits for its turn"
within others_served
ok $? "others of its connection are served, although it waits"
kill "$client"
wait "$client" 2>/dev/null
within waits slow all 0
ok $? "when its connection ends, all behind it would move up"

spent() { echo $((1000000 - $(remaining used all))); }
logged() { awk '/ \/(used|held)\// && $4 != 429 { n += $5 } END { print n + 0 }' "$TMP/nginx.log"; }
test_spent() { [ "$(spent)" = "$1" ]; }
is "$(streams "https://h/used/index.html?tokens=[1-200]" | sort | uniq -c | tr -s ' ')" " 200 200" "requests with an estimate are served"
within test_spent 20100
ok $? "each of the connection's requests is charged for what it cost"
streams "https://h/held/large?tokens=[1-50]" >"$TMP/codes" &
client=$!
servers="$servers $client"
within test_spent 20600
ok $? "50 requests whose responses are slow have paid their estimates"
kill -KILL $client
wait $client 2>/dev/null
within test_spent $((20100 + 1275))
ok $? "when their connection ends, each is charged for what it cost"
is "$(spent)" "$(logged)" "what is charged is what the log says"

# While they are sent.
sent() { echo $((1000000000000 - $(remaining sent all))); }
sent_logged() { awk '/ \/(sent|going)\// { n += $7 } END { print n + 0 }' "$TMP/nginx.log"; }
test_sent() { [ "$(sent)" = "$(sent_logged)" ]; }
is "$(streams "https://h/sent/large?[1-50]" | sort | uniq -c | tr -s ' ')" " 50 200" "large responses of a connection are sent"
within test_sent
ok $? "each of its requests is charged for what was sent to it, to the byte: $(sent)"
before=$(sent)
streams "https://h/going/large?[1-20]" >"$TMP/codes" &
client=$!
servers="$servers $client"
test_going() { [ "$(sent)" -ge $((before + 20 * 3000)) ]; }
within test_going
ok $? "slow responses of a connection are charged while they are sent: $(($(sent) - before))"
is "$(grep -c ' /going/' "$TMP/nginx.log")" 0 "none of them has ended"
kill -KILL $client
wait $client 2>/dev/null
all_going() { [ "$(grep -c ' /going/' "$TMP/nginx.log")" = 20 ] && test_sent; }
within all_going
ok $? "when their connection ends, the sum is what the log says, to the byte"

# A reload, while a request waits.
is "$(streams 'https://h/turn/index.html?key=a')" 200 "a token is taken"
streams 'https://h/turn/index.html?key=a' >"$TMP/codes" &
client=$!
servers="$servers $client"
within waits turn a 1
ok $? "the next request waits"
before=$(workers)
kill -HUP $master
wait $client
is "$(cat "$TMP/codes")" 200 "a request that waits is served after a reload"
served=$(sed -n 's/ .* \/turn\/.*//p' "$TMP/nginx.log" | tail -n 1)
is "$(echo "$before" | grep -cx "$served")" 1 "it is served by the worker that it began in"
within four
is "$(grep -c ' \[alert\] \| \[emerg\] ' "$TMP/nginx.err")" 0 "nginx has no alerts"
stop
is "$rc$left" 0 "nginx ends when it is asked to"
done_testing
