#!/bin/sh
# histories: our stores answer like the front-ends' own in memory, while libfaketime moves the clock. Also from a link to the package, as npm makes one of a folder.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
need npm timeout
. "$SOURCE/tests/server/moved.inc"

mkdir -p "$TMP/app" && cd "$TMP/app" || exit 1
echo '{ "private": true }' >package.json
timeout 20 npm ping --logs-max=0 >"$TMP/log" 2>&1 </dev/null || skip_all "npm's registry is not reachable"
timeout 240 npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline --logs-max=0 express@5.1.0 \
	express-rate-limit@8.2.1 rate-limiter-flexible@11.1.0 fastify@5.6.2 @fastify/rate-limit@11.0.0 @nestjs/common@11.1.9 \
	@nestjs/core@11.1.9 @nestjs/throttler@6.5.0 reflect-metadata@0.2.2 rxjs@7.8.2 >"$TMP/log" 2>&1 </dev/null ||
	skip_all "npm cannot install the front-ends: $(tail -n 1 "$TMP/log")"
ln -s "$SHMLIMIT" node_modules/shmlimit
cp "$SOURCE/tools/node/tests/histories.cjs" "$SOURCE/tools/node/tests/tap.cjs" .
# One thread: libfaketime reads its file for each look at the clock, and two threads that do so at once read half of it.
under "$moved" node --v8-pool-size=0 --single-threaded histories.cjs
