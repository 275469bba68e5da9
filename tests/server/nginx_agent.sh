#!/bin/sh
# nginx_agent: requests of nginx that need the host's agent are suspended. While the Redis server does not answer, the
# one worker goes on with all others. The agent may be a thread of a worker.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl jq perl pgrep ps setsid setpriv
need_module "$nginx_module" nginx-dev
need_backend

# A token an hour: none comes back within the test. No test depends on speed: the deadline is far.
make_rules() {
	shmlimit rule set "$SEGMENT" shared --algorithm lease --capacity 5 --rate 1/h
	shmlimit rule set "$SEGMENT" dry --algorithm lease --capacity 1 --rate 1/h
	shmlimit rule set "$SEGMENT" here --capacity 100 --rate 1/h
	shmlimit rule set "$SEGMENT" places --algorithm hold --capacity 3 --period 1h
}

configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin "${workers:-1}")
		    log_format limited '\$pid \$http_user_agent \$status \$shmlimit_status \$shmlimit_remaining';
		    shmlimit_segment $SEGMENT fail=open backend=$backend_url deadline=10000ms ${more-};
		    server {
		        listen 127.0.0.1:$port;
		        access_log $TMP/nginx.log limited;
		        root $TMP/html;
		        location /shared/ {
		            alias $TMP/html/;
		            shmlimit \$arg_key rule=shared;
		            shmlimit all rule=here local;
		            shmlimit all rule=places local;
		        }
		        location /dry/ {
		            alias $TMP/html/;
		            shmlimit \$arg_key rule=dry dry_run;
		        }
		        location /slow/ {
		            alias $TMP/html/;
		            limit_rate 1k;
		            shmlimit all rule=places local;
		        }
		        location /here/ {
		            alias $TMP/html/;
		            shmlimit all rule=here local;
		        }
		    }
		}
	END
}

waiting() { [ "$(shmlimit global status "$SEGMENT" --json | jq .waiting)" = "$1" ]; }
serving() { [ "$(shmlimit global status "$SEGMENT" --json | jq '.serving and .connections == 1')" = true ]; }
# later FILE URL: a request in the background. Sets $client.
later() {
	rm -f "$TMP/$1"
	curl -s -o "$TMP/body.$1" -w '%{http_code}' --max-time 60 "$2" >"$TMP/$1" &
	client=$!
}
pause_backend() { kill -STOP "$backend"; }
resume_backend() { kill -CONT "$backend"; }
free() { [ "$(remaining places all)" = "$1" ]; }

start_backend
if [ "$(id -u)" -eq 0 ]; then
	shmlimit create "$SEGMENT" --slots 1024 --mode 660 --group www-data
else
	shmlimit create "$SEGMENT" --slots 1024
fi
make_rules
setpriv --pdeathsig TERM "$(command -v shmlimit)" agent "$SEGMENT" "$backend_url" --deadline 10s --lease 10s 2>"$TMP/agent.err" &
agent=$!
servers="$servers $agent"
within serving
ok $? "there is an agent"
start nginx

ask "$url/shared/index.html?key=user:42"
like "$answer" '^HTTP/1.1 200 ' "a request that needs the agent is served"
like "$(field RateLimit)" '^"shared";r=4' "its response has the limit's fields"
like "$logged" ' 200 PASSED 2$' "its variables are set"
is "$(codes "$url/shared/index.html?key=user:42&[1-5]" | tr '\n' ' ')" "200 200 200 200 429 " "the limit is exact"
within free 3
ok $? "requests that were suspended leave their places"

