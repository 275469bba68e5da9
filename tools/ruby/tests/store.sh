#!/bin/sh
# store: the laws of Shmlimit::Store.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"

ruby -w "$SOURCE/tools/ruby/tests/store.rb"
