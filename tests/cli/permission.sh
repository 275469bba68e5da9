#!/bin/sh
# permission: reading a segment needs read permission, a decision needs read and write permission, and without them the
# error names the owner to ask.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
denied="shmlimit: segment $segment: no permission (its owner can grant it: chmod and chgrp of \
$SHM$segment, or shmlimit create --mode 0660 --group G)"

# As root, permissions are tried by the user nobody, with a copy that it can reach.
as=
if [ "$(id -u)" -eq 0 ]; then
	command -v setpriv >/dev/null || skip_all "needs setpriv, or to be run by a user other than root"
	cp "$BUILD/bin/shmlimit" "$TMP"
	chmod 755 "$TMP" "$TMP/shmlimit"
	PATH=$TMP:$PATH
	as="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi

printf '[r]\nmode = off\n' >"$TMP/rules.ini"
make() {
	rm -f "$SHM$segment"
	shmlimit create "$segment" --slots 16 --mode 0600
	shmlimit rule set "$segment" r --capacity 3 --rate 1/d
	chmod "$1" "$SHM$segment"
}

# What only looks, and what does not.
looks="list:rule show $segment r:rule list $segment:rule export $segment:\
apply $segment $TMP/rules.ini --dry-run:peek $segment r key:inspect $segment:verify $segment"
changes="rule set $segment r --mode off:rule remove $segment r:apply $segment $TMP/rules.ini:take $segment r key:\
reserve $segment r key:acquire $segment r key:charge $segment r key:refund $segment r key:\
throttle $segment key 15 30 60:reset $segment --all:enable $segment:disable $segment"

make 0444
before=$(sum_file "$SHM$segment")
IFS=:
for words in $looks; do
	unset IFS
	run $as shmlimit $words
	is "$rc $err" "0 " "a user who may read may $words"
done
IFS=:
for words in $changes; do
	unset IFS
	run $as shmlimit $words
	is "$rc $out$err" "2 $denied" "a user who may only read may not $words"
done
is "$(sum_file "$SHM$segment")" "$before" "a user with read permission alone has changed nothing"

make 0000
all=$looks:$changes
IFS=:
for words in $all; do
	unset IFS
	[ "$words" = list ] && continue
	run $as shmlimit $words
	is "$rc $out$err" "2 $denied" "a user who may not even read may not $words"
done

make 0666
for words in "take $segment r key" "rule set $segment r --mode dry-run" "disable $segment"; do
	run $as shmlimit $words
	is $rc 0 "a user who may read and write may $words"
done

make 0600
if [ -n "$as" ] && $as unshare --user --map-root-user true 2>/dev/null; then
	run $as unshare --user --map-root-user shmlimit take "$segment" r key
	is "$rc $out$err" "2 $denied" "root of a user namespace may do no more than the user that made it"
	run $as unshare --user --map-root-user shmlimit destroy "$segment"
	is "$rc $out$err" "2 shmlimit: segment $segment: no permission (only its owner and root can destroy it)" \
		"root of a user namespace of its own may not destroy"
fi

if [ -n "$as" ]; then
	run $as shmlimit destroy "$segment"
	is "$rc $out$err" "2 shmlimit: segment $segment: no permission (only its owner and root can destroy it)" \
		"what is another's cannot be destroyed"
	run $as shmlimit create "$SEGMENT.group" --slots 16 --group 0
	is "$rc $out$err" "2 shmlimit: segment $SEGMENT.group: group root: cannot be set (only root, or a user who belongs to it, can)" "a group that one is not in cannot be given"
	[ ! -e "$SHM$SEGMENT.group" ]
	ok $? "a group that cannot be given makes no segment"
	run shmlimit create "$SEGMENT.group" --slots 16 --group 65534 --mode 0660
	is $rc 0 "root can give any group"
	run $as shmlimit inspect "$SEGMENT.group" --json
	is "$rc $(printf '%s' "$out" | jq .segment.gid)" "0 65534" "a group's members have what the mode gives them"
fi

done_testing
