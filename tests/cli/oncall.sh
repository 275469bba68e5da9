#!/bin/sh
# oncall: what tools/shmlimit/oncall.md tells an operator to type does what it says.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/cli/guide.inc"
need jq
cd "$TMP" || exit

page=$SOURCE/tools/shmlimit/oncall.md
at() { printf '%s - - [21/Nov/2026:%s +0000] "POST /login HTTP/1.1" 200 1\n' "$1" "$2"; }
{
	at 203.0.113.9 07:59:00
	for s in 0 1 2 3 4; do at 203.0.113.9 09:00:0$s; done
	at 198.51.100.7 09:10:00
	at 203.0.113.9 09:30:00
} >access.log

guide "$page"
[ "$commands" -ge 20 ]
ok $? "the page has commands to type"
done_testing
