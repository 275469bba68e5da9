#!/bin/sh
# global: nginx and Apache as two hosts, each with its own segment, share one limit through a backend; and what they
# answer while the backend is away.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl jq perl pgrep setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev
need_backend

# A token an hour: none comes back within the test. The rule login stays this host's.
make_rules() {
	shmlimit rule set "$SEGMENT" page --algorithm lease --capacity 1000 --rate 1/h
	shmlimit rule set "$SEGMENT" login --capacity 5 --rate 5/h
	shmlimit rule set "$SEGMENT" site --algorithm lease --capacity 50 --rate 1/h
}

# use nginx|apache: the one that the verbs of server.inc speak of.
use() { eval "host=$1 url=\$$1_url master=\$$1_master SEGMENT=\$$1_segment"; }

# begin nginx|apache SED...: start it with a segment of its own. No test depends on speed, so the backend has time.
begin() {
	SEGMENT=$prefix.$1
	make_segment
	start "$@"
	eval "$1_url=$url $1_master=$master $1_segment=$SEGMENT"
}
with() { printf 's|fail=open|%s backend=%s deadline=5000ms|' "$1" "$backend_url"; }

expired() { shmlimit inspect "$prefix.$1" --json | jq .leases.expired; }

# spent CURL...: what was served, to which more is added, and what expired, since it was forgotten last, is the capacity.
spent() {
	codes "$nginx_url/index.html" "$@" >>"$TMP/codes"
	codes "$apache_url/index.html" "$@" >>"$TMP/codes"
	[ $(($(count 200) + $(expired nginx) + $(expired apache) - expired_before)) -eq 1000 ]
}
forget() { expired_before=$(($(expired nginx) + $(expired apache))); }

# The lines of processes about the backend.
lines() {
	sed -n -e 's/.*\] \([0-9]*\)#.*: \(backend .*\)/\1 \2/p' \
		-e 's/.*\[pid \([0-9]*\).*\] \(backend .*\)/\1 \2/p' "$TMP/$host.err"
}

found() { [ "$(codes "$url/login" -H "$(from 10.0.1.3)")" = 200 ]; }
decides() {
	use "$1"
	ask "$url/index.html" -H "$(from 10.0.2.2)"
	printf '%s\n' "$logged" | grep -q ' 200 PASSED 9[0-9]*$'
}

connected() { there info stats | tr -d '\r' | sed -n 's/^total_connections_received://p'; }
created_anew() {
	shmlimit destroy "$SEGMENT" && make_segment
	# Each time that one looks is a connection too.
	[ "$(connected)" -gt $((connected_before + tries + 1 + 8)) ]
}

# Each child that found no segment, or no rule in it, has found them. One that had nothing to do learns it now.
settled() {
	crowd "$url/index.html?[1-40]" -H "$(from 10.0.4.1)" >"$TMP/codes"
	[ "$(said 'need it are refused')" -eq "$(said 'in order again')" ] && ! grep -q '^503$' "$TMP/codes"
}

prefix=$SEGMENT
trap 'end_servers; SEGMENT=$prefix; tap_clean' EXIT
connections=4
start_backend
begin nginx -e "$(with fail=open)"
begin apache event -e "$(with fail=closed)"

# One limit over both.
client=$(from 10.0.0.9)
use nginx
ask "$url/index.html" -H "$client"
like "$answer" '^HTTP/1.1 200 ' "a client within a limit of many hosts gets 200"
like "$(field RateLimit)" '^"page";r=999;' "a client within a limit of many hosts gets what is left"
like "$logged" ' 200 PASSED 999$' "as does the log"
use apache
ask "$url/index.html" -H "$client"
like "$logged" ' 200 PASSED 998$' "another host has what the first one left"

client=$(from 10.0.0.1)
forget
: >"$TMP/codes"
is "$(tally "$nginx_url/index.html" -H "$client") $(tally "$apache_url/index.html" -H "$client")" \
	"1 times 200 1 times 200" "both serve a client"
printf '200\n200\n' >"$TMP/codes"
crowd "$nginx_url/index.html?[1-900]" -H "$client" >"$TMP/nginx.codes" &
load=$!
crowd "$apache_url/index.html?[1-900]" -H "$client" >"$TMP/apache.codes"
wait $load
cat "$TMP/nginx.codes" "$TMP/apache.codes" >>"$TMP/codes"
[ "$(count 200)" -le 1000 ] && [ "$(count 200)" -gt 0 ]
ok $? "both at once serve no more than the capacity"
within spent -H "$client"
ok $? "what both served and what has expired is the capacity, exactly"
is "$(grep -v '^200$\|^429$\|^503$' "$TMP/codes")" "" "the others get 429"

# A worker is killed.
use nginx
client=$(from 10.0.0.2)
forget
codes "$url/index.html?[1-300]" -H "$client" >"$TMP/codes"
victim=$(workers | head -n 1)
kill -KILL "$victim"
within gone "$victim"
within four
ok $? "a worker is killed, and replaced"
crowd "$url/index.html?[1-900]" -H "$client" >>"$TMP/codes"
within spent -H "$client"
ok $? "the limit goes on where it was, exactly"

