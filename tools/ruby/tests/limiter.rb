# frozen_string_literal: true

# The laws of Shmlimit::Limiter and Shmlimit::Gate. The C libraries' own are tested in C: here is what lies between.
#
# SPDX-License-Identifier: BSD-2-Clause
require "shmlimit"
require "tap"
require "timeout"

DAY = 86_400
SEGMENT = ENV.fetch("SEGMENT")
ERROR = Shmlimit::Error

# A logger that keeps what it gets.
class Notes
  attr_reader :lines

  def initialize = @lines = []
  def warn(text) = @lines << [:warn, text]
  def info(text) = @lines << [:info, text]
end
notes = Shmlimit.logger = Notes.new

# ---- Limiter ----

limiter = Shmlimit::Limiter.new(SEGMENT)
id = limiter.rule_set("r", capacity: 5, refill: 1, period: DAY, max_wait: 9 * DAY)
limiter.rule_set(:s, capacity: 1, refill: 1, period: DAY)
limiter.rule_set(:counter, algorithm: :counter, capacity: 100, period: DAY)

wrong_ids = [-1, -2, -3, 63, 64, 4096, 2**31 - 1, 2**31, -2**31, 2**32, 2**64]
limiter.rule_set("ids", capacity: 5, refill: 1, period: DAY)
limiter.take("ids", "k", 3)
no_error = {
  take: ->(i) { limiter.take(i, "k") }, take_some: ->(i) { limiter.take_some(i, "k", 1) }, peek: ->(i) { limiter.peek(i, "k") }, refund: ->(i) { limiter.refund(i, "k") },
  charge: ->(i) { limiter.charge(i, "k") }, count: ->(i) { limiter.count(i, "k") }, enter: ->(i) { limiter.enter(i, "k") },
  pause: ->(i) { limiter.pause(i, "k", 1) }, paused: ->(i) { limiter.paused(i, "k") },
  reset_key: ->(i) { limiter.reset(i, "k") }, reset: ->(i) { limiter.reset(i) }
}.flat_map do |name, call|
  wrong_ids.reject do |i|
    call.call(i)
  rescue ERROR, RangeError, TypeError
    true
  else
    false
  end.map { |i| [name, i] }
end
is([no_error, limiter.peek("ids", "k").remaining], [[], 2], "a number that is no rule's id is an error of each call, and resets nothing")
limiter.rule_remove("ids")

limiter.rule_set("calendar", **Shmlimit.rule_parse("3/day in UTC"))
is(Shmlimit.rule_text(**Shmlimit.rule_parse("3/day in UTC")), "3/day in UTC", "a limit by the calendar is written as it is read")
limiter.take("calendar", "k", 3)
is(limiter.take("calendar", "k").retry_after <= 86_400, true, "such a limit ends at midnight")
limiter.rule_remove("calendar")

# Rates that are Floats, as the table has them.
cases = File.readlines(File.join(__dir__, "../../../tests/float_rates.txt")).reject { |line| line.start_with?("#") }.map(&:split)
set = lambda do |rate, per|
  limiter.rule_set("f", capacity: 15, refill: rate, period: per)
  Shmlimit.rule_parse(Shmlimit.rule_text(capacity: 15, refill: rate, period: per)).values_at(:refill, :period)
rescue RangeError => e
  e.message[/the nearest that can be is \d|must be a finite number above 0/] ? :refused : e.message
end
wrong = cases.reject do |rate, per, refill, period|
  got = set.call(Float(rate), Integer(per))
  refill == "refused" ? got == :refused : got == [Integer(refill), Integer(period)]
end
is([cases.size > 10, wrong], [true, []], "a rate that is a Float is what its shortest decimal says")
is([Float::NAN, Float::INFINITY, 0.0].map { |rate| set.call(rate, 1) }, [:refused] * 3, "a rate that is no number above 0 is refused")
is([limiter.throttle("f1", 15, 0.5, 1), limiter.throttle("f2", 15, 0.3, 1)],
   [limiter.throttle("f3", 15, 1, 2), limiter.throttle("f4", 15, 3, 10)], "throttle takes a Float, too")

results = Array.new(6) { limiter.take("r", "k") }
is(results.map(&:allowed?), [true] * 5 + [false], "a funnel gives its capacity, then nothing")
is(results.map(&:remaining), [4, 3, 2, 1, 0, 0], "a result says how many tokens are left")
ok(results[5].denied? && results[5].retry_after.between?(DAY / 2, DAY), "a denial says after how many seconds a retry fits")
is(limiter.take("r", "k", 6).retry_after, Float::INFINITY, "a cost above the capacity never fits")
is(results[0].to_h.values_at(:limit, :wait, :retry_after), [5, 0.0, 0.0], "a result is a Struct")
is([limiter.allow?(:s, "k"), limiter.allow?("s", "k")], [true, false], "allow? is take without details")
is([limiter.take(id, :k2).remaining, limiter.take(:r, "k2").remaining, limiter.peek("r", "k2").remaining], [4, 3, 3],
   "a rule is its id, a Symbol or a String, and a Symbol is a key too")
