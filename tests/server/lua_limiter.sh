#!/bin/sh
# lua_limiter: the laws of the modules for Lua, by LuaJIT's FFI, with and without its compiler.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/lua.inc"

need luajit
shmlimit create "$SEGMENT" --slots 64
readme 'again in' >"$TMP/readme.lua"
is "$(for _ in 1 2 3 4; do luajit "$TMP/readme.lua"; done | sed 's/1[12][0-9][0-9] s/1200 s/' | tr '\n' ' ')" "2 left 1 left 0 left again in 1200 s " \
	"the README's program does what it says"
readme shmlimit.gate >"$TMP/readme.lua"
is "$(luajit "$TMP/readme.lua" | sed 's/t=[0-9]*/t=1/g')" 'true	passed	"client";r=14;t=1, "user";r=99;t=1' "the README's gate does, too"
shmlimit destroy "$SEGMENT"

laws=$SOURCE/tests/server/lua_limiter.lua
gate_laws=$SOURCE/tests/server/lua_gate.lua
for how in -jon -joff '-Ohotloop=1 -Ohotexit=1'; do
	# shellcheck disable=SC2086 # several words
	together "the laws hold by FFI: $how" luajit $how "$laws" resty.shmlimit
	# shellcheck disable=SC2086
	together "the laws of the gate hold by FFI: $how" luajit $how "$gate_laws" resty.shmlimit.gate resty.shmlimit
	shmlimit destroy "$SEGMENT"
	# shellcheck disable=SC2086
	together "the laws of the modules of lua-resty-limit-traffic's interfaces hold: $how" luajit $how "$SOURCE/tests/server/lua_resty.lua"
	shmlimit destroy "$SEGMENT"
	rm -f "/dev/shm/$SEGMENT".*
done
done_testing
