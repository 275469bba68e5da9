#!/bin/sh
# save, load: a segment that is loaded is the one that was saved; a file that is not whole makes none.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

s=$SEGMENT.s
c=$SEGMENT.copy
cd "$TMP"
left() { shmlimit peek "$1" "$2" "$3" --json | jq .remaining; }
made() { shmlimit inspect "$1" --json | jq -c '.segment | [.slots, .rules, .rules_max, .on_full, .clock, .mode, .gid, .enabled]'; }

shmlimit create "$s" --slots 100 --mode 0640 --on-full deny --rules 9 --rules-max 20 --clock coarse
shmlimit rule set "$s" login --capacity 15 --rate 1/d
shmlimit rule set "$s" calls --algorithm window --rate 10/d
shmlimit rule set "$s" cold --algorithm warmup --rate 1/s --warmup 1h --max-wait 1h --mode dry-run
shmlimit take "$s" login key --cost 4 --quiet
shmlimit take "$s" calls key --cost 3 --quiet
shmlimit throttle "$s" key 5 1 86400 2 >/dev/null

run shmlimit save "$s" file
is "$rc $out$err" "0 " "a segment is saved, in silence"
is "$(stat -c %a file) $(ls)" "600 file" "a saved file is its owner's, and the only one"
run shmlimit load "$c" file
is "$rc $out$err" "0 " "a segment is loaded"
is "$(made "$c")" "$(made "$s")" "a loaded segment is made as the saved one was"
is "$(shmlimit rule export "$c" | tail -n +2)" "$(shmlimit rule export "$s" | tail -n +2)" "a loaded segment has the same rules"
is "$(left "$c" login key) $(left "$c" calls key) $(left "$c" login other)" "11 7 15" "keys of a loaded segment have what they had"
is "$(shmlimit throttle "$c" key 5 1 86400 0 | cut -d' ' -f3)" 3 "a loaded segment has the keys of a throttle"
run shmlimit verify "$c"
is "$rc $out" "0 $c: sound" "a loaded segment is sound"
run shmlimit load "$c" file
is "$rc $err" "2 shmlimit: segment $c: exists already (use another name, or remove it when no process uses it: shmlimit destroy $c)" \
	"a segment that is there is left alone"
is "$(left "$c" login key)" 11 "with what is in it"

shmlimit disable "$s"
shmlimit destroy "$c"
shmlimit save "$s" - | shmlimit load "$c" - --no-elapsed
is "$? $(made "$c")" "0 $(made "$s")" "through a pipe it goes too, and one that is switched off is so still"

# A segment that has just grown is saved at once, with what stands in either table.
g=$SEGMENT.grown
shmlimit create "$g" --slots 64
shmlimit rule set "$g" login --capacity 15 --rate 1/d
shmlimit take "$g" login old --cost 4 --quiet
shmlimit take "$g" login moved --cost 5 --quiet
shmlimit grow "$g" --slots 256 >/dev/null
shmlimit take "$g" login moved --cost 1 --quiet
shmlimit take "$g" login new --cost 2 --quiet
run shmlimit save "$g" grown
is "$rc $out$err" "0 " "a segment that has just grown is saved"
shmlimit destroy "$g"
run shmlimit load "$g" grown
is "$rc $out$err" "0 " "a segment that grew is loaded"
is "$(left "$g" login old) $(left "$g" login moved) $(left "$g" login new)" "11 9 13" "keys of a segment that grew have what they had in either table"
is "$(shmlimit inspect "$g" --json | jq .segment.slots)" 256 "a segment that grew is loaded with its new size"

# The unit's commands, as systemd runs them: the first word '-' means that failure is ignored.
unit() {
	sed -n "s|^$1=-\\{0,1\\}||p" "$SOURCE/tools/systemd/shmlimit-state@.service" |
		sed "s|%i|$g|g; s|/usr/bin/shmlimit|shmlimit|; s|/var/lib/shmlimit|$TMP/state|g" >unit.sh
	OWNER=$(sed -n 's/^Environment=OWNER=//p' "$SOURCE/tools/systemd/shmlimit-state@.service") sh -e unit.sh 2>/dev/null
}
mkdir state state-loaded
unit ExecStop
is "$? $(ls state)" "0 $g" "the unit saves a segment when it stops"
shmlimit destroy "$g"
unit ExecStart
unit ExecStartPost
is "$(left "$g" login old) $(ls state) $(ls state-loaded)" "11  $g" \
	"when it starts it loads the file, and puts it where it is not loaded again"
shmlimit take "$g" login old --cost 11 --quiet
shmlimit destroy "$g"
unit ExecStart
unit ExecStartPost
run shmlimit inspect "$g"
is $rc 3 "after a crash no older state is loaded"
printf 'damaged' >"state/$g"
unit ExecStart
unit ExecStartPost
is "$(ls state) $(cat "state-loaded/$g")" " damaged" "a file that cannot be loaded is not lost"
rm -r state state-loaded grown unit.sh

