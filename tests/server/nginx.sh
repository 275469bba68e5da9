#!/bin/sh
# nginx: the module in Debian's nginx, with four workers.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/behaviour.inc"

need nginx curl jq perl pgrep setpriv
need_module "$nginx_module" nginx-dev

reloads() {
	ask "$url/login"
	before=$(workers)
	kill -HUP $master
	within reloaded
	ok $? "$what: a reload brings new workers"
	ask "$url/login"
	like "$logged" ' 200 PASSED 3$' "$what: a reload keeps what was taken"
}
reloaded() {
	for pid in $before; do
		gone "$pid" || return 1
	done
	four
}

# The README's server behind proxies. Here requests come from a Unix socket, which only /partner trusts.
behind_proxies() {
	proxied() { codes --unix-socket "$TMP/nginx.sock" -H "X-Forwarded-For: $2" "http://localhost/$1"; }
	is "$(proxied 'partner?[1-6]' 203.0.113.1 | tr '\n' ' ')" "200 200 200 200 200 429 " \
		"$what: where a location trusts the proxy, the limit applies to the address that the proxy passes on"
	is "$(proxied partner 203.0.113.2)" 200 "$what: behind the same proxy, another address is another client"
	is "$(proxied partner '203.0.113.3, 203.0.113.1')" 429 "$what: behind a proxy, what a client sends itself is ignored"
	proxied '?[1-3]' 203.0.113.4 >"$TMP/codes"
	is "$(remaining page unix:)" 997 "$what: without trust in the peer, the peer is the client and the header is ignored"
}

# The README's commands, on a system whose nginx has no modules yet.
block tools/nginx/README.md indented 'make nginx' |
	sed "/^make /d; s|/usr/lib|$TMP/lib|; s|build/nginx|$BUILD/nginx|; s/ web / $SEGMENT /; s/www-data/$(id -gn)/" >"$TMP/install"
run sh -e "$TMP/install"
is "$rc $err" "0 " "the README's commands can be run"
cmp -s "$nginx_module" "$TMP/lib/nginx/modules/${nginx_module##*/}"
ok $? "the README's commands install the module"
shmlimit destroy "$SEGMENT"

what=nginx
make_segment
start nginx -e 's|^    shmlimit $remote_addr rule=page.*|    shmlimit $remote_addr rule=ban prefix=32,64 peek status=403;\n&|'
answers
addresses
dry_runs
requests
bans
behind_proxies
exactly
under_load
comes_and_goes
rules_go_too
shmlimit reset "$SEGMENT" --all >/dev/null
reloads
churn
ends

other_version
start nginx -e 's/fail=open/fail=closed/' -e 's/dry_run/status=403 fields=denied/'
fails_closed
ends

# An upstream with a limit of its own, and responses that a filter of nginx replaces.
# shellcheck disable=SC2016 # nginx's variables
more_nginx="server {
    listen unix:$TMP/upstream.sock;
    location / { add_header RateLimit '\"own\";r=7;t=1'; add_header ratelimit-policy '\"own\";q=7;w=1'; add_header Kept yes; return 200 ok; }
    location /unlimited { add_header RateLimit '\"own\";r=7;t=1'; return 200 ok; }
}
server {
    listen unix:$TMP/front.sock;
    root $TMP/html;
    location /proxied { shmlimit all rule=page; proxy_pass http://unix:$TMP/upstream.sock:/; }
    location /unlimited { proxy_pass http://unix:$TMP/upstream.sock:/unlimited; }
    location / { shmlimit all rule=page; }
}"
start nginx -e 's/fail=open/fail=closed/'
ask --unix-socket "$TMP/front.sock" http://localhost/proxied
like "$(field RateLimit) $(field RateLimit-Policy)$(field ratelimit-policy) $(field Kept)" '^"page";r=[0-9]*;t=[0-9]* "page";q=1000;w=[0-9]* yes$' \
	"$what: the fields of an upstream's own limit are replaced, and other fields stay"
ask --unix-socket "$TMP/front.sock" http://localhost/unlimited
is "$(field RateLimit)" '"own";r=7;t=1' "$what: without a limit the upstream's fields stay"
for status in 412 304 206 404; do
	case $status in
	412) set -- -H 'If-Match: "no"' http://localhost/index.html ;;
	304) set -- -H "If-Modified-Since: $(date -R -u -r "$TMP/html/index.html" | sed 's/+0000/GMT/')" http://localhost/index.html ;;
	206) set -- -r 0-0 http://localhost/index.html ;;
	404) set -- http://localhost/absent ;;
	esac
	ask --unix-socket "$TMP/front.sock" "$@"
	like "$(printf '%s' "$answer" | head -n 1) $(field RateLimit-Policy)" "^HTTP/1.1 $status .* \"page\";q=1000;w=[0-9]*\$" "$what: a response with status $status has the fields, once"
done
more_nginx=
ends

shmlimit destroy "$SEGMENT"
start nginx -e 's/fail=open/create=yes x_fields/' -e 's/rule=login/& rate=5\/h/' -e 's/rule=page/& "rate=1000 per hour"/' \
	-e 's/rule=site/& rate=1000\/h/'
creates
ends
shmlimit destroy "$SEGMENT"
start nginx -e 's/fail=open/create=yes/' -e 's/rule=page/& rate=block/' -e 's/shmlimit .*rule=login [^ ]*;/shmlimit off;/' \
	-e 's/shmlimit all.*//'
