-- For Lua 5.3 and 5.4, and HAProxy: luarocks make shmlimit-1.0.0-1.rockspec
rockspec_format = "3.0"
package = "shmlimit"
version = "1.0.0-1"
source = { url = "." }
description = {
	summary = "One rate limit for all processes of a host",
	detailed = "A limiter in shared memory, and actions for HAProxy. The libraries libshmlimit and libshmlimit-gate must be installed.",
	license = "BSD-2-Clause",
}
dependencies = { "lua >= 5.3, < 5.5" }
external_dependencies = { SHMLIMIT = { header = "shmlimit_gate.h", library = "shmlimit-gate" } }
build = {
	type = "builtin",
	modules = {
		shmlimit = {
			sources = { "ext/lua_gate.c", "ext/lua_limiter.c", "ext/lua_value.c" },
			incdirs = { "$(SHMLIMIT_INCDIR)" },
			libdirs = { "$(SHMLIMIT_LIBDIR)" },
			libraries = { "shmlimit-gate", "shmlimit", "m" },
		},
		["shmlimit.haproxy"] = "shmlimit/haproxy.lua",
		["resty.shmlimit.conn"] = "resty/shmlimit/conn.lua",
		["resty.shmlimit.count"] = "resty/shmlimit/count.lua",
		["resty.shmlimit.req"] = "resty/shmlimit/req.lua",
		["resty.shmlimit.segment"] = "resty/shmlimit/segment.lua",
		["resty.shmlimit.traffic"] = "resty/shmlimit/traffic.lua",
	},
}
