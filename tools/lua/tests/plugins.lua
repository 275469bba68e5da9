-- Stand-ins of what Kong 3 and APISIX 3 offer to a plugin, as far as ours use it, in nginx's Lua module. They are strict: what
-- Kong and APISIX would refuse is an error here.
--
-- SPDX-License-Identifier: BSD-2-Clause
local M = {}

-- ---- Kong ----

kong = {
	client = {
		get_forwarded_ip = function() return ngx.var.remote_addr end,
		get_consumer = function() return ngx.var.http_x_consumer and { id = ngx.var.http_x_consumer } end,
		get_credential = function() return ngx.var.http_x_credential and { id = ngx.var.http_x_credential } end,
	},
	request = { get_header = function(name) return ngx.req.get_headers()[name] end },
	response = {
		set_header = function(name, value)
			assert(type(name) == "string" and type(value) == "string")
			ngx.header[name] = value
		end,
		exit = function(status, body, headers)
			assert(status >= 100 and status < 600 and (body == nil or type(body) == "table"))
			for name, value in pairs(headers or {}) do
				ngx.header[name] = value
			end
			ngx.status = status
			ngx.say(body and body.message or "")
			ngx.exit(status)
		end,
	},
	log = { err = function(...) ngx.log(ngx.WARN, ...) end },
	ctx = { plugin = setmetatable({}, {
		__index = function(_, name) return (ngx.ctx.plugin or {})[name] end,
		__newindex = function(_, name, value)
			ngx.ctx.plugin = ngx.ctx.plugin or {}
			ngx.ctx.plugin[name] = value
		end,
	}) },
}
package.preload["kong.db.schema.typedefs"] = function()
	return { protocols_http = { type = "set", default = { "http", "https" } } }
end

-- A field of a schema: what Kong's schema library checks of the kinds that we use.
local function field_check(field, value)
	if value == nil then
		return not field.required and true or nil, "required field missing"
	end
	local of = { string = "string", array = "table", record = "table" }
	if type(value) ~= assert(of[field.type], "a schema of an unknown type") then
		return nil, "expected a " .. field.type
	end
	if field.match_any then
		local found = false
		for _, pattern in ipairs(field.match_any.patterns) do
			found = found or value:match(pattern) ~= nil
		end
		if not found then
			return nil, field.match_any.err
		end
	end
	for i, element in ipairs(field.elements and value or {}) do
		local ok, err = field_check(field.elements, element)
		if not ok then
			return nil, i .. ": " .. err
		end
	end
	local known = {}
	for _, one in ipairs(field.fields or {}) do
		local name, of_it = next(one)
		known[name] = true
		if value[name] == nil then
			value[name] = of_it.default
		end
		local ok, err = field_check(of_it, value[name])
		if not ok then
			return nil, name .. ": " .. err
		end
	end
	for name in pairs(field.fields and value or {}) do
		if not known[name] then
			return nil, name .. ": unknown field"
		end
	end
	if field.custom_validator then
		return field.custom_validator(value)
	end
	return true
end

function M.kong(conf)
	local schema, handler = require "kong.plugins.shmlimit.schema", require "kong.plugins.shmlimit.handler"
	assert(schema.name == "shmlimit" and handler.PRIORITY and handler.VERSION:match("^%d+%.%d+%.%d+$"))
	local config
	for _, field in ipairs(schema.fields) do
		config = field.config or config
	end
	local ok, err = field_check(config, conf)
	return ok and handler, err
end

-- ---- APISIX ----

local function schema_check(schema, value)
	local of = { object = "table", array = "table", string = "string" }
	if type(value) ~= assert(of[schema.type], "a schema of an unknown type") then
		return false, "wrong type: expected " .. schema.type
	end
	for name, property in pairs(schema.properties or {}) do
		if value[name] == nil then
			value[name] = property.default
		end
		if value[name] ~= nil then
			local ok, err = schema_check(property, value[name])
			if not ok then
				return false, ("property %q validation failed: %s"):format(name, err)
			end
		end
	end
	for _, name in ipairs(schema.required or {}) do
		if value[name] == nil then
			return false, ("property %q is required"):format(name)
		end
	end
	if #value < (schema.minItems or 0) or #value > (schema.maxItems or math.huge) or #value < (schema.minLength or 0) then
		return false, "wrong length"
	end
	for _, item in ipairs(schema.items and value or {}) do
		local ok, err = schema_check(schema.items, item)
		if not ok then
			return false, err
		end
	end
	return true
end

package.preload["apisix.core"] = function()
	return {
		schema = { check = schema_check },
		log = { error = function(...) ngx.log(ngx.WARN, ...) end },
		response = { set_header = function(name, value) ngx.header[name] = value end },
	}
end

function M.apisix(conf)
	local plugin = require "apisix.plugins.shmlimit"
	assert(plugin.name == "shmlimit" and type(plugin.version) == "number" and type(plugin.priority) == "number")
	local ok, err = plugin.check_schema(conf)
	return ok and plugin, err
end

-- A request in its access phase, and in its log phase. The configuration stays from request to request.
local confs = {}
function M.access(kind, name, conf)
	confs[kind .. name] = confs[kind .. name] or conf
	conf = confs[kind .. name]
	local plugin = assert(M[kind](conf))
	ngx.ctx.after = { plugin, conf, { var = ngx.var } }
	if kind == "kong" then
		plugin:access(conf)
	else
		local status, body = plugin.access(conf, ngx.ctx.after[3])
		if status then
			ngx.status = status
			ngx.say(body.error_msg)
			ngx.exit(status)
		end
	end
end

function M.log(kind)
	local plugin, conf, ctx = unpack(ngx.ctx.after)
	if kind == "kong" then
		plugin:log(conf)
	else
		plugin.log(conf, ctx)
	end
end

return M
