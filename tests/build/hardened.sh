#!/bin/sh
# hardened: plain `make` builds libraries, programs and modules as hardened as
# Debian's packages are, and leaves out what a build cannot have.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

# What make would do: no output of these builds is kept.
commands() { make --no-print-directory -n -B -C "$SOURCE" O="$TMP/none" "$@" "$TMP/none/lib/api/take.o" "$TMP/none/bin/shmlimit"; }
x86=$(gcc -dumpmachine | grep -c '^x86_64')

files=
for file in libshmlimit.so libshmlimit-global.so libshmlimit-gate.so bin/shmlimit bin/shmlimit-demo nginx/ngx_http_shmlimit_module.so \
	apache/mod_shmlimit.so node/build/Release/shmlimit.node ruby/shmlimit/native.so php/shmlimit.so lua/5.3/shmlimit.so lua/5.4/shmlimit.so; do
	[ ! -e "$BUILD/$file" ] || files="$files $file"
done
like "$files" "libshmlimit.so .*libshmlimit-global.so .*libshmlimit-gate.so bin/shmlimit" "there are libraries and a command to look at"
for file in $files; do
	readelf -lW "$BUILD/$file" >"$TMP/segments"
	readelf -dW "$BUILD/$file" >"$TMP/dynamic"
	readelf -hW "$BUILD/$file" >"$TMP/header"
	nm -D "$BUILD/$file" >"$TMP/symbols"
	is "$(grep -c GNU_RELRO "$TMP/segments")" 1 "$file: its tables of addresses become read-only"
	like "$(cat "$TMP/dynamic")" '(BIND_NOW|FLAGS_1\).*NOW)' "$file: its tables of addresses are filled when it is loaded"
	is "$(awk '$1 == "GNU_STACK" { print $7 }' "$TMP/segments")" RW "$file: its stack is not executable"
	is "$(grep -cE '^ +LOAD .* RWE ' "$TMP/segments")" 0 "$file: no page is writable and executable"
	like "$(cat "$TMP/header")" 'Type: +DYN' "$file: it is loaded at an address that is not known before"
	like "$(cat "$TMP/symbols")" ' U __stack_chk_fail\b' "$file: functions with arrays check their stack when they return"
	is "$(grep -c TEXTREL "$TMP/dynamic")" 0 "$file: no code is changed when it is loaded"
done

# Whatever is built, so that a new module is not forgotten: what gives the C library or liburcu functions to call later.
for file in $(cd "$BUILD" && find . -type f \( -name '*.so' -o -name '*.so.[0-9]*' -o -name '*.node' \) ! -path './deb/*' ! -path './peers/*' ! -name 'liburcu*'); do
	nm -D "$BUILD/$file" | grep -qE ' U (__register_atfork|pthread_create|pthread_key_create|thrd_create|urcu_)' || continue
	staying="${staying-}$file "
	like "$(readelf -dW "$BUILD/$file")" 'FLAGS_1\).*NODELETE' "$file: stays loaded while threads live that have used it"
done
like "${staying-}" "libshmlimit-gate.so.*libshmlimit-global.so|libshmlimit-global.so.*libshmlimit-gate.so" "there are libraries that must stay loaded"
like "$(readelf -dW "$BUILD/bin/shmlimit")" 'FLAGS_1\).*PIE' "the command is position-independent"
like "$(nm -D "$BUILD/bin/shmlimit")" ' U __[a-z]*(printf|memcpy|strcpy)_chk\b' "the command's calls check what they know the size of"
[ "$x86" = 0 ] || like "$(objdump -d --no-show-raw-insn "$BUILD/libshmlimit.so" | grep -A1 '<shmlimit_take\(@.*\)*>:$')" endbr64 \
	"a function that can be called indirectly begins with the instruction that says so"

# Marks of CET: the linker keeps them where all objects have them, those of the C library that begin and end a file too.
# Debian 12's do not, so what is linked there has no mark, and the kernel enforces nothing for it.
mark() { readelf -nW "$1" | grep -qE 'x86 feature: IBT, SHSTK' && echo marked || echo unmarked; }
if [ "$x86" != 0 ]; then
	is "$(find "$BUILD/lib" -name '*.o' | while read -r object; do mark "$object"; done | sort -u)" marked "each object has the marks of CET"
	for compiler in gcc clang; do
		command -v "$compiler" >/dev/null || continue
		flag=$(commands CC=$compiler | grep -- '-c -o' | head -n 1 | grep -oE -- '-fcf-protection')
		echo 'int f(void) { return 1; }' | "$compiler" ${flag:+"$flag"} -x c -c -o "$TMP/cet.o" -
		is "$(mark "$TMP/cet.o")" marked "$compiler: an object of plain make has the marks of CET"
	done
	for pair in libshmlimit.so:crti.o,crtn.o libshmlimit-gate.so:crti.o,crtn.o bin/shmlimit:Scrt1.o,crti.o,crtn.o; do
		expected=marked
		for object in $(echo "${pair#*:}" | tr , ' '); do
			[ "$(mark "$(gcc -print-file-name="$object")")" = marked ] || expected=unmarked
		done
		is "$(mark "$BUILD/${pair%%:*}")" $expected "${pair%%:*}: it is $expected, as the C library's objects let it be"
	done
fi

like "$(commands)" '-fstack-protector-strong' "plain make protects stacks"
like "$(commands)" '-D_FORTIFY_SOURCE=2' "plain make checks calls"
is "$(commands CFLAGS='-O0 -g' | grep -c FORTIFY_SOURCE)" 0 "without optimization, which that needs, it is left out"
is "$(commands SAN=address | grep -cE 'FORTIFY_SOURCE|stack-protector')" 0 "a sanitizer checks more, and has its own way"
is "$(commands CPPFLAGS=-D_FORTIFY_SOURCE=3 | grep -c 'FORTIFY_SOURCE=2')" 0 "a builder's own level is not overridden"
is "$(commands CPPFLAGS= CFLAGS='-O1 -U_FORTIFY_SOURCE' | grep -c 'FORTIFY_SOURCE=2')" 0 "a fortify level that the builder undefines is not set again"
is "$(commands LDFLAGS=-static | grep -c -- ' -pie ')" 0 "a static program is linked as one"
is "$(commands CC='false' | grep -cE 'stack-protector|stack-clash|cf-protection')" 0 "a compiler that lacks a flag does without"
printf 'int main(int c, char **v) { return printf(v[c - 1]); }\n' | sed '1i #include <stdio.h>' >"$TMP/format.c"
flags=$(commands | grep -- '-c -o' | head -n 1 | grep -oE -- '-W[a-z=-]+')
# shellcheck disable=SC2086
gcc $flags -c -o "$TMP/format.o" "$TMP/format.c" 2>"$TMP/errors"
rc=$?
like "$rc $(cat "$TMP/errors")" '^1 .*format' "text of somebody else's as a format is an error in every build"
done_testing
