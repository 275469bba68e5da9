# frozen_string_literal: true

# SPDX-License-Identifier: BSD-2-Clause
require_relative "../shmlimit"

module Shmlimit
  # Counts that expire, shared by all processes of a host: a store for Rack::Attack and for Rails' rate_limit.
  #
  #   Rack::Attack.cache.store = Shmlimit::Store.new("web")
  #   rate_limit to: 10, within: 3.minutes, store: Shmlimit::Store.new("web")
  #
  # It has the methods of ActiveSupport::Cache::Store that such limiters call, for Integers; of the options only
  # expires_in matters. A count that is missing or expired, and one of 0, are the same: read returns nil.
  # No count is above MAX: an addition beyond it answers 2^63 - 1, so it is within no limit. None lives
  # longer than TTL_MAX seconds, ten years: a longer expires_in is an ArgumentError. Times have a
  # resolution of about eight milliseconds.
  #
  # The store creates its segment and its rule where they are missing, also when they are removed later. Stores of one
  # name share their counts. An error after that goes to error_handler, as in Rails' cache stores, by default to
  # Shmlimit.report; the method then returns nil, so that limiters let requests pass.
  #
  # With a backend all hosts that have it share the counts: increment is one round trip, and hosts can only add. What is
  # read is what this host knows.
  class Store
    MAX = 2**26 - 1
    TTL_MAX = 3660 * 86_400
    RULE = "store"
    KEY_MAX = 1024
    REPORT_EVERY_S = 60
    private_constant :KEY_MAX, :REPORT_EVERY_S

    # slots: how many counts there is room for. mode and group: of the segment, when this process creates it.
    # owner: a user id that is trusted with the segment, as for Limiter.
    # hosts: backend, and options beside it, as for GlobalCounts.
    def initialize(name, slots: 65_536, mode: 0o600, group: nil, owner: nil, error_handler: nil, **hosts)
      raise ArgumentError, "#{hosts.keys.join(', ')}: there is no backend" if !hosts.empty? && hosts[:backend].nil?

      @name = name
      @options = { slots: slots, mode: mode, group: group }
      @owner = owner
      @hosts = hosts unless hosts.empty?
      @error_handler = error_handler || method(:report)
      @reported = @reported_at = nil
      attach
    end

    # Add amount, and return the count. The first addition starts expires_in, later ones leave it alone.
    def increment(name, amount = 1, options = nil)
      key = key_of(name)
      ttl = options && options[:expires_in]
      return guard(:increment) { add_everywhere(key, amount, ttl) } if @everywhere && !amount.zero?

      @limiter._add(@rule, key, amount, ttl, true) || guard(:increment) { @limiter._add(@rule, key, amount, ttl, false) }
    rescue Error => e
      recover(:increment, e) { @limiter._add(@rule, key, amount, ttl, false) }
    end

    # Take amount away, down to 0.
    def decrement(name, amount = 1, options = nil) = increment(name, -amount, options)

    def read(name, _options = nil)
      count = increment(name, 0)
      count unless count.nil? || count.zero?
    end

    def exist?(name, _options = nil) = !read(name).nil?

    # Set a count, and start its time. Additions that other processes make during the call are lost.
    def write(name, value, options = nil)
      raise ArgumentError, "#{value.inspect} must be an Integer, 0 to #{MAX}" unless value.is_a?(Integer) && value.between?(0, MAX)

      key = key_of(name)
      ttl = options && options[:expires_in]
      raise ArgumentError, "expires_in is longer than the store's TTL_MAX" if ttl && ttl > TTL_MAX

      ttl = [ttl.to_f, 0.001].max if ttl
      guard(:write) do
        reset(key)
        next add_everywhere(key, value, ttl, value) && true if @everywhere && value.positive?

        @limiter.count(@rule, key, value, ttl: ttl, bound: value, saturate: true, restart: true) if value.positive?
        true
      end
    end

    def delete(name, _options = nil)
      key = key_of(name)
      guard(:delete) do
        lived = @limiter.count(@rule, key, 0).ttl.positive? # one that is over may still have its slot
        reset(key)
        lived
      end
    end

    # Remove all counts of the store.
    def clear(_options = nil)
      guard(:clear) { reset && true }
    end

    private

    def add_everywhere(key, amount, ttl, bound = MAX)
      raise ArgumentError, "expires_in is longer than the store's TTL_MAX" if ttl && ttl.to_f > TTL_MAX

      count, applied = @everywhere.add(RULE, key, amount, ttl, bound)
      applied < amount ? (2**63) - 1 : count
    end

    def reset(key = nil)
      @everywhere&.reset(RULE, key)
      key ? @limiter.reset(@rule, key) : @limiter.reset(@rule)
    end

    def key_of(name)
      key = name.is_a?(String) ? name : name.to_s
      return key if key.bytesize <= KEY_MAX && !key.empty?

      require "digest"
      Digest::SHA512.digest(key)
    end

    def guard(method, &block)
      look(&block)
    rescue Error => e
      recover(method, e, &block)
    end

    # Are the segment and the rule still those of their names? Until another segment can be opened, the old one is used.
    def look
      begin
        @limiter.gone? ? attach : set_rule(@limiter)
      rescue Error => e
        handle(:attach, e)
      end
      yield
    end

    # An operator may have removed the rule, whose id another one may then have: it is set again, and the block called once more.
    def recover(method, error)
      raise error unless [Errno::ESRCH::Errno, Errno::EOPNOTSUPP::Errno].include?(error.errno)

      set_rule(@limiter)
      yield
    rescue Error => e
      handle(method, e)
    end

    def handle(method, error)
      @error_handler.call(method: method, returning: nil, exception: error)
      nil
    end

    def attach
      limiter = open_or_create
      set_rule(limiter)
      everywhere = GlobalCounts.new(@name, owner: @owner, **@hosts) if @hosts
      @everywhere = everywhere
      @limiter = limiter
    end

    # Of several processes that create it, one succeeds, and the others open that.
    def open_or_create
      Limiter.new(@name, owner: @owner)
    rescue Error => e
      raise if e.errno != Errno::ENOENT::Errno

      begin
        Limiter.create(@name, **@options)
      rescue Error => e
        raise if e.errno != Errno::EEXIST::Errno

        Limiter.new(@name, owner: @owner)
      end
    end

    def set_rule(limiter)
      @rule = limiter.rule_ensure(RULE, algorithm: :counter, capacity: MAX, period: TTL_MAX)
    end

    # The same text at most once a minute.
    def report(method:, exception:, **)
      text = "#{@name}: #{method}: #{exception.message}"
      now_s = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      return if @reported == text && now_s - @reported_at < REPORT_EVERY_S

      @reported = text
      @reported_at = now_s
      Shmlimit.report(true, text)
    end
  end
end
