#!/bin/sh
# pace: the laws of calls that wait for their turn, in threads, asyncio and processes, and of the interfaces of other pacers.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
unittests test_pace
