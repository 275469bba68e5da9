#!/bin/sh
# grown: a program goes on with a later library, in which the structures that may grow have grown.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need gcc make

mkdir "$TMP/later"
(cd "$SOURCE" && tar cf - Makefile include lib tools/*.mk tools/*.sh tools/*.awk tests/*.mk bench/*.mk 2>/dev/null) | tar xf - -C "$TMP/later"
# Each structure whose first member is its size has one member more, at the end.
for header in "$TMP"/later/include/*.h; do
	awk '/^struct [a-z_]+ \{$/ { first = 1; print; next }
		first { grows = /uint32_t struct_size;/; first = 0 }
		/^};$/ && grows { print "\tuint64_t grown;"; grows = 0; n++ }
		{ print } END { print n + 0 >>"'"$TMP/grown"'" }' "$header" >"$TMP/header" && mv "$TMP/header" "$header"
done
is "$(awk '$1 > 0' "$TMP/grown" | wc -l)" "$(grep -l 'uint32_t struct_size;' "$SOURCE"/include/*.h | wc -l)" "structures of each header have grown"
make -s -C "$TMP/later" O="$TMP/b" CFLAGS=-O1 "$TMP/b/libshmlimit.so" >"$TMP/made" 2>&1
ok $? "a later library can be built"
[ -f "$TMP/b/libshmlimit.so" ] || diag "$(tail -5 "$TMP/made")"
gcc -Wall -Wextra -Werror -I "$SOURCE/include" "$SOURCE/tests/build/grown.c" -L "$BUILD" -lshmlimit -o "$TMP/program"
ok $? "a program is built against the earlier headers"
today=$(LD_LIBRARY_PATH=$BUILD "$TMP/program" "$SEGMENT")
is "$today" "open 0
rule 0
rule 1
enter 0
renew 0
leave 0
count 0
info 0
it is 3, of 64 slots
beyond: 77 77 77" "it runs with the library of its headers"
is "$(LD_LIBRARY_PATH=$TMP/b "$TMP/program" "$SEGMENT")" "$today" "with the later library it does the same, and nothing beyond its structures is written"
done_testing
