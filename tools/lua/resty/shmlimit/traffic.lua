-- resty.shmlimit.traffic: several limiters, all or none, with the interface of lua-resty-limit-traffic's resty.limit.traffic.
--
-- SPDX-License-Identifier: BSD-2-Clause
local M = { _VERSION = "1.0.0" }

-- The longest delay; or nil, err. `states` gets what each limiter returns beside its delay.
function M.combine(limiters, keys, states)
	local n, longest = #limiters, 0
	-- A look first, so that a request that one denies costs the others nothing, not even for a moment.
	for i = 1, n - 1 do
		local delay, err = limiters[i]:incoming(keys[i], false)
		if not delay then
			return nil, err
		end
	end
	-- The last one first: it had no look.
	for i = n, 1, -1 do
		local delay, state = limiters[i]:incoming(keys[i], true)
		if not delay then
			for j = i + 1, n do
				limiters[j]:uncommit(keys[j])
			end
			return nil, state
		end
		if states then
			states[i] = state
		end
		if delay > longest then
			longest = delay
		end
	end
	return longest
end

return M
