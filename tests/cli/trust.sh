#!/bin/sh
# trust: root can use a segment that an application's user made, and reads whose it is; a segment's owner can neither stop nor
# mislead a command that reads it.
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
refused="shmlimit: segment $theirs: not trusted: it belongs to $owner, who can truncate it while it is in use (to trust its owner: \
shmlimit --owner USER ...)"
name=${owner#user }
told="shmlimit: segment $theirs: belongs to $name, who can change all that it holds (without this message: shmlimit --owner $name ...)"

# What lib/doc and oncall.md say, as root.
$stranger shmlimit take "$theirs" r key --quiet
reads="rule show $theirs r:rule list $theirs:rule export $theirs:peek $theirs r key:inspect $theirs:keys $theirs:stat $theirs --count 1:\
top $theirs:bans $theirs:verify $theirs:metrics $theirs:save $theirs $TMP/saved:check $theirs"
writes="take $theirs r key:ban $theirs key --for 1h:unban $theirs key:reset $theirs --rule r --key key:rule set $theirs r --mode off:\
apply $theirs $TMP/rules.ini:disable $theirs:enable $theirs:verify $theirs --repair:grow $theirs --slots 64:reset $theirs --all:\
rule set $theirs r --mode enforce"
IFS=:
for words in $reads; do
	unset IFS
	run shmlimit $words
	is "$rc $(printf '%s\n' "$err" | grep -c -F -x "$told")" "0 1" "root can ${words%% "$theirs"*} another user's segment, and reads whose it is"
done
IFS=:
for words in $writes; do
	unset IFS
	run shmlimit $words
	is "$rc $(printf '%s\n' "$err" | grep -c -F -x "$told")" "0 1" "root can ${words%% "$theirs"*} in another user's segment, and reads whose it is"
done
like "$(shmlimit top "$theirs" 2>/dev/null | head -n 1)" ", of $name:" "the heading of top has the owner"
run shmlimit --owner 65534 inspect "$theirs"
is "$rc $err" "0 " "root that names the owner gets no message"
run shmlimit --owner=65534 metrics --all
like "$rc $out" "segment=\"$theirs\"" "metrics --all --owner writes the segments of that owner"
run shmlimit --owner 65533 inspect "$theirs"
is "$rc $err" "0 $told" "root that names another user gets the message"
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
like "$out" "^$theirs +.* $name:.* enabled" "list shows another user's segment, with its owner"
like "$out" "^$ours +.* enabled" "list shows the segments behind it"
run $stranger shmlimit list
like "$out" "^$theirs +.* enabled" "list shows its owner the segment"

ln "$SHM$linked" "$SHM$SEGMENT.d"
run shmlimit metrics --all
is "$rc $err" "0 " "metrics --all goes on where a segment is left out"
like "$out" "^shmlimit_segments_left_out [1-9]" "metrics --all counts the segments that are left out"
like "$out" "shmlimit_segment_up.segment=\"$theirs\". 1" "metrics --all has another user's segment"
like "$out" "segment=\"$ours\"" "metrics --all writes the segments behind it"
rm -f "$SHM$SEGMENT.d"
for i in $(seq 70); do $stranger shmlimit create "$SEGMENT.flood$i" --slots 16; done
run shmlimit metrics --all
is "$rc $(printf '%s\n' "$out" | grep -c '^shmlimit_segment_up.segment="'"$SEGMENT.*flood") $(printf '%s\n' "$out" | grep -c "_up.*$ours")" \
	"0 $(($(printf '%s\n' "$out" | grep -c "^shmlimit_segment_up.segment=\"$theirs") == 1 ? 63 : 64)) 1" \
	"metrics --all writes 64 segments of one user, and those of others"
for i in $(seq 70); do shmlimit destroy "$SEGMENT.flood$i"; done

# An owner who truncates the file while it is read: keys waits for its reader, who reads a line and then truncates.
$stranger shmlimit create "$SEGMENT.lost" --slots 32K --store-keys 30
$stranger shmlimit rule set "$SEGMENT.lost" r --capacity 3 --rate 1/d
seq 9000 | $stranger shmlimit take "$SEGMENT.lost" r --keys-from - >"$TMP/out"
{ shmlimit keys "$SEGMENT.lost" --rule r 2>"$TMP/err"; echo $? >"$TMP/rc"; } | {
	read -r _
	truncate -s 4096 "$SHM$SEGMENT.lost"
	cat >"$TMP/out"
}
is "$(cat "$TMP/rc") $(tail -n 1 "$TMP/err")" "2 shmlimit: segment $SEGMENT.lost: its owner truncated it while it was in use" \
	"a command whose segment is truncated ends with a message"
run shmlimit metrics --all
is "$rc $(printf '%s\n' "$out" | grep -c "segment_up.segment=\"$SEGMENT.lost\". 0")" "0 1" "metrics --all says that a truncated segment is not up"
rm -f "$SHM$SEGMENT.lost"

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
