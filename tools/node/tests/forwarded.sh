#!/bin/sh
# forwarded: the middleware says once that a proxy makes all clients one, in servers of node:http, and in Express if npm has it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"

mkdir -p "$TMP/app" && cd "$TMP/app" || exit 1
echo '{ "private": true }' >package.json
timeout 240 npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline --logs-max=0 express@5.1.0 \
	>"$TMP/log" 2>&1 </dev/null || diag "npm cannot install express: $(tail -n 1 "$TMP/log")"
NODE_PATH=$TMP/app/node_modules
laws forwarded.cjs
