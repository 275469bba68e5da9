#!/bin/sh
# trust: root and commands that take all segments open only those of an owner who cannot harm them, and say which they
# leave out.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"

[ "$(id -u)" -eq 0 ] || skip_all "needs root, to make segments of another user"
need setpriv jq
cp "$BUILD/bin/shmlimit" "$TMP"
chmod 755 "$TMP" "$TMP/shmlimit"
PATH=$TMP:$PATH
stranger="setpriv --reuid=65534 --regid=65534 --clear-groups"
owner=$($stranger id -un 2>/dev/null) || owner="user 65534"

theirs=$SEGMENT.a ours=$SEGMENT.b linked=$SEGMENT.c
$stranger shmlimit create "$theirs" --slots 16 --mode 0666
$stranger shmlimit rule set "$theirs" r --capacity 3 --rate 1/d
for segment in "$ours" "$linked"; do
	shmlimit create "$segment" --slots 16 --mode 0666
	shmlimit rule set "$segment" r --capacity 3 --rate 1/d
done
ln "$SHM$linked" "$SHM$SEGMENT.d"
printf '[r]\nmode = off\n' >"$TMP/rules.ini"
refused="shmlimit: segment $theirs: not trusted: it belongs to $owner, who can truncate it while it is in use (remove it \
with: shmlimit destroy $theirs; or trust its owner: shmlimit --owner USER ...)"

before=$(cksum <"$SHM$theirs")
opens="rule show $theirs r:rule list $theirs:rule export $theirs:peek $theirs r key:inspect $theirs:\
verify $theirs:verify $theirs --repair:metrics $theirs:save $theirs -:rule set $theirs r --mode off:\
rule remove $theirs r:apply $theirs $TMP/rules.ini:take $theirs r key:reset $theirs --all:disable $theirs:\
grow $theirs --slots 64"
IFS=:
for words in $opens; do
	unset IFS
	run shmlimit $words
	is "$rc $out$err" "2 $refused" "root does not $words"
done
is "$(cksum <"$SHM$theirs")" "$before" "nothing was changed in the stranger's segment"
run shmlimit --owner 65534 inspect "$theirs"
is "$rc $err" "0 " "root opens it when it names its owner"
run shmlimit --owner=65534 metrics --all
like "$rc $out" "segment=\"$theirs\"" "metrics --all --owner writes the segments of that owner"
run shmlimit --owner 65533 inspect "$theirs"
is "$rc $err" "2 $refused" "root does not open it when it names another user"
for user in '' no-such-user -1 4294967295 1K; do
	run shmlimit --owner "$user" list
	is "$rc $err" "2 shmlimit: --owner $user: no such user (a name or a number)" "--owner '$user' is refused"
done
run shmlimit --owner
is "$rc $err" "2 shmlimit: --owner: missing value (usage: --owner USER)" "--owner needs a user"
run $stranger shmlimit take "$theirs" r key
is $rc 0 "its owner decides in it"
run $stranger shmlimit take "$ours" r key
is $rc 0 "another user decides in root's segment that may be written by all"
run shmlimit take "$ours" r key
is $rc 0 "root decides in a segment of its own"
run shmlimit take "$linked" r key
like "$rc $err" "^2 shmlimit: segment $linked: not trusted: its file has 2 hard links" \
	"root does not decide in a segment that has a second hard link"
rm -f "$SHM$SEGMENT.d"
run shmlimit take "$linked" r key
is $rc 0 "root decides in it when the second hard link is gone"

cp "$SHM$theirs" "$TMP/kept"
printf '\377' | dd of="$SHM$theirs" bs=1 seek=8 conv=notrunc 2>/dev/null
run shmlimit take "$theirs" r key
like "$rc $err" "^2 shmlimit: segment $theirs: its header has another layout than its file name" "another layout is named before its owner is asked for"
dd if="$TMP/kept" of="$SHM$theirs" conv=notrunc 2>/dev/null

run shmlimit list
like "$out" "^$theirs +(- +){5}not trusted: another user's, or with a second link [(]see --owner[)]$" \
	"list shows a stranger's segment with the reason why it is not opened"
like "$out" "^$ours +.* enabled" "list shows the segments behind it"
run $stranger shmlimit list
like "$out" "^$theirs +.* enabled" "list shows its owner the segment"

run shmlimit metrics --all
is "$rc $err" "0 " "metrics --all goes on where a segment is left out"
like "$out" "^shmlimit_segments_left_out [1-9]" "metrics --all counts the segments that are left out"
like "$out" "segment=\"$ours\"" "metrics --all writes the segments behind it"
is "$(printf '%s\n' "$out" | grep -c "segment=\"$theirs\"")" 0 "metrics --all writes nothing of the stranger's segment"
run shmlimit metrics --all --output "$TMP/metrics"
like "$rc $(grep -c "segment=\"$ours\"" "$TMP/metrics")" "^0 [1-9]" "metrics --all --output writes the file, too"

mkdir "$TMP/d"
for segment in "$theirs" "$ours" "$SEGMENT.new"; do
	printf '[r]\ncapacity = 3\nrate = 1/d\nmode = off\n' >"$TMP/d/$segment.conf"
done
run shmlimit apply --all "$TMP/d"
is "$rc $err" "2 $refused" "apply --all fails where a segment is a stranger's"
is "$(shmlimit rule export "$ours" | grep -c 'mode = off') $(shmlimit rule export "$SEGMENT.new" | grep -c 'mode = off')" \
	"1 1" "apply --all applies the other files"
run $stranger "$TMP/shmlimit" rule show "$theirs" r --json
is "$rc $(printf '%s' "$out" | jq -r .mode)" "0 enforce" "apply --all changes no rule of the stranger's segment"

run shmlimit destroy "$theirs"
is $rc 0 "root removes the stranger's segment"
run shmlimit apply --all "$TMP/d"
is $rc 0 "apply --all then succeeds"
done_testing
