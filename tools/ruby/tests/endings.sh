#!/bin/sh
# endings: under Puma the place of a request is left when it ends, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"

need curl perl pgrep puma python3 setpriv
export TMP

# Each path is one of endings.py. The application has a time-out for /timeout, and takes over the connection of a WebSocket.
cat >"$TMP/endings.ru" <<'END_OF_APP'
require "digest/sha1"
require "socket"
require "timeout"
require "shmlimit/middleware"

WORK = lambda do |env|
  UNIXSocket.open(ENV.fetch("ENDINGS_WORK")) { |socket| socket.read(1) } if env["QUERY_STRING"] == "work"
end

class Parts
  def initialize(env) = @env = env

  def each
    path = @env["PATH_INFO"]
    yield "part"
    WORK.call(@env)
    while path == "/stream"
      sleep 0.02
      yield "part"
    end
    raise path if path == "/exception-during"

    yield "part"
  end
end

def websocket(env)
  io = env["rack.hijack"].call
  accept = Digest::SHA1.base64digest("#{env['HTTP_SEC_WEBSOCKET_KEY']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
  Thread.new do
    io.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n")
    io.readpartial(7)
    io.write("\x81\x01x")
    # What comes next is another text, or the end.
    io.readpartial(7)
  ensure
    io.close
  end
  [-1, {}, []]
end

use Shmlimit::Middleware, "segment=#{ENV.fetch('SEGMENT')} rule=busy" do |env|
  env["PATH_INFO"] == "/absent" ? nil : "all"
end
use Shmlimit::Middleware, "segment=#{ENV.fetch('SEGMENT')} rule=none" do |env|
  env["PATH_INFO"] == "/denied" ? "all" : nil
end
run(lambda do |env|
  path = env["PATH_INFO"]
  next [200, { "Content-Type" => "text/plain" }, Parts.new(env)] if %w[/stream /parts /exception-during].include?(path)
  next websocket(env) if path == "/websocket"

  WORK.call(env)
  case path
  when "/slow" then sleep 0.02 until File.exist?(ENV.fetch("ENDINGS_GO"))
  when "/timeout" then Timeout.timeout(0.5) { sleep }
  when "/exception" then raise path
  when "/redirect" then next [302, { "Location" => "/normal" }, []]
  when "/error" then next [404, {}, ["no\n"]]
  when "/websocket-refused" then next [403, {}, ["no\n"]]
  when "/last" then Process.kill(:TERM, Process.pid)
  end
  [200, { "Content-Type" => "text/plain", "Content-Length" => "3" }, ["ok\n"]]
end)
END_OF_APP

configure_puma() { :; }
run_puma() {
	exec setpriv --pdeathsig TERM puma -q -w 4 -t 8:8 -e production --pidfile "$TMP/puma.pid" -b "tcp://127.0.0.1:$port" \
		"$TMP/endings.ru" >"$TMP/puma.err" 2>&1 </dev/null
}

create_places
what=Puma
start puma
within four
common=normal,keep_alive,stream,head,exception,exception_during,denied,redirect,error,gone_before,gone_during,body_abandoned
# shellcheck disable=SC2046 # a list of names
endings $(echo $common | tr , ' ') timeout websocket websocket_server websocket_refused
at_random 20 $common
within four
# Puma replaces workers one by one. Nor does it count requests: gems that recycle its workers send them SIGTERM.
begins
before=$(workers)
ends reload cut_off USR1
renewed() { four && ! workers | grep -qxF "$before"; }
within renewed
ok $? "Puma replaces all workers"
before=$(workers)
is "$(codes "$url/last")" 200 "the response of the last request of a worker is sent"
replaced() { [ "$(workers)" != "$before" ]; }
ends recycled within replaced
begins
ends sigterm cut_off TERM
wait "$master"
not_here internal
all_endings
done_testing
