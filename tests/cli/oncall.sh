#!/bin/sh
# oncall: what tools/shmlimit/oncall.md tells an operator to type does what it says.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
cd "$TMP" || exit

page=$SOURCE/tools/shmlimit/oncall.md
at() { printf '%s - - [21/Nov/2026:%s +0000] "POST /login HTTP/1.1" 200 1\n' "$1" "$2"; }
{
	at 203.0.113.9 07:59:00
	for s in 0 1 2 3 4; do at 203.0.113.9 09:00:0$s; done
	at 198.51.100.7 09:10:00
	at 203.0.113.9 09:30:00
} >access.log

# The segment's name made the test's own: where columns depend on it there is none.
sed -n '/^```console$/,/^```$/p' "$page" | grep -v '^```' | sed "s/\\bweb\\b/$SEGMENT.web/g" >session
[ "$(grep -c '^\$ ' session)" -ge 20 ]
ok $? "the page has commands to type"

# What depends on time, or on the segment's secret.
masked() { sed "s/\\b[0-9a-f]\\{12\\}\\b/FINGERPRINT/g; s/\\b[0-9][0-9dhm.]*[0-9]s\\b/TIME/g"; }

# A command and what the page has behind it, up to the next.
check() {
	[ -n "$command" ] || return
	sh -c "$command" >got 2>&1
	status=$?
	[ $status -eq 0 ] || echo "[$status]" >>got
	is "$(masked <got)" "$(masked <want)" "$(printf '%s' "$command" | sed "s/$SEGMENT.//g")"
}
command=
while IFS= read -r line; do
	case $line in
	'$ '*)
		check
		command=${line#\$ }
		: >want
		;;
	*) printf '%s\n' "$line" >>want ;;
	esac
done <session
check

done_testing
