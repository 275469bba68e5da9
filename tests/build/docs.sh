#!/bin/sh
# docs: the manual pages are clean and complete.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

command -v mandoc >/dev/null || skip_all "no mandoc"
make -s -C "$SOURCE" O="$BUILD" "$BUILD/man/shmlimit.3" "$BUILD/man/shmlimit_global.3" "$BUILD/man/shmlimit_gate.3"
for file in "$BUILD"/man/*.3 "$SOURCE"/lib/*.7 "$SOURCE/tools/shmlimit/shmlimit.1"; do
	page=${file##*/}
	is "$(mandoc -T lint -W style "$file" 2>&1)" "" "$page is clean mdoc"
	is "$(mandoc -T ascii -O width=80 "$file" | sed 's/.\x08//g' | expand | grep -nE '^.{101}')" "" "$page has no line of more than 100 columns"
done
missing=
for words in 'Reporting a weakness' Rights 'Hosts with several users' RemoveIPC 'Filling /dev/shm' 'Saved segments' \
	'Redis and Valkey' 'Keys that clients choose'; do
	grep -q "^\.Ss $words\$" "$SOURCE/lib/shmlimit-security.7" || missing="$missing; $words"
done
is "$missing" "" "shmlimit-security.7 has what an administrator looks for"
block lib/shmlimit-security.7 mdoc 'none  read' | grep -E ' (yes|-)$' >"$TMP/rights"
is "$(awk '{ for (i = NF - 4; i <= NF; i++) { if ($i != "yes" && $i != "-") bad++; if (i > NF - 4 && $(i - 1) == "yes" && $i != "yes") bad++ } }
	END { print bad + 0, (NR > 10) }' "$TMP/rights")" "0 1" "its table of rights says of each of five, and each includes the one before"

# The pages of section 3 are made of the headers. They lose nothing that a compiler reads there, and no word of a comment.
headers=$(make -s -C "$SOURCE" --eval='of:; @echo $(foreach h,$(headers),$(h):$(subst $(space),:,$(strip $(call headers_of,$(h)))))' of)
words() { grep -oE '[A-Za-z0-9_]{2,}' | tr A-Z a-z | sort -u; }
for each in $headers; do
	page=${each%%:*}.3
	(cd "$SOURCE" && sed -E '/^#(if|endif|include|.*_H$)/d; /^extern "C"/d; s/SPDX.*//' $(echo "${each#*:}" | tr : ' ')) |
		words >"$TMP/words"
	mandoc -T utf8 -O width=500 "$BUILD/man/$page" | sed 's/.\x08//g' | words >"$TMP/there"
	is "$(comm -23 "$TMP/words" "$TMP/there" | grep -vx 'define\|enum\|__attribute__\|format\|printf' | tr '\n' ' ')$(($(wc -l <"$TMP/words") > 300))" 1 \
		"$page has each word of its headers, of which there are hundreds"
done
missing=
for word in $(sed -n 's/^	{ "\([a-z_]*=*\)", read_.*/\1/p' "$SOURCE/lib/gate/spec.c"); do
	grep -q "\b$word" "$BUILD/man/shmlimit_gate.3" || missing="$missing $word"
done
is "$missing" "" "shmlimit_gate.3 has each word of a spec"
is "$(perl "$SOURCE/tests/build/options.pl" "$SOURCE/tools/shmlimit/shmlimit.1" shmlimit)" "" \
	"shmlimit.1 has the commands and options that --help has"
layout=$(sed -n 's/^#define LAYOUT_VERSION \([0-9]*\)u$/\1/p' "$SOURCE/lib/segment/layout.h")
is "$(cd "$SOURCE" && grep -rIoE '/dev/shm/shmlimit\.[0-9]+' README.md include lib tools | grep -v "\.${layout:?}$")" "" \
	"where a page, header or picture names a segment's file, it has the layout of now"
is "$(cd "$SOURCE" && grep -rIlE '^(<{7}|>{7}) ' Makefile README.md include lib tools tests bench)" "" \
	"no file has a merge's marks in it"

