# frozen_string_literal: true

# ruby: what a decision costs from Ruby, in nanoseconds: ruby -Ibuild/ruby tools/ruby/bench/take.rb
#
# Processor time of one process and one key, less an empty loop; of many short rounds the fastest, since other processes
# and the garbage collector only make a round slower. Objects are those that a call allocates.
#
# SPDX-License-Identifier: BSD-2-Clause
require "shmlimit"
require "shmlimit/store"

ROUNDS = 40
CALLS = 3_000
KEY = "192.168.100.1"
SEGMENT = "bench.#{Process.pid}"
RATE = 'rate="1000000000/s"'

def round
  i = 0
  begun = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  while i < CALLS
    yield
    i += 1
  end
  (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - begun) / CALLS * 1e9
end

def best(&block) = Array.new(ROUNDS) { round(&block) }.min

def objects
  before = GC.stat(:total_allocated_objects)
  1000.times { yield }
  (GC.stat(:total_allocated_objects) - before) / 1000
end

def row(name, &block)
  printf("%-46s %6.0f %8d\n", name, best(&block) - EMPTY, objects(&block))
end

at_exit { Shmlimit.destroy(SEGMENT) }
limiter = Shmlimit::Limiter.create(SEGMENT, slots: 1024)
id = limiter.rule_set("rule", capacity: 10**9, refill: 10**9, period: 1)
store = Shmlimit::Store.new(SEGMENT)
gate = Shmlimit::Gate.new("segment=#{SEGMENT} create=yes rule=key #{RATE}")
net = Shmlimit::Gate.new("segment=#{SEGMENT} create=yes rule=net #{RATE} prefix=32,64")
middleware = Shmlimit::Middleware.new(->(_env) { [200, {}, []] }, "segment=#{SEGMENT} create=yes rule=net #{RATE} prefix=32,64")
env = { "REMOTE_ADDR" => KEY }
EMPTY = best {}

puts "#{RUBY_DESCRIPTION}\n\n#{'call'.ljust(46)} #{'ns'.rjust(6)} #{'objects'.rjust(8)}"
row("limiter.allow?(id, key)") { limiter.allow?(id, KEY) }
row("limiter.allow?(:rule, key)") { limiter.allow?(:rule, KEY) }
row("limiter.allow?(\"rule\", key)") { limiter.allow?("rule", KEY) }
row("limiter.take(:rule, key)") { limiter.take(:rule, KEY) }
row("limiter.reserve(:rule, key)") { limiter.reserve(:rule, KEY) }
row("limiter.count(:store, key, ttl: 60)") { limiter.count(:store, KEY, ttl: 60) }
row("store.increment(key, 1, expires_in: 60)") { store.increment(KEY, 1, expires_in: 60) }
row("gate.allow?(key)") { gate.allow?(KEY) }
row("gate.ask(key), with header fields") { gate.ask(KEY) }
row("gate.ask(address), with header fields") { net.ask(KEY) }
row("middleware.call(env), all of it") { middleware.call(env) }
begin
  require "active_support"
  require "active_support/cache"
  memory = ActiveSupport::Cache::MemoryStore.new
  row("for comparison: MemoryStore#increment") { memory.increment(KEY, 1, expires_in: 60) }
rescue LoadError
  puts "no ActiveSupport to compare with"
end
if (url = ENV["REDIS_URL"])
  require "redis"
  redis = Redis.new(url: url)
  row("for comparison: INCR on #{url}") { redis.incr(KEY) }
end
