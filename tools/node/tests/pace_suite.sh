#!/bin/sh
# pace_suite: bottleneck on the store in shared memory, in two processes, and by its own tests. What differs is left out by name, and is
# in differences.md. Its tests of how long something takes are tests of how long it takes at least, since machines are busy.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
need npm timeout

mkdir -p "$TMP/app" && cd "$TMP/app" || exit 1
echo '{ "private": true }' >package.json
timeout 20 npm ping --logs-max=0 >"$TMP/log" 2>&1 </dev/null || skip_all "npm's registry is not reachable"
timeout 240 npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline --logs-max=0 bottleneck@2.19.5 mocha@10.8.2 \
	>"$TMP/log" 2>&1 </dev/null || skip_all "npm cannot install bottleneck: $(tail -n 1 "$TMP/log")"
cp -r "$SHMLIMIT" node_modules/shmlimit
cp "$SOURCE/tools/node/tests/tap.cjs" "$SOURCE/tools/node/tests/pace_suite.cjs" .
cp -r node_modules/bottleneck/test .
ln -s node_modules/bottleneck/lib lib
cp pace_suite.cjs test/bottleneck.js
sed -i 's/shouldBe + 50/shouldBe + 60000/' test/context.js

run timeout 300 node pace_suite.cjs
is "$rc $(printf '%s\n' "$out" | grep -c '^ok ')" "0 12" "two processes share the limits of an id"
[ "$rc" -eq 0 ] || diag "$out" "$err"
for suite in general group priority promises retries states stop; do
	run timeout 300 node_modules/.bin/mocha --exit --retries 9 --timeout 20000 --invert \
		--grep 'leak memory|auto-refresh the reservoir$|auto-increase the reservoir|alive until queue is empty|limiter IDs \(default\)' "test/$suite.js"
	is "$rc $(printf '%s\n' "$out" | grep -c '[1-9][0-9]* passing')" "0 1" "bottleneck's own tests: $suite"
	[ "$rc" -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /' >&2
done
done_testing