is([limiter.take("r", "\u00fc\0").remaining, limiter.take("r", "\xC3\xBC\0".b).remaining], [4, 3], "a key is its bytes, whatever its encoding")
is(limiter.refund("r", "k2", 2).remaining, 5, "a refund gives tokens back")
is(limiter.charge("r", "k2", 4).remaining, 1, "a charge takes them")
ok(limiter.reserve("r", "k2", 2).wait.between?(DAY / 2, DAY), "a reservation says how long to wait")
is(limiter.reserve("r", "k2", 2, max_wait: 10).allowed, false, "a reservation that takes longer than max_wait is denied")
is(Array.new(3) { limiter.take_some("r", "some", 3) }, [3, 2, 0], "take_some takes as many as fit, and says how many")
is(begin limiter.take_some("r", "some") rescue $!.class end, ArgumentError, "take_some is told how many")
is(limiter.take_all(["s", "all"], ["r", "all", 5]).map(&:allowed), [true, true], "take_all takes from several limits")
is(limiter.take_all([:r, "x"], ["s", "all"], ["r", "y"]).map(&:allowed), [true, false], "take_all ends at the limit that denies")
is(limiter.peek("r", "x").remaining, 5, "take_all gives back what it took when a limit denies")
is(limiter.throttle("u", 15, 30, 60), [0, 15, 14, -1, 2], "throttle answers as CL.THROTTLE does")
is([limiter.reset("r", "k"), limiter.peek("r", "k").remaining], [1, 5], "a key is reset")
is([limiter.pause("r", "k", 3600), limiter.take("r", "k").allowed, limiter.take("r", "other").allowed], [true, false, true], "nothing of a key that is paused passes")
ok(limiter.paused("r", "k").between?(3000, 3601), "it is paused for so long")
is([limiter.pause("r", "k", 0), limiter.paused("r", "k"), limiter.take("r", "k").allowed], [true, 0.0, true], "a pause of 0 ends it")
is([limiter.reset("r", "k"), limiter.reset("r", "other"), limiter.peek("r", "k").remaining], [1, 1, 5], "both are reset")
limiter.rule_ensure("paced", capacity: 1, refill: 100, period: 1, max_wait: 60)
limiter.pause("paced", "k", 0.2)
is(limiter.acquire("paced", "k").then { |r| [r.allowed, r.wait >= 0.19] }, [true, true], "acquire waits until a pause is over")
limiter.pause("paced", "k", 3600)
is([limiter.acquire("paced", "k", max_wait: 1).allowed, limiter.paused("paced", "k").positive?], [false, true], "not longer than it may")
is((limiter.within_limit("paced", "k", wait_timeout: 1) { "ran" } rescue $!.class), Shmlimit::OverLimit, "nor does within_limit")
limiter.pause("paced", "k", 0.2)
limiter.pause("paced", "k", 0)
is(limiter.within_limit("paced", "k") { "ran" }, "ran", "a block runs after its pause was ended")
limiter.reset("paced")
limiter.rule_remove("paced")
ok(limiter.reset(:r) >= 1 && limiter.reset.positive?, "a rule is reset, and so is the segment")

counts = [limiter.count(:counter, "k", 5, ttl: 3600), limiter.count(:counter, "k", -7), limiter.count(:counter, "k", 5, bound: 7),
          limiter.count(:counter, "k", 5, bound: 7, saturate: true), limiter.count(:counter, "k", 0)]
is(counts.map { |c| [c.allowed, c.count, c.applied] },
   [[true, 5, 5], [false, 5, 0], [false, 5, 0], [true, 7, 2], [true, 7, 0]], "a count is kept within 0 and its bound")
ok(counts.all? { |c| c.ttl.between?(0.1, 3601) }, "later additions leave a count's time alone")
ok(limiter.count(:counter, "k", 1, ttl: 7200, restart: true).ttl > 3601, "restart begins its time again")

is(raised { limiter.take("none", "k") }, [ERROR, "rule none: #{Shmlimit.strerror(Errno::ESRCH::Errno)}"], "an error says which rule is missing")
is(raised { limiter.take(:none, "k") }, raised { limiter.take("none", "k") }, "it says so of a Symbol too")
is((begin; limiter.take(63, "k"); rescue ERROR => e; e.errno; end), Errno::ESRCH::Errno, "an error has its errno")
is([["r", ""], ["r", "k" * 1025], ["r", "k", -1], ["r", "k", 2**64], ["r", nil], ["r", "k", nil], [nil, "k"], [1.5, "k"], ["r\0", "k"], ["r"]]
     .map { |arguments| raised { limiter.take(*arguments) }&.first },
   [ERROR, ERROR, RangeError, RangeError, TypeError, TypeError, TypeError, TypeError, ArgumentError, ArgumentError],
   "what is no rule, no key or no cost raises the exception that fits")
