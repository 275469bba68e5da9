# frozen_string_literal: true

# What passes of ten requests by the README's examples.
#
# SPDX-License-Identifier: BSD-2-Clause
require "rack"
require "rack/attack"
require "shmlimit/middleware"
require "shmlimit/store"
require "tap"

# A day is so long that no token comes back within the test.
def example(name) = File.read("#{ENV.fetch('TMP')}/#{name}").gsub("/minute", "/day").gsub("/hour", "/day")

def passed(app, **more)
  Array.new(10) do
    status, _, body = app.call(Rack::MockRequest.env_for("/", "REMOTE_ADDR" => "203.0.113.9", **more))
    body.close if body.respond_to?(:close)
    status
  end.count(200)
end

INNER = ->(_env) { [200, {}, ["hello\n"]] }

# Of such a period this second is near the beginning.
eval example("attack").sub("period: 60", "period: #{(Time.now.to_i - 1000) / 100}")
is(passed(Rack::Attack.new(INNER)), 5, "Rack::Attack's throttle admits its limit")

module Minutes
  refine(Integer) { def minutes = self * 60 }
end
using Minutes
ApplicationController = Class.new do
  def self.rate_limit(**options) = (@options = options)
  singleton_class.attr_reader :options
end
eval example("rails")
limit = SessionsController.options
is(Array.new(2) { limit[:store].increment("rate-limit:sessions", 1, expires_in: limit[:within]) }, [1, 2], "Rails' rate_limit has a store that counts")

Customer = Struct.new(:name, :plan)
Plan = Struct.new(:rate)
stack = lambda do |name|
  Rack::Builder.new do
    eval example(name)
    run INNER
  end.to_app
end
is(passed(stack["keys"], "HTTP_X_API_KEY" => "a"), 10, "two limits let pass what both have")
is(passed(stack["keys"], "HTTP_X_API_KEY" => "b"), 5, "a limit of the address is one for all keys")
is(passed(stack["plans"], "myapp.user" => Customer.new("a", Plan.new("3/day"))), 3, "a customer's plan is its limit")
is(passed(stack["tokens"], "myapp.tokens" => 10_000), 2, "what a request has used is charged")
done_testing
