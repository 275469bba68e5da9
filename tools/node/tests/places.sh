#!/bin/sh
# places: how many requests at once. A place is free when its request has ended, in whatever way.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
laws places.cjs
