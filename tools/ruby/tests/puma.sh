#!/bin/sh
# puma: workers of Puma and Unicorn, which fork from a master that has loaded the application, are admitted one
# limit: Rack::Attack with the store, and the middleware. Limits do not refill during the test.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"

need curl pgrep puma unicorn
ruby -e 'require "rack/attack"; require "active_support"' 2>/dev/null || skip_all "no ruby-rack-attack, ruby-activesupport"
export TMP

# Each request that the limits admit appends a byte to a file before it is answered.
cat >"$TMP/attack.ru" <<'END_OF_APP'
require "rack/attack"
require "shmlimit/store"
require "active_support"
require "active_support/cache"

# Of such a period, the 70th since 1970 and shorter than a year, this second is near the beginning.
PERIOD = (Time.now.to_i - 1000) / 70
Rack::Attack.cache.store = ENV["MEMORY"] ? ActiveSupport::Cache::MemoryStore.new : Shmlimit::Store.new(ENV.fetch("SEGMENT"))
Rack::Attack.throttle("all", limit: ENV.fetch("LIMIT").to_i, period: PERIOD) { |request| request.env["HTTP_X_CLIENT"] }
use Rack::Attack
run(lambda do |env|
  File.open("#{ENV.fetch('TMP')}/admitted.#{env['HTTP_X_CLIENT']}", "a") { |file| file.syswrite(".") } if env["HTTP_X_CLIENT"]
  [200, { "Content-Type" => "text/plain" }, ["hello\n"]]
end)
END_OF_APP
# A rate that no token comes back at, while the test runs.
block tools/ruby/README.md ruby 'require "shmlimit/middleware"' | own | sed 's,15/hour,15/day,' >"$TMP/gate.ru"
cat >"$TMP/unicorn.rb" <<'END_OF_CONFIG'
worker_processes 4
preload_app true
timeout 600
END_OF_CONFIG

# Each request has a connection of its own: any worker may get it.
ask_all() { crowd --unix-socket "$TMP/socket" -H 'Connection: close' "$@"; }
answers() { [ "$(codes --unix-socket "$TMP/socket" http://localhost/)" = "$1" ]; }
up_or_gone() { gone $master || { four && answers 200; }; }
admitted() { cat "$TMP/admitted.$1" 2>/dev/null | wc -c; }

# serve puma|unicorn APP: sets $master.
serve() {
	rm -f "$TMP/socket"
	run_server "$@" >"$TMP/$1.err" 2>&1 </dev/null &
	master=$!
	servers="$servers $master"
	within up_or_gone && ! gone $master && return 0
	diag "$(cat "$TMP/$1.err")"
	exit 1
}
run_server() {
	case $1 in
	puma) exec puma -q -w 4 -t 2:2 --preload -e production -b "unix://$TMP/socket" "$TMP/$2.ru" ;;
	unicorn) exec unicorn -E production -c "$TMP/unicorn.rb" -l "$TMP/socket" "$TMP/$2.ru" ;;
	esac
}
quit() {
	kill -TERM $master
	wait $master
	rm -f "$SHM$SEGMENT"
}

# kill_one: a worker of four, and wait until its master has noticed.
kill_one() {
	within four
	killed=$(workers | head -n 1)
	kill -KILL "$killed"
	within gone "$killed"
}
killing() {
	kill_one
	kill_one
	kill_one
	within four
}
progress() { [ "$(admitted "$1")" -gt 50 ]; }
loaded() { ask_all -H "$(from "$1")" "http://localhost/?[1-1000]" >/dev/null; }

# exact SERVER: how many of a crowd are admitted, and of one that kills workers.
exact() {
	LIMIT=100
	export LIMIT
	serve "$1" attack
	ask_all -H "$(from "calm.$1")" "http://localhost/?[1-400]" >"$TMP/codes"
	is "$(count 200) $(count 429)" "100 300" "$1: four workers with the store admit exactly the limit"
	quit
	LIMIT=500
	serve "$1" attack
	loaded "killed.$1" &
	load=$!
	within progress "killed.$1"
	killing
	ok $? "$1: workers that are killed under load are replaced"
	wait $load
	ask_all -H "$(from "killed.$1")" "http://localhost/?[1-600]" >"$TMP/codes"
	counted=$(shmlimit count "$SEGMENT" store "rack::attack:70:all:killed.$1" --by 0 | cut -d ' ' -f 1)
	[ "$counted" -ge 500 ]
	ok $? "$1: more was asked for than the limit"
	# Each of the two threads of a killed worker may have counted a request that the application did not see.
	n=$(admitted "killed.$1")
	[ "$n" -le 500 ] && [ "$n" -ge $((500 - 3 * 2)) ]
	ok $? "$1: while workers are killed, they admit the limit, but for what the killed ones had in hand"
	diag "$1: $n of 500 admitted, $counted asked for"
	quit
}
exact puma
exact unicorn

# Each worker's own memory: the same application admits up to 80. The crowd comes again until it does, or has come often.
more() {
	rounds=$((rounds + 1))
	ask_all -H "$(from memory)" "http://localhost/?[1-200]" >/dev/null
	n=$(admitted memory)
	[ "$n" -eq 80 ] || { [ "$rounds" -ge 10 ] && [ "$n" -gt 20 ]; }
}
rounds=0
LIMIT=20 MEMORY=yes serve puma attack
within more
ok $? "with a store in memory each worker admits the limit"
diag "a store in memory: $(admitted memory) of 20 admitted by 4 workers"
quit

for server in puma unicorn; do
	serve $server gate
	shmlimit reset "$SEGMENT" --all >/dev/null
	answer=$(get --unix-socket "$TMP/socket" -o "$TMP/body" -D - http://localhost/ | tr -d '\r')
	is "$(cat "$TMP/body") $(field ratelimit-policy) $(field ratelimit)" 'hello "client";q=15;w=86400 "client";r=14;t=5760' \
		"$server: the middleware of README.md adds the header fields to the application's answer"
	ask_all "http://localhost/?[1-20]" >"$TMP/codes"
	kill_one
	within four
	ask_all "http://localhost/?[1-20]" >>"$TMP/codes"
	is "$(count 200) $(count 429)" "14 26" "$server: workers admit what is left of the limit, also after one of them was killed"
	answer=$(get --unix-socket "$TMP/socket" -o "$TMP/body" -D - http://localhost/ | tr -d '\r')
	like "$(cat "$TMP/body") $(field retry-after)" '^Too Many Requests [0-9]+$' "$server: a refused request is told when to retry"
	quit
done
done_testing
