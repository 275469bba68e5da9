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

# proxied HEADER: what is left to the client of a request to the README's server behind a proxy.
proxied() {
	get -o "$TMP/body" -D - -H "X-Forwarded-For: $1" "http://127.0.0.1:$proxied_port/absent" | tr -d '\r' |
		sed -n 's/^RateLimit: .*;r=\([0-9]*\);.*/\1/p'
}
behind_proxy() {
	shmlimit reset "$SEGMENT" --rule page
	# shellcheck disable=SC2046,SC2005 # in one line
	echo $(proxied 203.0.113.1) $(proxied 203.0.113.2) $(proxied '203.0.113.3, 203.0.113.1')
}

for mpm in prefork event; do
	what=$mpm
	make_segment
	start apache $mpm
	answers
	addresses
	dry_runs
	requests
	is "$(behind_proxy)" "999 999 998" "$what: behind a trusted proxy, the last address that it passes on is the client"
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

proxy=192.0.2.10
start apache worker
is "$(behind_proxy)" "999 998 997" "$what: a peer that is no trusted proxy is the client, whatever it sends"
ends
proxy=127.0.0.1

wrong 's/cost=10/cost=0/' '"cost=0" must be cost=N, 1 or more'
wrong 's/prefix=32,64/prefix=32,129/' 'must be prefix=V4,V6, at most prefix=32,128'
wrong 's/dry_run/status=600/' 'must be status=N, 400 to 599'
wrong 's/dry_run/status=420/' '"status=420" is no status that httpd knows'
wrong 's/fail=open/fail=shut/' '"fail=shut" must be fail=open or fail=closed'
wrong 's/site all cost=10/site/' "needs a rule's name and a key"
wrong 's/%{REMOTE_ADDR}/%{REMOTE_ADDR/' 'ShmlimitRule: key'
wrong 's/^ShmlimitSegment.*//' 'ShmlimitRule needs a ShmlimitSegment'
done_testing
