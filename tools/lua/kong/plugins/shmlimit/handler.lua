-- Kong's plugin shmlimit: limits that all workers of Kong share with every other process of the host. See the README.
--
-- SPDX-License-Identifier: BSD-2-Clause
local plugin = require "resty.shmlimit.plugin"

-- After authentication, whose consumer can be a key; as Kong's own rate-limiting.
local Handler = { PRIORITY = 910, VERSION = "1.0.0" }

local function key_of(from)
	local header = from:match("^header:(.+)")
	if header then
		return kong.request.get_header(header)
	elseif from == "consumer" then
		return (kong.client.get_consumer() or {}).id
	elseif from == "credential" then
		return (kong.client.get_credential() or {}).id
	end
	return kong.client.get_forwarded_ip()
end

function Handler:access(conf)
	local allowed, status, fields, err, held = plugin.enter(conf, key_of)
	kong.ctx.plugin.held = held
	if err then
		kong.log.err("shmlimit: ", err)
	end
	if not allowed then
		return kong.response.exit(status, { message = status == 429 and "API rate limit exceeded" or "rate limit not available" }, fields)
	end
	for name, value in pairs(fields) do
		kong.response.set_header(name, value)
	end
end

function Handler:log()
	plugin.leave(kong.ctx.plugin.held)
end

return Handler
