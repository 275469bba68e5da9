#!/bin/sh
# rock: LuaRocks makes both rocks without a network, they have each module, and what they install decides.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/lua/tests/lua.inc"

need luarocks luajit lua5.3 gcc
[ -f /usr/include/lua5.3/lua.h ] || skip_all "liblua5.3-dev is not installed"
unset LUA_PATH MAKEFLAGS MFLAGS MAKELEVEL
export HOME="$TMP"
version=$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")

cp -r "$SOURCE/tools/lua" "$TMP/lua"
cd "$TMP/lua" || exit
# rock LUA ROCK VARIABLE...
rock() {
	lua=$1 name=$2
	shift 2
	run luarocks --lua-version "$lua" --tree "$TMP/tree" make --deps-mode none "$name-$version-1.rockspec" "$@"
	is "$rc $(printf '%s\n' "$err" | grep -i -e error -e warning)" "0 " "$name $version is made and installed for Lua $lua"
	[ "$rc" -eq 0 ] || diag "$out" "$err"
}
rock 5.1 lua-resty-shmlimit
rock 5.3 shmlimit SHMLIMIT_INCDIR="$SOURCE/include" SHMLIMIT_LIBDIR="$BUILD"

modules() { cd "$1" && find . -name '*.lua' | sort; }
is "$(modules "$TMP/tree/share/lua/5.1")" "$(modules "$SOURCE/tools/lua" | grep -v '^./shmlimit/\|^./tests/\|^./bench/')" "lua-resty-shmlimit has each module for LuaJIT"
is "$(modules "$TMP/tree/share/lua/5.3" | wc -l)" 6 "shmlimit has the modules that Lua 5.3 can use"
is "$(sed -n 's/^local M = { _VERSION = "\(.*\)" }.*/\1/p; s/.*Gate = { _VERSION = "\(.*\)" }.*/\1/p; s/.* VERSION = "\(.*\)" }/\1/p' \
	"$SOURCE"/tools/lua/resty/*.lua "$SOURCE"/tools/lua/resty/shmlimit/*.lua "$SOURCE"/tools/lua/kong/plugins/shmlimit/handler.lua | sort -u)" "$version" \
	"each module has the library's version"

cat >"$TMP/ask.lua" <<'END_OF_LUA'
local limiter = require(arg[1]).open(os.getenv("SEGMENT"), { create = true, slots = 64 })
limiter:rule_ensure("r", "2/day")
print(limiter:take("r", "k"), require("resty.shmlimit.req").new(os.getenv("SEGMENT"), 1, 1):incoming("k", true))
END_OF_LUA
path="$TMP/tree/share/lua"
is "$(LUA_PATH="$path/5.1/?.lua" luajit "$TMP/ask.lua" resty.shmlimit)" "true	0	0" "what LuaJIT got decides"
is "$(LUA_PATH="$path/5.3/?.lua" LUA_CPATH="$TMP/tree/lib/lua/5.3/?.so" lua5.3 "$TMP/ask.lua" shmlimit | sed 's/^true.*/true/')" "true" "what Lua 5.3 got decides"
done_testing
