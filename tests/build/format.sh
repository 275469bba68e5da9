#!/bin/sh
# format: C is formatted as .clang-format says. `make format` does it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need clang-format
case $(clang-format --version) in
*' 14.'*) ;;
*) skip_all "$(clang-format --version): another version formats otherwise than 14 does" ;;
esac

is "$(make -s -C "$SOURCE" format-check 2>&1 | grep -m 10 -o '^.*error:.*')" "" "all C files are formatted as .clang-format says"

# The check itself can fail.
cp "$SOURCE/.clang-format" "$TMP"
printf 'int  x;\n' >"$TMP/x.c"
clang-format --dry-run --Werror "$TMP/x.c" 2>/dev/null
ok $((! $?)) "a file that is not formatted is found"
done_testing
