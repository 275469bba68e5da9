#!/bin/sh
# readme: the README's lines for Rack::Attack, Rails and Rack's `use` limit what they say.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"

ruby -e 'require "rack/attack"' 2>/dev/null || skip_all "no ruby-rack-attack"
block tools/ruby/README.md ruby Rack::Attack | own >"$TMP/attack"
block tools/ruby/README.md ruby rate_limit | own >"$TMP/rails"
block tools/ruby/README.md ruby rule=user | own >"$TMP/keys"
block tools/ruby/README.md ruby rule=plans | own >"$TMP/plans"
block tools/ruby/README.md ruby rule=tokens | own >"$TMP/tokens"
TMP=$TMP ruby "$SOURCE/tools/ruby/tests/readme.rb"
