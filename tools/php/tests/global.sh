#!/bin/sh
# global: the laws of the class GlobalLimiter, and of a gate that has a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
for host in here there; do
	shmlimit create "$SEGMENT.$host" --slots 64
	for terms in 'first --algorithm lease --capacity 5' 'second --algorithm lease --capacity 2' \
		'wide --algorithm lease --capacity 50' 'none --algorithm lease --capacity 1' \
		'dry --algorithm lease --capacity 1 --mode dry-run' 'local --capacity 3'; do
		# shellcheck disable=SC2086 # a list of words
		shmlimit rule set "$SEGMENT.$host" $terms --rate 1/d
	done
done
TMP=$TMP BACKEND=$backend_url php "$SOURCE/tools/php/tests/global.php"
