-- What a decision costs in Lua: rows of "NAME: figure<TAB>nanoseconds", as the fastest of some rounds.
--
--     luajit tools/lua/bench/take.lua NAME SEGMENT SECONDS MODULE
--
-- MODULE is resty.shmlimit, or shmlimit for the module in C.
--
-- SPDX-License-Identifier: BSD-2-Clause
local name, segment, seconds, module = arg[1], arg[2] .. ".lua", tonumber(arg[3]), arg[4]
local shmlimit, gate = require(module), require(module .. ".gate")
local ROUNDS = 50

local function row(figure, call)
	local calls, least = 100, math.huge
	local function once()
		local begun = os.clock()
		call(calls)
		return os.clock() - begun
	end
	while once() < seconds / ROUNDS do
		calls = calls * 2
	end
	for _ = 1, ROUNDS do
		least = math.min(least, once() / calls)
	end
	print(("%s: %s\t%.1f"):format(name, figure, least * 1e9))
end

local limiter = assert(shmlimit.open(segment, { create = true, slots = 1024 }))
local key = "user:42"
local take = limiter:rule_set("take", { capacity = 2 ^ 40, refill = 2 ^ 30, period = 1 })
local count = limiter:rule_set("count", { algorithm = "counter" })
local plans = limiter:rule_set("plans", { algorithm = "gcra" })
local plan = shmlimit.limit { capacity = 2 ^ 30, refill = 2 ^ 30, period = 1 }

row("take", function(n) for _ = 1, n do assert(limiter:take(take, key)) end end)
row("take, the rule by its name", function(n) for _ = 1, n do assert(limiter:take("take", key)) end end)
row("take, its own limit", function(n) for _ = 1, n do assert(limiter:take(plans, key, 1, plan)) end end)
row("count", function(n) for _ = 1, n do assert(limiter:count(count, key, 0)) end end)
local asks = assert(gate.new("segment=" .. segment .. " rule=take"))
row("gate", function(n) for _ = 1, n do assert(asks:ask(key)) end end)
if module == "resty.shmlimit" then
	local req = assert(require("resty.shmlimit.req").new(segment, 1e9, 1e9))
	row("resty.shmlimit.req: incoming", function(n) for _ = 1, n do assert(req:incoming(key, true)) end end)
	local counts = assert(require("resty.shmlimit.count").new(segment, 2 ^ 31 - 1, 1e6))
	row("resty.shmlimit.count: incoming", function(n) for _ = 1, n do assert(counts:incoming(key, true)) end end)
	local conn = assert(require("resty.shmlimit.conn").new(segment, 10, 0, 1))
	row("resty.shmlimit.conn: incoming, leaving", function(n) for _ = 1, n do assert(conn:incoming(key, true)) assert(conn:leaving(key)) end end)
end
shmlimit.destroy(segment)
