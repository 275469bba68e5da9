#!/bin/sh
# format: C is formatted as .clang-format says, and the comments of the libraries and of the command have 100 columns at most.
# `make format` does both.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need clang-format
case $(clang-format --version) in
*' 14.'*) ;;
*) skip_all "$(clang-format --version): another version formats otherwise than 14 does" ;;
esac

is "$(make -s -C "$SOURCE" format-check 2>&1 | grep -m 10 -o '^.*error:.*\|^.* columns: .*')" "" "all C files are formatted as .clang-format says, and no comment is too wide"
is "$(cd "$SOURCE" && expand include/*.h | awk 'length > 100')" "" "no line of a public header has more than 100 columns"
is "$(cd "$SOURCE" && git ls-files '*.md' 2>/dev/null | grep -v '^bench/results/' | xargs -r perl -CSD -ne '
	$code = !$code if /^\s*```/;
	print "$ARGV:$.\n" if length > 121 && !$code && !/^\s*[|#<]|^\[|^ {4}/ && / \S.* /;
	close ARGV if eof')" "" "no line of a text has more than 120 columns, but for tables and code"

# The check itself can fail.
cp "$SOURCE/.clang-format" "$TMP"
printf 'int  x;\n' >"$TMP/x.c"
clang-format --dry-run --Werror "$TMP/x.c" 2>/dev/null
ok $((! $?)) "a file that is not formatted is found"
words='a comment of words that take their columns'
printf '/* %s, %s, %s */\nint x;\n' "$words" "$words" "$words" >"$TMP/x.c"
run perl "$SOURCE/tools/reflow.pl" --check "$TMP/x.c"
is "$rc $out" "1 $TMP/x.c:1: a comment has 136 columns: make format breaks it" "a comment that is too wide is found"
run perl "$SOURCE/tools/reflow.pl" "$TMP/x.c"
is "$rc $(cat "$TMP/x.c")" "0 /*
 * $words, $words, a comment
 * of words that take their columns
 */
int x;" "make format breaks it"
done_testing
