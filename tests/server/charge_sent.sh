#!/bin/sh
# charge_sent: what nginx sends is charged while it is sent, with charge=$bytes_sent: a client cannot have many long downloads
# beyond its limit. The sum is what the log says, to the byte, with subrequests, internal redirects, clients that go away and workers
# that are killed.
#
# No test depends on speed: a download waits for its client, or for limit_rate.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl jq python3 pgrep setpriv
need_module "$nginx_module" nginx-dev
REQUESTS=${REQUESTS:-400}
KILLS=${KILLS:-3}
LARGE=1000000
ESTIMATE=4096
CAPACITY=1000000000000
BURST=1200000

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 4)
		    log_format sent '\$request_uri \$bytes_sent \$body_bytes_sent \$status';
		    access_log $TMP/nginx.log sent;
		    shmlimit_segment $SEGMENT create=yes;
		    gzip_types text/plain;
		    default_type text/plain;
		    server {
		        listen unix:$TMP/upstream.sock;
		        access_log off;
		        root $TMP/html;
		        location /jump { add_header X-Accel-Redirect /inside/large; return 200; }
		    }
		    server {
		        listen 127.0.0.1:$port sndbuf=32k;
		        root $TMP/html;
		        shmlimit \$arg_key rule=sent estimate=$ESTIMATE charge=\$bytes_sent;
		        location /large { }
		        location /packed/ { alias $TMP/html/; gzip on; }
		        location /slow/ { alias $TMP/html/; limit_rate 10k; }
		        location /proxied/ { proxy_pass http://unix:$TMP/upstream.sock:/; }
		        location /direct/ { proxy_pass http://unix:$TMP/upstream.sock:/; proxy_buffering off; }
		        location /jump { proxy_pass http://unix:$TMP/upstream.sock; }
		        location /inside/ { internal; alias $TMP/html/; }
		        location /absent { error_page 404 = /inside/large; }
		        location /parts { ssi on; ssi_types text/plain; }
		        location /early { add_header X-Sent \$bytes_sent; alias $TMP/html/large; }
		        location /body/ {
		            alias $TMP/html/;
		            shmlimit \$arg_key rule=body "rate=1/hour burst $BURST" estimate=$ESTIMATE charge=\${body_bytes_sent};
		        }
		        location /both/ {
		            alias $TMP/html/;
		            shmlimit \$arg_key rule=sent estimate=$ESTIMATE charge=\$bytes_sent;
		            shmlimit \$arg_key rule=eighths estimate=100 charge=\$body_bytes_sent charge_scale=8;
		            shmlimit \$arg_key rule=fixed "rate=1/hour burst $BURST" estimate=3 charge=\$arg_tokens;
		            shmlimit \$arg_key rule=plain "rate=1/hour burst $BURST";
		        }
		        $(block tools/nginx/README.md nginx 'charge=$bytes_sent' | sed "s|rate=[^\"]*|rate=1/hour burst $BURST|")
		        location /small/ { alias $TMP/html/; shmlimit \$arg_key rule=small "rate=1/s burst 50000" charge=\$bytes_sent; }
		    }
		}
	END
}

# hold PATH BYTES: reads this number of bytes of a response, and then nothing more, until it is ended.
cat >"$TMP/hold.py" <<'END'
import socket, sys, time

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    connection.sendall(f"GET {sys.argv[2]} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    left = int(sys.argv[3])
    while left > 0:
        left -= len(connection.recv(min(left, 4096)))
    time.sleep(300)
END
hold() {
	timeout 300 python3 "$TMP/hold.py" "$port" "$1" "$2" &
	client=$!
	servers="$servers $client"
}
leave() {
	kill "$client"
	wait "$client" 2>/dev/null
}

# load N: N requests of all kinds; each tenth client goes away in the middle.
load() { python3 "$SOURCE/tests/server/load.py" "$port" "$1" sent; }

# spent RULE KEY
spent() {
	case $1 in
	sent | eighths) capacity=$CAPACITY ;;
	small) capacity=50000 ;;
	*) capacity=$BURST ;;
	esac
	echo $((capacity - $(remaining "$1" "$2")))
}
# at_least RULE KEY BYTES: are they charged?
at_least() { [ "$(spent "$1" "$2")" -ge "$3" ]; }
# logged KEY COLUMN: what the log says that was sent.
logged() { grep "[?&]key=$1[& ]" "$TMP/nginx.log" | awk -v column="$2" '$4 != 429 { n += $column } END { printf "%d\n", n }'; }
same() { [ "$(spent "$1" "$2")" = $(($(logged "$2" "$3") * ${4-1})) ]; }
is_logged() { grep -q "[?&]key=$1[& ]" "$TMP/nginx.log"; }

what=sent
shmlimit create "$SEGMENT" --slots 1024 --mode 666
# Counters, since no token comes back to them within a test, and they are as large as all downloads together.
shmlimit rule set "$SEGMENT" sent --algorithm counter --capacity $CAPACITY --period 300d
shmlimit rule set "$SEGMENT" eighths --algorithm counter --capacity $CAPACITY --period 300d
mkdir -p "$TMP/html"
head -c $LARGE /dev/zero | tr '\0' x >"$TMP/html/large"
echo 'a <!--#include virtual="/large" --> b <!--#include virtual="/index.html" --> c <!--#include virtual="/large" -->' >"$TMP/html/parts"
start nginx

