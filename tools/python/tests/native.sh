#!/bin/sh
# native: the package with its extension answers as it does without, and installs where the extension cannot be built.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"

python3 -c 'import setuptools, wheel, pip' 2>/dev/null || skip_all "no python3-pip, python3-setuptools, python3-wheel"
python3 -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
	skip_all "no python3-dev"

# install FOLDER VARIABLE...: the package into that folder.
install() {
	folder=$1
	shift
	rm -rf "$TMP/python"
	cp -r "$SOURCE/tools/python" "$TMP/python"
	env "$@" pip install --quiet --no-index --no-build-isolation --no-deps --root-user-action=ignore --target "$folder" \
		"$TMP/python" >"$TMP/log" 2>&1
}
PYTHONPATH=

install "$TMP/native" "CFLAGS=-Werror -I$SOURCE/include -include stddef.h -include shmlimit_gate.h"
rc=$?
ok $rc "pip builds the extension, without a warning, and its structures are those of the headers"
[ $rc -eq 0 ] || diag "$(cat "$TMP/log")"
is "$(cd "$TMP/native/shmlimit" && ls _native*)" "_native.abi3.so
_native.pyi" "it is one file for all versions of Python, and its types are with it"
is "$(readelf -d "$TMP/native/shmlimit/_native.abi3.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')" libc.so.6 "it needs no library"

install "$TMP/pure" SHMLIMIT_PURE=1
ok $? "pip installs the package without the extension where SHMLIMIT_PURE is set"
install "$TMP/failed" CC=false
ok $? "pip installs the package without the extension where the compiler fails"
is "$(ls "$TMP/pure/shmlimit" "$TMP/failed/shmlimit" | grep -c 'native.*so')" 0 "no extension is there where it was not built"

shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" r --capacity 1000 --rate 1/h
shmlimit rule set "$SEGMENT" shut --capacity 1 --rate 1/h
cat >"$TMP/ask.py" <<'END'
import sys
import shmlimit

limiter = shmlimit.Limiter(sys.argv[1])
shmlimit.Limiter(sys.argv[1]).reset()
calls = [("r", "k"), ("r", b"k", 5), (limiter.rule_find("r"), "\u00fc"), ("r", "k", 2000), ("shut", "k"), ("shut", "k"), (True, "k"),
    ("none", "k"), ("r\0", "k"), ("r", ""), ("r", "k" * 1025), ("r", "\udcff"), ("r", "k", 2**64), ("r", "k", -1), ("r", "k", 0),
    (2**40, "k"), (-1, "k"), (63, "k"), (1.5, "k"), ("r", None), ("r", "k", "1"), (limiter, "k"), ("r", bytearray(b"k")),
    ("r", memoryview(b"k")), ("r", "\ud800"), ("r", ["k"])]
for call in calls:
    try:
        result = limiter.take(*call)
        print(type(result).__name__, result[:4], result.reset_after_ns // 10**13)
    except Exception as error:
        print(type(error).__name__, error)
for call in calls + [("r", "\u00fc"), ("shut", "new")]:
    try:
        result = limiter.peek(*call)
        print(type(result).__name__, result[:4])
    except Exception as error:
        print(type(error).__name__, error)
limiter.rule_set("count", shmlimit.Rule(100, 0, 10**15, algorithm=shmlimit.Algorithm.COUNTER))
counts = [(1,), (100,), (100, "saturate"), (-3,), (0,), (-500,), (2**63,), (-(2**63) - 1,), ("1",)]
for n, *flags in counts:
    try:
        print(limiter.count("count", "k", n, ttl_ns=10**14, **dict.fromkeys(flags, True))[:3])
    except Exception as error:
        print(type(error).__name__, error)
print(limiter.count("count", "k", 1, bound=97)[:3], limiter.count("count", "k", 1, bound=98)[:3])
for wrong in {"ttl_ns": -1}, {"ttl_ns": 2**70}, {"bound": -1}, {"bound": 2**63}:
    try:
        limiter.count("count", "k", 1, **wrong)
    except shmlimit.Error as error:
        print(error)
limiter.close()
try:
    limiter.take("r", "k")
except shmlimit.Error as error:
    print(error)
END
PYTHONPATH=$TMP/native python3 "$TMP/ask.py" "$SEGMENT" >"$TMP/native.out" 2>&1
rc=$?
PYTHONPATH=$TMP/pure python3 "$TMP/ask.py" "$SEGMENT" >"$TMP/pure.out" 2>&1
is "$rc $(wc -l <"$TMP/native.out")" "0 69" "results and errors of every kind of call were asked for"
is "$(cat "$TMP/native.out")" "$(cat "$TMP/pure.out")" "with and without the extension they are the same"
like "$(sed -n 1p "$TMP/native.out")" '^Result \(True, 1000, 999, 0\)' "a decision is a Result"

laws="test_limiter test_gate test_limit"
python3 -c 'import limits, django' 2>/dev/null && laws="$laws test_adapters"
# shellcheck disable=SC2086 # several
run env SEGMENT="$SEGMENT.laws" PYTHONPATH="$TMP/native:$SOURCE/tools/python/tests" python3 -m unittest -q $laws
is "$rc" 0 "all laws of limiter, gate, limit and the adapters hold with the extension"
[ "$rc" -eq 0 ] || diag "$err"
is "$(PYTHONPATH=$TMP/native python3 -c '
import gc, sys, shmlimit
l = shmlimit.Limiter(sys.argv[1])
l.rule_set("count", shmlimit.Rule(1, 0, 10**15, algorithm=shmlimit.Algorithm.COUNTER))
def key(request):
    return request
gate = shmlimit.Gate(sys.argv[1], [shmlimit.Limit("r", key, lambda request: 1)], x_fields=True)
held = shmlimit.Gate(sys.argv[1] + ".held", [shmlimit.Limit("p", key, rate="1 at once")])
def use():
    l.take("r", "k"), l.peek("r", "k"), l.count("count", "k"), gate.ask("k"), gate.ask("\udcff"), gate.enter_fast(b"k", True)
    gate.leave(held.enter("k").places)
    for wrong in 1, None:
        try:
            gate.ask(wrong)
        except TypeError:
            pass
def used():
    gc.collect()
    return sys.getallocatedblocks()
for _ in range(3):
    before = used()
    for i in range(3000):
        use()
    grown = used() - before
print(shmlimit.limiter.native is not None, grown < 100)' "$SEGMENT")" "True True" "the extension leaves no memory behind"
done_testing
