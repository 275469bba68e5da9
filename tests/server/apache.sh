#!/bin/sh
# apache: the module in Debian's httpd, with four children of each kind.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/apache.inc"
. "$SOURCE/tests/server/behaviour.inc"

need apache2 curl jq perl pgrep setsid setpriv
need_module "$apache_module" apache2-dev

# As many as a prefork server has children: one that waits for a child waits until a connection ends.
connections=4

for mpm in prefork event; do
	what=$mpm
	make_segment
	start apache $mpm
	answers
	addresses
	dry_runs
	requests
	exactly
	under_load
	comes_and_goes
	rules_go_too
	churn
	is "$(said 'exit signal Segm\|exit signal Abort\|exit signal Bus')" 0 "$what: no child crashed"
	ends
	shmlimit destroy "$SEGMENT"
done

what=worker
make_segment
other_version
start apache worker -e 's/fail=open/fail=closed/' -e 's/dry_run/status=403 fields=denied/'
fails_closed
ends

wrong 's/cost=10/cost=0/' '"cost=0" must be cost=N, 1 or more'
wrong 's/prefix=32,64/prefix=32,129/' 'must be prefix=V4,V6, at most prefix=32,128'
wrong 's/dry_run/status=600/' 'must be status=N, 400 to 599'
wrong 's/dry_run/status=420/' '"status=420" is no status that httpd knows'
wrong 's/fail=open/fail=shut/' '"fail=shut" must be fail=open or fail=closed'
wrong 's/site all cost=10/site/' "needs a rule's name and a key"
wrong 's/%{REMOTE_ADDR}/%{REMOTE_ADDR/' 'ShmlimitRule: key'
wrong 's/^ShmlimitSegment.*//' 'ShmlimitRule needs a ShmlimitSegment'
done_testing
