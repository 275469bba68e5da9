#!/bin/sh
# gate: the laws of the class Gate.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"

# The README's script needs no command before the first request.
block tools/php/README.md php "Gate('web'" | own | sed 's,30/minute,30/day,' >"$TMP/limit.php"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	echo "$(REMOTE_ADDR=203.0.113.9 php "$TMP/limit.php" 2>&1)"
done | uniq -c | tr -s ' ' >"$TMP/out"
[ "$(cat "$TMP/out")" = ' 15 
 1 too many requests' ] || { diag "README.md's script does not do what it says:" "$(cat "$TMP/out")"; exit 1; }
shmlimit destroy "$SEGMENT"

# A customer's plan is its limit.
{
	sed "/enforce/d" "$TMP/limit.php"
	echo "\$user = (object)['name' => 'user:42', 'plan' => (object)['rate' => '2/day']];"
	block tools/php/README.md php plans
} >"$TMP/plans.php"
[ "$(for _ in 1 2 3; do php "$TMP/plans.php" 2>&1; done)" = 'too many requests' ] || { diag "README.md's line for plans does not do what it says"; exit 1; }
shmlimit destroy "$SEGMENT"

# What a request costs is known afterwards.
{
	sed "/enforce/d" "$TMP/limit.php"
	echo "\$user = (object)['name' => 'user:42'];"
	block tools/php/README.md php estimate | sed 's,minute,day,'
} >"$TMP/tokens.php"
php "$TMP/tokens.php"
[ "$(shmlimit peek "$SEGMENT" tokens user:42 | awk '$1 == "remaining:" { print $2 }')" = 18766 ] || { diag "README.md's lines for an estimate do not do what they say" "$(shmlimit peek "$SEGMENT" tokens user:42)"; exit 1; }
shmlimit destroy "$SEGMENT"

TMP=$TMP php "$SOURCE/tools/php/tests/gate.php"
