#!/bin/sh
# pace: what waits for its turn: a pacer, and what has the interface of p-throttle and limiter.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
block tools/node/README.md js shmlimit/pacer >"$TMP/readme.js"
laws pace.cjs
