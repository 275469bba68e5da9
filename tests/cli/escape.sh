#!/bin/sh
# escape: no name, key or path puts anything but text into a terminal, a metrics file or JSON output, in any command.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# ESC [, DEL, and CSI as a byte and as the character U+009B, which xterm takes for ESC [.
evil=$(printf 'e\033[31m\177\233\302\2332Jl')
segment=$SEGMENT.$(printf '\233\302\2332J')

# Bytes that a terminal acts on, and bytes that are not UTF-8.
control() { LC_ALL=C tr -d '\040-\176\n\200-\377' <"$1" | wc -c; }
broken() { iconv -f UTF-8 -t UTF-8 <"$1" >/dev/null 2>&1 || echo not UTF-8; }
c1() { iconv -f UTF-8 -t UTF-16LE <"$1" 2>/dev/null | od -An -v -tu2 -w2 | awk '$1 >= 127 && $1 < 160 { n++ } END { print n + 0 }'; }

# harmless WHAT COMMAND...: in both locales, on both streams. It must have something to hide.
harmless() {
	what=$1
	shift
	for locale in C C.UTF-8; do
		LC_ALL=$locale "$@" >out 2>err </dev/null
		for stream in out err; do
			is "$(control $stream) $(broken $stream)$(c1 $stream)" "0 0" "$what: text only, std$stream in $locale"
		done
		grep -q '2J' out err
		ok $? "$what: what was escaped is in the output, in $locale"
	done
}

shmlimit create "$segment" --slots 16 --store-keys 64
shmlimit rule set "$segment" r --capacity 2 --rate 1/day
shmlimit take "$segment" r "$evil" --quiet

harmless "list" shmlimit list
harmless "list --json" shmlimit list --json
harmless "inspect" shmlimit inspect "$segment"
harmless "inspect --json" shmlimit inspect "$segment" --json
harmless "inspect of a key" shmlimit inspect "$segment" --rule r --key "$evil" --json
harmless "verify" shmlimit verify "$segment"
harmless "verify --json" shmlimit verify "$segment" --json
harmless "metrics" shmlimit metrics "$segment"
harmless "top" shmlimit top "$segment" --interval 10ms
harmless "rule export" shmlimit rule export "$segment"
harmless "an error about a segment" shmlimit inspect "$segment.$evil"
harmless "an error about a rule" shmlimit take "$segment" "$evil" key
harmless "an error about an option" shmlimit take "$segment" r key --cost "$evil"
harmless "an error about a command" shmlimit "$evil"
printf '[r]\n%s = 1\n' "$evil" >rules
harmless "an error about a rule file's line" shmlimit apply "$segment" rules
harmless "an error about a path" shmlimit apply "$segment" "$evil"
mkdir conf
printf '[r]\ncapacity = 2\nrate = 1/s\n' >"conf/$segment.conf"
harmless "apply --all" shmlimit apply --all conf --dry-run
harmless "save" shmlimit save "$segment" "none/$evil"
harmless "load" shmlimit load "$segment" "none/$evil"
for i in 1 2 3; do
	printf '10.0.0.1 - %s [21/Nov/2026:09:00:00 +0000] "GET /%s HTTP/1.1" 200 5\n' "$evil" "$evil"
done >log
harmless "replay" shmlimit replay --rule '1/s burst 1' --key user+path log
harmless "replay --json" shmlimit replay --rule '1/s burst 1' --key user+path --json log
harmless "an error about a log" shmlimit replay --rule '1/s burst 1' "$evil"

# Output stays exact: a backslash in a key differs from an escape, and JSON has each character.
shmlimit reset "$segment" --all >/dev/null
shmlimit take "$segment" r 'a\x9b' --quiet
like "$(shmlimit inspect "$segment")" ' a\\\\x9b$' "a backslash of a key's own becomes two"
is "$(shmlimit list --json | jq -r '.[].name' | grep -c "^$SEGMENT\.$(printf '\357\277\275\357\277\275\357\277\275')2J$")" 1 \
	"a program that reads JSON gets a character, not an escape"

# A rule's name that a process with write access wrote over.
shmlimit create "$SEGMENT.w" --slots 16
shmlimit rule set "$SEGMENT.w" victim --capacity 2 --rate 1/day
at=$(head -c 1048576 "$SHM$SEGMENT.w" | grep -obUa victim | head -1 | cut -d: -f1)
printf 'v\n\033\2332J' | dd of="$SHM$SEGMENT.w" bs=1 seek="$at" conv=notrunc 2>/dev/null
harmless "rule list of a name that was written over" shmlimit rule list "$SEGMENT.w"
harmless "rule list --json of it" shmlimit rule list "$SEGMENT.w" --json
harmless "rule export of it" shmlimit rule export "$SEGMENT.w"
harmless "metrics of it" shmlimit metrics "$SEGMENT.w"
is "$(shmlimit rule export "$SEGMENT.w" | grep -c '^\[v')" 1 "a rule's name with a line feed does not become a line of an exported file"
done_testing
