#!/bin/sh
# limit: the laws of the decorator, of its rates and of the segment that it creates.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
unittests test_limit
