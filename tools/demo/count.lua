-- count: what wrk's clients got, exactly: `wrk -s count.lua URL`.
--
-- The last line of wrk's output becomes
--
--	counted REQUESTS ALLOWED DENIED OTHER SECONDS WORKERS
--
-- SECONDS is from just before the first connection to the last response, so
-- that a rule permits at most capacity + rate * SECONDS of the ALLOWED.
-- WORKERS is how many processes answered, by the field Worker of the responses.
--
-- SPDX-License-Identifier: BSD-2-Clause

local ffi = require "ffi"

ffi.cdef [[
	struct timespec { long tv_sec; long tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
]]

local CLOCK_MONOTONIC = 1
local time = ffi.new "struct timespec"

local function now()
	ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
	return tonumber(time.tv_sec) + tonumber(time.tv_nsec) / 1e9
end

local threads = {}

function setup(thread)
	threads[#threads + 1] = thread
end

-- The rest runs in each thread, whose globals done() reads, except done() itself.
function init()
	status_count = {}
	answered_by = {}
	first = now()
	last = first
end

function response(status, headers)
	status_count[status] = (status_count[status] or 0) + 1
	answered_by[headers["Worker"] or "nobody"] = true
	last = now()
end

function done()
	local requests, allowed, denied, workers = 0, 0, 0, 0
	local first, last = math.huge, 0
	local seen = {}

	for _, thread in ipairs(threads) do
		for status, count in pairs(thread:get "status_count") do
			requests = requests + count
			if status == 200 then
				allowed = allowed + count
			elseif status == 429 then
				denied = denied + count
			end
		end
		for worker in pairs(thread:get "answered_by") do
			if not seen[worker] then
				seen[worker] = true
				workers = workers + 1
			end
		end
		first = math.min(first, thread:get "first")
		last = math.max(last, thread:get "last")
	end
	print(string.format("counted %d %d %d %d %.6f %d", requests, allowed, denied, requests - allowed - denied,
		last - first, workers))
end
