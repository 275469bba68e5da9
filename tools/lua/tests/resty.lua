-- The laws of the modules with the interfaces of lua-resty-limit-traffic. What they say of delays is compared with a model of
-- nginx's limit_req, on a clock that is made up.
--
-- SPDX-License-Identifier: BSD-2-Clause
local tap = require "tap"
local ok, is, pack, raised = tap.ok, tap.is, tap.pack, tap.raised
local shmlimit = require(jit and "resty.shmlimit" or "shmlimit")
local segment = require "resty.shmlimit.segment"
local req, count, conn, traffic = require "resty.shmlimit.req", require "resty.shmlimit.count", require "resty.shmlimit.conn",
	require "resty.shmlimit.traffic"
local NAME = os.getenv("SEGMENT")

-- A limiter of req's whose time is `ms`. Only by FFI is there the call that sets the time.
local ms = 0
local function on_clock(lim)
	local ffi = require "ffi"
	local C = ffi.load("libshmlimit.so.1")
	ffi.cdef [[
	int shmlimit_set_time(struct shmlimit *, const uint64_t *);
	]]
	local limiter = lim.segment:current()
	local r = ffi.new("struct shmlimit_result")
	local function at(verb)
		return function(self, id, key, n, limit)
			local request = ffi.new("struct shmlimit_request", { id, 0, key, #key, n, limit })
			C.shmlimit_set_time(self.handle, ffi.new("uint64_t[1]", ms * 1e6 + 1e12))
			local answer = C.shmlimit_decide(self.handle, verb, request, r)
			C.shmlimit_set_time(self.handle, nil)
			assert(answer >= 0)
			return answer == 0, tonumber(r.remaining), tonumber(answer == 0 and r.wait_ns or r.retry_after_ns) / 1e9
		end
	end
	local reserve = at(2)
	limiter.reserve = function(self, id, key, n, _, limit)
		return reserve(self, id, key, n, limit)
	end
	limiter.peek, limiter.refund = at(1), at(4)
	return limiter
end

-- limit_req: the excess of a key drains at the rate; a request adds 1, unless it is the first.
local function model(rate, burst)
	local keys = {}
	return function(key, commit)
		local record, excess = keys[key], 0
		if record then
			excess = math.max(record.excess - rate * (ms - record.last) / 1000 + 1, 0)
			if excess > burst + 1e-9 then
				return nil, "rejected"
			end
		end
		if commit then
			keys[key] = { excess = excess, last = ms }
		end
		return excess / rate, excess
	end
end

local seed = tonumber(os.getenv("SEED")) or os.time()
math.randomseed(seed)
print("# SEED=" .. seed)
local rates = { 1, 2, 3, 7, 10, 33, 100, 200, 999, 1000, 0.5, 0.1, 1.5, 3.7, 1 / 3, 0.013, 12345.678 }
local worst, answers, differ = 0, { rejected = 0, delayed = 0, passed = 0 }, 0
for history = 1, jit and 300 or 0 do
	local rate = rates[history % #rates + 1]
	local burst = ({ 0, 1, 3, 10, 100, 2.5 })[math.random(6)]
	local lim = assert(req.new(NAME, rate, burst))
	local limiter, said = on_clock(lim), model(rate, burst)
	for _ = 1, 100 do
		-- About as fast as the rate, or three times as fast, or at once, and sometimes not for a long time.
		ms = ms + math.floor(({ 0, 0.3, 1, 2, 30 })[math.random(5)] * math.random() * 1000 / rate)
		local key, commit = history .. "." .. math.random(2), math.random(4) > 1
		local delay, excess = lim:incoming(key, commit)
		local want_delay, want_excess = said(key, commit)
		if (delay == nil) ~= (want_delay == nil) then
			differ = differ + 1
		elseif delay then
			worst = math.max(worst, math.abs(delay - want_delay))
			differ = differ + (math.abs(excess - want_excess) > 0.001 and 1 or 0)
			answers[delay > 0 and "delayed" or "passed"] = answers[delay > 0 and "delayed" or "passed"] + 1
		else
			answers.rejected = answers.rejected + 1
			differ = differ + (excess ~= "rejected" and 1 or 0)
		end
	end
	limiter.reserve, limiter.peek, limiter.refund = nil, nil, nil
end
if jit then
	is(differ, 0, "30,000 requests pass, wait and are rejected as by limit_req")
	ok(worst < 0.001, ("requests wait as long as by limit_req, to the millisecond: the largest difference is %.9f s"):format(worst))
	ok(answers.rejected > 1000 and answers.delayed > 1000 and answers.passed > 1000,
		("many requests get each answer: %d rejected, %d delayed, %d passed"):format(answers.rejected, answers.delayed, answers.passed))
end

-- ---- req ----

local lim = assert(req.new(NAME, 0.01, 2))
local got = {}
for i = 1, 4 do
	local delay, excess = lim:incoming("a", true)
	got[i] = delay and math.floor(delay + 0.5) .. " " .. math.floor(excess * 100 + 0.5) / 100 or excess
end
is(got, { "0 0", "100 1", "200 2", "rejected" }, "a burst waits for its turn, and what exceeds it is rejected")
is(select(2, lim:incoming("a")), "rejected", "a look is rejected too")
is(lim:uncommit("a"), true, "a request can be taken back")
ok(math.abs(lim:incoming("a", true) - 200) < 1, "a request that is taken back makes room")
is(pack(lim:incoming("new")), { n = 2, 0, 0 }, "a look at a new key passes")
is(pack(lim:incoming("new")), { n = 2, 0, 0 }, "a look takes nothing")
lim:set_burst(3)
ok(math.abs(lim:incoming("a", true) - 300) < 1, "a burst can be changed")
lim:set_rate(0.02)
ok(math.abs(lim:incoming("b", true)) + math.abs(lim:incoming("b", true) - 50) < 1, "a rate can be changed")
is(pack(req.new("no/name", 1, 1)), { n = 2, nil, "segment no/name: a name is empty or contains a forbidden character" },
	"a segment that cannot be is an error")
is(pack(req.new(nil, 1, 1)), { n = 2, nil, "a segment must be its name, or what resty.shmlimit.segment.open() returned" }, "no segment is an error")
is(select(2, req.new(NAME, 1e-9, 1)):match("^rate and burst: .*"), select(2, req.new(NAME, 1, 1e9)), "a rate or burst that is too long is an error")
for _, each in ipairs({ { 0, 1 }, { -1, 1 }, { 1, -1 }, { 0 / 0, 1 }, { "1", 1 }, { 1 }, {}, { 1 / 0, 1 } }) do
	is(raised(req.new, NAME, each[1], each[2]), "rate must be above 0 and at most 1e9, burst 0 or more", "what is no rate and burst is raised")
end
is(raised(lim.set_rate, lim, 0), "rate must be above 0 and at most 1e9", "a rate that is none is raised later, too")

-- ---- Keys, of all ----

local cnt, con = assert(count.new(NAME, 2, 3600)), assert(conn.new(NAME .. ".conn", 2, 1, 0.5))
for _, each in ipairs({ lim, cnt, con }) do
	for _, commit in ipairs({ true, false }) do
		is(pack(each:incoming(nil, commit)), { n = 2, nil, "nil key" }, "no key is an error")
		is(pack(each:incoming("", commit)), { n = 2, nil, "empty key" }, "an empty key is an error")
		is(pack(each:incoming({}, commit)), { n = 2, nil, "a key must be a string" }, "what is no key is an error")
		is(pack(each:incoming(("k"):rep(1025), commit)), { n = 2, nil, "key too long" }, "a key that is too long is an error")
	end
	is(each:incoming(("k"):rep(1024), false), 0, "a key of 1,024 bytes is one")
	is(raised(each.uncommit, each, nil), "nil key", "nothing is taken back without a key: it is raised")
	is({ (each:incoming(42, true)), (each:uncommit("42")) ~= nil }, { 0, true }, "a number is the key of its text")
end

-- ---- count ----

got = {}
for i = 1, 3 do
	local _, remaining, reset = cnt:incoming("a", true)
	got[i] = tostring(remaining) .. (reset > 3590 and reset < 3601 and "" or " " .. reset)
end
is(got, { "1", "0", "rejected" }, "a count says what is left, and when its window is over")
is(pack(cnt:uncommit("a")), { n = 1, 1 }, "a request can be taken back")
is({ select(2, cnt:incoming("a")), (select(2, cnt:incoming("a", true))), (select(2, cnt:incoming("a"))) }, { 0, 0, "rejected" }, "a look at a count takes nothing")
is(cnt:uncommit("new"), 2, "a key without a window has all of it")
local short = assert(count.new(NAME, 1, 0.02))
is({ (short:incoming("s", true)), (short:incoming("s", true)) }, { 0 }, "a window can be shorter than a second")
local waits = os.clock()
repeat until short:incoming("s") or os.clock() > waits + 60
is((short:incoming("s", true)), 0, "when a window is over another begins")
is(pack(count.new(NAME, 2 ^ 31, 1)), { n = 2, nil, "limit must be below 2^31" }, "a limit that is too large is an error")
is(pack(count.new(NAME, 1, 400 * 86400)), { n = 2, nil, "window must be 1 ns to 366 days" }, "a window that is too long is an error")
is(raised(count.new, NAME, 0, 1), "limit and window must be above 0", "a limit of 0 is raised")

-- ---- conn ----

got = {}
for i = 1, 4 do
	local delay, n = con:incoming("a", true)
	got[i] = { delay or "nil", n, con:is_committed() }
end
is(got, { { 0, 1, true }, { 0, 2, true }, { 0.5, 3, true }, { "nil", "rejected", false } }, "requests above conn wait, and those above conn + burst are rejected")
is(pack(con:leaving("a", 1.5)), { n = 1, 2 }, "one that is over makes room")
is(pack(con:incoming("a")), { n = 2, 1, 3 }, "the delay has become the mean of what requests took and what it was")
is({ con:is_committed(), (con:incoming("a")) }, { false, 1 }, "a look takes no place")
is({ con:leaving("a"), con:leaving("a"), (con:leaving("a")) }, { 1, 0, nil }, "places are left, and no more than were taken")
is(select(2, con:leaving("a")), "not found", "a place that was not taken cannot be left")
con:set_conn(1)
con:set_burst(0)
is({ con:incoming("a", true) and true, (select(2, con:incoming("a", true))), con:leaving("a") }, { true, "rejected", 0 }, "the limits can be changed")
con:set_conn(20)
got = 0
while con:incoming("many", true) do
	got = got + 1
end
is({ got, (con:leaving("many")) }, { 20, 19 }, "a limit can be changed to more places than the rule was made for")
while con:leaving("many") do end
con:set_conn(65537)
ok(not con:incoming("a", true), "a limit cannot be changed to more places than there can be")
con:set_conn(20)
ok(conn.new(NAME, 1, 0, 1), "places can be in the segment of the other limits")
is(select(2, conn.new(NAME .. ".x", 65536, 1, 1)), "conn and burst must be at most 65536 together", "there is a largest limit")
local brief = assert(conn.new(NAME .. ".conn", 1, 0, 1, 0.05))
is({ (brief:incoming("k", true)), (brief:incoming("k", true)) }, { 0 }, "a place is held")
waits = os.clock()
repeat until brief:incoming("k") or os.clock() > waits + 60
is({ (brief:incoming("k", true)), brief:leaving("k"), brief:leaving("k") }, { 0, 1, 0 }, "a place ends by itself; then it is left without harm to another")
is(con.segment.held, {}, "nothing is kept of keys without requests")
con:set_conn(2)
-- Rules and keys that are the same when they are joined.
is({ (con:incoming(".0.05k", true)), (brief:incoming("k", true)), (brief:leaving("k")), (con:leaving(".0.05k")) }, { 0, 0, 0, 0 },
	"places of two rules stay apart")
is(next(con.segment.held), nil, "nothing at all is kept of places that were left")

-- ---- traffic ----

con:set_conn(2)
local reqs, states = assert(req.new(NAME, 0.01, 5)), {}
local limiters, keys = { reqs, con, cnt }, { "t", "t", "t" }
is({ traffic.combine(limiters, keys, states), states }, { 0, { 0, 1, 1 } }, "several limits take together")
local delay = traffic.combine(limiters, keys, states)
ok(math.abs(delay - 100) < 1 and states[2] == 2 and states[3] == 0, "the delay is the longest, and each says how it is")
is(pack(traffic.combine(limiters, keys)), { n = 2, nil, "rejected" }, "what one denies, all deny")
is({ con:leaving("t"), con:leaving("t"), (select(2, con:leaving("t"))) }, { 1, 0, "not found" }, "when one denies the others take nothing")
cnt:uncommit("t")
ok(math.abs(reqs:incoming("t") - 200) < 1, "a limit that was not taken does not delay")
-- One that passes a look and then denies, as when others were faster.
local fickle = { incoming = function(_, _, commit) return not commit and 0 or nil, "rejected" end }
is({ (select(2, traffic.combine({ fickle, reqs, con, cnt }, { "t", "t", "t", "t" }))), (select(2, con:leaving("t"))), (select(2, cnt:incoming("t"))) },
	{ "rejected", "not found", 0 }, "what was taken when one denies is given back")
is(traffic.combine({}, {}), 0, "no limit at all has no delay")

-- ---- Segments that come and go ----

local from = lim.segment
is({ assert(req.new(NAME, 1, 1)).segment == from, cnt.segment == from }, { true, true }, "objects share the handle of their segment")
shmlimit.destroy(NAME)
from.look_at = 0
is({ (lim:incoming("a", true)), (cnt:incoming("a", true)), from.limiter:gone() }, { 0, 0, false }, "a segment that was destroyed is made again")
from.limiter:rule_remove("~req")
is({ select(2, lim:incoming("a", true)), (lim:incoming("c", true)) }, { "rule 0: no such rule", 0 }, "a rule that was removed is made again with the next request")
shmlimit.destroy(NAME .. ".own")
local own = assert(segment.open(NAME .. ".own", { slots = 64 }))
is({ (assert(conn.new(own, 8, 0, 1)):incoming("k", true)), (assert(req.new(own, 1, 0)):incoming("k", true)),
	(assert(conn.new(NAME .. ".own", 99, 0, 1)):incoming("l", true)) }, { 0, 0, 0 }, "a segment can be made with options of its own")
is(raised(segment.open, NAME .. ".y", { slot = 1 }), "there is no option slot", "options of a segment are checked")

tap.done_testing()
