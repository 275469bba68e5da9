#!/bin/sh
# delay: requests that wait for their turn in a line that moves up, in nginx and Apache, with clients that go away and
# workers that are killed.
#
# No test depends on speed: a limit allows no request earlier than its refills, however busy the machine is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl jq pgrep python3 setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin "$1")
		    log_format turns '\$msec \$status \$request_uri';
		    log_format limited '\$pid \$http_user_agent \$status \$shmlimit_status \$shmlimit_remaining';
		    shmlimit_segment $SEGMENT;
		    server {
		        listen 127.0.0.1:$port;
		        access_log $TMP/nginx.log limited;
		        root $TMP/html;
		        location /slow/ {
		            alias $TMP/html/;
		            shmlimit \$http_x_key rule=slow delay=1h;
		        }
		        location /fast/ {
		            alias $TMP/html/;
		            shmlimit \$http_x_key rule=fast delay=30s;
		        }
		        location /tight/ {
		            alias $TMP/html/;
		            shmlimit \$http_x_key rule=tight delay=500ms;
		        }
		        location = /turn {
		            access_log $TMP/turns.log turns;
		            shmlimit all rule=turn delay=60s;
		            try_files /index.html =404;
		        }
		        ${2-}
		    }
		}
	END
}

configure_apache() {
	cat >"$TMP/apache.conf" <<-END
		$(apache_begin prefork alias)
		StartServers 8
		MinSpareServers 4
		MaxRequestWorkers 32
		Listen 127.0.0.1:$port
		LogFormat "%P %{User-Agent}i %>s %{SHMLIMIT_STATUS}e" limited
		CustomLog $TMP/apache.log limited
		KeepAlive off
		DocumentRoot $TMP/html
		Alias /slow/ $TMP/html/
		Alias /fast/ $TMP/html/
		Alias /tight/ $TMP/html/
		ShmlimitSegment $SEGMENT
		<Location /slow/>
		    ShmlimitRule slow "%{HTTP:X-Key}" delay=1h
		</Location>
		<Location /fast/>
		    ShmlimitRule fast "%{HTTP:X-Key}" delay=30s
		</Location>
		<Location /tight/>
		    ShmlimitRule tight "%{HTTP:X-Key}" delay=500ms
		</Location>
	END
}

now_ms() { date +%s%3N; }
# later: a request in the background. Sets $client.
later() {
	curl -s -o "$TMP/body.later" -w '%{http_code}' --max-time 600 "$url/slow/index.html" -H "X-Key: $key" >"$TMP/later" &
	client=$!
	servers="$servers $client"
}

delays() {
	is "$(codes "$url/slow/index.html" -H "X-Key: $key")" 200 "$host: a request whose token is there is served"
	later
	within waits slow "$key" 1
	ok $? "$host: the next waits for its turn"
	is "$(codes "$url/index.html?[1-9]" | sort | uniq -c | tr -s ' ')" " 9 200" "$host: others are served meanwhile"
	ask "$url/slow/index.html" -H "X-Key: $key"
	like "$answer" '^HTTP/1.1 429 ' "$host: one that would wait for too long is denied"
	like "$(field Retry-After)" '^3[0-9][0-9][0-9]$' "$host: a denied request is told when it may wait"
	ok "$(test -s "$TMP/later"; echo $((1 - $?)))" "$host: the first still waits"
}

# The worker that has the request is killed.
killed() {
	for pid in $(workers); do
		kill -KILL "$pid"
	done
	wait "$client" 2>/dev/null
	within test "$(codes "$url/index.html")" = 200
	ok $? "$host: the server goes on after its workers were killed"
	within waits slow "$key" 0
	ok $? "$host: a killed worker's request waits no more"
	later
	within waits slow "$key" 1
	ok $? "$host: another waits in its place"
}

# By the log: no more are served than the limit allows, and all that it allows.
exact() {
	from_ms=$(now_ms)
	connections=11
	is "$(crowd "$url/fast/index.html?[1-11]" -H "X-Key: $key" | sort | uniq -c | tr -s ' ')" " 11 200" "$host: those that wait are all served"
	took=$(($(now_ms) - from_ms))
	ok $((took < 500)) "$host: in their turn, ten refills later: $took ms"
	connections=40
	from_ms=$(now_ms)
	crowd "$url/tight/index.html?[1-60]" -H "X-Key: $key" >"$TMP/codes"
	took=$(($(now_ms) - from_ms))
	ok $(($(count 200) < 11)) "$host: a crowd gets at least a burst and what comes back within the delay: $(count 200)"
	ok $(($(count 200) > 1 + (took + 1) / 50)) "$host: a crowd gets no more than the limit allows: $(count 200) in $took ms"
	is $(($(count 200) + $(count 429))) 60 "$host: the rest of the crowd is denied"
}

shmlimit create "$SEGMENT" --slots 1024 --mode 666
shmlimit rule set "$SEGMENT" slow --capacity 1 --rate 1/h --max-wait 1h
shmlimit rule set "$SEGMENT" fast --capacity 1 --rate 20/s --max-wait 30s
shmlimit rule set "$SEGMENT" tight --capacity 1 --rate 20/s --max-wait 500ms
shmlimit rule set "$SEGMENT" turn --capacity 1 --rate 10/s --max-wait 60s

start nginx 1
key=user:42
delays
kill "$client"
wait "$client" 2>/dev/null
within waits slow "$key" 0
ok $? "nginx: a client that goes away waits no more"
later
within waits slow "$key" 1
killed
key=user:43
exact
key=user:44
later
wait "$client"
later
within waits slow "$key" 1
stop
is "$rc$left" 0 "nginx: it ends when it is told to, though a request waits"
is "$(grep shmlimit "$TMP/nginx.err")" "" "nginx: nothing is logged"
shmlimit rule set "$SEGMENT" fast --capacity 1 --rate 20/s --max-wait 20s
check_nginx 2>/dev/null
like "$(cat "$TMP/nginx.err")" 'rule fast: delay=30s is longer than its max-wait of 20s.* in .*nginx.conf:' "nginx -t warns of a rule that allows less"

# Requests that wait in four workers, and clients of both versions of HTTP that go away.
http2_port=$(some_port)
if nginx -V 2>&1 | grep -q with-http_v2_module; then
	start nginx 4 "listen 127.0.0.1:$http2_port http2;"
	python3 "$SOURCE/tests/server/leavers.py" "$port" "$http2_port" /turn "$TMP/turns.log" 4
	ok $? "nginx: while clients come and go, no stretch of time sees more than the limit, and all that stay have their turn"
	within waits turn all 0
	ok $? "nginx: the line is empty then"
	stop
else
	ok 0 "nginx: while clients come and go, no stretch of time sees more than the limit # SKIP nginx has no HTTP/2"
	ok 0 "nginx: the line is empty then # SKIP nginx has no HTTP/2"
fi

start apache
key=user:45
delays
kill "$client"
wait "$client" 2>/dev/null
within waits slow "$key" 0
ok $? "apache: a client that goes away waits no more"
within grep -q ' 408 ' "$TMP/apache.log"
ok $? "apache: its request is logged with the status 408"
later
within waits slow "$key" 1
killed
key=user:46
exact
stop
is "$rc$left" 0 "apache: it ends when it is told to"
check_apache 2>"$TMP/check"
like "$(cat "$TMP/check")" 'rule fast: delay=30s is longer than its max-wait of 20s.*line' "apache: its test of the configuration warns, too"
done_testing
