#!/bin/sh
# adapters: the laws of the adapters for limits and Django.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
python3 -c 'import limits, django' 2>/dev/null || skip_all "no python3-limits, python3-django"
unittests test_adapters
