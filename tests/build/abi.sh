#!/bin/sh
# abi: what programs were built against stays: names and versions that a library exports, and what its headers declare.
# NAME.abi has that of each library. Where it was changed on purpose, write them again:
#
#	make O=build/gcc && tests/build/abi.sh --renew build/gcc
#
# SPDX-License-Identifier: BSD-2-Clause

root=$(realpath "$(dirname "$(realpath "$0")")/../..")
[ "${1-}" = --renew ] || { . "${0%/*}/../tap.sh" && root=$SOURCE; }
pages=$(make -s -C "$root" --eval='pages:; @$(foreach h,$(headers),echo $(h) $(call headers_of,$(h));)' pages)

# dump LIBRARY FOLDER HEADER...: the headers are below FOLDER. A function has the version that the library exports it under.
dump() {
	nm -D --defined-only "$1" | sed -n 's/.* T //p' >"$work/names"
	shift
	(cd "$1" && shift && awk -f "$root/tests/build/abi.awk" -f "$root/tools/header.awk" "$@") >"$work/abi.c" &&
		cc -std=c11 -I "$1/include" -o "$work/abi" "$work/abi.c" && "$work/abi" |
		awk 'NR == FNR { split($0, n, "@@"); of[n[1]] = n[2]; next }
			match($0, /shmlimit_[a-z_0-9]+\(/) { $0 = $0 "; " of[substr($0, RSTART, RLENGTH - 1)] } 1' "$work/names" -
}
library() { echo "lib$1.so" | tr _ -; }

if [ "${1-}" = --renew ]; then
	work=$(mktemp -d)
	echo "$pages" | while read -r page headers; do
		dump "$2/$(library "$page")" "$root" $headers >"$root/tests/build/$page.abi"
	done
	rm -r "$work"
	exit
fi

[ "$(getconf LONG_BIT)" = 64 ] || skip_all "the libraries were dumped where a pointer has 64 bits"
command -v nm >/dev/null || skip_all "no nm"
work=$TMP
echo "$pages" >"$TMP/pages"
while read -r page headers; do
	dump "$BUILD/$(library "$page")" "$SOURCE" $headers >"$TMP/$page.abi"
	is "$(diff "$SOURCE/tests/build/$page.abi" "$TMP/$page.abi")" "" "lib$page is what programs were built against; if a change is meant, see tests/build/abi.sh"
done <"$TMP/pages"

# A look that sees nothing would find nothing: each of these changes breaks programs.
read -r page headers <"$TMP/pages"
while read -r change; do
	rm -rf "$TMP/include"
	cp -r "$SOURCE/include" "$TMP/include"
	sed -i -E "$change" "$TMP"/include/*.h
	cmp -s "$SOURCE/include/shmlimit.h" "$TMP/include/shmlimit.h"
	is $? 1 "there is something to change: $change"
	dump "$BUILD/libshmlimit.so" "$TMP" $headers >"$TMP/other.abi"
	cmp -s "$TMP/$page.abi" "$TMP/other.abi"
	is $? 1 "a change of the ABI is seen: $change"
done <<'END'
/^void shmlimit_close\(/d
s/^void shmlimit_close\(struct shmlimit \*/int shmlimit_close(struct shmlimit */
s/^int shmlimit_destroy\(const char \*name\)/int shmlimit_destroy(char *name)/
/^	uint64_t retry_after_ns;/d
s/^	uint64_t wait_ns;/	int64_t wait_ns;/
s/^	uint64_t wait_ns;/	uint32_t wait_ns;/
s/^(#define SHMLIMIT_NAME_MAX) +239/\1 238/
s/^(	SHMLIMIT_OPEN_READ_ONLY) = 0x100/\1 = 0x400/
END
for library in libshmlimit libshmlimit-global libshmlimit-gate; do
	is "$(nm -D --defined-only "$BUILD/$library.so" | sed -n 's/.* T .*@@//p' | sort -u)" SHMLIMIT_1.0 "all names of $library are of release 1.0"
done
done_testing
