#!/bin/sh
# python_fronts: ours answers like the storages of front-ends in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/python.inc"
python3 -c 'import limits, django, flask_limiter, rest_framework' 2>/dev/null ||
	skip_all "no python3-limits, python3-django, python3-flask-limiter, python3-djangorestframework"
moved=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$moved" ] || skip_all "no faketime"
case $BUILD in */?a | */?t) skip_all "a sanitizer comes before libfaketime" ;; esac
echo +0s >"$TMP/moved"
export LD_PRELOAD="$moved" FAKETIME_TIMESTAMP_FILE="$TMP/moved" FAKETIME_NO_CACHE=1
unittests python_fronts
