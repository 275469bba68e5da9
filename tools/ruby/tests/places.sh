#!/bin/sh
# places: how many requests at once, under Puma. The place of a request is free when its response was sent, its client
# went away, its application raised an exception, or its worker was killed.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"

need curl pgrep puma
export TMP

# A request to /wait, /stream or /short goes on until there is a file. A worker sets the rates of create=yes with its first
# request, so the short time has a rule of its own.
cat >"$TMP/places.ru" <<'END_OF_APP'
require "shmlimit/middleware"

OVER = -> { File.exist?("#{ENV.fetch('TMP')}/go") }

# Until the server closes it, which it does when it cannot write.
class Stream
  def each = (yield "x" * 65_536 until OVER.call)
  def close = File.write("#{ENV.fetch('TMP')}/closed", "yes")
end

use Shmlimit::Middleware, "segment=#{ENV.fetch('SEGMENT')} create=yes rule=reports rate=\"2 at once for 1h\" " \
                            "rule=short rate=\"2 at once for 2s\"" do |env|
  case env["PATH_INFO"]
  when "/free" then [nil, nil]
  when "/short" then [nil, "all"]
  else ["all", nil]
  end
end
# A connection that the application takes over, as for a WebSocket.
def taken_over(io)
  Thread.new do
    io.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") if yield
    io.write("taken over\n")
    sleep 0.02 until OVER.call
    io.close
  end
end
run(lambda do |env|
  case env["PATH_INFO"]
  when "/taken"
    taken_over(env["rack.hijack"].call) { true }
    next [-1, {}, []]
  when "/taken-later"
    next [200, { "rack.hijack" => ->(io) { taken_over(io) { false } } }, []]
  end
  File.write("#{ENV.fetch('TMP')}/arrived", "yes")
  sleep 0.02 until OVER.call || !%w[/wait /short].include?(env["PATH_INFO"])
  raise "on purpose" if env["PATH_INFO"] == "/raise"

  [200, { "Content-Type" => "text/plain" }, env["PATH_INFO"] == "/stream" ? Stream.new : ["hello\n"]]
end)
END_OF_APP

ask_for() { codes --unix-socket "$TMP/socket" "http://localhost/$1"; }
answers() { [ "$(ask_for free)" = 200 ]; }
up_or_gone() { gone $master || { four && answers; }; }
free() { [ "$(remaining "${2:-reports}" all)" = "$1" ]; }

# hold PATH: a request in the background; sets $held.
hold() {
	curl -s --unix-socket "$TMP/socket" -o /dev/null -w '%{http_code}\n' "http://localhost/$1" >"$TMP/codes.$1" &
	held=$!
	servers="$servers $held"
}
let_go() {
	touch "$TMP/go"
	wait "$@"
	rm "$TMP/go"
}

puma -q -w 4 -t 2:2 -e production -b "unix://$TMP/socket" "$TMP/places.ru" >"$TMP/puma.err" 2>&1 </dev/null &
master=$!
servers=$master
within up_or_gone && ! gone $master || { diag "$(cat "$TMP/puma.err")"; exit 1; }

hold wait
first=$held
within free 1
hold stream
within free 0
ok $? "each request in progress holds a place, also while its body is sent"
answer=$(get --unix-socket "$TMP/socket" -o "$TMP/body" -D - http://localhost/ | tr -d '\r')
is "$(cat "$TMP/body") $(field ratelimit-policy)|$(field ratelimit)|$(field retry-after)" \
	'Too Many Requests "reports";q=2;qu="concurrent-requests"|"reports";r=0|' "one more request is denied while they last"
kill "$held"
wait "$held" 2>/dev/null
within free 1
ok $? "a place is free after its client went away"
is "$(cat "$TMP/closed")" yes "the application's body is closed, too"
let_go "$first"
within free 2
ok $? "a place is free after its response was sent"
is "$(cat "$TMP/codes.wait") $(ask_for raise)" "200 500" "an exception of the application passes the middleware"
within free 2
ok $? "a place is free after an exception of the application"

for path in taken taken-later; do
	curl -s -N --unix-socket "$TMP/socket" -o "$TMP/body.$path" "http://localhost/$path" &
	held=$!
	servers="$servers $held"
	within grep -q 'taken over' "$TMP/body.$path" 2>/dev/null
	free 1
	ok $? "a place is held while the application has the connection: $path"
	let_go "$held"
	within free 2
	ok $? "a place is free when the application has closed the connection: $path"
done

rm -f "$TMP/arrived"
hold short
within test -s "$TMP/arrived"
for victim in $(workers); do
	kill -KILL "$victim"
	within gone "$victim"
done
within free 2 short
ok $? "places of killed workers are free after the rule's period"
kill -TERM $master
wait $master
done_testing