is(raised { limiter.take_all(["r"]) }&.first, ArgumentError, "a request of take_all must have a key")
is(raised { limiter.rule_set("bad", capacity: 0, refill: 1, period: 1) }&.first, ERROR, "a rule that is wrong is refused")

# Each text is read, set, and printed as one that reads the same.
TEXTS = { "5/minute" => [:funnel, :enforce, 5, 5, 60], "10r/s burst 20" => [:funnel, :enforce, 20, 10, 1], "1/1.5s" => [:funnel, :enforce, 1, 1, 1.5],
          "1000/hour window" => [:window, :enforce, 1000, 0, 3600], "20 at once" => [:hold, :enforce, 20, 0, 60], "2 per 2 years" => [:funnel, :enforce, 2, 2, 730 * DAY] }
is(Shmlimit.rule_parse(Shmlimit.rule_text(**Shmlimit.rule_parse("20 at once at most 5m")))[:cut_off], true, "a limit can say that places are cut off")
read = TEXTS.keys.to_h { |text| [text, Shmlimit.rule_parse(text).values] }
is(read, TEXTS, "a text is read as a rule's keywords")
(TEXTS.keys + ["0/s", "block", "unlimited", "off", "9/h strict"]).each do |text|
  rule = Shmlimit.rule_parse(text)
  is(Shmlimit.rule_parse(Shmlimit.rule_text(**rule)), rule, "what is printed reads the same: #{text}")
end
is([raised { Shmlimit.rule_parse("5/minut") }, raised { Shmlimit.rule_parse("5/s\0") }, raised { Shmlimit.rule_parse("2 at once", algorithm: :window) },
    raised { Shmlimit.rule_text(algorithm: :gcra) }].map(&:first), [ArgumentError] * 3 + [ERROR], "what is no limit is refused")
ok(raised { Shmlimit.rule_parse("5/minut") }.last.include?("5/minute"), "an error has the nearest limit")
passed = %w[0/s block unlimited off 3/day].to_h do |text|
  limiter.rule_ensure("start", **Shmlimit.rule_parse(text))
  [text, Array.new(9) { limiter.allow?("start", "k") }.count(true)]
end
is(passed, { "0/s" => 0, "block" => 0, "unlimited" => 9, "off" => 9, "3/day" => 3 }, "0 denies always, unlimited never, and a program that starts changes them")
found = %w[0/s block unlimited off 3/day].to_h do |text|
  gate = Shmlimit::Gate.new("segment=#{SEGMENT}.zero create=yes rule=zero rate=#{text}")
  [text, Array.new(9) { gate.allow?("k") }.count(true)]
end
is(found, passed, "a gate and the middleware read them likewise")
Shmlimit.destroy("#{SEGMENT}.zero")
limiter.rule_set("start", capacity: 4, refill: 1, period: DAY)
limiter.reset("start")
limiter.rule_ensure("start", **Shmlimit.rule_parse("3/day"))
is(Array.new(9) { limiter.allow?("start", "k") }.count(true), 4, "what an operator has changed since stays")
limiter.rule_ensure("start", algorithm: :counter, capacity: 9, period: DAY)
is(limiter.count("start", "k", 1).count, 1, "a program that starts changes the algorithm, too")
limiter.rule_remove("start")

lease = { algorithm: :lease, capacity: 4, refill: 1, period: 1 }
is([limiter.rule_set("l", **lease, credit: 4).integer?, raised { limiter.rule_set("l", **lease, credit: 5) }&.first], [true, ERROR],
   "a lease has a credit of its capacity at most")
limiter.rule_remove("l")
is(raised { limiter.reserve("r", "k", max_wait: -1) }&.first, RangeError, "a time must not be negative")
is(raised { Shmlimit::Limiter.new("#{SEGMENT}.none") }&.first, ERROR, "a segment that is missing raises an error")
is([limiter.rule_find("none"), limiter.rule_find(:r)], [nil, id], "rule_find is nil when there is none")

limiter.take(:s, "turn")
limiter.rule_remove(:s)
is(raised { limiter.take(:s, "turn") }&.first, ERROR, "a rule that was removed is missing at once, by its Symbol too")
limiter.rule_set(:s, capacity: 1, refill: 1, period: DAY)
is(limiter.take(:s, "turn").allowed, true, "a rule that is set again is found at once")

