#!/bin/sh
# probes: the library has the four that shmlimit.7 describes, and each is a nop until a tracer is attached.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

echo '#include <sys/sdt.h>' | gcc -E - >/dev/null 2>&1 || skip_all "no systemtap-sdt-dev"

# notes FILE: a line for each place: provider, name, address, semaphore, number of arguments.
notes() {
	readelf -n "$1" | awk '/Provider:/ { provider = $2 } /Name:/ { name = $2 }
		/Location:/ { at = $2; semaphore = $6 } /Arguments:/ { print provider, name, at, semaphore, NF - 1 }' | tr -d ,
}
notes "$BUILD/libshmlimit.so" >"$TMP/notes"
is "$(cut -d' ' -f1,2 "$TMP/notes" | sort -u | tr '\n' ';')" \
	"shmlimit allow;shmlimit deny;shmlimit evict;shmlimit full;" "the shared library has four probes"
is "$(awk '$5 != 3' "$TMP/notes")" "" "each with three arguments"
is "$(awk '$4 !~ /^0x0*$/' "$TMP/notes")" "" "no probe has a semaphore to ask"
missing=
for name in $(cut -d' ' -f2 "$TMP/notes" | sort -u); do
	sed -n '/^\.Ss Probes/,/^\.Ss Rules/p' "$SOURCE/lib/shmlimit.7" | grep -Eq "^\.It Li (.* )?$name( |\$)" || missing="$missing $name"
done
is "$missing" "" "shmlimit.7 describes them"
notes "$BUILD/bin/shmlimit" | cut -d' ' -f2 | sort -u >"$TMP/command"
is "$(tr '\n' ' ' <"$TMP/command")" "allow deny evict full " "the command, which contains the library, has the probes"

not=
while read -r provider name at rest; do
	[ "$(objdump -d --no-show-raw-insn --start-address="$at" --stop-address="$((at + 1))" "$BUILD/libshmlimit.so" |
		awk 'END { print $2 }')" = nop ] || not="$not $provider:$name@$at"
done <"$TMP/notes"
is "$not" "" "each is a nop"

make --no-print-directory -s -C "$SOURCE" O="$TMP/without" WERROR=1 CPPFLAGS=-DNO_PROBES "$TMP/without/lib/api/take.o" \
	"$TMP/without/lib/table/table.o" >"$TMP/log" 2>&1
is "$? $(notes "$TMP/without/lib/api/take.o")" "0 " "without them it builds too"
done_testing
