#!/bin/sh
# ruby_store: the laws of Shmlimit::Store.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/ruby.inc"

ruby -w "$SOURCE/tests/server/ruby_store.rb"
