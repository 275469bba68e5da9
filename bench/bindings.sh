#!/bin/sh
# bindings: what does a decision cost in other languages?
#
#	bench/bindings.sh BUILD [--quick] [--rows FILE]
#
# Each program of bench/bindings prints rows of a figure and its nanoseconds. A language that is not installed is left out.
# See README.md for the figures.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

. "${0%/*}/kit.sh"
seconds=2
[ $quick = no ] || seconds=0.01
here=$(cd "${0%/*}" && pwd)
source=${here%/bench}
LD_LIBRARY_PATH=$build
export LD_LIBRARY_PATH

# measure NAME COMMAND...: the command's rows.
measure() {
	name=$1
	shift
	"$@" "$name" "$segment" "$seconds" >"$build/bench/bindings.rows"
	tell
}

# As a table and in $rows.
tell() {
	while IFS='	' read -r figure ns; do
		printf '%-54s %8.0f ns\n' "$figure" "$ns"
		printf 'bindings\t%s\tone client\tns\t%s\n' "$figure" "$ns" >>"$rows"
	done <"$build/bench/bindings.rows"
}

# Python, by the extension where it can be built, and by ctypes. Debian's Python, for which there are packages.
python=/usr/bin/python3
if [ -x $python ]; then
	PYTHONDONTWRITEBYTECODE=1
	export PYTHONDONTWRITEBYTECODE
	rm -rf "$build/bench/python"
	mkdir -p "$build/bench/python"
	cp -r "$source/tools/python/shmlimit" "$build/bench/python"
	include=$($python -c 'import sysconfig; print(sysconfig.get_path("include"))')
	if [ -e "$include/Python.h" ]; then
		${CC:-gcc} -std=c11 -O2 -fPIC -fvisibility=hidden -shared -DPy_LIMITED_API=0x030A0000 -I"$include" \
			-o "$build/bench/python/shmlimit/_native.abi3.so" "$source"/tools/python/native/*.c
		measure Python env PYTHONPATH="$build/bench/python" $python "$here/bindings/python.py"
	else
		echo "Python: no extension, since there is no python3-dev"
	fi
	measure 'Python, ctypes' env PYTHONPATH="$source/tools/python" $python "$here/bindings/python.py"
fi

# PHP, by the extension where it was built, and over FFI.
if command -v php >/dev/null && [ -e "$build/php/Shmlimit/autoload.php" ]; then
	SHMLIMIT=$build/php/Shmlimit
	export SHMLIMIT
	if [ -e "$build/php/shmlimit.so" ]; then
		measure PHP php -d extension="$build/php/shmlimit.so" "$here/bindings/php.php"
	fi
	if php -m | grep -qx FFI; then
		measure 'PHP, FFI' php "$here/bindings/php.php"
	fi
fi

if [ -e "$build/node/build/Release/shmlimit.node" ]; then
	SHMLIMIT=$build/node measure Node node "$here/bindings/node.mjs"
fi

# LuaJIT beside C, and the module in C.
if command -v luajit >/dev/null; then
	export LUA_PATH="$source/tools/lua/?.lua;;"
	${CC:-gcc} -O3 "$here/bindings/take.c" -I"$source/include" -L"$build" -lshmlimit -o "$build/bench/take"
	measure C "$build/bench/take"
	for how in 'LuaJIT luajit resty.shmlimit' 'LuaJIT,_no_compiler luajit,-joff resty.shmlimit' 'Lua_5.3 lua5.3 shmlimit'; do
		# shellcheck disable=SC2086 # three words
		set -- $how
		if command -v "${2%%,*}" >/dev/null && { [ "$3" != shmlimit ] || [ -e "$build/lua/5.3/shmlimit.so" ]; }; then
			# shellcheck disable=SC2046 # a command and its option
			LUA_CPATH="$build/lua/5.3/?.so" $(echo "$2" | tr , ' ') "$here/bindings/lua.lua" "$(echo "$1" | tr _ ' ')" "$segment" "$seconds" "$3" \
				>"$build/bench/bindings.rows"
			tell
		fi
	done
fi

# It prints a table of its own, with objects in the last column.
if [ -e "$build/ruby/shmlimit/native.so" ]; then
	/usr/bin/ruby "-I$build/ruby" "$here/bindings/ruby.rb" | awk '
		NF > 2 && $NF ~ /^[0-9]+$/ && $(NF - 1) ~ /^-?[0-9]+$/ {
			ns = $(NF - 1)
			sub(/ +-?[0-9]+ +[0-9]+$/, "")
			print "Ruby: " $0 "\t" ns
		}' >"$build/bench/bindings.rows"
	tell
fi
