-- resty.shmlimit.request: what is to be done when a request ends, such as to leave its places. ngx.ctx is lost where nginx sends a
-- request on to another location, as by error_page, X-Accel-Redirect or ngx.exec(); this is not.
--
-- SPDX-License-Identifier: BSD-2-Clause
local M = {}
local ends = {}

-- Each request has its number in its connection, over HTTP/2, too. A subrequest has that of its request.
local function number()
	local var = ngx.var
	return var.connection .. ":" .. var.connection_requests
end

-- Have M.ended() call it.
function M.at_end(call)
	local n = number()
	local calls = ends[n]
	if not calls then
		calls = {}
		ends[n] = calls
	end
	calls[#calls + 1] = call
end

-- The last call is made first.
local function finish(n)
	local calls = ends[n]
	ends[n] = nil
	for i = #calls, 1, -1 do
		local well, why = pcall(calls[i])
		if not well then
			ngx.log(ngx.ERR, "shmlimit: ", why)
		end
	end
end

-- For log_by_lua_block of the server: requests end in any of its locations.
function M.ended()
	local n = number()
	if ends[n] and not ngx.is_subrequest then
		finish(n)
	end
end

-- For exit_worker_by_lua_block: a worker that ends on SIGTERM cuts its requests off.
function M.cut_off()
	for n in pairs(ends) do
		finish(n)
	end
end

return M
