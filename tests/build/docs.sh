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

# The README's quick start with this build's command; and the program of the guide, which shares its limit.
quick=$(block README.md sh build/bin/shmlimit)
printf '%s\n' "$quick" | sed -e 1d -e 's,build/bin/,,' -e "s/\bdemo\b/$SEGMENT/" >"$TMP/quick"
is "$(printf '%s\n' "$quick" | sed -n 1p)" "apt update && apt install -y make && make packages && make &&" \
	"README: its first command needs nothing but Debian, and installs what it uses"
run sh "$TMP/quick"
is "$err $(printf '%s\n' "$out" | sed -n 's/^decision: //p' | tr '\n' ' ')" " allowed allowed allowed denied " \
	"README: the quick start's fourth request is denied"
times() { sed 's/\(after\): .*/\1: T/'; }
is "$(printf '%s\n' "$out" | tail -n 5 | times)" "$(block README.md plain 'decision: denied' | times)" \
	"README: the fourth request prints what the README has"
run shmlimit destroy "$SEGMENT"
if command -v cc >/dev/null; then
	{
		printf '#include <shmlimit.h>\n#include <stdio.h>\nint main(void)\n{\n'
		block README.md c shmlimit_take | sed "s/\"demo\"/\"$SEGMENT\"/"
		echo 'return 0; }'
	} >"$TMP/readme.c"
	run cc -std=c11 -Wall -Wextra -pedantic -Werror -I "$SOURCE/include" "$TMP/readme.c" -L "$BUILD" -Wl,-rpath,"$BUILD" -lshmlimit -o "$TMP/readme"
	is "$rc$err" 0 "README: its example in C can be compiled"
	is "$(for i in 1 2 3 4 5; do "$TMP/readme"; done | tr '\n' ' ')" "denied denied " "README: its example in C denies what is over the limit"
	run shmlimit destroy "$SEGMENT"
fi
block lib/doc/program.md c | sed "s/\"demo\"/\"$SEGMENT\"/" >"$TMP/limit.c"
block lib/doc/program.md sh 'cc tools' |
	sed "s,tools/examples,$TMP,; s,-Iinclude,-I$SOURCE/include -std=c11 -Wall -Wextra -pedantic -Werror,; s,-Lbuild,-L$BUILD,; s,\$PWD/build,$BUILD,; s,-o limit,-o $TMP/limit,; s,\./limit,$TMP/limit," >"$TMP/steps"
if command -v cc >/dev/null; then
	run sh "$TMP/steps"
	is "$err" "" "the guide's program is compiled without warnings"
	is "$(printf '%s\n' "$out" | sed 's/1[12][0-9][0-9]\.[0-9] s/1200.0 s/')" "$(block lib/doc/program.md plain "allowed: 2")" "and prints what the guide says"
else
	ok 0 "the guide's program is compiled, and prints what the guide says # SKIP no cc"
fi

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
is "$(awk '{ words += NF } END { print (words > 500 && words <= 900) }' "$SOURCE/README.md")" 1 "README: it has at most 900 words"
is "$(LC_ALL=C.UTF-8 grep -nE '^.{121}' "$SOURCE/README.md")" "" "README: no line has more than 120 columns"
# long PAGE...: lines of prose that have more than 120 columns.
long() {
	perl -CSD -ne '
		$block = !$block if /^\s*```/;
		chomp, print "$ARGV:$.: $_\n" if !$block && !/^(?:\||    |\t|<)/ && length > 121;
		close ARGV, $block = 0 if eof' "$@"
}
printf '%s\n' "$(printf 'word %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25)" >"$TMP/long.md"
is "$(long "$TMP/long.md" | wc -l)" 1 "a line of prose that is too long is found"
is "$(cd "$SOURCE" && long CONTRIBUTING.md SECURITY.md bench/README.md lib/README.md lib/doc/*.md tests/README.md)" "" \
	"no line of prose has more than 120 columns, in guides and pages of the project"
is "$(cd "$SOURCE" && LC_ALL=C.UTF-8 grep -rnE '^\|.*[^|]{123}' ./*.md bench lib tests tools --include='*.md')" "" \
	"no cell of a table has more than 120 columns, in any document"
done_testing
