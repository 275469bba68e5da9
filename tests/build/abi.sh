#!/bin/sh
# abi: what programs were built against stays. libshmlimit.abi is the library as abidw saw it; where it was changed on
# purpose, make it again:
#
#	make O=build/gcc && tests/build/abi.sh --renew build/gcc >tests/build/libshmlimit.abi
#
# SPDX-License-Identifier: BSD-2-Clause

# dump LIBRARY HEADERS: without what differs from folder to folder.
dump() {
	abidw --headers-dir "$2" --drop-private-types --drop-undefined-syms --exported-interfaces-only \
		--no-corpus-path --no-comp-dir-path --no-elf-needed --no-show-locs "$1"
}
if [ "${1-}" = --renew ]; then
	dump "$2/libshmlimit.so" include
	exit
fi
. "${0%/*}/../tap.sh"

command -v abidiff >/dev/null || skip_all "no abigail-tools"
[ "$(uname -m)" = x86_64 ] || skip_all "the library was dumped for x86_64"
kept=$SOURCE/tests/build/libshmlimit.abi

# same DUMP: as the library that was built.
same() { abidiff --no-show-locs "$1" "$TMP/now.abi"; }

dump "$BUILD/libshmlimit.so" "$SOURCE/include" >"$TMP/now.abi" 2>"$TMP/err"
is "$? $(cat "$TMP/err")" "0 " "the library can be dumped"
run same "$kept"
is "$rc $(printf '%s\n' "$out" | grep '[1-9] \(Removed\|Changed\|Added\)')" "0 " "it is what programs were built against"
[ $rc -eq 0 ] || diag "$out" "where this is meant: see the top of tests/build/abi.sh"

# A look that sees nothing would find nothing.
for change in 's/shmlimit_take_all_at/shmlimit_take_all_of/g' "/function-decl name='shmlimit_close'/{n;d}" \
	"/data-member.*layout-offset-in-bits='64'/s/64/96/" "s/'SHMLIMIT_0.1'/'SHMLIMIT_0.2'/"; do
	sed "$change" "$kept" >"$TMP/other.abi"
	cmp -s "$kept" "$TMP/other.abi"
	is $? 1 "there is something to change: $change"
	abidiff --no-show-locs "$TMP/other.abi" "$TMP/now.abi" >"$TMP/out" 2>&1
	[ $? -ne 0 ]
	ok $? "a change of the ABI is seen"
done
done_testing
