#!/bin/sh
# python_adapters: the laws of the adapters for limits and Django.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
python3 -c 'import limits, django' 2>/dev/null || skip_all "no python3-limits, python3-django"
unittests python_adapters
