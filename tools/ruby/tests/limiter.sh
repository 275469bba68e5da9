#!/bin/sh
# limiter: the laws of Shmlimit::Limiter and Shmlimit::Gate.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"

shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" login --capacity 3 --rate 3/d
block tools/ruby/README.md ruby laoqian | own >"$TMP/readme.rb"
[ "$(for _ in 1 2 3 4; do ruby -w "$TMP/readme.rb"; done)" = "welcome
welcome
welcome
later" ] || { diag "README.md's program does not do what it says"; exit 1; }
block tools/ruby/README.md ruby within_limit | own >"$TMP/jobs.rb"
[ "$(ruby -w "$TMP/jobs.rb")" = "charge user:42" ] || { diag "README.md's job does not do what it says"; exit 1; }
ruby -w -W:no-experimental "$SOURCE/tools/ruby/tests/limiter.rb"
