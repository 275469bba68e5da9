#!/bin/sh
# examples: the programs in tools/examples are built, and do what they say; the guide's is one of them.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need gcc curl

LD_LIBRARY_PATH=$BUILD
export LD_LIBRARY_PATH
server=
trap '[ -z "$server" ] || kill "$server"; tap_clean' EXIT

# example FILE: a copy of it, with this test's segment and libraries.
example() { sed "s/\\([\"']\\)\\(web\\|demo\\)\\1/\\1$SEGMENT\\1/; s,/usr/share/php,$BUILD/php," "$SOURCE/tools/examples/$1" >"$TMP/$1"; }
compile() { gcc -O2 -Wall -Wextra -pedantic -Werror -I "$SOURCE/include" "$TMP/$1.c" -L "$BUILD" -lshmlimit -o "$TMP/$1"; }

# twice TITLE COMMAND...: of two requests the first is allowed, and the second is denied.
twice() {
	title=$1
	shift
	shmlimit rule set "$SEGMENT" login --capacity 1 --rate 1/h
	shmlimit reset "$SEGMENT" --all >/dev/null
	run "$@" 203.0.113.9
	like "$rc $out$err" '^0 allowed: 0 .*left, again in 0.0 s$' "$title allows a client what the rule has"
	run "$@" 203.0.113.9
	like "$rc $out$err" '^1 denied: 0 .*left, again in 3[56][0-9][0-9]\.[0-9] s$' "$title denies the request after it"
}

is "$(block lib/doc/program.md c)" "$(sed -n '/^#include/,$p' "$SOURCE/tools/examples/limit.c")" \
	"lib/doc/program.md's program is tools/examples/limit.c"

shmlimit create "$SEGMENT" --slots 64
example limit.c
compile limit
ok $? "limit.c can be compiled"
"$TMP/limit" >"$TMP/first"
twice limit.c "$TMP/limit"
shmlimit rule remove "$SEGMENT" login
run "$TMP/limit"
is "$rc $out" '0 allowed: 2 of 3 left, again in 0.0 s' "limit.c makes a rule that is missing"
shmlimit destroy "$SEGMENT"
run "$TMP/limit"
is "$rc $out" '0 allowed: 2 of 3 left, again in 0.0 s' "limit.c makes a segment that is missing"

if python3 -c 'import ctypes' 2>/dev/null; then
	example limit.py
	PYTHONPATH=$SOURCE/tools/python PYTHONDONTWRITEBYTECODE=1
	export PYTHONPATH PYTHONDONTWRITEBYTECODE
	twice limit.py python3 "$TMP/limit.py"
fi
if command -v php >/dev/null && php -m | grep -qx FFI; then
	example limit.php
	twice limit.php php -d ffi.enable=1 "$TMP/limit.php"
fi

# What tests/README.md tells to write is a test.
block tests/README.md c >"$TMP/again.c"
gcc -Wall -Wextra -Werror -I "$SOURCE/include" -I "$SOURCE/tests/unit" "$TMP/again.c" -L "$BUILD" -lshmlimit -o "$TMP/again"
ok $? "tests/README.md: its test in C can be compiled"
mkdir -p "$TMP/tests/cli"
ln -s "$BUILD/bin" "$TMP/bin"
ln -s "$SOURCE/tests/tap.sh" "$TMP/tests"
block tests/README.md sh >"$TMP/tests/cli/again.t"
SOURCE=$SOURCE run sh "$TMP/tests/cli/again.t"
is "$rc $err $(printf '%s\n' "$out" | tail -n 1)" "0  1..1" "tests/README.md: its test in shell passes"
run "$TMP/again"
is "$rc $err $(printf '%s\n' "$out" | tail -n 1)" "0  1..2" "tests/README.md: its test in C passes"

example prefork.c
compile prefork
ok $? "prefork.c can be compiled"
mkfifo "$TMP/said"
"$TMP/prefork" "$SEGMENT.prefork" 0 >"$TMP/said" 2>"$TMP/err" &
server=$!
read -r said <"$TMP/said"
url=http://${said#listening on }
# So slow that no token comes back within the test.
shmlimit rule set "$SEGMENT.prefork" client --capacity 15 --rate 1/d
ask() { curl -s --max-time 60 "$@" "$url/[1-20]"; }
ask -o "$TMP/#1" -w '%{http_code}\n' >"$TMP/codes"
is "$(sort "$TMP/codes" | uniq -c | awk '{ printf "%s x %s ", $1, $2 }')" "15 x 200 5 x 429 " \
	"prefork.c allows a client 15 of 20 requests, and denies 5"
like "$(ask -D - -o /dev/null)" '^Retry-After: 8[56][0-9][0-9][0-9]' "prefork.c says when the next request is allowed"
kill -KILL "$(sed -n 's/^hello from \([0-9]*\), .*/\1/p' "$TMP/1")"
is "$(ask -o /dev/null -w '%{http_code}\n' | sort -u)" 429 "prefork.c limits a client as before after a worker was killed"
done_testing