# While it is sent.
hold "/large?key=held" 200000
within at_least sent held $((200000 - ESTIMATE))
ok $? "what a client has got is charged, but for less than an estimate, while it is sent"
held=$(spent sent held)
[ "$held" -lt $LARGE ]
ok $? "what is not sent yet is not charged: $held"
is_logged held
is $? 1 "the request has not ended"
leave
within is_logged held
within same sent held 2
ok $? "a client that goes away is charged for what was sent, to the byte: $(spent sent held)"
[ "$held" -le "$(spent sent held)" ]
ok $? "nothing is given back of it"

hold "/slow/large?key=slow" 1
within at_least sent slow $((2 * ESTIMATE))
ok $? "with limit_rate, what was sent is charged"
within at_least sent slow $((5 * ESTIMATE))
ok $? "the charge grows while more is sent: $(spent sent slow)"
is_logged slow
is $? 1 "the slow request has not ended"
leave
within is_logged slow
within same sent slow 2
ok $? "a client that goes away from a slow response is charged for what was sent, to the byte"

hold "/small/large?key=many" 60000
within at_least small many 50000
ok $? "a download charges more than its limit while it is sent"
is "$(codes "$url/small/large?key=many")" 429 "the next request of that client is refused before the first one has ended"
is "$(codes "$url/small/index.html?key=other")" 200 "other clients are served"
leave

hold "/parts?key=parts" 300000
within at_least sent parts $((300000 - ESTIMATE))
ok $? "what subrequests send is charged while it is sent, to the client's request"
leave
hold "/absent?key=absent" 300000
within at_least sent absent $((300000 - ESTIMATE))
ok $? "after an internal redirect, what is sent is charged while it is sent"
leave
hold "/jump?key=jump" 300000
within at_least sent jump $((300000 - ESTIMATE))
ok $? "where an upstream sends the request to a file, what is sent is charged while it is sent"
leave
hold "/direct/large?key=direct" 300000
within at_least sent direct $((300000 - ESTIMATE))
ok $? "what an upstream sends without buffering is charged while it is sent"
leave
for key in parts absent jump direct; do
	within is_logged $key
	within same sent $key 2
	ok $? "when the client of $key has gone away, it is charged for what was sent, to the byte"
done

is "$(codes "$url/body/large?key=body")" 200 "a body is sent"
within same body body 3
is "$(spent body body)" $LARGE "with \$body_bytes_sent the response's header is not charged"
is "$(codes "$url/both/large?key=both&tokens=70")" 200 "a request with several limits is served"
within same eighths both 3 8
is "$(spent eighths both) $(spent fixed both) $(spent plain both)" "$((LARGE * 8)) 70 1" "each limit charges what it says"
same sent both 2
ok $? "one of them charges what was sent"
is "$(codes "$url/index.html?key=tiny")" 200 "a small page is sent"
within same sent tiny 2
ok $? "of a response smaller than the estimate the rest is given back: $(spent sent tiny)"
mkdir -p "$TMP/html/download"
ln "$TMP/html/large" "$TMP/html/download/large"
is "$(codes "$url/download/large")" 200 "README's download is served"
downloaded() { awk '$1 == "/download/large" { print $2 }' "$TMP/nginx.log"; }
readme_is_charged() { [ "$(shmlimit peek "$SEGMENT" bytes --key-ip 127.0.0.1 --json | jq '.limit - .remaining')" = "$(downloaded)" ]; }
within readme_is_charged
ok $? "it is charged for what was sent: $(downloaded)"
is "$(codes "$url/early?key=early") $(codes "$url/early?key=early")" "200 200" "a response that says early what was sent is served"
early_is_charged() { [ "$(grep -c key=early "$TMP/nginx.log")" = 2 ] && same sent early 2; }
within early_is_charged
ok $? "it is charged for all that was sent, although the variable was read before"

# A killed worker.
hold "/large?key=killed" 200000
within at_least sent killed $((200000 - ESTIMATE))
settles_down() {
	before=$(spent sent killed)
	sleep 0.2
	[ "$(spent sent killed)" = "$before" ]
}
within settles_down
for pid in $(workers); do kill -KILL "$pid"; done
within four
is "$(spent sent killed)" "$before" "of a killed worker's request what was charged until then stays"
is_logged killed
is $? 1 "its request was not logged"
leave

# Sums.
load "$REQUESTS"
grep -q 'key=load.* 206$' "$TMP/nginx.log"
ok $? "there were requests of ranges"
within same sent load 2
ok $? "over $REQUESTS requests of all kinds, of which a tenth went away, what is charged is what the log says, to the byte: $(spent sent load)"
load "$REQUESTS" &
busy=$!
for _ in $(seq "$KILLS"); do
	kill -KILL "$(workers | head -n 1)"
	sleep 0.2
	within four
done
wait $busy
lost() { lost=$(($(spent sent load) - $(logged load 2))) && [ $lost -ge 0 ] && [ $lost -le $((KILLS * 16 * (2 * LARGE + 1000))) ]; }
within lost
ok $? "of killed workers' requests what they were charged until then stays, and all others are charged as the log says: $lost"
is "$(grep -c ' \[alert\] .*exited on signal 9' "$TMP/nginx.err")" "$(grep -c ' \[alert\] ' "$TMP/nginx.err")" "nginx has no alerts but for what was killed"
stop
is "$rc$left" 0 "nginx ends when it is asked to"
done_testing
