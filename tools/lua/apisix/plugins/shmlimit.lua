-- APISIX's plugin shmlimit: limits that all workers of APISIX share with every other process of the host. See the README.
--
-- SPDX-License-Identifier: BSD-2-Clause
local core = require "apisix.core"
local plugin = require "resty.shmlimit.plugin"

local M = {
	version = 0.1,
	-- After authentication, as APISIX's own limit-req, limit-conn and limit-count.
	priority = 1004,
	name = "shmlimit",
	schema = {
		type = "object",
		properties = {
			spec = { type = "string", minLength = 1 },
			-- A variable for each limit, such as remote_addr, consumer_name or http_x_api_key.
			keys = { type = "array", minItems = 1, maxItems = 16, items = { type = "string", minLength = 1 }, default = { "remote_addr" } },
		},
		required = { "spec" },
	},
}

function M.check_schema(conf)
	local ok, err = core.schema.check(M.schema, conf)
	if ok then
		ok, err = plugin.check(conf)
	end
	if not ok then
		return false, err
	end
	return true
end

function M.access(conf, ctx)
	local allowed, status, fields, err, held = plugin.enter(conf, function(variable)
		return ctx.var[variable]
	end)
	-- A global rule and a route can both have the plugin.
	ctx.shmlimit_held = ctx.shmlimit_held or {}
	ctx.shmlimit_held[conf] = held
	if err then
		core.log.error("shmlimit: ", err)
	end
	for name, value in pairs(fields) do
		core.response.set_header(name, value)
	end
	if not allowed then
		return status, { error_msg = status == 429 and "rate limit exceeded" or "rate limit not available" }
	end
end

function M.log(conf, ctx)
	local held = ctx.shmlimit_held
	if held then
		plugin.leave(held[conf])
		held[conf] = nil
	end
end

return M
