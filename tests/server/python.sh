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
	"the package is imported from where pip installed it"
is "$(sed -n 's/^version = "\(.*\)"/\1/p' "$SOURCE/tools/python/pyproject.toml")" \
	"$(sed -n 's/^.define SHMLIMIT_VERSION "\(.*\)"/\1/p' "$SOURCE/include/shmlimit.h")" "it has the library's version"
[ -f "$TMP/site/shmlimit/py.typed" ]
ok $? "it says that it has types"
PYTHONPATH=$SOURCE/tools/python

if command -v mypy >/dev/null; then
	run mypy --cache-dir "$TMP/mypy" --config-file "$SOURCE/tools/python/pyproject.toml" \
		"$SOURCE/tools/python/shmlimit"
	is "$rc" 0 "mypy finds the types sound, strictly"
	[ "$rc" -eq 0 ] || diag "$out" "$err"
fi

readme laoqian >"$TMP/readme.py"
shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" client --capacity 1 --rate 1/d
is "$(python3 "$TMP/readme.py" && python3 "$TMP/readme.py" | tr '\n' ' ')" "welcome
later " "README.md's program does what it says"

if python3 -c 'import flask_limiter' 2>/dev/null; then
	readme flask_limiter >"$TMP/flask_app.py"
	is "$(PYTHONPATH=$PYTHONPATH:$TMP python3 -c 'import flask_app; print(flask_app.limiter.storage.check())')" True \
		"README.md's Flask application has its storage"
fi

is "$(python3 -c "
import shmlimit
gate = shmlimit.Gate('$SEGMENT', [shmlimit.Limit('client', lambda request: 'k')])
loaded = lambda: 'libshmlimit-global' in open('/proc/self/maps').read()
before = gate.ask({}).status, loaded()
print(*before, loaded())
limiter = shmlimit.GlobalLimiter(shmlimit.Limiter('$SEGMENT'), 'unix:///nobody')
print(loaded())
" | tr '\n' ' ')" "passed False False True " "the library for many hosts is loaded only where it is used"

# Without the library, as on a system that is not Linux.
cat >"$TMP/alone.py" <<'END'
import asyncio, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import shmlimit
    import shmlimit.wsgi
gate = shmlimit.Gate("web", [shmlimit.Limit("login", lambda request: request, rate="2 per hour")])
print([gate.ask(user).status for user in ("a", "a", "a", "b")])
answer = gate.ask("a")
print(answer.refusal, 0 < answer.retry_after_ns <= 1800 * 10**9)
print(shmlimit.Gate("web", [shmlimit.Limit("login", lambda request: request)]).ask("a").status)
@shmlimit.limit("1/h")
def once(): return "done"
for _ in range(2):
    try:
        print(once())
    except shmlimit.RateLimited as error:
        print(error)
try:
    shmlimit.Limiter("web")
except shmlimit.Error as error:
    print(error)
print([str(one.category.__name__) for one in caught])
END
is "$(LD_LIBRARY_PATH='' python3 "$TMP/alone.py" 2>&1 | sed 's/ 3[56][0-9][0-9]\.[0-9]* s/ N s/')" "['passed', 'passed', 'rejected', 'passed']
429 True
unlimited
done
limit __main__.once: retry after N s
[Errno 38] Function not implemented: 'web'
['RuntimeWarning']" "without the library the package warns once, and its limits are kept in the process"

header() { python3 "$SOURCE/tests/server/python_header.py" "$1"; }
{
	header program >"$TMP/program.c" && cc -I"$SOURCE/include" -o "$TMP/program" "$TMP/program.c" && "$TMP/program"
	cat "$SOURCE/include/shmlimit.h" "$SOURCE/include/shmlimit_gate.h" "$SOURCE/include/shmlimit_global.h" | grep -v '^#include' | cc -E -P - | header prototypes
} >"$TMP/so"
header believed >"$TMP/believed"
[ "$(wc -l <"$TMP/so")" -gt 60 ]
ok $? "the headers were read"
diff "$TMP/so" "$TMP/believed" >&2
ok $? "constants, structures and prototypes are the headers'"

done_testing
