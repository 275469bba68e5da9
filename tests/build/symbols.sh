#!/bin/sh
# symbols: what the libraries show to those who link them.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

declared=$(grep -oE '\bshmlimit_[a-z_]+\(' "$SOURCE/include/shmlimit.h" | tr -d '(' | sort -u)

is "$(nm -D --defined-only "$BUILD/libshmlimit.so" | awk '$2 == "T" { print $3 }' | sed 's/@.*//' | sort)" "$declared" \
	"the shared library exports what the header declares and nothing else"
is "$(nm -D --defined-only "$BUILD/libshmlimit.so" | grep -v ' A ' | grep -vc '@@SHMLIMIT_')" 0 \
	"each under a version"
is "$(nm -g --defined-only "$BUILD/libshmlimit.a" | awk 'NF == 3 { print $3 }' | sort)" "$declared" \
	"the static library has no other global name"
like "$(readelf -d "$BUILD/libshmlimit.so")" 'SONAME.*\[libshmlimit\.so\.0\]' "the soname has one number"
is "$(readelf -d "$BUILD/libshmlimit.so" | sed -n "s/.*NEEDED.*\[\(.*\)\]/\1/p" | grep -v "^ld-linux" | sort | tr "\n" " ")" \
	"libc.so.6 liburcu-bp.so.8 liburcu-cds.so.8 " "it needs the C library and liburcu"
is "$(readelf -lW "$BUILD/libshmlimit.so" | awk '$1 == "GNU_STACK" { print $7 }')" RW "its stack is not executable"
is "$(grep -c '#include' "$SOURCE/include/shmlimit.h")" 2 "the header includes two headers"
is "$(grep -oE '#include <.*>' "$SOURCE/include/shmlimit.h" | sort | tr '\n' ' ')" \
	"#include <stddef.h> #include <stdint.h> " "of the standard's, which define no functions"
done_testing
