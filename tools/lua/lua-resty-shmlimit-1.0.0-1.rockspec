-- For OpenResty, and nginx with its Lua module: luarocks make lua-resty-shmlimit-1.0.0-1.rockspec
rockspec_format = "3.0"
package = "lua-resty-shmlimit"
version = "1.0.0-1"
source = { url = "." }
description = {
	summary = "One rate limit for all processes of a host, by LuaJIT's FFI",
	detailed = "A limiter in shared memory, with the interfaces of lua-resty-limit-traffic. The library libshmlimit must be installed.",
	license = "BSD-2-Clause",
}
dependencies = { "lua == 5.1" }
build = {
	type = "builtin",
	modules = {
		["resty.shmlimit"] = "resty/shmlimit.lua",
		["resty.shmlimit.cdef"] = "resty/shmlimit/cdef.lua",
		["resty.shmlimit.conn"] = "resty/shmlimit/conn.lua",
		["resty.shmlimit.count"] = "resty/shmlimit/count.lua",
		["resty.shmlimit.forwarded"] = "resty/shmlimit/forwarded.lua",
		["resty.shmlimit.gate"] = "resty/shmlimit/gate.lua",
		["resty.shmlimit.plugin"] = "resty/shmlimit/plugin.lua",
		["resty.shmlimit.req"] = "resty/shmlimit/req.lua",
		["resty.shmlimit.request"] = "resty/shmlimit/request.lua",
		["resty.shmlimit.segment"] = "resty/shmlimit/segment.lua",
		["resty.shmlimit.traffic"] = "resty/shmlimit/traffic.lua",
		["kong.plugins.shmlimit.handler"] = "kong/plugins/shmlimit/handler.lua",
		["kong.plugins.shmlimit.schema"] = "kong/plugins/shmlimit/schema.lua",
		["apisix.plugins.shmlimit"] = "apisix/plugins/shmlimit.lua",
	},
}
