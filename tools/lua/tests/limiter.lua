-- The laws of the limiter and the gate, of the binding whose module is named: resty.shmlimit by FFI, or shmlimit in C. The
-- library's own are tested in C: here is what lies between.
--
-- SPDX-License-Identifier: BSD-2-Clause
local tap = require "tap"
local ok, is, pack, raised = tap.ok, tap.is, tap.pack, tap.raised
local module = arg[1]
local shmlimit = require(module)
local SEGMENT, DAY = os.getenv("SEGMENT"), 86400

local function near(seconds, want)
	return seconds > want - 60 and seconds < want + 1
end

local function first(n, ...)
	local all = pack(...)
	all.n = n
	return all
end

-- ---- Segments and rules ----

is(pack(shmlimit.open(SEGMENT)), { n = 3, nil, "segment " .. SEGMENT .. ": no such segment", 2 }, "a segment that is missing is an error that names it")
local limiter = assert(shmlimit.open(SEGMENT, { create = true, slots = 1024, on_full = "deny", mode = 384 }))
is(limiter:name(), SEGMENT, "a limiter has its segment's name")
local login = limiter:rule_set("login", { capacity = 5, refill = 1, period = DAY, max_wait = 9 * DAY })
is(limiter:rule_find("login"), login, "a rule is found by its name")
is(pack(limiter:rule_find("none")), { n = 3, nil, "rule none: no such rule", 3 }, "a rule that is missing is an error that names it")
is(limiter:rule_ensure("login2", "5/minute") ~= login, true, "a rule is ensured by a text")
is(pack(limiter:rule_set("x", "5/minut")), { n = 3, nil, 'limit 5/minut: minut is not a unit: did you mean "5/minute"?', 22 },
	"a text that is no limit is refused, with the nearest one")
is(pack(limiter:rule_set("x", { capacity = 1 })).n, 3, "a rule that the library refuses is an error")
local wrong = { { { capacity = 1, refil = 1 }, "a rule has no member refil" }, { { algorithm = "funel" }, "there is no algorithm funel" },
	{ { mode = "of" }, "there is no mode of" }, { { capacity = 1.5 }, "capacity must be a whole number of 0 to 9007199254740992" },
	{ { period = -1 }, "period must be a number of seconds, 0 or more" }, { 5, "a rule must be a text such as 5/minute, or a table" } }
for _, each in ipairs(wrong) do
	is(raised(limiter.rule_set, limiter, "x", each[1]), each[2], "a mistake in a rule is raised: " .. each[2])
