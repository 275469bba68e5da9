# frozen_string_literal: true

# The laws of Shmlimit::Store, and of Rack::Attack upon it, where there is one.
#
# SPDX-License-Identifier: BSD-2-Clause
require "shmlimit/store"
require "tap"

SEGMENT = ENV.fetch("SEGMENT")

# As ActiveSupport::Duration: a number of seconds that is no Numeric.
Duration = Struct.new(:to_f, :to_i)

errors = []
handler = ->(method:, returning:, exception:) { errors << [method, returning, exception.errno] }
store = Shmlimit::Store.new(SEGMENT, slots: 16_384, error_handler: handler)
ok(File.exist?(ENV["SHM"] + SEGMENT), "a store creates its segment")

is([store.read("a"), store.exist?("a")], [nil, false], "a count that is missing reads as nil")
is([store.increment("a", 1, expires_in: 3600), store.increment("a"), store.increment("a", 3)], [1, 2, 5], "increment returns the count")
is([store.read("a"), store.exist?("a")], [5, true], "the count is read")
is([store.decrement("a", 2), store.decrement("a", 9), store.read("a")], [3, 0, nil], "decrement goes down to 0, which is none")
is([store.write("w", 7, expires_in: 3600), store.read("w"), store.write("w", 0), store.read("w")], [true, 7, true, nil], "write sets a count")
is([store.increment("d"), store.delete("d"), store.delete("d"), store.read("d")], [1, true, false, nil], "delete says whether there was one")
is([store.increment("k" * 5000), store.increment("#{'k' * 4999}l"), store.increment("k" * 5000), store.increment("")], [1, 1, 2, 1],
   "a name may have any length")
is([store.increment(:symbol), store.increment("symbol")], [1, 2], "a Symbol is its name")
is([store.increment("big", 2**40), store.read("big"), store.increment("big"), store.decrement("big")],
   [2**63 - 1, Shmlimit::Store::MAX, 2**63 - 1, Shmlimit::Store::MAX - 1], "a count stops at MAX, beyond which nothing is within a limit")
is([store.increment("long", 1, expires_in: Shmlimit::Store::TTL_MAX), store.increment("float", 1, expires_in: 3600.5),
    store.increment("duration", 1, expires_in: Duration.new(180.0, 180))], [1, 1, 1], "expires_in is any number of seconds")
years = Shmlimit::Limiter.open(SEGMENT) { |l| l.count(:store, "long", 0).ttl }
ok(years.between?(Shmlimit::Store::TTL_MAX - 1, Shmlimit::Store::TTL_MAX + 1), "a count lives for ten years, if it shall")
is([raised { store.increment("a", 1, expires_in: 10**12) }&.first, raised { store.write("a", 1, expires_in: 10**12) }&.first, store.read("a")],
   [ArgumentError, ArgumentError, nil], "a longer expires_in than a count can live is refused, and not shortened")
is([raised { store.write("w", "text") }&.first, raised { store.write("w", -1) }&.first, raised { store.increment("a", 1, expires_in: -1) }&.first],
   [ArgumentError, ArgumentError, RangeError], "what no count can be raises the exception that fits")
store.increment("short", 1, expires_in: 0.001)
ok(within { store.read("short").nil? }, "a count expires")
is(store.delete("short"), false, "delete says that a count that expired is none")
twin = Shmlimit::Store.new(SEGMENT)
is([twin.increment("shared"), store.increment("shared")], [1, 2], "stores of one name share their counts")
is([store.clear, store.read("shared")], [true, nil], "clear removes all counts")

Shmlimit::Limiter.open(SEGMENT) { |l| l.rule_remove("store") }
is([store.increment("a"), store.increment("a")], [1, 2], "a rule that was removed is set again")
Shmlimit.destroy(SEGMENT)
ok(within { store.increment("a"); File.exist?(ENV["SHM"] + SEGMENT) }, "a segment that was destroyed is created again")
Shmlimit::Limiter.open(SEGMENT) do |l|
  l.rule_remove("store")
  l.rule_set("store", capacity: 1, refill: 1, period: 1)
