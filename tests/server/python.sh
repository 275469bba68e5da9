#!/bin/sh
# python: the package installs, its types are sound, and what it says of the C
# library is so.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"

python3 -c 'import setuptools, wheel, pip' 2>/dev/null || skip_all "no python3-pip, python3-setuptools, python3-wheel"

cp -r "$SOURCE/tools/python" "$TMP/python"
pip install --quiet --no-index --no-build-isolation --no-deps --root-user-action=ignore --target "$TMP/site" \
	"$TMP/python" >"$TMP/log" 2>&1
rc=$?
ok $rc "pip installs it, asking no network"
[ $rc -eq 0 ] || diag "$(cat "$TMP/log")"
PYTHONPATH=$TMP/site
is "$(cd / && python3 -c 'import shmlimit; print(shmlimit.__file__)')" "$TMP/site/shmlimit/__init__.py" \
	"and it is imported from there"
is "$(sed -n 's/^version = "\(.*\)"/\1/p' "$SOURCE/tools/python/pyproject.toml")" \
	"$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")" "it has the library's version"
[ -f "$TMP/site/shmlimit/py.typed" ]
ok $? "it says that it has types"
PYTHONPATH=$SOURCE/tools/python

if command -v mypy >/dev/null; then
	run mypy --cache-dir "$TMP/mypy" --config-file "$SOURCE/tools/python/pyproject.toml" \
		"$SOURCE/tools/python/shmlimit"
	is "$rc" 0 "which mypy finds sound, strictly"
	[ "$rc" -eq 0 ] || diag "$out" "$err"
fi

readme laoqian >"$TMP/readme.py"
shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" client --capacity 1 --rate 1/d
is "$(python3 "$TMP/readme.py" && python3 "$TMP/readme.py" | tr '\n' ' ')" "welcome
later " "README.md's program does what it says"

is "$(python3 -c "
import shmlimit
shmlimit.Gate('$SEGMENT', [shmlimit.Limit('client', lambda request: 'k')]).ask({})
loaded = lambda: 'libshmlimit-global' in open('/proc/self/maps').read()
before = loaded()
shmlimit.Gate('$SEGMENT', [shmlimit.Limit('client', lambda request: 'k')], engine='unix:///nobody')
print(before, loaded())
")" "False True" "the library for many hosts is loaded by who has an engine"

header() { python3 "$SOURCE/tests/server/python_header.py" "$1"; }
{
	header program >"$TMP/program.c" && cc -I"$SOURCE/include" -o "$TMP/program" "$TMP/program.c" && "$TMP/program"
	cat "$SOURCE/include/shmlimit.h" "$SOURCE/include/shmlimit_global.h" | grep -v '^#include' | cc -E -P - | header prototypes
} >"$TMP/so"
header believed >"$TMP/believed"
[ "$(wc -l <"$TMP/so")" -gt 60 ]
ok $? "the headers were read"
diff "$TMP/so" "$TMP/believed" >&2
ok $? "constants, structures and prototypes are the headers'"

done_testing
