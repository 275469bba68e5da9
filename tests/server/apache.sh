#!/bin/sh
# apache: the module in Debian's httpd, with four children of each kind.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/apache.inc"
. "$SOURCE/tests/server/behaviour.inc"

need apache2 curl jq perl pgrep setsid setpriv
need_module "$apache_module" apache2-dev

# As many as a prefork server has children: one that waits for a child waits until a connection ends.
connections=4

# proxied HEADER: what is left to the client of a request to the README's server behind a proxy.
proxied() {
	get -o "$TMP/body" -D - -H "X-Forwarded-For: $1" "http://127.0.0.1:$proxied_port/absent" | tr -d '\r' |
		sed -n 's/^RateLimit: .*;r=\([0-9]*\);.*/\1/p'
}
behind_proxy() {
	shmlimit reset "$SEGMENT" --rule page >/dev/null
	# shellcheck disable=SC2046,SC2005 # in one line
	echo $(proxied 203.0.113.1) $(proxied 203.0.113.2) $(proxied '203.0.113.3, 203.0.113.1')
}

for mpm in prefork event; do
	what=$mpm
	make_segment
	start apache $mpm -e 's|^    ShmlimitRule page.*|    ShmlimitRule ban "%{REMOTE_ADDR}" prefix=32,64 peek status=403\n&|'
	answers
	addresses
	dry_runs
	requests
	bans
	is "$(behind_proxy)" "999 999 998" "$what: behind a trusted proxy, the last address that it passes on is the client"
	exactly
	under_load
	comes_and_goes
	rules_go_too
	churn
	is "$(said 'exit signal Segm\|exit signal Abort\|exit signal Bus')" 0 "$what: no child crashed"
	ends
	shmlimit destroy "$SEGMENT"
done

what=worker
make_segment
other_version
start apache worker -e 's/fail=open/fail=closed/' -e 's/dry_run/status=403 fields=denied/'
fails_closed
ends

proxy=192.0.2.10
more_apache="ErrorDocument 429 /index.html
LoadModule headers_module $apache_modules/mod_headers.so
Header set RateLimit own
Header set Kept yes"
start apache worker
ask -H 'If-Match: "no"' "$url/index.html"
like "$(printf '%s' "$answer" | head -n 1) $(field RateLimit)" '^HTTP/1.1 412 .* "page";r=[0-9]*;t=[0-9]*$' \
	"$what: a response with status 412 has the fields, and those of the site's own are replaced"
ask "$url/index.html"
is "$(field RateLimit | grep -c own) $(field Kept)" "0 yes" "$what: the site's fields of other names stay"
more_apache=
codes "$url/login?[1-5]" >"$TMP/codes"
ask "$url/login"
like "$answer" '^HTTP/1.1 429 ' "$what: a denial may have a document of its own"
like "$(field RateLimit | tr '\n' ' ')" '^"login";r=0;t=[0-9]* $' "$what: a document for denials has the fields of the denial"
is "$(behind_proxy)" "999 998 997" "$what: a peer that is no trusted proxy is the client, whatever it sends"
ends
proxy=127.0.0.1

# Fields are each client's own, also where mod_cache serves the response that it stored for another.
what=cache
mkdir -m 777 "$TMP/cache"
more_apache="LoadModule cache_module $apache_modules/mod_cache.so
LoadModule cache_disk_module $apache_modules/mod_cache_disk.so
LoadModule headers_module $apache_modules/mod_headers.so
CacheRoot $TMP/cache
CacheEnable disk /
Header set Cache-Control max-age=3600
$(block tools/apache/README.md apache CacheQuickHandler)"
start apache prefork
shmlimit reset "$SEGMENT" --all >/dev/null
ask "$url/index.html" -H "$(from 10.0.5.1)"
ask "$url/index.html" -H "$(from 10.0.5.1)"
like "$answer" '^Age: ' "$what: the second response comes from the cache"
like "$(field RateLimit-Policy) $(field RateLimit | tr '\n' ' ')" '^"page";q=1000;w=3600000 "page";r=998;t=7[0-9]* $' \
	"$what: it has the fields of its own request"
ask "$url/index.html" -H "$(from 10.0.5.2)"
like "$answer" '^Age: ' "$what: another client has its response from the cache, too"
like "$(field RateLimit | tr '\n' ' ')" '^"page";r=999;t=3[0-9]* $' "$what: a cached response has the fields of the client that asks"
grep -rqi ratelimit "$TMP/cache"
is $? 1 "$what: no fields are in the cache"
ends
more_apache=

shmlimit destroy "$SEGMENT" 2>/dev/null
what="apache worker"
start apache worker -e 's/fail=open/create=yes x_fields/' -e 's/Rule login.*/& rate=5\/h/' \
	-e 's/Rule page.*/& "rate=1000 per hour"/' -e 's/Rule site.*/& rate=1000\/h/'