end
local ids = limiter:rule_set("ids", { capacity = 5, refill = 1, period = DAY })
limiter:take(ids, "k", 3)
for _, call in ipairs { "take", "take_some", "peek", "reserve", "charge", "refund", "count", "enter", "pause", "paused", "reset" } do
	local passed = {}
	for _, id in ipairs { -1, -2, -3, ids + 1, 63, 64, 4096, 2 ^ 31 - 1, 2 ^ 31, -2 ^ 31, 2 ^ 32, 2 ^ 64, 0 / 0, 0.5 } do
		local done, answer = pcall(limiter[call], limiter, id, call ~= "reset" and "k" or nil, call ~= "reset" and 1 or nil)
		if done and answer ~= nil then
			passed[#passed + 1] = id
		end
	end
	is(passed, {}, call .. ": a number that is no rule's id is an error")
end
is(select(2, limiter:peek(ids, "k")), 2, "none of these calls has changed a key")
assert(os.execute("shmlimit rule remove " .. SEGMENT .. " ids"))

-- Rates that are not whole, as the table has them: the rule is what the command shows.
local function set(rate, per)
	local done, err = pcall(limiter.rule_set, limiter, "f", { capacity = 15, refill = rate, period = per })
	if not done then
		local fits = rate > 0 and rate < math.huge and per > 0
		local known = err:find(fits and "refill .*the nearest that can be is %d" or "refill .*must be a finite number above 0")
		return known and "refused" or err
	end
	local shown = io.popen("shmlimit rule show " .. SEGMENT .. " f --json && shmlimit rule remove " .. SEGMENT .. " f"):read("*a")
	return shown:match('"refill": *(%d+)') .. " " .. shown:match('"period_ns": *(%d+)')
end
local cases = 0
for line in io.lines(os.getenv("FLOAT_RATES")) do
	local rate, per, refill, period = line:match("^([^# ]+) (%d+) (%w+) ?(%d*)$")
	if rate then
		cases = cases + 1
		is(set(tonumber(rate), tonumber(per)), refill == "refused" and refill or refill .. " " .. period .. "000000000",
			rate .. " every " .. per .. " s is what its shortest decimal says")
		if refill ~= "refused" then
			local by_call = { shmlimit.limit { capacity = 15, refill = tonumber(rate), period = tonumber(per) },
				shmlimit.limit { capacity = 15, refill = tonumber(refill), period = tonumber(period) } }
			local plans = limiter:rule_ensure("floats", { algorithm = "gcra" })
			is(pack(limiter:take(plans, rate, 1, by_call[1])), pack(limiter:take(plans, rate .. " whole", 1, by_call[2])),
				rate .. " every " .. per .. " s is the same with a call")
		end
	end
end
is(cases > 10, true, "the table has rates")
is({ set(0 / 0, 1), set(1 / 0, 1), set(-1, 1) }, { "refused", "refused", "refused" }, "a rate that is no number above 0 is refused")
is(raised(shmlimit.open, SEGMENT, { slot = 5 }), "there is no option slot", "an option that there is none is raised")
is(raised(shmlimit.open, SEGMENT, { slots = 64 }), "option slots is of a segment that is created: it needs create",
	"an option that would do nothing is raised")

-- ---- Decisions ----

is(pack(limiter:take(login, "k")), { n = 5, true, 4, 0, DAY, 5 }, "a take says what is left, the wait, the time to full, and the limit")
for _ = 2, 5 do
	limiter:take("login", "k")
end
local denied = pack(limiter:take("login", "k"))
ok(denied[1] == false and denied[2] == 0 and near(denied[3], DAY) and near(denied[4], 5 * DAY), "a denial says how long to wait")
is(first(3, limiter:take(login, "k", 6)), { n = 3, false, 0, math.huge }, "a cost above the capacity never fits")
is(first(2, limiter:peek(login, "k2", 5)), { n = 2, true, 5 }, "a peek takes nothing")
is(first(2, limiter:take(login, "k2", 3)), { n = 2, true, 2 }, "a take takes its tokens")
is(first(2, limiter:refund(login, "k2", 2)), { n = 2, true, 4 }, "a refund gives tokens back")
is(first(2, limiter:charge(login, "k2", 4)), { n = 2, true, 0 }, "a charge takes them")
is(pack(limiter:take_some(login, "some", 3)), { n = 5, 3, 2, 0, 3 * DAY, 5 }, "of three tokens as many are taken as fit: all")
is(first(2, limiter:take_some(login, "some", 3)), { n = 2, 2, 0 }, "of three tokens as many are taken as fit: two")
local none = pack(limiter:take_some(login, "some", 3))
ok(none[1] == 0 and near(none[3], DAY), "of three tokens as many are taken as fit: none, for a day")
ok(raised(limiter.take_some, limiter, login, "some") ~= nil, "how many there are must be said")
local reserved = pack(limiter:reserve(login, "k2", 2))
ok(reserved[1] == true and near(reserved[3], 2 * DAY), "a reservation says how long to wait")
is((limiter:reserve(login, "k2", 2, 10)), false, "a reservation of more than max_wait is denied")
is(first(2, limiter:take(login, "a\0b")), { n = 2, true, 4 }, "a key has any bytes")
is(first(2, limiter:take(login, "a\0c")), { n = 2, true, 4 }, "what follows a NUL is a part of the key")
is(first(2, limiter:take(login, 17)), { n = 2, true, 4 }, "a number is a key")
is(first(2, limiter:take(login, "17")), { n = 2, true, 3 }, "a number is the key of its text")
is(pack(limiter:take(login, "")), { n = 3, nil, "rule " .. login .. ": a key must be 1 to 1024 bytes long", 90 }, "an empty key is an error")
is(select(3, limiter:take(login, ("k"):rep(1025))), 90, "a key that is too long is an error")
is(select(3, limiter:take(63, "k")), 3, "an id without a rule is an error")
is(select(3, limiter:take("none", "k")), 3, "a name without a rule is an error")
is(first(2, limiter:take(login, "big", 2 ^ 53)), { n = 2, false, 5 }, "a cost of 2^53 is one")
for _, each in ipairs({ { login }, { login, true }, { login, {} } }) do
	is(raised(limiter.take, limiter, each[1], each[2]), "a key must be a string", "what is no key is raised")
end
for _, each in ipairs({ -1, 1.5, 2 ^ 54, 0 / 0, math.huge, "1", {} }) do
	is(raised(limiter.take, limiter, login, "k", each), "tokens must be a whole number of 0 to 2^53", "what is no number of tokens is raised: " .. tostring(each):sub(1, 5))
end
for _, each in ipairs({ -1, 1.5, 4096, 2 ^ 32, 0 / 0 }) do
	is(raised(limiter.take, limiter, each, "k"), "a rule must be its name, or its id of 0 to 4095", "what is no rule's id is raised: " .. each)
end
is(raised(limiter.take, limiter, nil, "k") ~= nil, true, "no rule is raised")
is(raised(limiter.take, limiter, "login\0", "k"), "a rule must be a string without NUL", "a name ends where Lua says")
is(raised(limiter.reserve, limiter, login, "k", 1, -1), "max_wait must be a number of seconds, 0 or more", "a time below 0 is raised")
is({ (limiter:reserve(login, "at once", 5, 0)), (limiter:reserve(login, "at once", 1, 0)) }, { true, false }, "a wait of 0 admits what need not wait")

-- ---- Limits that come with the call ----

limiter:rule_set("plans", { algorithm = "gcra" })
is(first(5, limiter:take("plans", "k", 1, "3/day")), { n = 5, true, 2, 0, DAY / 3, 3 }, "a call brings its limit as a text")
local plan = shmlimit.limit("3/day", 2 * DAY)
is(first(2, limiter:take("plans", "k", 1, plan)), { n = 2, true, 1 }, "a call brings its limit as what was read before")
is(first(2, limiter:take_some("plans", "some", 9, plan)), { n = 2, 3, 0 }, "as many as fit by the limit of the call")
is(select(3, limiter:take_some("plans", "some", 9, "3/dy")), 22, "as many as fit by a limit that is none is an error")
is((limiter:reserve("plans", "k", 3, nil, plan)), true, "a limit has a max_wait of its own")
is(raised(limiter.reserve, limiter, "plans", "k", 1, 5, plan), "a limit has its own max_wait", "a max_wait beside a limit is raised")
is(first(2, limiter:take("plans", "u", 1, "unlimited")), { n = 2, true, math.huge }, "a limit can be none")
is((limiter:take("plans", "u", 1, "block")), false, "a limit can block")
is(first(2, limiter:take("plans", "t", 1, shmlimit.limit { capacity = 7, refill = 1, period = DAY })), { n = 2, true, 6 }, "a limit is also a table")
is(pack(limiter:take("plans", "u", 1, "3/dy")), { n = 3, nil, 'limit 3/dy: dy is not a unit: did you mean "3/day"?', 22 },
	"a limit that cannot be read is an error")
is(pack(shmlimit.limit("3/dy")), { n = 3, nil, 'limit 3/dy: dy is not a unit: did you mean "3/day"?', 22 }, "a limit that cannot be read before the call is an error")
is(select(3, limiter:take("plans", "u")), 33, "a rule without a limit needs one")
is(raised(limiter.take, limiter, "plans", "u", 1, 5), "a limit must be a text, or what shmlimit.limit() returned", "what is no limit is raised")
is(raised(shmlimit.limit, { capacty = 5 }), "a limit has no member capacty", "a member that there is none is raised")

-- ---- Several at once, counts, places ----

limiter:rule_set("one", { capacity = 1, refill = 1, period = DAY })
is(pack(limiter:take_all({ { "one", "all" }, { login, "all", 5 }, { "plans", "all", 1, "3/day" } })), { n = 1, true }, "take_all takes from several limits")
local all = pack(limiter:take_all({ { login, "x" }, { "one", "all" } }))
ok(all[1] == false and all[2] == 2 and near(all[3], DAY), "take_all says which limit denies, and for how long")
is(select(2, limiter:peek(login, "x")), 5, "take_all gives back what it took")
is(select(4, limiter:take_all({ { login, "x" }, { "none", "x" } })), 2, "an error says which request it was")
is(raised(limiter.take_all, limiter, {}), "the number of requests must be a whole number of 1 to 16", "no request is raised")
limiter:rule_set("count", { algorithm = "counter", capacity = 100, period = DAY })
is(first(3, limiter:count("count", "k", 5, nil, 3600)), { n = 3, true, 5, 5 }, "a count adds")
is(first(3, limiter:count("count", "k", -7)), { n = 3, false, 5, 0 }, "a count stays at 0 or more")
is(first(3, limiter:count("count", "k", -2)), { n = 3, true, 3, -2 }, "a count takes away")
is(first(3, limiter:count("count", "k", 5, 7)), { n = 3, false, 3, 0 }, "a count stays within its bound")
is(first(3, limiter:count("count", "k", 5, 7, nil, "saturate")), { n = 3, true, 7, 4 }, "a count is filled up to its bound")
ok(near(select(4, limiter:count("count", "k", 0)), 3600), "a count says how long it lives")
ok(near(select(4, limiter:count("count", "k", 1, nil, 7200, "restart")), 7200), "the time of a count can begin again")
is(raised(limiter.count, limiter, "count", "k", 1, nil, nil, "x"), 'a count is "saturate" or "restart"', "what a count is not is raised")
limiter:rule_set("places", { algorithm = "hold", capacity = 2, period = DAY })
local a, b, c = limiter:enter("places", "k"), limiter:enter("places", "k"), limiter:enter("places", "k")
is({ a and true, b and true, c }, { true, true, false }, "no more places are entered than there are")
is({ limiter:renew("places", "k", a), limiter:leave("places", "k", a) }, { true, true }, "a place is renewed and left")
is(select(3, limiter:leave("places", "k", a)), 62, "a place is left once")
is(limiter:enter("places", "k") and true, true, "a place that is left is free")
local one_of = { limiter:enter("places", "bound", "1 at once") }
is({ one_of[1] and true, one_of[2], one_of[5] }, { true, 0, 1 }, "an entry by a limit has that many places")
is({ (limiter:enter("places", "bound", "1 at once")), limiter:enter("places", "bound", shmlimit.limit("9 at once")) and true },
	{ false, true }, "a lower limit denies, and a higher one admits")
is({ (limiter:enter("places", "bound", "9 at once")), limiter:leave("places", "bound", one_of[1]),
	limiter:enter("places", "bound", "2 at once") and true }, { false, true, true }, "at most the rule's places are entered")
is((select(2, limiter:enter("places", "bound", "2 at once for 5m"))), "limit 2 at once for 5m: how long a place is held is the rule's: must end with \"at once\"",
	"a limit of places says no time")
is((limiter:enter("places", "bound", "5/minute")), nil, "a rate is no number of places")
is(raised(limiter.leave, limiter, "places", "k", a, "late"), 'work that ends is "dropped" or "untimed"', "how work does not end is raised")
limiter:rule_set("auto", "auto 1 to 20 at once by aimd")
-- Works for `seconds` of CPU time, or until there are fewer than 20 places. Returns how many there are.
local function work(seconds, how)
	local stop, number = os.clock() + seconds, 20
	while number == 20 and os.clock() < stop do
		local place = limiter:enter("auto", "k")
		limiter:leave("auto", "k", place, how)
		number = select(5, limiter:peek("auto", "k", 0))
	end
	return number
end
is({ work(0.7), work(0.7, "untimed"), work(60, "dropped") < 20 }, { 20, 20, true }, "a place that is left says whether its work was dropped")
is(raised(limiter.leave, limiter, "places", "k", 5), "a place must be what enter() returned", "what is no place is raised")

-- Twice, since what is compiled takes memory, too.
local grown
limiter:rule_set("much", { capacity = 2 ^ 40, refill = 2 ^ 30, period = 1, max_wait = DAY })
local much = limiter:rule_find("much")
for _ = 1, 2 do
	collectgarbage()
	collectgarbage("stop")
	local before = collectgarbage("count")
	for i = 1, 2000 do
		if not (limiter:take(much, "k") and limiter:peek(much, "k") and limiter:reserve(much, "k", 1) and limiter:refund(much, "k", 1) and
			limiter:take("plans", "p", 0, plan) and limiter:count("count", "k", 0)) then
			error("denied")
		end
	end
	grown = collectgarbage("count") - before
	collectgarbage("restart")
end
ok(grown * 1024 < 12000, ("12,000 decisions make no garbage: %.0f bytes"):format(grown * 1024))

is(limiter:reset(login, "k"), 1, "a key is reset")
is(limiter:pause("login", "p", 3600), true, "a key is paused")
is((limiter:peek("login", "p")), false, "nothing of it passes")
is((limiter:peek("login", "other")), true, "another key does")
ok(limiter:paused("login", "p") > 3000 and limiter:paused("login", "p") < 3601, "it is paused for so long")
is(limiter:pause("login", "p", 0), true, "a pause of 0 ends it")
is(limiter:paused("login", "p"), 0, "it is paused no more")
ok(limiter:reset("login") >= 1 and limiter:reset() >= 1, "a rule is reset, and so is the segment")
is(limiter:rule_remove("one"), true, "a rule is removed")
is(select(3, limiter:take("one", "k")), 3, "a rule that was removed is missing")
is(#shmlimit.key_ip("2001:db8::1"), #shmlimit.key_ip("2001:db8::2:1"), "an address becomes the key of its network")
is(shmlimit.key_ip("203.0.113.9:5000") == shmlimit.key_ip("203.0.113.9"), true, "the port of an address does not count")
is(select(2, shmlimit.key_ip("203.0.113")), "address 203.0.113: an argument is missing, unknown, or out of range", "what is no address is an error")

is(limiter:gone(), false, "a segment that is there is not gone")
is({ shmlimit.destroy(SEGMENT), limiter:gone() }, { true, true }, "a segment that was destroyed is gone")
limiter:close()
limiter:close()
is(select(3, limiter:take(login, "k")), 22, "a limiter that is closed answers with an error")

for _ = 1, 300 do
	assert(shmlimit.open(SEGMENT, { create = true, slots = 16 }))
end
collectgarbage()
collectgarbage()
local maps = io.open("/proc/self/maps")
local left = select(2, maps:read("*a"):gsub((os.getenv("SHM") .. SEGMENT):gsub("%p", "%%%0"), ""))
maps:close()
ok(left < 30, "handles that nothing refers to are closed: " .. left .. " are left")
shmlimit.destroy(SEGMENT)
tap.done_testing()
