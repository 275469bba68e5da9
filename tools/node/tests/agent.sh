#!/bin/sh
# agent: requests of Node that need the host's agent are promises. While the Redis server does not answer, the event
# loop and the threads of libuv go on with all else. The agent may be a thread of Node's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/node/tests/node.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
need setpriv jq
need_backend
start_backend

# A token an hour: none comes back within the test. No test depends on speed: the deadline is far.
shmlimit create "$SEGMENT" --slots 1024
shmlimit rule set "$SEGMENT" shared --algorithm lease --capacity 5 --rate 1/h
shmlimit rule set "$SEGMENT" places --algorithm hold --capacity 3 --period 1h
setpriv --pdeathsig TERM "$(command -v shmlimit)" agent "$SEGMENT" "$backend_url" --deadline 10s --lease 10s 2>"$TMP/agent.err" &
agent=$!
servers="$servers $agent"
serving() { [ "$(shmlimit global status "$SEGMENT" --json | jq '.serving and .connections == 1')" = true ]; }
within serving
# One thread: a request that waited in it would keep all work of Node's waiting that needs a thread.
UV_THREADPOOL_SIZE=1
export UV_THREADPOOL_SIZE
BACKEND=$backend_url BACKEND_PID=$backend AGENT_PID=$agent laws agent.cjs
