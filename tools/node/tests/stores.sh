#!/bin/sh
# stores: the stores for limiters that people use already, by the interfaces that those have for stores.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
block tools/node/README.md js express-rate-limit >"$TMP/readme.js"
laws stores.cjs