# The README's quick start, except its make, with this build's command; and its program, which shares the limit.
quick=$(block README.md sh build/bin/shmlimit)
printf '%s\n' "$quick" | sed -e '/^make$/d' -e 's,build/bin/,,' -e "s/\bdemo\b/$SEGMENT/" >"$TMP/quick"
is "$(printf '%s\n' "$quick" | wc -l)" 4 "README: the quick start has four lines"
run sh "$TMP/quick"
is "$err $(printf '%s\n' "$out" | sed -n 's/^decision: //p' | tr '\n' ' ')" " allowed allowed allowed denied " \
	"README: the quick start's fourth request is denied"
block README.md c | sed "s/\"demo\"/\"$SEGMENT\"/" >"$TMP/limit.c"
compiler=$(command -v cc || command -v gcc) &&
	"$compiler" -std=c11 -Wall -Wextra -pedantic -Werror "$TMP/limit.c" -I"$SOURCE/include" -L"$BUILD" -Wl,-rpath,"$BUILD" -lshmlimit -o "$TMP/limit" 2>"$TMP/err"
ok $? "README: its program compiles without warnings"
sed 's/^/# /' "$TMP/err" >&2
run shmlimit destroy "$SEGMENT"
run sh -c 'for i in 1 2 3 4; do "$0"; done' "$TMP/limit"
is "$(printf '%s\n' "$out" | sed 's/1[12][0-9][0-9]\.[0-9] s/1200.0 s/')" "$(block README.md plain "allowed: 2")" "README: its program prints what the README says"

{
	printf '#include <shmlimit_global.h>\nint ask(struct shmlimit_global *, struct shmlimit_request, struct shmlimit_result);\n'
	printf 'int ask(struct shmlimit_global *global, struct shmlimit_request request, struct shmlimit_result r)\n{\n'
	block lib/global/shmlimit_global.3.in mdoc ticket
	printf 'return answer;\n}\n'
} >"$TMP/ask.c"
"$compiler" -std=c11 -Wall -Wextra -pedantic -Werror -I"$SOURCE/include" -c "$TMP/ask.c" -o "$TMP/ask.o" 2>"$TMP/err"
ok $? "shmlimit_global.3: its event loop compiles without warnings"
sed 's/^/# /' "$TMP/err" >&2

# Links of the README lead to files and headings that exist.
missing=
for link in $(grep -oE '\]\([^)]+\)' "$SOURCE/README.md" | sed 's/^](//; s/)$//' | sort -u); do
	case $link in
	*://*) ;;
	'#'*)
		grep '^##* ' "$SOURCE/README.md" | sed 's/^#* //' | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-' | grep -qx -e "${link#?}" ||
			missing="$missing $link"
		;;
	*) [ -e "$SOURCE/$link" ] || missing="$missing $link" ;;
	esac
done
is "$missing" "" "README: its links lead somewhere"
[ "$(wc -l <"$SOURCE/README.md")" -lt 200 ]
ok $? "README: it has fewer than 200 lines"

# What README tells to type after a $, each with the segments' names made this test's own.
block README.md plain 'acquire shop' | sed -n 's/^\$ //p' | sed -E "s/\\b(shop|api)\\b/$SEGMENT.\\1/" >"$TMP/typed"
[ "$(wc -l <"$TMP/typed")" -ge 4 ]
ok $? "README has commands to type"
while read -r line; do
	run sh -c "$line"
	is "$rc $err" "0 " "README: it does what it says: $line"
done <"$TMP/typed"
is "$(shmlimit throttle "$SEGMENT.shop" another 15 30 60)" "$(sed -n '/^\$ .*throttle/{n;p}' "$SOURCE/README.md")" \
	"README: and prints what it says"
run sh -c "$(grep -oE '`shmlimit size [^`]*`' "$SOURCE/README.md" | tr -d '`')"
is "$rc $err" "0 " "README: a segment's size can be asked as it says"
is "$(grep -oE '`sudo apt install [^`]*`' "$SOURCE/README.md" | tr -d '`' | tr ' ' '\n' | sed '1,3d; s/^build-essential$/gcc\nmake/' | sort)" \
	"$(make -s -C "$SOURCE" --eval='packages:; @echo $(need_build)' packages | tr ' ' '\n' | sed '/^libc6-dev$/d' | sort -u)" \
	"README: it installs the packages that building needs"
done_testing
