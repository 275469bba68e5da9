#!/bin/sh
# python_global: the laws of the class GlobalLimiter, and of a gate that has a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
export TMP
BACKEND=$backend_url BACKEND_PID=$backend unittests python_global