limiter.rule_set("slow", capacity: 1, refill: 1, period: 0.01, max_wait: DAY)
limiter.take("slow", "k")
is(limiter.acquire("slow", "k", 10).allowed, true, "acquire waits for its tokens")
limiter.rule_set("slow", capacity: 5, refill: 1, period: DAY, max_wait: 9 * DAY)
limiter.take("slow", "t", 5)
is(raised { Timeout.timeout(0.01) { limiter.acquire("slow", "t", 1) } }&.first, Timeout::Error, "other threads run while one waits in acquire, and can interrupt it")
is([1, 1].map { |n| limiter.refund("slow", "t", n).remaining }, [0, 1], "the turn of an interrupted acquire passes unused")

threads = Array.new(8) { Thread.new { Array.new(200) { limiter.count(:counter, "threads", 1, bound: 100).allowed }.count(true) } }
is(threads.sum(&:value), 100, "threads together are admitted the limit")
limiter.rule_set("fork", capacity: 100, refill: 1, period: DAY)
reader, writer = IO.pipe
4.times { fork { writer.write("#{Array.new(100) { limiter.allow?(:fork, 'k') }.count(true)}\n"); exit!(0) } }
Process.waitall
writer.close
is(reader.read.split.sum(&:to_i), 100, "forked processes together are admitted the limit, with the handle that they inherit")

segment = "#{SEGMENT}.made"
made = Shmlimit::Limiter.create(segment, slots: 64)
is([made.name, made.gone?, raised { Shmlimit::Limiter.create(segment) }&.first], [segment, false, ERROR], "a segment is created once")
made.rule_set("w", algorithm: :window, capacity: 2, period: DAY)
is(Array.new(3) { made.allow?("w", "k") }, [true, true, false], "a created segment has room for windows")
made.rule_set("b", algorithm: :token_bucket, capacity: 1, refill: 1, period: DAY)
is(Array.new(2) { made.allow?("b", "k") }, [true, false], "a funnel is also called a token bucket")
made.rule_set(:places, algorithm: :hold, capacity: 2, period: DAY)
places = Array.new(3) { made.enter(:places, "k") }
is(places.map(&:nil?), [false, false, true], "no more places are entered than there are")
by = ->(text) { made.enter(:places, "bound", limit: text) }
bound = [by["1 at once"], by["1 at once"], by[Shmlimit::Limit.new("9 at once")], by["9 at once"]]
is([bound.map(&:nil?), made.hold(:places, "bound", limit: "2 at once") { :never }], [[false, true, false, true], nil],
   "an entry has a bound of its own, and at most the rule's places")
is([raised { by["5/minute"] }&.first, raised { by["2 at once for 5m"] }&.first, bound[0].leave, by["2 at once"].nil?], [ERROR, ArgumentError, true, false],
   "a bound is a number of places")
is([places[0].renew, places[0].leave, places[0].leave, places[0].renew], [true, true, false, false], "a place is renewed, and left once")
found = Shmlimit.rule_parse("auto 1 to 20 at once by aimd")
is([found[:law], found[:least], Shmlimit.rule_text(**found)], [:aimd, 1, "auto 1 to 20 at once by aimd for 1m"], "a limit that finds its number is read, and written")
made.rule_set(:auto, **found)
# How many places there are, after work for so long, or until they are fewer than 20.
work = lambda do |seconds, dropped: false, untimed: false|
  until_s = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  while (number = made.peek(:auto, "k").limit) == 20 && Process.clock_gettime(Process::CLOCK_MONOTONIC) < until_s
    made.hold(:auto, "k") do |place|
      place.dropped = dropped
      place.untimed = untimed
    end
  end
  number
end
is([work.(0.7), work.(0.7, dropped: true, untimed: true), work.(60, dropped: true) < 20], [20, 20, true],
   "a place that is left says whether its work was dropped, and whether its time counts")
is([made.hold(:places, "k") { made.hold(:places, "k") { :never } }, made.hold(:places, "k") { :block }], [nil, :block],
   "hold calls its block with a place, and leaves it afterwards")
is([raised { made.hold(:places, "k") { raise "why" } }, made.enter(:places, "k").nil?], [[RuntimeError, "why"], false], "it leaves it after an error, too")
reader, writer = IO.pipe
made.reset(:places)
pid = fork { writer.write(made.enter(:places, "fork").nil?); sleep }
reader.readpartial(9)
Process.kill(:KILL, pid)
Process.wait(pid)
is(Array.new(3) { made.enter(:places, "fork").nil? }, [false, false, true], "the place of a killed process is free again, and no more than that")
# ---- within_limit ----

made.rule_set(:one, algorithm: :hold, capacity: 1, period: DAY)
made.rule_set(:paced, capacity: 1, refill: 20, period: 1, max_wait: 60)
made.rule_set(:window, algorithm: :window, capacity: 2, refill: 0, period: 0.1)
made.rule_set(:slow, capacity: 1, refill: 1, period: DAY, max_wait: 9 * DAY)
over = []
is([made.within_limit(:one, wait_timeout: 0) { made.within_limit(:one, wait_timeout: 0.05) { :never } rescue over << $!.class; :ran },
    over, made.peek(:one, "all").remaining], [:ran, [Shmlimit::OverLimit], 1], "a block holds a place until it ends, and is not called without one")
