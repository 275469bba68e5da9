#!/bin/sh
# limiter: the laws of the class Limiter.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
unittests test_limiter
