#!/bin/sh
# routes: a limit that was given no name is its route's, and WebSockets are limited, in FastAPI; the same of functions, modules and
# throttles.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
python3 -c 'import fastapi, rest_framework' 2>/dev/null || skip_all "no python3-fastapi, python3-djangorestframework"
unittests test_routes
