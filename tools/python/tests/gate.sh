#!/bin/sh
# gate: the laws of the gate and of both middlewares, without a server.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
unittests test_gate