is([(made.within_limit(:one, "all", 2) { :never } rescue $!.class), made.peek(:one, "all").remaining], [ArgumentError, 1],
   "a block that waits for a place has no cost, and one with a cost holds none")
running = most = 0
Array.new(8) { Thread.new { made.within_limit(:one, wait_timeout: 60) { most = [most, running += 1].max; sleep 0.002; running -= 1 } } }.each(&:join)
is([most, running], [1, 0], "blocks of threads wait for the place of the one before")
[[:paced, 0.19], [:window, 0.19]].each do |rule, least|
  begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  5.times { made.within_limit(rule, "k", wait_timeout: 60) { :ran } }
  ok(Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun >= least, "blocks wait for their turn: #{rule}")
end
made.within_limit(:slow) { :ran }
late = begin made.within_limit(:slow) { :never } rescue $! end
is([late.class, late.retry_after.between?(DAY - 60, DAY), made.peek(:slow, "all").reset_after <= DAY], [Shmlimit::OverLimit, true, true],
   "a block whose turn is too late is not called, has reserved nothing, and is told when to try again")
is([raised { made.within_limit(:one) { raise "why" } }, made.peek(:one, "all").remaining], [[RuntimeError, "why"], 1], "a block that fails leaves its place")

is(raised { made.enter("w", "k") }&.first, ERROR, "only a rule of holds has places")
Shmlimit.destroy(segment)
is(made.gone?, true, "a segment that was destroyed is gone")
made.close
is([made.closed?, raised { made.take("w", "k") }&.first, made.close], [true, ERROR, nil], "a closed limiter raises an error, and may be closed again")
is(Shmlimit::Limiter.open(SEGMENT) { |l| l.peek("r", "k").allowed }, true, "open with a block closes the limiter afterwards")
is(raised { Shmlimit::Limiter.allocate.take("r", "k") }&.first, ERROR, "a limiter that was never opened raises an error")
is(Shmlimit.key_ip("2001:db8::1"), Shmlimit.key_ip("2001:db8::2"), "addresses of one network have one key")
is([Shmlimit.key_ip("10.0.0.7:50001"), Shmlimit.key_ip("10.0.0.8, 10.0.0.7", 32, 64, -1)], [Shmlimit.key_ip("10.0.0.7")] * 2,
   "an address is read with a port, and from a list")
is(raised { Shmlimit.key_ip("10.0.0.8, 10.0.0.7") }&.first, ERROR, "a list is no address")

shared = Shmlimit::Limiter.new(SEGMENT).freeze
is(Array.new(2) { Ractor.new(shared) { |l| Array.new(60) { l.allow?(:fork, "ractors") }.count(true) } }.sum(&:take), 100,
   "Ractors share a frozen limiter")
is(raised { shared.close }&.first, FrozenError, "a frozen limiter cannot be closed")

# ---- Limits that come with the call ----

plans_segment = "#{SEGMENT}.plans"
plans = Shmlimit::Limiter.create(plans_segment, slots: 32_768)
plans.rule_set(:plans, algorithm: :gcra)
plans.rule_set(:waits, algorithm: :gcra, max_wait: DAY)
plans.rule_set(:funnel, capacity: 2, refill: 1, period: DAY)
[["text", "3/day"], ["read", Shmlimit::Limit.new("3/day")]].each do |key, limit|
  is(Array.new(4) { plans.take(:plans, key, limit: limit).to_h.values_at(:allowed, :limit, :remaining) },
     [[true, 3, 2], [true, 3, 1], [true, 3, 0], [false, 3, 0]], "a take has a limit of its own: #{key}")
end
is(%w[block unlimited].map { |limit| plans.allow?(:plans, "words", limit: limit) }, [false, true], "a limit may be block or unlimited")
is([plans.peek(:plans, "text", 1, limit: "9/day").remaining, plans.refund(:plans, "text", limit: "3/day").remaining], [0, 1],
   "what was spent is spent by another limit, too")
is(plans.take(:plans, "text", limit: "#{1 + 2}/day").allowed, true, "a limit may be made at run time")
is([plans.reserve(:plans, "text", limit: "3/day").allowed, plans.reserve(:plans, "text", max_wait: DAY, limit: "3/day").allowed], [false, true],
   "a reservation by a limit waits as long as it says")
