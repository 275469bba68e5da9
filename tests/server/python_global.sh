#!/bin/sh
# python_global: the laws of the class GlobalLimiter, and of a gate that has an engine.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/engine.inc"

need_engine
start_engine
export TMP
ENGINE=$engine_url ENGINE_PID=$engine unittests python_global
