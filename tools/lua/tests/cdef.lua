-- What resty.shmlimit.cdef declares, as a C program that compiles only if the headers say the same: each member of a structure has
-- its offset and size, each structure its size, and each function its type.
--
-- SPDX-License-Identifier: BSD-2-Clause
local ffi = require "ffi"
local text
local cdef = ffi.cdef
ffi.cdef = function(given)
	text = given
	cdef(given)
end
require "resty.shmlimit.cdef"

print('#include <shmlimit_gate.h>\n#include <stddef.h>')
local structures, members = 0, 0
for name, body in text:gmatch("struct (shmlimit[%w_]*) (%b{})") do
	structures = structures + 1
	local of = "struct " .. name
	print(('_Static_assert(sizeof(%s) == %d, "%s");'):format(of, ffi.sizeof(of), name))
	for list in body:sub(2, -2):gmatch("([^;]+);") do
		-- The names are what stands before a comma, a bracket or the end.
		for member in (list .. ","):gmatch("([%w_]+)%s*%[?%d*%]?%s*,") do
			members = members + 1
			local value = ffi.new(of)[member]
			print(('_Static_assert(offsetof(%s, %s) == %d, "%s.%s");'):format(of, member, ffi.offsetof(of, member), name, member))
			if type(value) ~= "cdata" and type(value) ~= "nil" then
				print(('_Static_assert(sizeof(((%s *)0)->%s) == 4, "%s.%s");'):format(of, member, name, member))
			end
		end
	end
end
local functions = 0
for declaration in text:gsub("struct [%w_]+ %b{};", ""):gmatch("[^;]+%b();") do
	functions = functions + 1
	print(declaration)
end
print(("/* %d structures, %d members, %d functions */"):format(structures, members, functions))
assert(structures > 14 and members > 90 and functions > 35)