is(Array.new(2) { plans.take_some(:plans, "some", 5, limit: "7/day") }, [5, 2], "take_some takes a limit, too")
plans.charge(:waits, "w", 6, limit: "5/day")
ok(plans.reserve(:waits, "w", limit: "5/day").wait.between?(DAY / 5, DAY / 2), "a reservation and a charge by a limit wait as long as the rule allows")
is(plans.take_all([:plans, "all", nil, "2/day"], [:funnel, "all", 2]).map(&:remaining), [1, 0], "take_all takes limits, too")
["5/fortnight", "20 at once for 5m", "5/s\0", "1/y burst 3"].each do |text|
  ok(raised { plans.take(:plans, "k", limit: text) }.first == ArgumentError, "a limit that cannot be read is an ArgumentError: #{text.inspect}")
end
is(raised { plans.take(:plans, "k", limit: 5) }.first, TypeError, "a limit must be a String or a Limit")
is(raised { plans.take(:plans, "k", limits: "5/s") }.first, ArgumentError, "there is no other keyword")
is([raised { plans.take(:funnel, "k", limit: "5/s") }, raised { plans.take(:plans, "k") }].map(&:first), [ERROR] * 2,
   "a limit needs a rule for it, and such a rule a limit")
pipes = Array.new(4) do
  IO.popen("-", "rb") do |pipe|
    next pipe.read if pipe

    $stdout.binmode.write(Array.new(10_000) { |n| Array.new(4) { plans.allow?(:plans, "c#{n}", limit: "#{n % 9 + 1}/day burst #{n % 11 + 1}") }.count(true) }.pack("C*"))
    $stdout.flush
    exit!(0)
  end
end
found = pipes.map { |pipe| pipe.unpack("C*") }.transpose.map(&:sum)
is(found, Array.new(10_000) { |n| [n % 11 + 1, 16].min }, "10,000 customers with limits of their own are exact over four processes")
gate = Shmlimit::Gate.new("segment=#{plans_segment} create=yes rule=gate algorithm=gcra rate_error=1/day")
is([["a", "3/day"], ["b", "block"], ["c", "unlimited"], ["d", nil], ["e", "many"]].map { |key, limit| Array.new(4) { gate.allow?([key, nil, limit]) }.count(true) },
   [3, 0, 4, 1, 1], "a request of a gate may bring its limit")
is(gate.ask(["f", nil, "7/h"]).fields["ratelimit-policy"], '"gate";q=7;w=3600', "its field has that limit")
is([raised { gate.ask(["f", nil, 7]) }, raised { gate.ask(["f"]) }].map(&:first), [TypeError, ArgumentError], "the limit of a request is a String")
gate.close
plans.close
is(notes.lines.count { |_, text| text.include?('rule gate: the rate "many" of a request: ') }, 1, "what cannot be read is reported")
notes.lines.clear

# ---- Gate ----

gate = Shmlimit::Gate.new("segment=#{SEGMENT} create=yes x_fields\nrule=client rate=2/d prefix=32,64\nrule=user rate=1/d cost=1")
is(gate.limits, 2, "a gate has the limits of its text")
answer = gate.ask("192.0.2.1", nil)
is(answer.to_h.values_at(:outcome, :status, :denied_by, :remaining, :error), [:passed, nil, nil, 1, nil], "a request within its limits passes")
is(answer.fields.keys, %w[ratelimit-policy ratelimit x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset],
   "an answer has the header fields, in small letters")
is(answer.fields["ratelimit-policy"], '"client";q=2;w=86400', "a field has its value")
answer = gate.ask("192.0.2.1", "user:42")
is(answer.fields["ratelimit-policy"], '"client";q=2;w=86400, "user";q=1;w=86400', "fields of several limits are lists")
answer = gate.ask("192.0.2.2", "user:42")
is([answer.allowed?, answer.outcome, answer.status, answer.denied_by], [false, :rejected, 429, 1], "an answer says which limit denies")
ok(answer.retry_after.between?(DAY / 2, DAY) && answer.fields["retry-after"].to_i.between?(DAY / 2, DAY), "it says when a retry fits")
is(gate.ask("192.0.2.2", ["user:43", 1]).remaining, 0, "a key can come with its cost")
is([gate.allow?(nil, ["user:44", 2]), gate.allow?("192.0.2.2", nil), gate.allow?("192.0.2.2", nil)], [false, true, false],
   "a limit whose key is nil does not apply")
is(gate.ask(nil, nil).outcome, :unlimited, "a request without keys is not limited")
is([gate.allow?(nil, ""), gate.allow?(nil, "")], [true, false], "requests with an empty key share it")
is([gate.allow?(nil, "k" * 5000), gate.allow?(nil, "k" * 5000)], [true, false], "a key may have any length")
[[], %w[a], %w[a b c]].each do |keys|
  is(raised { gate.ask(*keys) }, [ArgumentError, "#{keys.size} keys, but the gate has 2 limits; nil where one does not apply"],
     "fewer or more keys than limits are refused, and no limit is left out")