# All or none, of both kinds; site is what is left to all, of which a request takes ten.
is "$(tally "$apache_url/login?[1-3]" -H "$(from 10.0.1.1)")" "3 times 200" "requests with a limit of each kind pass"
is "$(tally "$url/login?[1-3]" -H "$(from 10.0.1.2)")" "2 times 200, 1 times 429" "requests with a limit of each kind pass until that of many hosts is spent"
ask "$url/login" -H "$(from 10.0.1.2)"
like "$(field RateLimit)" '^"site";r=0;' "a denial names the limit of many hosts"
like "$(field Retry-After)" '^[1-9][0-9]*$' "with the time to retry after"
shmlimit rule remove "$SEGMENT" site
shmlimit rule set "$SEGMENT" site --capacity 1000 --rate 1/h
within found
ok $? "a rule may become this host's own"
is "$(tally "$url/login?[1-3]" -H "$(from 10.0.1.2)")" "3 times 200" "a client that was denied has its tokens of the other limit back"

# A worker that decides goes on with the handle that it has; one that opens the segment again connects again.
use apache
before=$(workers)
connected_before=$(connected)
batches=0
until [ -e "$TMP/enough" ] || [ $batches -eq 1000 ]; do
	crowd "$url/index.html?[1-200]" -H "$(from 10.0.4.1)"
	batches=$((batches + 1))
done >"$TMP/churned" &
load=$!
within created_anew
ok $? "while segments come and go under load processes connect to the backend again"
: >"$TMP/enough"
wait $load
is "$(sort -u "$TMP/churned" | grep -cv '^200$\|^429$\|^503$')" 0 "every request is answered while segments come and go"
[ "$(grep -c '^200$' "$TMP/churned")" -le 1000 ]
ok $? "no client gets more than the limit while segments come and go"
is "$(workers)" "$before" "no worker dies while segments come and go"
within settled
ok $? "all workers find the segment that was made last"
use nginx

# The backend is gone.
is "$(lines)$(use apache && lines)" "" "while the backend answers nothing is reported about it"
kill_backend
is "$(tally "$nginx_url/index.html?[1-40]" -H "$(from 10.0.2.1)")" "40 times 200" \
	"without the backend, fail=open lets pass"
is "$(tally "$apache_url/index.html?[1-40]" -H "$(from 10.0.2.1)")" "40 times 503" "without the backend, fail=closed blames no client"
for host in nginx apache; do
	lines | grep -q 'no connection .*: must be running and reachable from here'
	ok $? "$host says that it is gone"
	is "$(lines | sort | uniq -d)" "" "no process of $host reports twice that the backend is gone"
done
is "$(tally "$apache_url/login?[1-2]" -H "$(from 10.0.2.1)")" "2 times 503" "a request is refused for want of a lease"
logged() { grep -q "$2" "$TMP/$1.log"; }
within logged nginx '10.0.2.1 .* 200 PASSED ' && within logged apache '10.0.2.1 .* 503 FAILED '
ok $? "the logs say PASSED where fail=open decides, and FAILED where fail=closed does"
is "$(codes "$apache_url/trial" -H "$(from 10.0.2.1)")" 200 "is not where only this host's limits count"

start_backend
within decides nginx
ok $? "when the backend is back one host decides again"
within decides apache
ok $? "when the backend is back the other host decides again"
use nginx
codes "$url/index.html" -H "$(from 10.0.0.1)" >"$TMP/codes"
is "$(cat "$TMP/codes")" 429 "a client that was denied before the outage still is"

for host in nginx apache; do
	use $host
	stop
	is "$rc$left" 0 "$host ends with all its workers"
done

# A share.
use nginx
kill_backend
start nginx -e "$(with fail=closed) ; s|deadline=|local_share=20 deadline=|"
client=$(from 10.0.3.1)
crowd "$url/index.html?[1-100]" -H "$client" >"$TMP/codes"
is "$(count 200) $(count 429)" "20 80" "without its backend a host allows 2 % of the limit by local_share=20"
stop

wrong() {
	configure_nginx -e "s|fail=open|$1|"
	run check_nginx
	like "$rc $(printf '%s' "$err" | tr '\n' ' ')" "^1 .*$2" "$1 is refused"
}
wrong backend=http://host '"backend=http://host" must be backend=- or backend=URL; a URL begins with redis://, rediss://, redis.sentinel://, rediss.sentinel://, unix:// or redis.unix://'
wrong backend=- '"backend=-" needs SHMLIMIT_BACKEND in the environment'
wrong deadline=5 '"deadline=5" must be deadline=Nms or deadline=Nus, 100us to 10000ms'
wrong local_share=1001 '"local_share=1001" must be local_share=N, thousandths, 1 to 1000'
configure_nginx -e "s|fail=open|backend=-|"
SHMLIMIT_BACKEND=$backend_url run check_nginx
is "$rc" 0 "backend=- is what the environment says"
done_testing
