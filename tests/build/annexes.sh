#!/bin/sh
# annexes: the core is whole without them, and knows no more of them than their list.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

need make gcc
annexes=$(sed -n 's/^annexes := .*,lib/lib/p' "$SOURCE/tools/annexes.mk" | tr -d '),')
[ "$(echo "$annexes" | wc -w)" -ge 6 ]
ok $? "the list names the annexes"

# Pages may be linked to; what is inside is the annex's own.
cd "$SOURCE" || exit
inside="($(echo "$annexes" | tr ' ' '|'))/"
named() {
	find Makefile README.md CONTRIBUTING.md bench include lib tests tools -type f ! -path '*/__pycache__/*' ! -name CHANGELOG.md |
		grep -vE "^$inside" | xargs grep -nE "$inside" | grep -vE "$inside(README|[a-z]+)\.md|$inside[|\`' ]"
}
is "$(named)" "" "no file outside of an annex names what is inside of it"
for annex in $annexes; do
	[ -f "$annex/${annex##*/}.mk" ] && [ -f "$annex/README.md" ] && [ -d "$annex/tests" ] && [ -f "$annex/debian/control" ]
	ok $? "$annex has its rules, its page, its tests and its package"
done

# Without their folders.
core=$TMP/core
mkdir "$core"
tar cf - Makefile include lib tools tests/*.mk tests/*.sh tests/unit tests/*.h | tar xf - -C "$core"
cd "$core" || exit
rm -rf $annexes
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -j2 O=b CFLAGS=-O1 all >"$TMP/log" 2>&1
is "$? $(cat "$TMP/log")" "0 " "without an annex the core is built"
is "$(ls b/*.so b/bin)" "b/libshmlimit-gate.so
b/libshmlimit.so

b/bin:
shmlimit" "it is two libraries and the command"
is "$(ldd b/bin/shmlimit | grep -c 'hiredis\|libssl')" 0 "without the library for many hosts the command needs neither Redis nor TLS"
run b/bin/shmlimit create "$SEGMENT" --slots 16
for asked in "global status $SEGMENT" "agent $SEGMENT redis://127.0.0.1:1"; do
	run b/bin/shmlimit $asked
	is "$rc $err" "2 shmlimit: this shmlimit was built without the library for many hosts, which needs hiredis" \
		"a command that needs the library for many hosts says that it is not there: ${asked%% $SEGMENT*}"
done
for fine in "metrics $SEGMENT" "check $SEGMENT" "keys $SEGMENT"; do
	run b/bin/shmlimit $fine
	is "$rc $err" "0 " "a command that shows what it counts shows the rest: ${fine%% *}"
done
done_testing