end
is([raised { gate.ask(1, nil) }&.first, raised { gate.ask(["a"], nil) }&.first], [TypeError, ArgumentError], "what is no key raises the exception that fits")
wrong = raised { Shmlimit::Gate.new("segment=web rule=r cost=x") }
is([wrong[0], wrong[1].start_with?("cost=x: must be cost=")], [ArgumentError, true],
   "a text that is wrong raises what would be right")
reader, writer = IO.pipe
3.times { fork { writer.write("#{Array.new(5) { gate.allow?('192.0.2.9', nil) }.count(true)}\n"); exit!(0) } }
Process.waitall
writer.close
is(reader.read.split.sum(&:to_i), 2, "forked processes go on with a gate, and share its limits")
is(Ractor.new(gate.freeze) { |g| g.allow?("192.0.2.9", nil) }.take, false, "Ractors share a frozen gate")

segment = "#{SEGMENT}.late"
late = Shmlimit::Gate.new("segment=#{segment} rule=r")
is([late.ask("k").to_h.values_at(:outcome, :status, :error), late.allow?("k")], [[:failed, 503, Errno::ENOENT::Errno], false],
   "without a segment a request is refused")
is(notes.lines.map { |kind, text| [kind, text.start_with?("shmlimit: segment #{segment}: ")] }, [[:warn, true]],
   "a problem is reported once, to Shmlimit.logger")
is(raised { late.attach }&.first, ERROR, "attach raises what is wrong")
is(Shmlimit::Gate.new("segment=#{segment} fail=open rule=r").ask("k").status, nil, "with fail=open the request goes on")
Shmlimit::Limiter.create(segment, slots: 64).rule_set("r", capacity: 1000, refill: 1, period: DAY)
ok(within { late.allow?("k") }, "a segment that was created later is found")
is(notes.lines.last.first, :info, "the end of a problem is reported too")
late.close
is(raised { late.ask("k") }&.first, ERROR, "a closed gate raises an error")

# ---- places ----

gate = Shmlimit::Gate.new("segment=#{SEGMENT}.shared create=yes rule=all rate=\"4 at once for 1h\" rule=tenants share=1")
answers = %w[a a a b c c].map { |tenant| gate.enter("all", tenant) }
is(answers.map(&:allowed?), [true, true, false, true, true, false], "a key holds at most its share of the places that are free")
answers.each { |answer| gate.leave(answer.places) }
is(Shmlimit::Limiter.new("#{SEGMENT}.shared").peek("all", "all").remaining, 4, "places of a share are left")

segment = "#{SEGMENT}.places"
gate = Shmlimit::Gate.new("segment=#{segment} create=yes rule=hold rate=\"2 at once for 1h\" rule=user rate=5/d")
answers = Array.new(3) { |i| gate.enter("all", "user:#{i}") }
is(answers.map { |a| [a.outcome, a.places.nil?] }, [[:passed, false], [:passed, false], [:rejected, true]], "enter gives as many places as there are")
is([answers[2].denied_by, answers[2].fields], [0, { "ratelimit-policy" => '"hold";q=2;qu="concurrent-requests"', "ratelimit" => '"hold";r=0' }],
   "a request without a place is told how many at once")
limiter = Shmlimit::Limiter.new(segment)
is(limiter.peek("user", "user:2").remaining, 5, "a request without a place takes nothing of another limit")
is(gate.enter(nil, "user:2").places, nil, "a request without a limit on how many at once holds no place")
2.times { gate.leave(answers[0].places) }
is(Array.new(2) { |i| gate.enter("all", "user:#{i}").allowed? }, [true, false], "a place is left once")
gate.leave(nil)
is([raised { gate.leave(1) }&.first, raised { Shmlimit::Places.allocate }&.first], [TypeError, TypeError], "only enter makes places")
limiter.reset("hold")
free = -> { limiter.peek("hold", "all").remaining }
key = +"all"
places = gate.enter(key, nil).places
key.replace("another")
gate.leave(places)
is(free.call, 2, "a place is left although its key was changed meanwhile")
5.times { limiter.take("user", "user:4") }
is([gate.enter("all", "user:4").denied_by, free.call], [1, 2], "a request that another limit denies leaves its places")
places = gate.enter("all", "user:5").places
Process.wait(fork { gate.leave(places); exit!(0) })
is(free.call, 2, "a forked process leaves a place that it inherited")
Shmlimit.destroy(segment)
ok(within { gate.enter("all", "user:6").outcome == :passed && File.exist?(ENV["SHM"] + segment) }, "a gate creates its segment again")
gate.leave(answers[1].places)
is(Shmlimit::Limiter.open(segment) { |l| l.peek("hold", "all").remaining }, 1, "a place of a segment that was replaced is passed over")

# ---- charges ----