end
is([Shmlimit::Store.new(SEGMENT).increment("b"), store.increment("b")], [1, 2], "a store that starts makes its rule what it must be")
is(errors, [], "none of that is an error to the limiter")
Shmlimit::Limiter.open(SEGMENT) do |l|
  l.rule_remove("store")
  l.rule_set("other", capacity: 1, refill: 1, period: 1)
  is([store.increment("a"), store.increment("a")], [1, 2], "a rule whose id another one has is set again")
  l.rule_remove("store")
  full = raised { (0..).each { |n| l.rule_set("full#{n}", capacity: 1, refill: 1, period: 1) } }
  is([full.first, store.increment("a"), store.write("a", 1), store.read("a")], [Shmlimit::Error, nil, nil, nil], "an error answers nil")
  ok((%i[increment write] - errors.map(&:first)).empty? && errors.all? { |e| e[2] == Errno::EXFULL::Errno }, "an error goes to the handler")
  l.rule_remove("full0")
end

reader, writer = IO.pipe
4.times { fork { writer.write(Array.new(50) { "#{store.increment('fork')}\n" }.join); exit!(0) } }
Process.waitall
writer.close
is(reader.read.split.map(&:to_i).sort, (1..200).to_a, "forked processes get each count once")
threads = Array.new(4) { Thread.new { Array.new(50) { store.increment("threads") } } }
is(threads.flat_map(&:value).sort, (1..200).to_a, "threads get each count once")

begin
  require "active_support"
  require "active_support/core_ext/integer/time"

  # As rate_limit of Rails 8 does.
  counts = Array.new(3) { store.increment("rate-limit:sessions:192.0.2.1", 1, expires_in: 3.minutes) }
  is(counts, [1, 2, 3], "Rails: rate_limit gets the count of its period")
  is([store.write("minutes", 2, expires_in: 3.hours), store.read("minutes")], [true, 2], "Rails: write takes a duration")
  left = Shmlimit::Limiter.open(SEGMENT) { |l| ["rate-limit:sessions:192.0.2.1", "minutes"].map { |key| l.count(:store, key, 0).ttl } }
  ok(left[0] <= 181 && left[1].between?(181, 10_801), "Rails: a duration is the time that a count lives")
  require "rack"
  require "rack/attack"
rescue LoadError
  done_testing
end

Rack::Attack.cache.store = store
# Of such a period this second is near the beginning.
period = (Time.now.to_i - 1000) / 100
Rack::Attack.throttle("ip", limit: 3, period: period, &:ip)
Rack::Attack.blocklist("fail2ban") do |request|
  Rack::Attack::Fail2Ban.filter("login:#{request.ip}", maxretry: 2, findtime: period, bantime: period) { request.path == "/login" }
end
app = Rack::Attack.new(->(_env) { [200, {}, []] })
get = ->(path, ip) { app.call(Rack::MockRequest.env_for(path, "REMOTE_ADDR" => ip)).first }
is(Array.new(5) { get["/", "192.0.2.1"] }, [200, 200, 200, 429, 429], "Rack::Attack: throttle admits the limit")
is([get["/login", "192.0.2.2"], get["/login", "192.0.2.2"], get["/", "192.0.2.2"], get["/", "192.0.2.3"]], [403, 403, 403, 200],
   "Rack::Attack: Fail2Ban bans an address, and no other")
is([Rack::Attack::Fail2Ban.reset("login:192.0.2.2", findtime: period), get["/", "192.0.2.2"]].last, 200, "Rack::Attack: a ban is lifted")
# A limit of the request's, as a customer's plan has it.
Rack::Attack.throttle("plan", limit: ->(request) { request.params["plan"].to_i }, period: period) { |request| request.params["user"] }
is([["a", 1], ["b", 2], ["c", 0]].map { |user, plan| Array.new(3) { |n| get["/?user=#{user}&plan=#{plan}", "192.0.2.#{10 + n}"] }.count(200) }, [1, 2, 0],
   "Rack::Attack: a limit may be a proc of the request")
customers = Array.new(10_000) { |n| { "REMOTE_ADDR" => "192.0.2.1", "customer" => n.to_s, "plan" => n % 7, "PATH_INFO" => "/" } }
Rack::Attack.clear_configuration
Rack::Attack.throttle("customers", limit: ->(request) { request.env["plan"] }, period: period) { |request| request.env["customer"] }
pipes = Array.new(4) do
  IO.popen("-", "rb") do |pipe|
    next pipe.read if pipe

    $stdout.binmode.write(customers.map { |env| app.call(env.dup).first == 200 ? 1 : 0 }.pack("C*"))
    $stdout.flush
    exit!(0)
  end
end
is(pipes.map { |pipe| pipe.unpack("C*") }.transpose.map(&:sum), Array.new(10_000) { |n| [n % 7, 4].min },
   "Rack::Attack: 10,000 customers with limits of their own are exact over four processes")
done_testing
