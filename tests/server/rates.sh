#!/bin/sh
# rates: a rate that is a fraction is that fraction in nginx, Apache, Lua, a Python front-end and replay; and a reload
# whose rate= has another algorithm refuses no request.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
. "$SOURCE/tests/server/apache.inc"

need nginx apache2 curl jq perl pgrep setsid setpriv
need_module "$nginx_module" nginx-dev
need_module "$apache_module" apache2-dev

shown() { shmlimit rule show "$SEGMENT" "$1" --json 2>/dev/null | jq -r '"\(.capacity) \(.refill) \(.period_ns)"'; }
algorithm() { shmlimit rule show "$SEGMENT" page --json 2>/dev/null | jq -r .algorithm; }
has_algorithm() { [ "$(algorithm)" = "$1" ]; }

fractions() {
	ask "$url/login"
	is "$(shown login)" "3 1 7200000000000" "$host: rate=\"0.5/h burst 3\" is 1 in 2 hours"
	is "$(field RateLimit-Policy | head -n 1)" '"login";q=3;w=21600' "$host: the policy's window is the time to full"
	is "$(tally "$url/login?[1-3]")" "2 times 200, 1 times 429" "$host: three requests pass"
	ask "$url/" -H 'X-Rate: 2.5/day burst 4'
	is "$(field RateLimit-Policy | head -n 1)" '"page";q=4;w=138240' "$host: a request that brings 2.5/day has it"
}

# reloads SIGNAL: the rule page becomes a window, and a bucket again, until 3,000 requests were decided by then.
reloads() {
	while [ ! -e "$TMP/enough" ]; do crowd "$url/?[1-200]"; done >"$TMP/codes" &
	load=$!
	changed=0 failed=0
	while [ $changed -lt 60 ] && { [ $changed -lt 4 ] || [ "$(wc -l <"$TMP/codes")" -lt 3000 ]; }; do
		has_algorithm funnel && to=window || to=funnel
		sed -i "s/ \"rate=200[^\"]*\"/ \"rate=200\/h$([ $to = funnel ] || echo ' window')\"/" "$TMP/$host.conf"
		kill "-$1" $master
		within has_algorithm $to || failed=$((failed + 1))
		changed=$((changed + 1))
	done
	: >"$TMP/enough"
	wait $load
	rm "$TMP/enough"
	is $failed 0 "$host: each reload gives the rule its other algorithm"
	is "$(grep -v '^\(200\|429\|000\)$' "$TMP/codes" | sort | uniq -c)" "" "$host: no request is refused for want of the rule"
	[ "$(count 200)" -gt 0 ] && [ "$(count 429)" -gt 0 ]
	ok $? "$host: requests are decided by the rule"
}

closed='s/fail=open/create=yes fail=closed/'
start nginx -e "$closed" -e 's/rule=login/& "rate=0.5\/h burst 3"/' -e 's/rule=page/& rate=$http_x_rate rate_error=2\/h/' -e 's/rule=site/& rate=1000\/h/'
fractions
stop
shmlimit destroy "$SEGMENT"
start nginx -e "$closed" -e 's/rule=login/& rate=5\/h/' -e 's/rule=page/& "rate=200\/h"/' -e 's/rule=site/& rate=1000000\/h/'
reloads HUP
stop
shmlimit destroy "$SEGMENT"
start apache worker -e "$closed" -e 's/Rule login.*/& "rate=0.5\/h burst 3"/' -e 's/Rule page.*/& "rate=%{req:X-Rate}" rate_error=2\/h/' \
	-e 's/Rule site.*/& rate=1000\/h/'
fractions
stop
shmlimit destroy "$SEGMENT"
start apache worker -e "$closed" -e 's/Rule login.*/& rate=5\/h/' -e 's/Rule page.*/& "rate=200\/h"/' -e 's/Rule site.*/& rate=1000000\/h/'
reloads USR1
stop
shmlimit destroy "$SEGMENT" 2>/dev/null
shmlimit create "$SEGMENT" --slots 64

is "$(LD_LIBRARY_PATH=$BUILD PYTHONPATH=$SOURCE/tools/python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c '
import sys, shmlimit
gate = shmlimit.Gate(sys.argv[1], [shmlimit.Limit("half", lambda request: "k", rate="0.5/h burst 3")])
print([gate.ask({}).status for _ in range(4)].count("passed"))' "$SEGMENT") $(shown half)" "3 3 1 7200000000000" "a Python gate has rate=\"0.5/h burst 3\""
lua=$SOURCE/tools/lua
if command -v luajit >/dev/null; then
	is "$(SEGMENT=$SEGMENT LD_LIBRARY_PATH=$BUILD LUA_PATH="$lua/?.lua;;" luajit -e '
		local limiter = require("resty.shmlimit").open(os.getenv("SEGMENT"))
		print(limiter:rule_set("lua", "0.5/h burst 3") ~= nil)') $(shown lua)" "true 3 1 7200000000000" "a rule in Lua has 0.5/h burst 3"
else
	ok 0 "a rule in Lua has 0.5/h burst 3 # SKIP luajit is not installed"
fi
for second in 0 1 2 3 4 5 6 7; do echo "203.0.113.9 - - [01/Mar/2026:10:00:0$second +0000] \"GET / HTTP/1.1\" 200 1"; done >"$TMP/access.log"
is "$(shmlimit replay --rule "0.5/s burst 1" --json "$TMP/access.log" | jq -r '.rules[0] | "\(.allowed) \(.denied)"')" "4 4" "replay of one request a second at 0.5/s allows every other one"
done_testing
