#!/bin/sh
# nginx: the module in Debian's nginx, with four workers and the README's own configuration.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"

module=$BUILD/nginx/ngx_http_shmlimit_module.so
for command in nginx curl jq; do
	PATH=$PATH:/usr/sbin command -v $command >/dev/null || skip_all "$command is not installed"
done
PATH=$PATH:/usr/sbin
[ -f "$module" ] || skip_all "the module was not built: nginx-dev is not installed"

chmod 755 "$TMP"
mkdir "$TMP/html"
echo page >"$TMP/html/index.html"

# configure SED...: the README's snippet, with names and places of this test, in a whole configuration.
configure() {
	{
		[ "$(id -u)" -ne 0 ] || echo 'user www-data;'
		cat <<-END
			load_module $module;
			worker_processes 4;
			pid $TMP/pid;
			error_log $TMP/error.log;
			events { worker_connections 128; }
			http {
			    set_real_ip_from 127.0.0.1;
			    real_ip_header X-Client;
			    client_body_temp_path $TMP/body.d;
			    proxy_temp_path $TMP/proxy.d;
			    fastcgi_temp_path $TMP/fastcgi.d;
			    uwsgi_temp_path $TMP/uwsgi.d;
			    scgi_temp_path $TMP/scgi.d;
			    keepalive_requests 50;
		END
		snippet "$SOURCE/tools/nginx/README.md" nginx | sed -e "s|segment web|segment $SEGMENT|" \
			-e "s|127.0.0.1:8080|127.0.0.1:$port|" -e "s|/var/www/html|$TMP/html|" \
			-e "s|/var/log/nginx/limited.log|$TMP/access.log|" \
			-e "s|limited '|limited '\$pid \$http_user_agent |" "$@"
		echo '}'
	} >"$TMP/nginx.conf"
}

# start SED...: sets $master and $url.
start() {
	for attempt in 1 2 3 4 5; do
		port=$(some_port)
		configure "$@"
		: >"$TMP/error.log"
		nginx -e "$TMP/error.log" -c "$TMP/nginx.conf" -g 'daemon off;' &
		master=$!
		servers=$master
		url=http://127.0.0.1:$port
		up() { gone $master || codes "$url/absent" | grep -q '^[1-9]'; }
		within up
		gone $master || return 0
		wait $master
	done
	diag "$(cat "$TMP/error.log")"
	exit 1
}

workers() { pgrep -P $master; }
four() { [ "$(workers | wc -l)" -eq 4 ]; }
said() { grep -c "$1" "$TMP/error.log"; }
last_log() { tail -n 1 "$TMP/access.log"; }
from() { printf 'X-Client: %s' "$1"; }

make_segment
make_rules
start

# What clients see.
answer=$(answer_of "$url/login")
like "$answer" '^HTTP/1.1 200 ' "a client within the limits gets 200"
is "$(field RateLimit-Policy)" '"login";q=5;w=3600
"site";q=1000;w=3600000' "and hears of every policy"
is "$(field RateLimit)" '"login";r=4;t=720
"site";r=990;t=36000' "and what is left of each"
is "$(field Retry-After)" "" "and not to retry"
is "$(codes "$url/login?[1-4]" | sort | uniq -c | tr -s ' ')" " 4 200" "the capacity is served"
answer=$(answer_of "$url/login")
like "$answer" '^HTTP/1.1 429 ' "then he gets 429"
like "$(field Retry-After)" '^7(20|1[0-9])$' "with the time to retry after"
is "$(field RateLimit-Policy)" '"login";q=5;w=3600' "and the policy that denied him"
is "$(field RateLimit)" "\"login\";r=0;t=$(field Retry-After)" "and its state"
is "$(remaining site all)" 950 "and of the other limit he has taken nothing"
like "$(last_log)" ' 429 REJECTED 0$' "the log says so"
is "$(codes "$url/login" -H "$(from 10.0.0.1)")" 200 "another address is another client"
like "$(last_log)" ' 200 PASSED 4$' "with a limit of his own"

# Addresses.
is "$(codes "$url/login?[1-3]" -H "$(from 2001:db8::1)" | uniq)" 200 "one of a /64"
is "$(codes "$url/login?[1-3]" -H "$(from 2001:db8::ffff:2)" | sort | uniq -c | tr -s ' ')" ' 2 200
 1 429' "and another of it are one client"
is "$(codes "$url/login" -H "$(from 2001:db8:0:1::1)")" 200 "the next /64 is another"
is "$(codes "$url/login?[1-4]" -H "$(from ::ffff:10.0.0.1)" | uniq)" 200 "an IPv4-mapped address"
is "$(codes "$url/login" -H "$(from 10.0.0.1)")" 429 "is the IPv4 address"

# Dry run, several limits, internal redirects.
answer=$(answer_of "$url/trial")
like "$answer" '^HTTP/1.1 200 ' "a dry run denies nobody"
is "$(field RateLimit)" "" "and tells nobody"
like "$(last_log)" ' 200 REJECTED_DRY_RUN 0$' "but the log"
client=$(from 10.0.0.2)
is "$(codes "$url/" -H "$client")" 200 "a request that is redirected internally"
like "$(last_log)" ' PASSED 999$' "is limited once"
is "$(codes "$url/absent" -H "$client")" 404 "one for what is not there"
like "$(last_log)" ' 404 PASSED 998$' "too"
is "$(codes "$url/index.html" -I -H "$client")" 200 "HEAD is a request"
like "$(last_log)" ' PASSED 997$' "as others are"

shmlimit rule set "$SEGMENT" site --capacity 1000 --rate 1/h --mode off
shmlimit rule set "$SEGMENT" login --capacity 5 --rate 5/h --mode dry-run
is "$(codes "$url/login?[1-9]" -H "$client" | uniq)" 200 "a rule in a dry run denies nobody either"
like "$(last_log)" ' REJECTED_DRY_RUN 0$' "and the log tells"
shmlimit rule set "$SEGMENT" site --capacity 1000 --rate 1/h --mode enforce
shmlimit rule set "$SEGMENT" login --capacity 5 --rate 5/h --mode enforce
shmlimit reset "$SEGMENT" --all
shmlimit rule set "$SEGMENT" site --capacity 9 --rate 1/h
is "$(codes "$url/login" -H "$client")" 429 "where the second of two limits denies"
answer=$(answer_of "$url/login" -H "$client")
is "$(field RateLimit-Policy)" '"site";q=9;w=32400' "it is the one that is named"
is "$(field Retry-After)" "" "what never fits is not to be retried"
shmlimit rule set "$SEGMENT" site --capacity 1000 --rate 1/h
is "$(codes "$url/login?[1-5]" -H "$client" | uniq)" 200 "and the first has taken nothing"

# The limit is exact, over all workers, also when they are killed.
client=$(from 10.0.0.3)
codes -Z --parallel-max 16 "$url/?[1-1500]" -H "$client" -A exact >"$TMP/codes" 2>/dev/null
is "$(count 200) $(count 429)" "1000 500" "the capacity is served to 16 connections, exactly"
[ "$(sed -n 's/^\([0-9]*\) exact .*/\1/p' "$TMP/access.log" | sort -u | wc -l)" -gt 1 ]
ok $? "by several workers"

client=$(from 10.0.0.4)
codes "$url/?[1-400]" -H "$client" >"$TMP/codes"
for pid in $(workers); do
	kill -KILL "$pid"
	within gone "$pid"
	ok $? "a worker is killed"
	within four
	ok $? "and replaced"
	codes -Z --parallel-max 8 "$url/?[1-200]" -H "$client" >>"$TMP/codes" 2>/dev/null
done
is "$(count 200) $(count 429)" "1000 200" "the limit holds over all workers and their successors, exactly"

before=$(allowed)
client=$(from 10.0.0.5)
codes -Z --parallel-max 16 "$url/?[1-4000]" -H "$client" >"$TMP/codes" 2>/dev/null &
load=$!
begun() { [ "$(allowed)" -gt $((before + 100)) ]; }
within begun
kill -KILL "$(workers | head -n 1)"
kill -0 $load
ok $? "a worker is killed under load, which goes on"
wait $load
served=$(count 200)
[ "$served" -le 1000 ] && [ "$served" -ge $((1000 - 16)) ]
ok $? "the capacity is served, less what the killed worker had in hand"
diag "served $served"
is "$(codes "$url/?[1-20]" -H "$client" | uniq)" 429 "and none of it is left over"
within four
ok $? "the worker is replaced"

# The segment goes and comes.
missing() { [ "$(codes "$url/" -o /dev/null -A missing)" = 200 ] && last_log | grep -q FAILED; }
shmlimit destroy "$SEGMENT"
within missing
ok $? "when the segment is destroyed requests pass, failing open"
noticed() {
	codes -Z --parallel-max 8 "$url/?[1-40]" >"$TMP/codes" 2>/dev/null
	[ "$(said "$SEGMENT: no such segment")" -ge 4 ]
}
within noticed
ok $? "each worker notices"
codes -Z --parallel-max 8 "$url/?[1-400]" >"$TMP/codes" 2>/dev/null
is "$(count 200)" 400 "and all requests pass"
answer=$(answer_of "$url/")
is "$(field RateLimit)" "" "without promises"
is "$(said "$SEGMENT: no such segment: requests that need it pass without a limit")" 4 "each worker says it once"
make_segment
make_rules
limited() { codes "$url/" >/dev/null && last_log | grep -q PASSED; }
within limited
ok $? "when it is created anew it is opened again"
recovered() {
	codes -Z --parallel-max 8 "$url/?[1-40]" >/dev/null 2>&1
	[ "$(said 'in order again')" -eq 4 ]
}
within recovered
ok $? "by each worker, which says so once"
failed=$(grep -c ' FAILED ' "$TMP/access.log")
counted=$(sed -n 's/.*in order again; requests that passed without a limit: //p' "$TMP/error.log" |
	awk '{ n += $1 } END { print n + 0 }')
is "$counted" "$failed" "and every request that passed meanwhile was counted"
client=$(from 10.0.0.6)
codes -Z --parallel-max 16 "$url/?[1-1200]" -H "$client" >"$TMP/codes" 2>/dev/null
is "$(count 200) $(count 429)" "1000 200" "the limit holds again, exactly"

shmlimit rule remove "$SEGMENT" login
is "$(codes "$url/login")" 200 "a rule that is missing fails too"
like "$(last_log)" ' FAILED -$' "and the log says so"
shmlimit rule set "$SEGMENT" login --capacity 5 --rate 5/h
is "$(codes "$url/login")" 200 "set again"
like "$(last_log)" ' PASSED 4$' "it is found at once"

before=$(workers)
kill -HUP $master
reloaded() {
	for pid in $before; do
		gone "$pid" || return 1
	done
	four
}
within reloaded
ok $? "a reload brings new workers"
is "$(codes "$url/login")" 200 "who serve"
like "$(last_log)" ' PASSED 3$' "and keep what was taken"

before=$(workers)
kill -TERM $master
wait $master
is $? 0 "SIGTERM ends it, with status 0"
servers=
left=
for pid in $before; do
	within gone "$pid" || left="$left $pid"
done
is "$left" "" "and no worker outlives it"

# Another version of the layout; failing closed.
printf '\377' | dd of="/dev/shm/$SEGMENT" bs=1 seek=8 conv=notrunc 2>/dev/null
start -e 's/fail=open/fail=closed/' -e 's/dry_run/status=420/'
is "$(codes "$url/")" 503 "a segment of another version fails, closed"
codes "$url/?[1-200]" >/dev/null
within four
is "$(said 'has another layout version: requests that need it are refused')" 4 "each worker says so once"
shmlimit destroy "$SEGMENT"
make_segment
make_rules
served() { [ "$(codes "$url/")" = 200 ]; }
within served
ok $? "one that is created in its place is opened"
is "$(codes "$url/trial?[1-6]" -H "$(from 10.0.0.7)" | sort | uniq -c | tr -s ' ')" ' 5 200
 1 420' "who is denied gets the status that is configured"

# What is configured wrongly is said.
wrong() {
	configure -e "$1"
	run nginx -t -q -e "$TMP/error.log" -c "$TMP/nginx.conf"
	like "$rc $err" "^1 .*$2" "nginx -t refuses $1"
}
wrong 's/cost=10/cost=0/' '"cost=0" must be cost=N, 1 or more'
wrong 's/cost=10/cost=18446744073709551616/' 'must be cost=N'
wrong 's/prefix=32,64/prefix=33,64/' 'must be prefix=V4,V6, at most prefix=32,128'
wrong 's/prefix=32,64/prefix=32/' 'must be prefix=V4,V6'
wrong 's/dry_run/status=200/' 'must be status=N, 400 to 599'
wrong 's/dry_run/dry/' '"dry" must be cost=N, prefix=V4,V6, status=N or dry_run'
wrong 's/rule=site/cost=1/' 'needs one rule=NAME'
wrong 's/fail=open/fail=shut/' '"fail=shut" must be fail=open or fail=closed'
wrong "s/^shmlimit_segment.*//" '"shmlimit" needs a "shmlimit_segment"'

done_testing
