#!/bin/sh
# python_gate: the laws of the gate and of both middlewares, without a server.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
unittests python_gate
