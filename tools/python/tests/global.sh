#!/bin/sh
# global: the laws of the class GlobalLimiter, and of a gate that has a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
export TMP
BACKEND=$backend_url BACKEND_PID=$backend unittests test_global
