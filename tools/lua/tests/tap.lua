-- tap.lua: the verbs of tap.sh, for Lua of any version.
--
-- SPDX-License-Identifier: BSD-2-Clause
local M = { count = 0, failed = 0 }

-- A value as text: numbers as they are, tables by their members.
local function text(value)
	if type(value) ~= "table" then
		return type(value) == "string" and string.format("%q", value) or tostring(value)
	end
	local parts = {}
	for i = 1, value.n or #value do
		parts[i] = text(value[i])
	end
	return "{ " .. table.concat(parts, ", ") .. " }"
end

function M.ok(held, title)
	M.count = M.count + 1
	print((held and "ok " or "not ok ") .. M.count .. " - " .. title)
	if not held then
		M.failed = M.failed + 1
		local at = debug.getinfo(2, "Sl")
		if at.short_src:find("tap.lua", 1, true) then
			at = debug.getinfo(3, "Sl")
		end
		io.stderr:write("# failed at ", at.short_src, ":", at.currentline, "\n")
	end
end

function M.is(got, want, title)
	got, want = text(got):gsub("%.0%f[^%d]", ""), text(want):gsub("%.0%f[^%d]", "")
	M.ok(got == want, title)
	if got ~= want then
		io.stderr:write("# got:  ", got, "\n# want: ", want, "\n")
	end
end

function M.pack(...)
	return { n = select("#", ...), ... }
end

-- What a function raises, without the place; or nil.
function M.raised(...)
	local held, err = pcall(...)
	return not held and tostring(err):gsub("^[^ ]*:%d+: ", "") or nil
end

function M.done_testing()
	print("1.." .. M.count)
	os.exit(M.failed == 0 and 0 or 1)
end

return M
