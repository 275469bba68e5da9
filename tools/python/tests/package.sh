#!/bin/sh
# package: the package installs, its types are sound, and what it says of the C
# library is so.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"

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

block tools/python/README.md python laoqian | own >"$TMP/readme.py"
shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" client --capacity 1 --rate 1/d
is "$(python3 "$TMP/readme.py" && python3 "$TMP/readme.py" | tr '\n' ' ')" "welcome
later " "README.md's program does what it says"

block tools/python/README.md python 'def plan' | own >"$TMP/plan.py"
block tools/python/README.md python RateLimited | sed "s/@limit(\"[^\"]*/&\", segment=\"$SEGMENT.functions/; s,10/s burst 20,2/day," >"$TMP/functions.py"
is "$(PYTHONPATH=$PYTHONPATH:$TMP SEGMENT=$SEGMENT python3 -c '
import asyncio, builtins, collections, os, shmlimit
User = collections.namedtuple("User", "name plan")
user = User("user:42", collections.namedtuple("Plan", "rate")("3/day"))
with shmlimit.Limiter(os.environ["SEGMENT"]) as limiter:
    builtins.Gate, builtins.Limit, builtins.limiter, builtins.user = shmlimit.Gate, shmlimit.Limit, limiter, user
    limiter.rule_set("plans", shmlimit.Rule(1, 1, 10**9, algorithm=shmlimit.Algorithm.GCRA))
    from plan import allowed, gate
    print(bool(allowed), [gate.ask({"myapp.user": user}).status for _ in range(3)])
from functions import *
try:
    for _ in range(3):
        send("user:42", "hello")
except RateLimited as error:
    print(40000 < error.retry_after_s <= 43200)
print(asyncio.run(fetch("page")))
' | tr '\n' ' ')" "True ['passed', 'passed', 'rejected'] user:42 hello user:42 hello True page " "README.md: a customer's plan is its limit, and functions have limits"

block tools/python/README.md python api.example.com | sed "s/rule=/segment=\"$SEGMENT\", &/" >"$TMP/waits.py"
is "$(python3 "$TMP/waits.py")" "['/0', '/1', '/2']" "README.md: calls wait for their turn"
block tools/python/README.md python AsyncLimiter | sed "s/rule=/segment=\"$SEGMENT\", &/" >"$TMP/paced.py"
is "$(echo 'print(call())' | cat "$TMP/paced.py" - | python3 -)" None "README.md: a program that paces its calls changes its imports"

if python3 -c 'import flask_limiter' 2>/dev/null; then
	block tools/python/README.md python flask_limiter | own >"$TMP/flask_app.py"
	is "$(PYTHONPATH=$PYTHONPATH:$TMP python3 -c 'import flask_app; print(flask_app.limiter.storage.check())')" True \
		"README.md's Flask application has its storage"
	block README.md python flask_limiter | own >"$TMP/first.py"
	is "$(PYTHONPATH=$PYTHONPATH:$TMP python3 -c 'import first; print(first.limiter.storage.check())')" True \
		"the project's README: its Flask application has its storage"
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

# Without the libraries N processes would admit N times the limit.
is "$(LD_LIBRARY_PATH='' python3 -c 'import shmlimit' 2>&1 | tail -n 1)" \
	"ImportError: libshmlimit.so.1: cannot open shared object file: No such file or directory: install shmlimit's libraries (on \
Debian: libshmlimit1, libshmlimit-gate1)" "without the library the package cannot be imported, and says what is missing"
mkdir "$TMP/gateless"
ln -s "$BUILD"/libshmlimit.so* "$TMP/gateless"
is "$(LD_LIBRARY_PATH=$TMP/gateless python3 -c '
from shmlimit import Gate, Limit
Gate("web", [Limit("client", str)], fail_open=True)' 2>&1 | sed -n '$s/so.1:.*/so.1/p')" "ImportError: libshmlimit-gate.so.1" \
	"without the gate's library there is no gate"

header() { python3 "$SOURCE/tools/python/tests/header.py" "$1"; }
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
