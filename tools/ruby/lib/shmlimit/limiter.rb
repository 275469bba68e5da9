# frozen_string_literal: true

# SPDX-License-Identifier: BSD-2-Clause
module Shmlimit
  class Result
    alias allowed? allowed

    def denied? = !allowed
  end

  class Count
    alias allowed? allowed
  end

  class Answer
    # The request goes on.
    def allowed? = status.nil?
  end

  # A block of within_limit was not called: its turn does not come within wait_timeout. retry_after: seconds after which it may.
  class OverLimit < StandardError
    attr_reader :retry_after

    def initialize(rule, retry_after)
      super("limit #{rule}: retry after #{retry_after} s")
      @retry_after = retry_after
    end
  end

  # The keywords of rule_set, as the extension has them.
  module Rule
    ALGORITHMS = { funnel: 0, token_bucket: 0, warmup: 1, window: 2, lease: 3, counter: 4, hold: 5,
                   gcra: 6 }.freeze
    LAWS = { nil => 0, vegas: 1, gradient2: 2, aimd: 3 }.freeze
    MODES = { enforce: 0, dry_run: 1, off: 2, block: 3 }.freeze

    def self.to_a(capacity: 0, refill: 0, period: 0, algorithm: :funnel, mode: :enforce, max_wait: 0, warmup: 0,
                  cold_factor: nil, next_pays: false, count_refused: false, credit: 0, protected: false, cut_off: false, zone: '',
                  law: nil, least: 0)
      flags = (next_pays ? 1 : 0) | (count_refused ? 2 : 0) | (protected ? 4 : 0) | (cut_off ? 16 : 0)
      [ALGORITHMS.fetch(algorithm), MODES.fetch(mode), flags, capacity, refill, period, max_wait, warmup, cold_factor, credit, zone,
       LAWS.fetch(law), least]
    end
  end
  private_constant :Rule

  class << self
    # The rule that a text describes, as keywords of rule_set: "5/minute", "10/s burst 20", "1000/hour strict", "20 at once",
    # "block", "unlimited"; shmlimit(7) has all forms. ArgumentError: it is none; the message has the nearest.
    def rule_parse(text, algorithm: :funnel)
      number, mode, flags, capacity, refill, period, zone, law, least = _rule_parse(text, Rule::ALGORITHMS.fetch(algorithm))
      rule = { algorithm: Rule::ALGORITHMS.key(number), mode: Rule::MODES.key(mode), capacity: capacity, refill: refill, period: period }
      rule[:zone] = zone unless zone.empty?
      rule.update(law: Rule::LAWS.key(law), least: least) unless law.zero?
      flags.anybits?(16) ? { **rule, cut_off: true } : rule
    end

    # The text of a rule, given as keywords of rule_set, which rule_parse reads as the same limit. Error: it has none.
    def rule_text(**rule) = _rule_text(*Rule.to_a(**rule))
  end

  # A place that is held until leave, or while this process lives; after "20 at once at most 5 minutes each" it ends, too.
  class Place
    # Set one before the place is left, under a rule such as "auto at once": the work failed by overload; or how long it took says
    # nothing of the load.
    attr_accessor :dropped, :untimed

    def initialize(limiter, rule, key, index, value) # :nodoc:
      @limiter = limiter
      @rule = rule
      @key = key
      @index = index
      @value = value
      @dropped = @untimed = false
    end

    # The period begins again. False: it was over already, and another may have the place.
    def renew
      value = @limiter._renew(@rule, @key, @index, @value)
      @value = value if value
      value ? true : false
    end

    # False: it ended before.
    def leave
      flags = (@dropped ? 0x400000 : 0) | (@untimed ? 0x800000 : 0)
      @limiter._leave(@rule, @key, @index, @value, flags) ? true : false
    end
  end

  # A handle on a segment. Times are seconds. A rule is its name or its id, a key any bytes, 1 to 1024 of them.
  #
  # Threads share a handle; so do forked processes, each of which goes on with what it inherited. A frozen one is
  # shareable between Ractors.
  class Limiter
    ON_FULL = { evict: 0, allow: 1, deny: 2 }.freeze
    # Seconds between two tries while all places are held: a process that leaves one tells no other.
    PLACE_S = 0.02
    private_constant :ON_FULL, :PLACE_S

    class << self
      # Open a segment; with a block, pass it there and close it afterwards.
      def open(name, **options)
        limiter = new(name, **options)
        return limiter unless block_given?

        begin
          yield limiter
        ensure
          limiter.close
        end
      end

      # Create a segment, and open it. group is a name or a number.
      def create(name, slots: 0, mode: 0, group: nil, rules: 0, on_full: :evict, coarse_clock: false,
                 store_keys: 0, slots_max: 0)
        if group.is_a?(String)
          require "etc"
          group = Etc.getgrnam(group).gid
        end
        _create(name, mode, slots, rules, ON_FULL.fetch(on_full), coarse_clock, group, store_keys, slots_max)
        new(name)
      end
    end

    # owner: a user id that is trusted with the segment besides root and this process's user.
    def initialize(name, read_only: false, owner: nil)
      _open(name, read_only, owner)
    end

    # Define a rule or change it. Returns its id.
    def rule_set(name, **rule) = _rule_set(name, *Rule.to_a(**rule))

    # The same for a program that brings its limits when it starts: the rule is set if it is missing, or if the program before
    # this one brought another. What an operator changed since stays. Returns its id.
    def rule_ensure(name, **rule) = _rule_ensure(name, *Rule.to_a(**rule))

    # Take now or in advance, for a wait of max_wait at most (nil: the rule's). The result's wait says how long.
    #
    # limit: of this and of take, peek, refund and charge, under a rule of the algorithm :gcra: the call's own limit, a String such as
    # "100/minute", which is read with each call, or a Limit, which was read before. ArgumentError: it is none.
    def reserve(rule, key, cost = 1, max_wait: nil, limit: nil)
      _reserve(rule, key, cost, max_wait, limit)
    end

    # Reserve, and sleep until the tokens are there. Other threads and fibers go on running. If the sleep is
    # interrupted, as Timeout does, the turn passes unused: others may wait behind it. While the key is paused it waits
    # until that is over, and reserves then; a turn that comes in a pause passes unused, too.
    def acquire(rule, key, cost = 1, max_wait: nil, limit: nil)
      begun = now
      waited = 0.0
      loop do
        result = _reserve(rule, key, cost, max_wait && [max_wait - waited, 0].max, limit)
        sleep_for(result.wait) if result.allowed && result.wait.positive?
        pause = result.allowed && result.wait.zero? ? 0.0 : paused(rule, key)
        if pause.zero?
          result.wait += waited if result.allowed
          return result
        end
        waited = now - begun
        if max_wait.nil? || pause <= max_wait - waited
          sleep_for(pause)
          waited = now - begun
        elsif !result.allowed
          return result
        end
      end
    end

    # Add to a count that expires after ttl (nil: the rule's period). Above the bound, or below 0: denied, unless
    # saturate is set. by: 0 reads.
    def count(rule, key, by = 1, ttl: nil, bound: nil, saturate: false, restart: false)
      _count(rule, key, by, ttl, bound, saturate, restart)
    end

    # Enter one of the key's places under a rule of the algorithm :hold. Returns a Place, or nil if all are held. With a limit,
    # such as "20 at once", it is nil if as many are held; at most the rule's capacity counts.
    def enter(rule, key, limit: nil)
      index, value = _enter(rule, key, limit)
      Place.new(self, rule, key.dup.freeze, index, value) if index
    end

    # Hold a place while the block runs, and return what the block returns. Without a free place: nil, and no call.
    def hold(rule, key, limit: nil)
      place = enter(rule, key, limit: limit) or return
      begin
        yield place
      ensure
        place.leave
      end
    end

    # Wait for the tokens, or for a place, at most wait_timeout seconds; then call the block, and return what it returns. A place is
    # held until the block ends. OverLimit: it is known that this takes longer, or it did; the block was not called.
    def within_limit(rule, key = "all", cost = 1, wait_timeout: 5.0)
      until_s = now + wait_timeout
      place, wait = turn(rule, key, cost, wait_timeout)
      while wait
        left = until_s - now
        raise OverLimit.new(rule, wait) if wait > left

        sleep_for([wait, 0.001].max)
        place, wait = turn(rule, key, cost, [until_s - now, 0].max)
      end
      begin
        yield
      ensure
        place&.leave
      end
    end

    def inspect = "#<#{self.class} #{closed? ? 'closed' : name}>"

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # A place, if the rule has places; and the time after which to ask again, or nil: it is the caller's turn.
    def turn(rule, key, cost, max_wait)
      place = or_other { enter(rule, key) || PLACE_S }
      if place && cost != 1
        place.leave unless place == PLACE_S
        raise ArgumentError, "rule #{rule}: a block holds one place, so its cost must be 1, and not #{cost}"
      end
      return place == PLACE_S ? [nil, PLACE_S] : [place, nil] if place

      result = or_other { _reserve(rule, key, cost, max_wait, nil) } || take(rule, key, cost)
      # A denied reservation says when one of this wait is possible, and not when its tokens are there.
      return [nil, peek(rule, key, cost).retry_after] unless result.allowed

      sleep_for(result.wait)
      # A turn that comes in a pause passes unused.
      pause = result.wait.positive? ? paused(rule, key) : 0.0
      [nil, pause.positive? ? pause : nil]
    end

    # What the block returns, or nil if rules of this algorithm cannot do that.
    def or_other
      yield
    rescue Error => e
      raise unless e.errno == Errno::EOPNOTSUPP::Errno
    end

    # Kernel#sleep may return early, when another thread wakes this one.
    def sleep_for(seconds)
      until_s = now + seconds
      while (left = until_s - now).positive?
        sleep(left)
      end
    end
  end

  # COUNTER rules whose counts hosts share through a Redis server. Each call may wait for that, up to deadline_ms.
  class GlobalCounts
    ON_FAILURE = { deny: 0, allow: 1, error: 3 }.freeze
    private_constant :ON_FAILURE

    # backend: redis://HOST, or another form of shmlimit_global(3). While it does not answer, on_failure decides.
    def initialize(segment, backend:, backend_prefix: nil, deadline_ms: 0, on_failure: :deny, owner: nil)
      decides = ON_FAILURE[on_failure] or raise ArgumentError, "on_failure: #{on_failure.inspect}: must be one of #{ON_FAILURE.keys.inspect}"
      _open(segment, owner, backend, backend_prefix, deadline_ms / 1000.0, decides)
    end
  end
end
