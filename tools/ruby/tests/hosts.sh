#!/bin/sh
# hosts: two hosts, each a segment and three processes of Ruby, share one limit through a backend, as the README's program does.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
prefix=$SEGMENT
cat >"$TMP/ask.rb" <<'END'
require "shmlimit"

# What is wrong is shown.
Shmlimit.logger = Class.new { def warn(text) = STDERR.puts(text); alias info warn }.new
gate = Shmlimit::Gate.new(ARGV[0])
children = Array.new(3) { fork { exit! Array.new(40) { gate.ask("user:42").outcome }.count(:passed) } }
puts children.sum { |pid| Process.wait2(pid)[1].exitstatus }
END
for host in one two; do
	SEGMENT=$prefix.$host
	shmlimit create "$SEGMENT" --slots 64
	block tools/ruby/README.md ruby 'backend=redis' | own | sed "s|redis://10.0.0.5|$backend_url deadline=10000ms agent=no|; s|rate=5/hour|rate=50/day|" >"$TMP/readme.rb"
	is "$(ruby -w "$TMP/readme.rb")" passed "host $host: the README's program passes its request"
done
SEGMENT=$prefix
pids=
for host in one two; do
	ruby -w "$TMP/ask.rb" "segment=$prefix.$host backend=$backend_url deadline=10000ms rule=login" >"$TMP/$host" &
	pids="$pids $!"
done
# shellcheck disable=SC2086 # several
wait $pids
passed=$(($(cat "$TMP/one") + $(cat "$TMP/two")))
# What a host has leased and not spent when its processes end is lost.
ok $((passed < 10 || passed > 48)) "both hosts and all processes together get what the limit has left, and no more ($passed)"
is "$(there dbsize)" 1 "the backend has one key"
done_testing
