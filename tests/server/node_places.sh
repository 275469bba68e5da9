#!/bin/sh
# node_places: how many requests at once. A place is free when its request has ended, in whatever way.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/node.inc"
laws node_places.cjs
