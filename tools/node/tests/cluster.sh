#!/bin/sh
# cluster: the workers of node:cluster together admit exactly the limit, also while some of them are killed.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
laws cluster.cjs
