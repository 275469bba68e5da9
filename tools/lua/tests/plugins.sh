#!/bin/sh
# plugins: the plugins for Kong and APISIX, in nginx with four workers and stand-ins of what the two offer. The
# configurations are those of gateways.md.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/lua/tests/lua.inc"
. "$SOURCE/tools/lua/tests/nginx.inc"

need curl setpriv
cp -r "$SOURCE/tools/lua/kong" "$SOURCE/tools/lua/apisix" "$SOURCE/tools/lua/tests/plugins.lua" "$TMP"
chmod -R go+rX "$TMP"

spec() { own | sed -n 's/^ *spec: //p' | tr -d "'"; }
location() {
	printf 'location /%s/%s {
		access_by_lua_block { require("plugins").access("%s", "%s", { spec = [[%s]], keys = %s }) }
		content_by_lua_block { ngx.sleep(tonumber(ngx.var.arg_for or 0)) ngx.say("ok") }
		log_by_lua_block { require("plugins").log("%s") }
	}\n' "$1" "$2" "$1" "$2" "$3" "$4" "$1"
}
spec=$(block tools/lua/gateways.md yaml "name: shmlimit" | spec)
like "$spec" 'segment=.* create=yes rule=.*rate=' "the guide configures Kong's plugin"
is "$(block tools/lua/gateways.md yaml routes: | spec)" "$spec" "the guide configures APISIX's plugin likewise"
start lua "lua_package_path '$TMP/?.lua;;';
	init_by_lua_block { package.preload.cjson = nil require 'plugins' }
	server {
		listen 127.0.0.1:$(some_port);
	}
	server {
		listen 127.0.0.1:PORT reuseport;
		location /absent { return 404; }
		$(location kong a "$(echo "$spec" | sed 's|[0-9]*/minute|100/year|')" '{ "ip" }')
		$(location apisix a "$(echo "$spec" | sed 's|[0-9]*/minute|100/year|; s|rule=|rule=other|')" '{ "remote_addr" }')
		$(location kong both "segment=SEGMENT create=yes rule=address rate=9/year rule=key rate=2/year" '{ "ip", "header:x-key" }')
		$(location apisix both "segment=SEGMENT create=yes rule=address2 rate=9/year rule=key2 rate=2/year" '{ "remote_addr", "http_x_key" }')
		$(location kong held 'segment=SEGMENT.held create=yes mode=0666 rule=busy rate="2 at once for 1 hour"' '{ "consumer" }')
		$(location apisix held 'segment=SEGMENT.held create=yes mode=0666 rule=busy2 rate="2 at once for 1 hour"' '{ "http_x_consumer" }')
		$(location kong none 'segment=SEGMENT.none rule=x' '{ "ip" }')
		$(location apisix none 'segment=SEGMENT.none rule=x' '{ "remote_addr" }')
		location /check { content_by_lua_block {
			local plugins = require 'plugins'
			for _, kind in ipairs({ 'kong', 'apisix' }) do
				for _, conf in ipairs({ { spec = 'segment=x rule=y rate=3/minut', keys = { 'ip' } }, { spec = 'segment=x rule=y rule=z' }, {},
					{ spec = 'segment=x rule=y', keys = { 5 } } }) do
					local plugin, err = plugins[kind](conf)
					ngx.say(kind, ': ', plugin and 'accepted' or err)
				end
			end
			ngx.say(select(2, plugins.kong({ spec = 'segment=x rule=y', keys = { 'address' } })))
		} }
	}"
within four

connections=4
for kind in kong apisix; do
	crowd "$url/$kind/a?[1-300]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "100 200" "$kind: of 300 requests to four workers the limit's 100 pass"
	answer=$(get -D - -o "$TMP/body" "$url/$kind/a" | tr -d '\r' | tr A-Z a-z)
	is "$(echo "$answer" | sed -n '1s/.* \([0-9]*\) .*/\1/p; s/^retry-after: [1-9].*/retry/p') $(grep -ci 'rate limit exceeded' "$TMP/body")" "429
retry 1" "$kind: a refusal has a text and says when to retry"
	is "$(for key in a a a b; do codes -H "x-key: $key" "$url/$kind/both"; done | tr '\n' ' ')" "200 200 429 200 " "$kind: each key of two limits counts"
	is "$(codes "$url/$kind/both")" 200 "$kind: a limit without a key does not apply"
	answer=$(get -D - -o "$TMP/body" -H 'x-key: c' "$url/$kind/both" | tr -d '\r' | tr A-Z a-z)
	like "$answer" '^ratelimit: "address2?";r=[0-9]+;t=[0-9]+, "key2?";r=1;t=[0-9]+$' "$kind: an answer has the fields of both limits"
	# Until it is served: a request of full() may be in its place for a moment.
	served() { [ "$(codes -H 'x-consumer: ann' "$url/$kind/held?for=2")" = 200 ]; }
	within served &
	within served &
	full() { [ "$(codes -H 'x-consumer: ann' "$url/$kind/held")" = 429 ]; }
	within full
	ok $? "$kind: while two requests are in progress another is refused"
	is "$(codes -H 'x-consumer: bob' "$url/$kind/held")" 200 "$kind: another consumer has places of its own"
	free() { [ "$(codes -H 'x-consumer: ann' "$url/$kind/held")" = 200 ]; }
	within free
	ok $? "$kind: places are left when the requests are over"
	is "$(codes "$url/$kind/none")" 503 "$kind: without its segment the failure policy decides"
	like "$(cat "$TMP/lua.err")" 'shmlimit: no such segment' "$kind: the log says why"
done
is "$(get "$url/check")" 'kong: spec: rate=3/minut: minut is not a unit: did you mean "3/minute"?
kong: spec has 2 limits (rule=...), and keys has 1
kong: spec: required field missing
kong: keys: 1: expected a string
apisix: spec: rate=3/minut: minut is not a unit: did you mean "3/minute"?
apisix: spec has 2 limits (rule=...), and keys has 1
apisix: property "spec" is required
apisix: property "keys" validation failed: wrong type: expected string
keys: 1: must be ip, consumer, credential or header:NAME' "a configuration that is wrong is refused when it is made"
is "$(crashes)" "" "no worker crashed, and no error was logged"
stop
done_testing
