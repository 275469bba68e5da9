#!/bin/sh
# cdef: what LuaJIT's FFI reads of the libraries is what their headers say.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/lua/tests/lua.inc"

need luajit gcc
compiles() { gcc -std=c11 -I"$SOURCE/include" -Wall -Wextra -Werror -c -o /dev/null "$1" 2>"$TMP/err"; }
luajit "$SOURCE/tools/lua/tests/cdef.lua" >"$TMP/cdef.c"
ok $? "what is declared is read: $(sed -n 's,^/\* \(.*\) \*/$,\1,p' "$TMP/cdef.c")"
compiles "$TMP/cdef.c"
ok $? "each structure, member and function is that of the headers"
sed 's/^/# /' "$TMP/err" >&2

# It can fail: a member that is shorter, two that change places, and an argument of another type.
for change in 's/uint64_t capacity, refill, period_ns, max_wait_ns;/uint32_t capacity, refill; uint64_t period_ns, max_wait_ns;/' \
	's/struct_size, algorithm, mode/struct_size, mode, algorithm/' 's/size_t key_len, uint64_t cost/size_t key_len, uint32_t cost/'; do
	mkdir -p "$TMP/wrong/resty/shmlimit"
	sed "$change" "$SOURCE/tools/lua/resty/shmlimit/cdef.lua" >"$TMP/wrong/resty/shmlimit/cdef.lua"
	LUA_PATH="$TMP/wrong/?.lua" luajit "$SOURCE/tools/lua/tests/cdef.lua" >"$TMP/wrong.c"
	! compiles "$TMP/wrong.c"
	ok $? "a wrong one is found: $change"
done
done_testing
