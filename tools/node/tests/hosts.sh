#!/bin/sh
# hosts: the stores for Node, whose counts two hosts share by a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
block tools/node/README.md js "backend: 'redis://redis.example.com'" >"$TMP/readme.js"
LD_LIBRARY_PATH=$BUILD BACKEND=$backend_url node "$SOURCE/tools/node/tests/hosts.cjs" </dev/null
