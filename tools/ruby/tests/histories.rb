# frozen_string_literal: true

# Random histories of requests, each of which Rack::Attack answers alike on Shmlimit::Store and on ActiveSupport's MemoryStore.
#
# SPDX-License-Identifier: BSD-2-Clause
require "shmlimit/store"
require "tap"
require "active_support"
require "active_support/cache"
require "rack"
require "rack/attack"

HISTORIES = 40
STEPS = 50
SEED = (ENV["SEED"] || Random.new_seed % 2**31).to_i
RANDOM = Random.new(SEED)
puts "# SEED=#{SEED}"

Rack::Attack.throttle("ip", limit: 3, period: 4, &:ip)
Rack::Attack.throttle("plan", limit: ->(request) { request.params["plan"].to_i }, period: 7) { |request| request.params["plan"] && request.ip }
Rack::Attack.throttle("logins", limit: 2, period: ->(request) { request.params["slow"] ? 9 : 3 }) { |request| request.path == "/login" ? request.ip : nil }
Rack::Attack.blocklist("fail2ban") do |request|
  Rack::Attack::Fail2Ban.filter(request.ip, maxretry: 2, findtime: 5, bantime: 8) { request.path == "/wrong" }
end
Rack::Attack.blocklist("allow2ban") do |request|
  Rack::Attack::Allow2Ban.filter(request.ip, maxretry: 4, findtime: 6, bantime: 3) { request.path == "/login" }
end
APP = Rack::Attack.new(->(_env) { [200, {}, []] })
PATHS = %w[/ / / /?plan=0 /?plan=1 /?plan=5 /login /login?slow=1 /wrong].freeze

# Time passes for all clocks of this process.
def move(seconds)
  @moved = (@moved || 0) + seconds
  file = ENV.fetch("FAKETIME_TIMESTAMP_FILE")
  File.write("#{file}.new", format("+%.3fs\n", @moved))
  File.rename("#{file}.new", file)
end

# A request, or a ban that is lifted: what both stores say of it.
def answers(stores, path, address)
  stores.map do |store|
    Rack::Attack.cache.store = store
    if path.nil?
      Rack::Attack::Fail2Ban.reset(address, findtime: 5) # in memory it says true of a ban that is over, too
      next ["reset"]
    end
    env = Rack::MockRequest.env_for(path, "REMOTE_ADDR" => address)
    status = APP.call(env).first
    [status, env["rack.attack.throttle_data"]&.transform_values { |data| data.slice(:count, :limit, :period) }]
  end
end

differing = nil
seen = Hash.new(0)
HISTORIES.times do |history|
  stores = [Shmlimit::Store.new("#{ENV.fetch('SEGMENT')}.#{history}", slots: 1024), ActiveSupport::Cache::MemoryStore.new]
  # Nothing ends within the first half of a second, in which the history happens.
  move(1000 + 1.01 - (Time.now.to_f % 1))
  told = []
  STEPS.times do
    move(RANDOM.rand(4) + 0.003) if RANDOM.rand < 0.4
    break if Time.now.to_f % 1 > 0.5

    drawn = [RANDOM.rand(20).zero? ? nil : PATHS.sample(random: RANDOM), "192.0.2.#{RANDOM.rand(2)}"]
    second = Time.now.to_i
    both = answers(stores, *drawn)
    break if Time.now.to_i != second # on a busy machine

    told << [drawn, both]
    seen[told.last[1][0].first] += 1
    break if told.last[1].uniq.size > 1
  end
  Shmlimit.destroy("#{ENV.fetch('SEGMENT')}.#{history}")
  next if told.empty? || told.last[1].uniq.size == 1

  differing = told.last(12)
  break
end
is(differing, nil, "Rack::Attack: over any history throttles, Fail2Ban and Allow2Ban answer as on a store in memory")
ok([200, 403, 429, "reset"].all? { |status| seen[status] > 5 }, "Rack::Attack: requests were admitted, refused and blocked, and bans were lifted: #{seen}")
done_testing
