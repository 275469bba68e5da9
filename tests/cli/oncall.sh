#!/bin/sh
# oncall: what tools/shmlimit/oncall.md tells an operator to type does what it says.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/cli/guide.inc"
cd "$TMP" || exit

page=$SOURCE/tools/shmlimit/oncall.md
guide "$page"
is "$(cd "${SHM%/*}" && ls | grep -F "$SEGMENT")" "" "the page leaves no segment"
[ "$commands" -ge 20 ]
ok $? "the page has commands to type"
done_testing