creates
ends
shmlimit destroy "$SEGMENT"
shmlimit create "$SEGMENT" --slots 1K --mode 666 --rules 2 --rules-max 2
shmlimit rule set "$SEGMENT" login --rate 5/h --capacity 5
shmlimit rule set "$SEGMENT" page --rate 1000/h --capacity 1000
start apache worker -e 's/fail=open/create=yes/' -e 's/Rule login.*/& rate=5\/h/' \
	-e 's/Rule page.*/& "rate=1000 per hour"/' -e 's/Rule site.*/& rate=1000\/h algorithm=window/'
lacks_room
ends
shmlimit destroy "$SEGMENT"
start apache worker -e 's/fail=open/create=yes/' -e 's/Rule page.*/& rate=block/' \
	-e '/"\/login"/,/Location>$/{s/Rule login.*/Rule off/;s/ShmlimitRule site.*//}'
blocks
ends
shmlimit destroy "$SEGMENT"
more_apache="LoadModule setenvif_module $apache_modules/mod_setenvif.so
$(block tools/apache/README.md apache PLAN_RATE)"
start apache worker -e 's/fail=open/create=yes/' -e 's/Rule login.*/& rate=5\/h/' \
	-e 's/Rule page.*/& "rate=%{req:X-Rate}" rate_error=2\/h/' -e 's/Rule site.*/& rate=1000\/h/'
by_request
plans 404 "$url/api"
ends
more_apache=
shmlimit destroy "$SEGMENT"
differs 's/Rule login/Rule absent/' 'rule absent: no such rule: requests that need it pass without a limit.* line [0-9]'
differs 's/fail=open/create=yes slots=128/' 'it has 64 slots, and slots=128 does not change that'
wrong 's/Rule login.*/& rate=5\/h/' 'rule=login: rate="5/h" needs create=yes, line [0-9]'
wrong 's/cost=10/cost=0/' '"cost=0" must be cost=N, 1 or more'
wrong 's/prefix=32,64/prefix=32,129/' 'must be prefix=V4,V6, at most prefix=32,128'
wrong 's/dry_run/status=600/' 'must be status=N, 400 to 599'
wrong 's/dry_run/status=420/' '"status=420" is no status that httpd knows'
wrong 's/fail=open/fail=shut/' '"fail=shut" must be fail=open or fail=closed'
wrong 's/site all cost=10/site/' "needs a rule's name and a key"
wrong 's/site all/& "rate=%{req:A"/' 'ShmlimitRule: "rate=%{req:A":'
wrong 's/site all/& "rate=%{req:A}" "rate=%{req:B}"/' 'ShmlimitRule: "rate=%{req:B}" is duplicate'
wrong 's/site all/& "rate=%{req:A}" algorithm=window/' '"algorithm=window" cannot be used with a rate= that has an expression'
wrong 's/site all/& status=503 status=429/' '"status=429" is given twice'
wrong 's/fail=open/& fail=open/' '"fail=open" is given twice'
wrong 's/site all/& delay=1s nodelay/' '"nodelay" must be either delay= or nodelay'
wrong 's/site all/site REMOTE_ADDR/' 'the key "REMOTE_ADDR" is the name of a variable, and one key for all clients: write %{REMOTE_ADDR}'
wrong 's/site all/& charge=%{resp:X-Used}/' '"cost=10" beside charge=: write estimate='
wrong 's/site all/& charge_max=1h/' '"charge_max=1h" needs charge='
wrong 's/site all cost=10/site all charge=%{resp:X-Used} charge_scale=2 charge_scale=3/' '"charge_scale=3" is duplicate'
wrong 's/%{REMOTE_ADDR}/%{REMOTE_ADDR/' 'ShmlimitRule: key'
wrong 's/Rule login/Rule "log in"/' '"log in" must be a rule.s name: 1 to 63 letters'
wrong 's/^ShmlimitSegment [^ ]*/ShmlimitSegment a\/b/' '"a/b" must be a segment.s name: 1 to 239 bytes'
wrong 's/^ShmlimitSegment.*/&\n&/' 'ShmlimitSegment: one is set already, and a server or virtual host has one segment'
wrong 's/site all/site ""/' 'ShmlimitRule: the key is empty, so no request would be limited'
wrong 's/Rule site.*/Rule off/' 'ShmlimitRule: off must stand alone'
wrong 's/Rule login.*/Rule off/' 'is off here, and cannot limit beside that'
wrong 's/^ShmlimitSegment.*//' 'ShmlimitRule needs a ShmlimitSegment'
done_testing
