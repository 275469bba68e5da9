-- resty.shmlimit.forwarded: says once in a process that behind a proxy all clients are one, in nginx.
--
-- SPDX-License-Identifier: BSD-2-Clause
local ffi = require "ffi"
require "resty.shmlimit.cdef"

local G = ffi.load("libshmlimit-gate.so.1")
local ngx = rawget(_G, "ngx")
local type = type

local M = {}

-- That proxies write, and their variables.
local FIELDS = {
	{ "X-Forwarded-For", "http_x_forwarded_for" },
	{ "Forwarded", "http_forwarded" },
	{ "X-Real-IP", "http_x_real_ip" },
	{ "CF-Connecting-IP", "http_cf_connecting_ip" },
}
local PHASES = { rewrite = true, access = true, content = true, server_rewrite = true }
local MAX = 4096

-- A gate that needs no segment.
local gate = ffi.new("struct shmlimit_gate *[1]")
local key = ffi.new("struct shmlimit_gate_key")
local is_on = ngx ~= nil and G.shmlimit_gate_open("segment=any rule=any", gate) == 0

-- 1: the address can be a proxy's, and none was reported in this process; with a field, it is to be reported now.
local function ask(address, field)
	key.bytes, key.length = address, #address
	return G.shmlimit_gate_forwarded(gate[0], key, 1, address, #address, field, "")
end

-- Would the gate of this handle report a proxy?
function M.wanted(handle)
	key.bytes, key.length = "127.0.0.1", 9
	return is_on and G.shmlimit_gate_forwarded(handle, key, 1, "127.0.0.1", 9, nil, nil) == 1
end

function M.off()
	is_on = false
end

-- Where the field has the peer's address, the realip module has put that in the place of a proxy's.
local function report(peer)
	for i = 1, #FIELDS do
		local value = ngx.var[FIELDS[i][2]]
		if value and not value:find(peer, 1, true) and ask(peer, FIELDS[i][1]) == 1 then
			ngx.log(ngx.WARN, "shmlimit: a request from ", peer, " has a field ", FIELDS[i][1], ": behind a proxy all clients are one, since its address ",
				"is the key (set_real_ip_from, or trusted_ips in Kong, names proxies; if it is no proxy: proxy_warning=no)")
			is_on = false
			return
		end
	end
end

-- Look at the key of a request. The last keys that are no proxy's address are known.
local others, count = {}, 0
function M.look(address)
	if not is_on or type(address) ~= "string" or others[address] then
		return
	end
	if ask(address, nil) ~= 1 then
		if count >= MAX then
			others, count = {}, 0
		end
		others[address], count = true, count + 1
	elseif PHASES[ngx.get_phase()] and address == ngx.var.remote_addr then
		report(address)
	end
end

return M
