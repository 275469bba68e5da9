#!/bin/sh
# python_limiter: the laws of the class Limiter.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
unittests python_limiter
