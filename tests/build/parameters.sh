#!/bin/sh
# parameters: a function that is not public has no more than six parameters. What several functions pass side by side is a
# structure.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need perl

is "$(perl "$SOURCE/tests/build/parameters.pl" "$SOURCE")" "" "no function that is not public has seven parameters"

# The check itself can fail.
mkdir -p "$TMP/kit/include" "$TMP/kit/lib/api" "$TMP/kit/tools"
cat >"$TMP/kit/include/kit.h" <<END
int shmlimit_long(int a, int b, int c, int d, int e, int f,
                  int g);
END
cat >"$TMP/kit/lib/api/long.c" <<END
EXPORT int shmlimit_long(int a, int b, int c, int d, int e, int f, int g)
{
	return hidden(a, b, c, d, e, f, g);
}

/* It has eight (or "seven,
   and one"). */
__attribute__((cold, noinline)) static int hidden(const char *const text, int b[4], int (*c)(int, int), int d, int e,
                                                  int f, int g, int h)
{
	return text[0] + b[0] + c(d, e) + f + g + h;
}

static int six(int a, int (*b)(int, int, int), int c, int d, int e, int f);
END
printf 'int declared(int a, int b, int c, int d, int e, int f, int g);\n' >"$TMP/kit/tools/kit.h"
is "$(perl "$SOURCE/tests/build/parameters.pl" "$TMP/kit")" \
	'lib/api/long.c:8: hidden has 8 parameters
tools/kit.h:1: declared has 7 parameters' "the check finds such a function"
done_testing
