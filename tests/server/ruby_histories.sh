#!/bin/sh
# ruby_histories: Rack::Attack answers with our store as with ActiveSupport's in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/ruby.inc"
moved=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$moved" ] || skip_all "no faketime"
case $BUILD in */?a | */?t) skip_all "a sanitizer comes before libfaketime" ;; esac
ruby -e 'require "active_support"; require "rack"; require "rack/attack"' 2>/dev/null || skip_all "no ruby-rack-attack, ruby-activesupport"
echo +0s >"$TMP/moved"
export FAKETIME_TIMESTAMP_FILE="$TMP/moved" FAKETIME_NO_CACHE=1 SEED="${SEED-}"
LD_PRELOAD=$moved ruby -w "$SOURCE/tests/server/ruby_histories.rb"
