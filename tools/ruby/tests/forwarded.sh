#!/bin/sh
# forwarded: the middleware says once in a process that all clients behind a proxy are one, under Puma.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"

need curl puma
answers() { [ "$(codes --unix-socket "$TMP/socket" http://localhost/)" = 200 ]; }
said() { grep -c 'behind a proxy all clients are one' "$TMP/puma.err"; }
says() { [ "$(said)" -ge 1 ]; }

# try NUMBER TITLE FIELD WORDS BLOCK: how often three requests with the field are reported.
try() {
	cat >"$TMP/forwarded.ru" <<-END
		require "shmlimit/middleware"
		2.times do |n|
		    use Shmlimit::Middleware, "segment=$SEGMENT create=yes $4 rule=client#{n} rate=60/day" $5
		end
		run ->(env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] }
	END
	puma -q -t 2:2 -e production -b "unix://$TMP/socket" "$TMP/forwarded.ru" >"$TMP/puma.err" 2>&1 </dev/null &
	master=$!
	servers="$servers $master"
	within answers || { diag "$(cat "$TMP/puma.err")"; exit 1; }
	before=$(said)
	for i in 1 2 3; do before="$before $(codes --unix-socket "$TMP/socket" -H "$3" http://localhost/)"; done
	[ "$1" = 0 ] || within says
	kill -TERM $master
	wait $master
	is "$before: $(said)" "0 200 200 200: $1" "$2"
	shmlimit destroy "$SEGMENT" 2>/dev/null
	rm -f "$TMP/socket"
}
field='X-Forwarded-For: 203.0.113.9'
try 1 "of two gates and three requests one is reported" "$field" '' ''
like "$(cat "$TMP/puma.err")" 'a request from 127.0.0.1 has a field X-Forwarded-For: .*Rack::Request.new[(]env[)].ip.*proxy_warning=no' "it says what to write"
for other in 'Forwarded: for=203.0.113.9' 'X-Real-IP: 203.0.113.9' 'CF-Connecting-IP: 203.0.113.9'; do
	try 1 "${other%%:*} is such a field" "$other" '' ''
done
try 1 "a block's key is reported, too" "$field" '' 'do |env| env["REMOTE_ADDR"] end'
try 1 "a key with a cost is reported, too" "$field" '' 'do |env| [env["REMOTE_ADDR"], 1] end'
try 0 "Rack::Request#ip says nothing" "$field" '' 'do |env| Rack::Request.new(env).ip end'
try 0 "an address that is in the field was put in the peer's place" 'X-Forwarded-For: 203.0.113.9, 127.0.0.1' '' ''
try 0 "proxy_warning=no says nothing" "$field" proxy_warning=no ''

# looks COUNTS TITLE NAME WORDS FIELD REQUESTS...: of each run of requests, how many are looked at and reported, as N/N
looks() {
	counts=$1 title=$2
	shift 2
	is "$(ruby -w "$SOURCE/tools/ruby/tests/looks.rb" "$@")" "$counts" "$title"
	shmlimit destroy "$SEGMENT" 2>/dev/null
}
looks "1/1 0/0 0/0" "after the report no request is looked at" a '' 203.0.113.9 1 a '' 203.0.113.9 99 b '' 203.0.113.9 99
looks "1/0 1/1 1/0" "after the report of another middleware one more request is looked at" a '' '' 1 b '' 203.0.113.9 1 a '' 203.0.113.9 99
looks 0/0 "with proxy_warning=no no request is looked at" a proxy_warning=no 203.0.113.9 99
looks "10100/0 1/1" "of requests without a field one in a hundred is looked at in the end" a '' '' 20000 a '' 203.0.113.9 100
done_testing
