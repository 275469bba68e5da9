#!/bin/sh
# limiter: the laws of the modules for Lua: by LuaJIT's FFI, with and without its compiler, and in C for Lua 5.3 and 5.4.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/lua/tests/lua.inc"

need luajit
shmlimit create "$SEGMENT" --slots 64
block tools/lua/README.md lua 'again in' | own >"$TMP/readme.lua"
is "$(for _ in 1 2 3 4; do luajit "$TMP/readme.lua"; done | sed 's/1[12][0-9][0-9] s/1200 s/' | tr '\n' ' ')" "2 left 1 left 0 left again in 1200 s " \
	"the README's program does what it says"
block tools/lua/README.md lua shmlimit.gate | own >"$TMP/readme.lua"
is "$(luajit "$TMP/readme.lua" | sed 's/t=[0-9]*/t=1/g')" 'true	passed	"client";r=14;t=1, "user";r=99;t=1' "the README's gate does, too"
shmlimit destroy "$SEGMENT"

FLOAT_RATES=$SOURCE/tests/float_rates.txt
export FLOAT_RATES
laws=$SOURCE/tools/lua/tests/limiter.lua
gate_laws=$SOURCE/tools/lua/tests/gate.lua
for how in -jon -joff '-Ohotloop=1 -Ohotexit=1'; do
	# shellcheck disable=SC2086 # several words
	together "the laws hold by FFI: $how" luajit $how "$laws" resty.shmlimit
	# shellcheck disable=SC2086
	together "the laws of the gate hold by FFI: $how" luajit $how "$gate_laws" resty.shmlimit.gate resty.shmlimit
	shmlimit destroy "$SEGMENT"
	# shellcheck disable=SC2086
	together "the laws of the modules of lua-resty-limit-traffic's interfaces hold: $how" luajit $how "$SOURCE/tools/lua/tests/resty.lua"
	shmlimit destroy "$SEGMENT"
	rm -f "$SHM$SEGMENT".*
done

for version in 5.3 5.4; do
	[ -f "$BUILD/lua/$version/shmlimit.so" ] && command -v lua$version >/dev/null || {
		echo "ok $((tap_count += 1)) # SKIP lua$version or liblua$version-dev is not installed"
		continue
	}
	LUA_CPATH="$BUILD/lua/$version/?.so"
	export LUA_CPATH
	together "the laws hold in Lua $version" lua$version "$laws" shmlimit
	together "the laws of the gate hold in Lua $version" lua$version "$gate_laws" shmlimit.gate shmlimit
	shmlimit destroy "$SEGMENT"
	together "the laws of the modules of lua-resty-limit-traffic's interfaces hold in Lua $version" lua$version "$SOURCE/tools/lua/tests/resty.lua"
	rm -f "$SHM$SEGMENT"*
done
done_testing
