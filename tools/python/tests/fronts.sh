#!/bin/sh
# fronts: ours answers like the storages of front-ends in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
python3 -c 'import limits, django, flask_limiter, rest_framework' 2>/dev/null ||
	skip_all "no python3-limits, python3-django, python3-flask-limiter, python3-djangorestframework"
. "$SOURCE/tests/server/moved.inc"
export LD_PRELOAD="$moved"
unittests test_fronts
