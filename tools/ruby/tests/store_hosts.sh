#!/bin/sh
# store_hosts: Shmlimit::Store, whose counts two hosts share by a backend.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"

need_backend
start_backend
block tools/ruby/README.md ruby 'backend: "redis://' | sed "s|redis://redis.example.com|$backend_url|; s/\"web\"/\"$SEGMENT.one\"/; s/Rack::Attack.cache.store = //" >"$TMP/readme.rb"
LD_LIBRARY_PATH=$BUILD BACKEND=$backend_url README=$TMP/readme.rb ruby -w "$SOURCE/tools/ruby/tests/store_hosts.rb"
