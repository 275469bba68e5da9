#!/bin/sh
# heed: pauses, and what a server that is asked says about when to ask again.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
laws heed.cjs