blocks
ends
shmlimit destroy "$SEGMENT"
shmlimit create "$SEGMENT" --slots 1K --mode 666 --rules 2 --rules-max 2
shmlimit rule set "$SEGMENT" login --rate 5/h --capacity 5
shmlimit rule set "$SEGMENT" page --rate 1000/h --capacity 1000
start nginx -e 's/fail=open/create=yes/' -e 's/rule=login/& rate=5\/h/' -e 's/rule=page/& "rate=1000 per hour"/' \
	-e 's/rule=site/& rate=1000\/h algorithm=window/'
lacks_room
ends
shmlimit destroy "$SEGMENT"
more_nginx=$(block tools/nginx/README.md nginx plan_rate | sed "s|127.0.0.1:8083|unix:$TMP/plans.sock|; s|/var/www/html|$TMP/html|")
start nginx -e 's/fail=open/create=yes/' -e 's/rule=login/& rate=5\/h/' -e 's/rule=page/& rate=$http_x_rate rate_error=2\/h/' \
	-e 's/rule=site/& rate=1000\/h/'
by_request
plans 200 --unix-socket "$TMP/plans.sock" http://localhost/
ends
more_nginx=
shmlimit destroy "$SEGMENT"
differs 's/rule=login/rule=absent/' 'rule absent: no such rule: requests that need it pass without a limit.* in .*nginx[.]conf:[0-9]'
differs 's/fail=open/create=yes slots=128/' 'it has 64 slots, and slots=128 does not change that'
wrong 's/rule=login/& rate=5\/h/' 'rule=login: rate="5/h" needs create=yes in .*nginx[.]conf:[0-9]'
wrong 's/rule=site/& rate=$nothing/' 'unknown "nothing" variable'
wrong 's/rule=site/& rate=$arg_a rate=$arg_b/' '"rate=.arg_b" is duplicate'
wrong 's/rule=site/& rate=$arg_a algorithm=window/' '"algorithm=window" cannot be used with a rate= that has variables: leave it out'
wrong 's/rule=site/& algorithm=funnel rate=$arg_a/' '"algorithm=funnel" cannot be used with a rate= that has variables'
wrong 's/rule=site/& status=503 status=429/' 'status=429.* is given twice'
wrong 's/fail=open/& fail=open/' 'fail=open.* is given twice'
wrong 's/rule=site/& delay=1s nodelay/' 'must be either delay= or nodelay'
wrong 's/shmlimit all/shmlimit remote_addr/' '"remote_addr" is the name of a variable, .*: write it with a [$] before it'
wrong 's/shmlimit all/shmlimit http_x_api_key/' '"http_x_api_key" is the name of a variable'
wrong 's/cost=10/& charge=$arg_a/' 'has cost= beside charge=: write estimate='
wrong 's/rule=site/& charge_max=1h/' 'needs charge=.variable beside estimate=, charge_max= and charge_scale='
wrong 's/rule=site cost=10/rule=site charge=$arg_a charge_scale=2 charge_scale=3/' '"charge_scale=3" is duplicate'
wrong 's/rule=site/& rate_error=5/' '"rate_error=5" a period is missing'
wrong 's/rule=site/& rule=page/' '"rule=page" is a second rule'
wrong 's/fail=open/& rule=page/' '"rule=page" belongs to a limit'
wrong 's/cost=10/cost=0/' '"cost=0" must be cost=N, 1 or more'
wrong 's/cost=10/cost=18446744073709551616/' 'must be cost=N'
wrong 's/prefix=32,64/prefix=33,64/' 'must be prefix=V4,V6, at most prefix=32,128'
wrong 's/prefix=32,64/prefix=32/' 'must be prefix=V4,V6'
wrong 's/dry_run/status=200/' 'must be status=N, 400 to 599'
wrong 's/dry_run/dry/' '"dry" must be cost=, estimate=, .* dry_run, peek, delay=, .* protected'
wrong 's/rule=site/cost=1/' 'needs one rule=NAME'
wrong 's/fail=open/fail=shut/' '"fail=shut" must be fail=open or fail=closed'
wrong 's/rule=site/rule=si*te/' '"rule=si.te" must be a rule.s name: 1 to 63 letters'
wrong 's/rule=site/rule=/' '"rule=" must be a rule.s name'
wrong 's/^shmlimit_segment [^ ]*/shmlimit_segment a\/b/' '"a/b" must be a segment.s name: 1 to 239 bytes'
wrong 's/^shmlimit_segment.*/&\n&/' '"shmlimit_segment" directive is duplicate'
wrong 's/shmlimit all/shmlimit ""/' 'has an empty key, so no request would be limited'
wrong 's/shmlimit all.*/& shmlimit off;/' 'off: must stand alone'
wrong 's/shmlimit all/shmlimit off/' 'off: must stand alone'
wrong 's/shmlimit all.*//; s/shmlimit .*rule=login [^ ]*;/shmlimit off; &/' 'is off here, and cannot limit beside that'
wrong 's/fail=open/create=yes/; s/rule=site/& rate=5\/minut/' 'minut is not a unit: did you mean "5/minute"'
wrong 's/^shmlimit_segment.*//' '"shmlimit" needs a "shmlimit_segment"'
done_testing
