-- The laws of the gate, of the binding whose modules are named: what lies between Lua and the library.
--
-- SPDX-License-Identifier: BSD-2-Clause
local tap = require "tap"
local ok, is, pack, raised = tap.ok, tap.is, tap.pack, tap.raised
local Gate, shmlimit = require(arg[1]), require(arg[2])
local SEGMENT = os.getenv("SEGMENT")

local function first(n, ...)
	local all = pack(...)
	all.n = n
	return all
end

is(pack(Gate.new("segment=x rule=y rate=3/minut")), { n = 3, nil, 'rate=3/minut: minut is not a unit: did you mean "3/minute"?', 22 },
	"a spec that is wrong is an error that names the word")
is(raised(Gate.new, nil), "a spec must be a string without NUL", "no spec is raised")
local gate = assert(Gate.new("segment=" .. SEGMENT .. " create=yes rule=client rate=3/hour rule=user rate=2/hour rule=plan algorithm=gcra rate_error=1/day"))
is({ gate:limits(), (gate:attach()) }, { 3, true }, "a gate has its limits")
is(first(6, gate:ask("a", nil, nil)), { n = 6, true, 0, 0, 2, "passed", nil }, "a limit without a key does not apply")
is(gate:fields()["RateLimit-Policy"], '"client";q=3;w=3600', "an answer has header fields")
is(first(5, gate:ask(nil)), { n = 5, true, 0, 0, math.huge, "unlimited" }, "a request without keys is not limited")
is(first(5, gate:ask("a", "u", { "p", nil, "5/day" })), { n = 5, true, 0, 0, 1, "passed" }, "several limits are asked at once")
is(gate:fields()["RateLimit-Policy"], '"client";q=3;w=3600, "user";q=2;w=3600, "plan";q=5;w=86400', "each of them has its fields")
is(first(2, gate:ask("a", "u", { "p", 5, shmlimit.limit("9/day") })), { n = 2, true, 0 }, "a key has a cost, and a limit that was read before")
local denied = pack(gate:ask("a", "v", "w"))
ok(denied[1] == false and denied[2] == 429 and denied[3] > 1100 and denied[5] == "rejected", "a denial has a status, and a time to wait")
is(gate:fields({ other = 1 }).other, 1, "fields are put into a table that is given")
is(select(5, gate:ask("b", "v", { "w", nil, "2/day" })), "passed", "what one limit denied cost the others nothing")
is(raised(gate.ask, gate, true), "a key must be a string, nil, or { key, cost, limit }", "what is no key is raised")
for _, cost in ipairs({ -1, 1.5, "1", 0 / 0 }) do
	is(raised(gate.ask, gate, { "k", cost }), "a cost must be a whole number of 0 to 2^53", "what is no cost is raised")
end
is(raised(gate.ask, gate, { "k", 1, 5 }), "a limit must be a text, or what shmlimit.limit() returned", "what is no limit is raised")
is(raised(gate.ask, gate, ("k"):rep(17):byte(1, 17)), "a request has at most 16 keys", "more than 16 keys are raised")
is({ (gate:ask("a", "b", "c", "d")), (select(6, gate:ask("a", "b", "c", "d"))) ~= nil }, { nil, true }, "a key without a limit is an error")

local held = assert(Gate.new("segment=" .. SEGMENT .. '.held create=yes rule=site rate="2 at once for 1 hour"'))
local one, two, three = select(7, held:enter("k")), select(7, held:enter("k")), pack(held:enter("k"))
is({ one ~= nil, two ~= nil, three[1], three[2], three[7] }, { true, true, false, 429, nil }, "no more requests enter than there are places")
is({ held:leave(one), (held:leave(nil)), (held:enter("k")) }, { true, true, true }, "a place that is left is free")

local shared = assert(Gate.new("segment=" .. SEGMENT .. '.shared create=yes rule=all rate="4 at once for 1 hour" rule=tenants share=1'))
local entered = {}
for i, tenant in ipairs({ "a", "a", "a", "b", "c", "c" }) do entered[i] = (shared:enter("all", tenant)) end
is(entered, { true, true, false, true, true, false }, "a key holds at most its share of the places that are free")

local paid = assert(Gate.new("segment=" .. SEGMENT .. ".paid create=yes rule=tokens rate=100/year estimate=10 rule=other rate=9/year"))
local bill = select(7, paid:enter("k", "o"))
is({ paid:settle(bill, 30, nil), paid:settle(bill, 30), (select(4, paid:ask("k"))) }, { true, true, 60 }, "a request is charged for what it turned out to cost, once")
is({ paid:settle(bill, 5), (select(4, paid:ask("k"))), (paid:settle(nil, 1)) }, { true, 75, true }, "what it has paid too much is given back")
is(raised(paid.settle, paid, bill, -1), "tokens must be a whole number of 0 to 2^53", "what is no number of tokens is raised")
is(select(7, paid:enter(nil, "o")), nil, "a request that has paid its cost has nothing to settle")
held:close()
held:close()
is((held:ask("k")), nil, "a gate that is closed answers with an error")

local closed = assert(Gate.new("segment=" .. SEGMENT .. ".none rule=client"))
local failed = pack(closed:ask("k"))
is({ failed[1], failed[2], failed[5], failed[6] }, { false, 503, "failed", "no such segment" }, "without its segment a gate refuses, and says why")
local open = assert(Gate.new("segment=" .. SEGMENT .. ".none fail=open rule=client"))
is(first(2, open:ask("k")), { n = 2, true, 0 }, "a gate with fail=open lets requests pass")

for _ = 1, 300 do
	assert(Gate.new("segment=" .. SEGMENT .. " rule=client")):attach()
end
collectgarbage()
collectgarbage()
local maps = io.open("/proc/self/maps")
local left = select(2, maps:read("*a"):gsub((os.getenv("SHM") .. SEGMENT):gsub("%p", "%%%0"), ""))
maps:close()
ok(left < 30, "gates that nothing refers to are closed: " .. left .. " maps are left")
tap.done_testing()