charged = "#{SEGMENT}.charged"
gate = Shmlimit::Gate.new("segment=#{charged} create=yes rule=tokens rate=100/200d estimate=10 rule=other rate=9/day " \
                          "rule=plans algorithm=gcra estimate=5")
places = gate.enter("u", "u", ["u", nil, "50/200d"]).places
GC.start
limiter = Shmlimit::Limiter.new(charged)
left = -> { [limiter.peek("tokens", "u").remaining, limiter.peek("other", "u").remaining, limiter.peek("plans", "u", limit: "50/200d").remaining] }
is(left.call, [90, 8, 45], "a request pays its estimates")
[[[40, nil, nil], [60, 8, 45]], [[40], [60, 8, 45]], [[nil, 3, 20], [60, 8, 30]], [[0, nil, 1], [100, 8, 49]]].each do |used, want|
  gate.settle(places, used)
  is(left.call, want, "of #{used} the difference is charged or given back, once")
end
is([raised { gate.settle(places, [-1]) }, raised { gate.settle(places, 7) }, raised { gate.settle(places, ["x"]) }].compact.size, 3,
   "a use is a whole number for each limit")
gate.settle(places, nil)
gate.settle(nil, [1])
gate.settle(places, [300])
is(gate.enter("u", nil, nil).outcome, :rejected, "what a request used too much is debt")

turns = Shmlimit::Gate.new("segment=#{charged} create=yes rule=turns rate=\"20/s burst 1\" delay=30s")
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
outcomes = Array.new(4) { Thread.new { turns.enter("u").outcome } }.map(&:value)
is(outcomes - %i[passed delayed], [], "threads wait for their tokens, and none is refused")
ok(Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun >= 0.149, "each waits for its turn")

begin
  require "rack"

  costs = { "/used" => 25, "/less" => 3, "/unknown" => nil }
  charge = lambda do |env, status, _headers|
    raise IOError if env["PATH_INFO"] == "/fails"

    status == 200 ? costs[env["PATH_INFO"]] : 0
  end
  app = ->(env) { env["PATH_INFO"] == "/raises" ? raise(IOError) : [env["PATH_INFO"] == "/404" ? 404 : 200, {}, ["hello"]] }
  middleware = Shmlimit::Middleware.new(app, "segment=#{charged} create=yes rule=rack rate=1000/200d estimate=10", charge: charge) { "u" }
  rest = 1000
  { "/used" => 25, "/less" => 3, "/unknown" => 10, "/404" => 0, "/fails" => 10, "/raises" => 10 }.each do |path, cost|
    raised { middleware.call(Rack::MockRequest.env_for(path))[2].tap { |open| open.each { nil } }.close }
    is(limiter.peek("rack", "u").remaining, rest -= cost, "Rack: #{path} costs #{cost}")
  end
rescue LoadError
  nil
end
Shmlimit.destroy(charged)

begin
  require "rack"

  Shmlimit::Limiter.open(segment) { |l| l.reset("hold") }
  body = Struct.new(:closed) do
    def each = yield("hello")
    def close = self.closed = true
  end.new(false)
  app = ->(env) { env["raise"] ? raise(IOError) : [200, {}, body] }
  middleware = Shmlimit::Middleware.new(app, "segment=#{segment} rule=hold") { "all" }
  ask = ->(env = {}) { middleware.call(Rack::MockRequest.env_for("/", env)) }
  held = [ask[], ask[]]
  is([held[0][1], ask[][0]], [{ "ratelimit-policy" => '"hold";q=2;qu="concurrent-requests"', "ratelimit" => '"hold";r=1' }, 429],
     "Rack: requests hold places while their bodies are open")
  is(held[0][2].enum_for(:each).to_a, ["hello"], "Rack: the body is the application's")
  held.each { |_, _, open| open.close }
  is([body.closed, ask[][0]], [true, 200], "Rack: a body that is closed closes the application's, and leaves its place")
  is([raised { ask["raise" => true] }&.first, ask[][0], ask[][0]], [IOError, 200, 429], "Rack: an exception of the application leaves the place")
rescue LoadError
  nil
end

backend = Shmlimit::Gate.new("segment=#{SEGMENT} create=yes backend=unix:///nonexistent/redis rule=backend rate=1/d local rule=other rate=1/d local")
is([backend.ask("k" * 20, "l").outcome, backend.ask("k" * 20, nil).outcome], %i[passed rejected], "a gate with a backend decides the same, without the interpreter's lock")
gate = Shmlimit::Gate.new("segment=#{segment} backend=unix:///nonexistent/redis rule=hold")
answers = Array.new(3) { gate.enter("backend") }
gate.leave(answers[0].places)
is([*answers, gate.enter("backend")].map(&:outcome), %i[passed passed rejected passed],
   "a gate with a backend holds places, and leaves them")
done_testing