# A file that takes another's place.
cp file old
shmlimit enable "$s"
shmlimit take "$s" login key --cost 5 --quiet
run shmlimit save "$s" file
cmp -s file old
is "$rc $?" "0 1" "a file is replaced"
shmlimit destroy "$c"
shmlimit load "$c" file
is "$(left "$c" login key)" 6 "by what is there now"
cp file old
run shmlimit save "$SEGMENT.none" file
is "$rc" 3 "a segment that is not there cannot be saved"
cmp -s file old
ok $? "a save that fails leaves the file"
run shmlimit save "$s" none/file
is "$rc $err" "2 shmlimit: none/file: No such file or directory" \
	"a segment cannot be saved where there is no folder"
mkfifo pipe
ln -s file link
for place in pipe link "$TMP"; do
	run shmlimit save "$s" "$place"
	is "$rc $out$err" "2 shmlimit: $place: not a regular file" \
		"what is no file is not replaced: $place"
done
[ -p pipe ] && [ -L link ] && cmp -s file old
ok $? "what is no file is left as it was"
rm pipe link
(ulimit -f 1 && trap '' XFSZ && exec shmlimit save "$s" file) 2>err
is "$? $(cat err)" "2 shmlimit: file: File too large" "what does not fit is said"
cmp -s file old
is "$? $(ls)" "0 err
file
old" "after a failed save the old file is there alone"
cp file file.shmlimit-0a1b2c
shmlimit save "$s" file
is "$? $(ls)" "0 err
file
old" "a save removes the file of one that was killed"
cp file old
run shmlimit save "$s" /dev/full/x
is "$rc $err" "2 shmlimit: /dev/full/x: Not a directory" \
	"a path through what is no folder is refused"
shmlimit save "$s" - >/dev/full 2>err
is "$? $(cat err)" "2 shmlimit: standard output: No space left on device" \
	"standard output that is full is an error"

# A segment that a process with write access damaged: what could not be loaded does not replace what could be.
cp file old
shmlimit create "$SEGMENT.bad" --slots 16
shmlimit rule set "$SEGMENT.bad" victim --capacity 2 --rate 1/day
at=$(head -c 1048576 "$SHM$SEGMENT.bad" | grep -obUa victim | head -n 1 | cut -d: -f1)
printf 'vic/im' | dd of="$SHM$SEGMENT.bad" bs=1 seek="$at" conv=notrunc 2>/dev/null
run shmlimit save "$SEGMENT.bad" file
cmp -s file old
is "$rc $? $(ls)" "2 0 err
file
old" "a segment with a rule that has no legal name is not saved over a good file"
printf 'victim' | dd of="$SHM$SEGMENT.bad" bs=1 seek="$at" conv=notrunc 2>/dev/null
# As root it can be opened still, and says of itself what none can be made with.
chmod 0 "$SHM$SEGMENT.bad"
run shmlimit save "$SEGMENT.bad" file
cmp -s file old
is "$rc $? $(ls)" "2 0 err
file
old" "a segment that load would refuse is not saved"
rm -f "$SHM$SEGMENT.bad"

# Files that are none.
shmlimit destroy "$c"
refused() {
	run shmlimit load "$c" bad
	is "$rc $out$err $([ -e "$SHM$c" ] || echo none)" "2 shmlimit: bad: $1 none" "$2 is refused, and nothing made"
}
damaged="damaged or incomplete: save the segment again"
other="not a saved segment (shmlimit save writes one)"
: >bad
refused "$other" "an empty file"
echo '[login]' >bad
refused "$other" "another one"
cp "$SHM$s" bad
refused "$other" "a segment itself"
head -c 4095 file >bad
refused "$damaged" "one that is not whole"
cat file file >bad
refused "$damaged" "one with something behind it"
{ head -c 100 file; printf '\377\376'; tail -c +103 file; } >bad
refused "$damaged" "one with two bytes changed"
{ head -c 8 file; printf '\7'; tail -c +10 file; } >bad
refused "saved by another version: load it with the shmlimit that saved it" "another version's"
rm bad
run shmlimit load "$c" bad
is "$rc $err" "2 shmlimit: bad: No such file or directory" \
	"a file that is not there is said to be"
mkdir bad
run shmlimit load "$c" bad
is "$rc $err" "2 shmlimit: bad: Is a directory" "a folder is none"
run shmlimit load "a/b" file
is "$rc" 2 "a bad name is refused"

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	shmlimit destroy "$s"
	setpriv --reuid 65534 --regid 65534 --clear-groups shmlimit create "$s" --slots 16
	shmlimit --owner 65534 save "$s" file
	shmlimit load "$c" file
	is "$(stat -c '%u %g %a' "$SHM$c")" "65534 65534 600" "what root loads is its old owner's"
	shmlimit destroy "$c"
	chmod 644 file
	chmod 755 .
	shmlimit destroy "$s"
	shmlimit create "$s" --slots 16 --mode 0660
	shmlimit save "$s" file
	chmod 644 file
	run setpriv --reuid 65534 --regid 65534 --clear-groups shmlimit load "$c" file
	is "$rc $err" "2 shmlimit: segment $c: the group that it was saved with cannot be set (only root, or a user \
who belongs to it, can)" \
		"a group that cannot be given is an error"
fi
cd /
done_testing
