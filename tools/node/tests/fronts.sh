#!/bin/sh
# fronts: express-rate-limit, @fastify/rate-limit, rate-limiter-flexible and @nestjs/throttler themselves, in a cluster
# of four workers of which one is killed. Beside each store of ours is the front-end's own, in memory. What is not in npm's
# registry, or not loaded by this Node, is skipped.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
need npm timeout

mkdir -p "$TMP/app" && cd "$TMP/app" || exit 1
echo '{ "private": true }' >package.json
timeout 20 npm ping --logs-max=0 >"$TMP/log" 2>&1 </dev/null || skip_all "npm's registry is not reachable"
timeout 240 npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline --logs-max=0 express@5.1.0 \
	express-rate-limit@8.2.1 fastify@5.6.2 @fastify/rate-limit@11.0.0 rate-limiter-flexible@11.1.0 \
	@nestjs/common@11.1.9 @nestjs/core@11.1.9 @nestjs/platform-express@11.1.9 @nestjs/throttler@6.5.0 reflect-metadata@0.2.2 \
	rxjs@7.8.2 >"$TMP/log" 2>&1 </dev/null || skip_all "npm cannot install the front-ends: $(tail -n 1 "$TMP/log")"
cp -r "$SHMLIMIT" node_modules/shmlimit
NODE_PATH=$TMP/app/node_modules
laws fronts.cjs
