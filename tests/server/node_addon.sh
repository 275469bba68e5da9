#!/bin/sh
# node_addon: what the classes for Node answer, in the main thread and in worker threads; and what they throw.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/node.inc"
laws node_addon.cjs
