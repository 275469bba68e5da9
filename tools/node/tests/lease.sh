#!/bin/sh
# lease: two segments, as two hosts have them, share a limit through a Redis server; the event loop never waits for it.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
need setpriv
need_backend
start_backend
for host in one two; do
	shmlimit create "$SEGMENT.$host" --slots 64
	shmlimit rule set "$SEGMENT.$host" page --algorithm lease --capacity 300 --rate 1/h
done
BACKEND=$backend_url BACKEND_PID=$backend laws lease.cjs
