#!/bin/sh
# histories: Rack::Attack answers with our store as with ActiveSupport's in memory, while libfaketime moves the clock.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"
. "$SOURCE/tests/server/moved.inc"
ruby -e 'require "active_support"; require "rack"; require "rack/attack"' 2>/dev/null || skip_all "no ruby-rack-attack, ruby-activesupport"
under "$moved" ruby -w "$SOURCE/tools/ruby/tests/histories.rb"