pause_backend
later first "$url/shared/index.html?key=user:43"
within waiting 1
ok $? "while the server stands still, a request for a new key waits"
is "$(codes "$url/index.html?[1-20]" | sort | uniq -c | tr -s ' ')" " 20 200" "a location without a limit is served meanwhile"
is "$(codes "$url/here/index.html")" 200 "a limit of this host decides meanwhile"
is "$(codes "$url/shared/index.html?key=user:42")" 429 "a denial that is known decides meanwhile"
is "$(remaining places all) $(cat "$TMP/first")" "2 " "the request still waits, and holds its place"
later second "$url/shared/index.html?key=user:44"
second=$client
within waiting 2
kill "$second"
wait "$second" 2>/dev/null
within waiting 1
ok $? "a client that goes away ends its request"
within free 2
ok $? "the place of a client that went away is free"
here=$(remaining here all)
resume_backend
within test -s "$TMP/first"
is "$(cat "$TMP/first")" 200 "when the server goes on, the request that waited is served"
is "$(remaining here all)" $((here - 1)) "each request takes one token of the other limit, when it is decided"
is "$(codes "$url/shared/index.html?key=user:44&[1-6]" | tr '\n' ' ')" "200 200 200 200 200 429 " \
	"a client that went away took no tokens"

pause_backend
later first "$url/dry/index.html?key=user:45"
within waiting 1
is "$(codes "$url/index.html")" 200 "a limit in a dry run does not stop the worker"
resume_backend
within test -s "$TMP/first"
is "$(cat "$TMP/first")" 200 "a request that waited for a dry run is served"

# A fast shutdown: a response that takes minutes is cut off, and so is a request that is suspended.
head -c 1000000 /dev/zero >"$TMP/html/large"
pause_backend
later first "$url/shared/index.html?key=user:46"
first=$client
later second "$url/slow/large"
within waiting 1
within free 1
ok $? "a suspended request and one that is served hold their places"
stop
is "$rc$left" 0 "a worker with a suspended request ends when it is told to"
is "$(shmlimit global status "$SEGMENT" --json | jq .waiting)" 0 "nothing waits for a worker that has ended"
is "$(remaining places all)" 3 "a worker that has ended has left its places"
resume_backend
wait "$first" "$client" 2>/dev/null
is "$(grep shmlimit "$TMP/nginx.err" "$TMP/agent.err")" "" "nothing is logged as an error"

exhausted() { [ "$(codes "$url/shared/index.html?key=user:48")" = 429 ]; }
# Without waiting: fail=open decides, and the agent still has the request.
more=wait=0
start nginx
pause_backend
ask "$url/shared/index.html?key=user:48"
like "$logged" ' 200 PASSED' "with wait=0 a request passes while the server stands still"
ok $((! $(shmlimit global status "$SEGMENT" --json | jq .waiting))) "the agent still asks for it"
resume_backend
within exhausted
ok $? "what the agent was told then holds for the next requests"
stop

# Without that agent, a thread of one worker is it.
kill "$agent"
wait "$agent" 2>/dev/null
workers=2 more=agent=thread
agent_pid() { shmlimit global status "$SEGMENT" --json | jq .pid; }
# Each request has a key of its own, so that the backend is needed.
asked=0
another_serves() {
	asked=$((asked + 1))
	codes "$url/dry/index.html?key=new:$asked" >/dev/null
	serving && [ "$(agent_pid)" != "$1" ]
}
start nginx
within another_serves "$agent"
ok $? "without the service there is an agent"
thread=$(agent_pid)
is "$(ps -o comm= -L -p "$thread" | grep -c shmlimit-agent) $(ps -o comm= -p "$thread")" "1 nginx" "the agent is a thread of a worker"
is "$(codes "$url/shared/index.html?key=user:47&[1-6]" | tr '\n' ' ')" "200 200 200 200 200 429 " "the limit is exact with a thread"
kill -KILL "$thread"
within another_serves "$thread"
ok $? "a thread of another worker replaces that of a killed one"

# nginx's log has an outage from its beginning to its end, once for all workers.
logged_once() {
	asked=$((asked + 1))
	codes "$url/shared/index.html?key=out:$asked" >/dev/null
	[ "$(grep -c "$1" "$TMP/nginx.err")" -eq 1 ]
}
kill_backend
within logged_once ': it does not answer: requests that need it are allowed'
ok $? "the log says what becomes of requests while the backend is gone"
start_backend
within logged_once ': it answers again, after [0-9.]* s; requests allowed: [0-9]*'
ok $? "the log says when it is over, and how many requests there were"
done_testing
