#!/bin/sh
# symbols: the names that the libraries export to programs that link them.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

for library in shmlimit shmlimit-global shmlimit-gate; do
	header=$SOURCE/include/$(echo $library | tr - _).h so=$BUILD/lib$library.so
	[ $library != shmlimit ] || header="$header $SOURCE/include/shmlimit_lease.h"
	# shellcheck disable=SC2086
	declared=$(grep -ohE "^(int|void|size_t|uint32_t|uint64_t|const char \*) ?\*?shmlimit_[a-z_]+\(" $header | grep -oE 'shmlimit_[a-z_]+' | sort -u)
	is "$(nm -D --defined-only "$so" | awk '$2 == "T" { print $3 }' | sed 's/@.*//' | sort)" "$declared" \
		"lib$library.so exports what its headers declare and nothing else"
	is "$(nm -D --defined-only "$so" | grep -v ' A ' | grep -vc '@@SHMLIMIT_')" 0 "each under a version"
	is "$(nm -g --defined-only "$BUILD/lib$library.a" | awk 'NF == 3 { print $3 }' | sort)" "$declared" \
		"the static library has no other global name"
	like "$(readelf -d "$so")" "SONAME.*\[lib$library\.so\.1\]" "the soname has one number"
	is "$(readelf -lW "$so" | awk '$1 == "GNU_STACK" { print $7 }')" RW "its stack is not executable"
done
# Each public function, with the file that defines it: by the sources, and by lib/README.md.
for name in $(sed -n 's/^	shmlimit_\(.*\);$/\1/p' "$SOURCE/lib/shmlimit.map"); do
	for file in $(grep -lE "^EXPORT .*shmlimit_$name\(" "$SOURCE"/lib/api/*.c "$SOURCE"/lib/algorithm/*/*.c "$SOURCE"/lib/save/*.c || echo none); do
		echo "$(basename "$file" .c) $name"
	done
done | sort -u >"$TMP/defined"
sed -n '/^## Public functions/,/^## Names/p' "$SOURCE/lib/README.md" |
	perl -0777 -pe 's/\n  / /g' | sed -n 's/^- `\([a-z_]*\)`: /\1 /p' | while read -r file names; do
	for name in $(echo "$names" | grep -oE '`[a-z_]+`' | tr -d '`'); do
		echo "$file $name"
	done
done | sort >"$TMP/listed"
is "$(diff "$TMP/listed" "$TMP/defined")" "" "each public function is in the file of its noun, as lib/README.md has it"
is "$(readelf -d "$BUILD/libshmlimit.so" | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -v "^ld-linux" | sort | tr "\n" " ")" \
	"libc.so.6 " "the library for one host needs the C library alone"
is "$(readelf -d "$BUILD/libshmlimit-global.so" | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -v "^ld-linux" | sed "s/\(libhiredis.so\).*/\1/" | sort | tr "\n" " ")" \
	"libc.so.6 libcrypto.so.3 libhiredis.so libshmlimit.so.1 libssl.so.3 " "the one for many hosts needs that, hiredis and OpenSSL"
is "$(readelf -d "$BUILD/libshmlimit-gate.so" | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -v "^ld-linux" | sort | tr "\n" " ")" \
	"libc.so.6 libcrypto.so.3 libshmlimit.so.1 liburcu-bp.so.8 " "the gate needs libcrypto and liburcu besides, and not the one for many hosts"
# Each call that takes a rule's id or requests is asked for ids that are none.
for pair in 'shmlimit shmlimit_lease:tests/unit/ids.c' 'shmlimit_global:lib/*/tests/ids.c'; do
	headers=$(for name in ${pair%%:*}; do echo "$SOURCE/include/$name.h"; done)
	# shellcheck disable=SC2086 # several files
	takes=$(cat $headers | tr -s '\n\t ' ' ' | grep -oE '(int|uint64_t) shmlimit_[a-z_]+\([^()]*\);' |
		grep -E '\(struct shmlimit(_global)? \*[a-z]+, (int rule|const struct shmlimit_request \*requests?)\b' |
		sed 's/^[a-z0-9_]* shmlimit_\([a-z_]*\)(.*/\1/')
	[ "$(printf '%s\n' "$takes" | wc -l)" -ge 8 ]
	ok $? "${pair#*:}: the headers have calls that take a rule's id"
	is "$(for name in $takes; do
		grep -qE "\bshmlimit_$name\(|\bCALL\($name, " "$SOURCE"/${pair#*:} || echo "$name"
	done)" "" "${pair#*:}: each of them is asked for ids that are none"
done
# A structure that grows is larger than that of a program which was built before.
is "$(cd "$SOURCE" && grep -rnE 'struct_size (<|>=) sizeof\(' lib --include='*.[ch]')" "" \
	"no call refuses a structure that is as large as in release 1.0, however it grows"
is "$(grep -c '#include' "$SOURCE/include/shmlimit.h")" 2 "the header includes two headers"
is "$(grep -oE '#include <.*>' "$SOURCE/include/shmlimit.h" | sort | tr '\n' ' ')" \
	"#include <stddef.h> #include <stdint.h> " "of the standard's, which define no functions"
done_testing
