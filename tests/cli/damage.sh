#!/bin/sh
# damage, and `verify`, which finds it: whatever bytes the file has, each command answers, says what is wrong, and
# writes nothing.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
file=$SHM$segment
printf '[r]\nmode = off\n' >"$TMP/rules.ini"

rules=36864 # where they begin
fresh() {
	rm -f "$file"
	shmlimit create "$segment" --slots 64 --slots-max 64 --rules 2 --rules-max 2
	shmlimit rule set "$segment" r --capacity 3 --rate 1/d
	shmlimit take "$segment" r key --quiet
}

# poke OFFSET BYTES: overwrite, the bytes as printf writes them.
poke() { printf "$2" | dd of="$file" bs=1 seek="$1" conv=notrunc 2>/dev/null; }

# flip OFFSET: turn a byte's bits round.
flip() { poke "$1" "\\$(printf %o $((255 - $(od -An -tu1 -j "$1" -N 1 "$file"))))"; }

# refused MESSAGE: by every command that opens a segment, none of which writes.
refused() {
	before=$(sum_file "$file")
	while read -r words; do
		run shmlimit $words
		is "$rc $out$err" "2 shmlimit: segment $segment: $1" "$words says: $1"
	done <<-END
		rule set $segment r --mode off
		rule show $segment r
		rule list $segment
		rule export $segment
		apply $segment $TMP/rules.ini
		apply $segment $TMP/rules.ini --dry-run
		rule remove $segment r
		take $segment r key
		peek $segment r key
		reserve $segment r key
		acquire $segment r key
		charge $segment r key
		refund $segment r key
		throttle $segment key 15 30 60
		reset $segment --all
		enable $segment
		disable $segment
		inspect $segment
	END
	is "$(sum_file "$file")" "$before" "a refused segment was not written to"
}

# Sound.
fresh
before=$(sum_file "$file")
run shmlimit verify "$segment"
is "$rc $out$err" "0 $segment: sound" "verify finds a sound segment sound"
run shmlimit verify "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c .)" "0 {\"name\":\"$segment\",\"sound\":true,\"found\":0,\"problems\":[]}" \
	"verify --json, too"
is "$(sum_file "$file")" "$before" "verify changes nothing"

# Not ours.
fresh
poke 0 S
foreign="not a shmlimit segment: another program created $file, or something overwrote it (use another name; or, if no process uses it: \
shmlimit destroy $segment --force)"
refused "$foreign"
for verb in verify create; do
	run shmlimit $verb "$segment"
	is "$rc $out$err" "2 shmlimit: segment $segment: $foreign" "$verb says: $foreign"
done
run shmlimit destroy "$segment"
is "$rc $out$err" "2 shmlimit: segment $segment: $foreign" "destroy says: $foreign"
[ -e "$file" ]
ok $? "a file that is not ours is not destroyed"
shmlimit create "$segment.saved" --slots 16 && shmlimit save "$segment.saved" "$TMP/saved"
run shmlimit load "$segment" "$TMP/saved"
is "$rc $out$err" "2 shmlimit: segment $segment: $foreign" "load says: $foreign"
shmlimit destroy "$segment.saved"
: >"$file"
run shmlimit destroy "$segment"
is "$rc $err" "2 shmlimit: segment $segment: $foreign" "an empty file is not destroyed"
run shmlimit destroy "$segment" --force
like "$rc $err" "^2 shmlimit: segment $segment: not removed: .* has 0 bytes, and the smallest segment [1-9][0-9]* [(]if no other program needs it, remove it with rm[)]$" \
	"destroy --force does not remove a file that is too small for a segment"
head -c 200000 /dev/zero >"$file"
run shmlimit destroy "$segment" --force
is "$rc $out$err $(ls "$file" 2>/dev/null)" "0  " "destroy --force removes a file that is overwritten"
mkdir "$file"
run shmlimit destroy "$segment" --force
like "$rc $err" "^2 shmlimit: segment $segment: not removed: $file is no regular file" "destroy --force does not remove a folder"
rmdir "$file"
fresh
poke 0 S
run shmlimit destroy "$segment" --force --if-exists
is "$rc $out$err $(ls "$file" 2>/dev/null)" "0  " "destroy --force removes a segment whose first byte is overwritten"
run shmlimit destroy "$segment" --force
is "$rc" 3 "destroy --force says that there is no such segment"
fresh
run shmlimit destroy "$segment" --force
is "$rc $out$err $(ls "$file" 2>/dev/null)" "0  " "destroy --force removes a sound segment"
if [ "$(id -u)" = 0 ]; then
	head -c 200000 /dev/zero >"$file"
	chown 65534 "$file"
	run shmlimit destroy "$segment" --force
	like "$rc $err" "^2 shmlimit: segment $segment: not removed: $file belongs to " "destroy --force does not remove another user's file"
	run shmlimit --owner 65534 destroy "$segment" --force
	is "$rc $out$err $(ls "$file" 2>/dev/null)" "0  " "destroy --force removes the file of a user that is trusted"
fi
mkdir "$file"
run shmlimit inspect "$segment"
is "$rc $err" "2 shmlimit: segment $segment: $foreign" "a folder is not a segment"
rmdir "$file"
mkfifo "$file"
run shmlimit inspect "$segment"
is "$rc $err" "2 shmlimit: segment $segment: $foreign" "a pipe is not waited for"
rm "$file"
shmlimit create "$SEGMENT.target" --slots 16
ln -s "$SEGMENT.target" "$file"
run shmlimit inspect "$segment"
is "$rc $err" "2 shmlimit: segment $segment: $foreign" "a link is not followed"

# Another version.
fresh
poke 8 '\377'
refused "its header has another layout than its file name: create it again (shmlimit destroy $segment)"
run shmlimit verify "$segment"
is "$rc" 1 "to verify, another version is a problem"
like "$out" "^$segment: byte [0-9]+: .*version" "verify names another version"
run shmlimit destroy "$segment"
is "$rc $out$err" "0 " "another version can be destroyed"

# Damaged.
damaged="damaged: create it again (shmlimit verify $segment says what is wrong; shmlimit destroy $segment removes it)"
fresh
flip 32
refused "$damaged"
run shmlimit verify "$segment"
is $rc 1 "verify finds a damaged header"
like "$out" "^$segment: byte [0-9]+: .*checksum" "verify says what is wrong with a damaged header"
run shmlimit verify "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c '[.sound, .found, (.problems | length), (.problems[0] | keys)]')" \
	'1 [false,1,1,["offset","text"]]' "verify --json, too"
run shmlimit create "$segment"
is $rc 2 "a damaged one is not replaced by create"
run shmlimit destroy "$segment"
is "$rc $out$err" "0 " "a damaged one can be destroyed"

fresh
truncate -s 100 "$file"
refused "$damaged"
run shmlimit verify "$segment"
is "$rc" 1 "verify finds a header cut short"
fresh
truncate -s $(($(segment_end "$segment") - 1)) "$file"
refused "$damaged"
run shmlimit verify "$segment"
is "$rc" 1 "verify finds a byte missing"
fresh
truncate -s +1M "$file"
refused "$damaged"

# Lengths around each boundary: holders, rules, counters, slots, the end.
fresh
size=$(segment_end "$segment")
for length in 0 7 8 9 383 384 385 4095 4096 4097 $rules $((rules + 960)) $((size - 1025)) $((size - 1024)) $(($(stat -c %s "$file") + 1)); do
	fresh
	truncate -s "$length" "$file"
	before=$(sum_file "$file")
	says=$damaged want=1
	[ "$length" -ge 8 ] || says=$foreign want=2
	run shmlimit inspect "$segment"
	is "$rc $out$err" "2 shmlimit: segment $segment: $says" "a file of $length bytes is refused"
	run shmlimit verify "$segment"
	is "$rc $(sum_file "$file")" "$want $before" "verify notices it and leaves it"
	run shmlimit destroy "$segment"
	is "$rc" $((want == 2 ? 2 : 0)) "a file of $length bytes can be destroyed if it is ours"
done

# Bytes of the header: each leaves an answer, no death (see run in tap.sh), nothing written.
for offset in $(seq 1 3 383); do
	fresh
	flip "$offset"
	before=$(sum_file "$file")
	run shmlimit inspect "$segment"
	[ $rc -eq 0 ] || [ $rc -eq 2 ]
	ok $? "a segment whose byte $offset is another is shown or refused"
	run shmlimit verify "$segment"
	want=1
	[ "$offset" -lt 8 ] && want=2
	# A table may be swept more often than its rules require, but not less.
	[ "$offset" -ge 296 ] && [ "$offset" -lt 304 ] && [ $rc -eq 0 ] && want=0
	# The mark of a sweep, its cursor, counts of requests that a server could not decide, the longest limit of a call, and how
	# often a place was not bound: any number may be right.
	[ "$offset" -ge 304 ] && [ "$offset" -lt 368 ] && want=0
	# Where the clock is on the calendar: a decision sets that right.
	[ "$offset" -ge 376 ] && want=0
	is "$rc $(sum_file "$file")" "$want $before" "verify says $want of byte $offset and leaves it"
done

# Holders of places: no bytes of them stop anything.
fresh
run shmlimit rule set "$segment" places --limit '1 at once for 1d'
head -c 32768 /dev/urandom | dd of="$file" bs=4096 seek=1 conv=notrunc 2>/dev/null
run shmlimit verify "$segment"
is "$rc $out" "0 $segment: sound" "any bytes are a table of holders"
run shmlimit hold "$segment" places all -- shmlimit hold "$segment" places all -- true
is "$rc $out$err" "1 shmlimit: rule places: denied, and not run: its only place is held" "a place is held, whatever they are"

# Rules and slots: the segment still opens.
fresh
poke $((rules + 64)) '\033[2J'
run shmlimit rule list "$segment"
is "$rc $(printf '%s' "$out" | tr -dc '\033')" "0 " "no damaged name sends control characters to a terminal"
run shmlimit rule list "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c 'type')" '0 "array"' "no damaged name breaks JSON"
printf '[other]\ncapacity = 1\nrate = 1/s\n' >"$TMP/other"
run shmlimit apply "$segment" "$TMP/other" --prune --dry-run
is "$rc $(printf '%s\n' "$out" | head -n 1)" "0 - rule ??2J" "a plan to remove a damaged name sends no control characters"
run shmlimit verify "$segment"
is $rc 1 "verify finds a damaged name"
is "$(printf '%s' "$out" | tr -dc '\033')" "" "verify prints a damaged name harmlessly"

fresh
size=$(segment_end "$segment")
flip $((size - 1))
run shmlimit verify "$segment"
is $rc 1 "verify finds a damaged slot"
like "$out" "^$segment: byte $((size - 16)): slot 63: " "verify says where a damaged slot is"
run shmlimit verify "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c '.problems[0].offset')" "1 $((size - 16))" "verify --json, too"
for words in "take $segment r key" "inspect $segment" "reset $segment --all"; do
	run shmlimit $words
	is $rc 0 "a damaged slot doesn't stop $words"
done

rm -f "$file"
shmlimit create "$segment" --slots 4Ki --slots-max 4Ki --rules 2 --rules-max 2
size=$(segment_end "$segment")
head -c 65536 /dev/zero | tr '\0' '\377' | dd of="$file" bs=65536 seek=$((size - 65536)) oflag=seek_bytes \
	conv=notrunc 2>/dev/null
run shmlimit verify "$segment"
is "$rc $(printf '%s\n' "$out" | grep -c ': byte ')" "1 1000" "verify prints the first 1000 problems"
like "$(printf '%s\n' "$out" | tail -n 1)" "^$segment: problems left out: [0-9]+$" "verify says how many more problems there are"
run shmlimit verify "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c '[.found >= 4096, (.problems | length)]')" '1 [true,1000]' "verify --json, too"
run shmlimit inspect "$segment" --json
is "$rc $(printf '%s' "$out" | jq -r '[.occupancy | .free, .live, .refilled, .tentative, .stale] | add')" "0 4096" \
	"inspect counts every slot of a table of garbage"

# Repair. Every kind of damage: tests/unit/repair.
fresh
size=$(segment_end "$segment")
flip $((size - 1))
run shmlimit verify "$segment" --repair
is "$rc $out$err" "0 $segment: byte $((size - 16)): repaired: slot 63: free, but its word is not zero: set to zero
$segment: sound" "verify --repair says what it did, and that all is well now"
run shmlimit verify "$segment" --repair
is "$rc $out" "0 $segment: sound" "verify --repair has nothing to do the next time"
flip $((size - 1))
poke $((rules + 64)) '\n'
run shmlimit verify "$segment" --repair --json
is "$rc $(printf '%s' "$out" | jq -c '[.sound, .found, .repaired, (.repairs | length), .repairs[0].offset]')" \
	"1 [false,1,1,1,$((size - 16))]" "what cannot be repaired is left, and found: --json"
fresh
flip 32
before=$(sum_file "$file")
run shmlimit verify "$segment" --repair
is "$rc $err $(sum_file "$file")" "2 shmlimit: segment $segment: $damaged $before" "a damaged header is not touched"

# Verify's own errors.
run shmlimit verify "$SEGMENT.none"
is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "verify needs a segment"
run shmlimit verify a/b
is $rc 2 "verify needs a segment's name"

# Created where clocks differ: in another time namespace than the process that uses it.
if unshare --time --fork true 2>/dev/null; then
	unshare --time --fork shmlimit create "$SEGMENT.elsewhere" --slots 16
	elsewhere="created in another time namespace, where clocks differ: use it there, or use another name here"
	run shmlimit take "$SEGMENT.elsewhere" r key
	is "$rc $err" "2 shmlimit: segment $SEGMENT.elsewhere: $elsewhere" \
		"a segment of other clocks is refused"
	run shmlimit verify "$SEGMENT.elsewhere"
	is "$rc" 1 "to verify, that is a problem"
	like "$out" "time namespace" "verify names another time namespace"
	run shmlimit destroy "$SEGMENT.elsewhere"
	is $rc 0 "a segment of another time namespace can be destroyed"
	fresh
	before=$(sum_file "$file")
	for words in "take $segment r key" "peek $segment r key" "rule set $segment r --mode off" "inspect $segment"; do
		run unshare --time --fork shmlimit $words
		is "$rc $err" "2 shmlimit: segment $segment: $elsewhere" \
			"one of ours is refused there: $words"
	done
	is "$(sum_file "$file")" "$before" "a segment is not written to from another time namespace"
else
	ok 0 "a segment of other clocks is refused # SKIP no time namespace is permitted"
fi

# A rule whose count is 0: no code divides by it.
fresh
poke $((rules + 192 + 192 + 96)) '\0\0\0\0\0\0\0\0'
for words in "rule show $segment r" "rule set $segment r --mode off"; do
	run shmlimit $words
	is "$rc $out$err" "2 shmlimit: rule r: damaged: set it again with its rate (shmlimit rule set $segment r), or remove it (shmlimit rule remove $segment r)" "$words says that the rule is damaged"
done
run shmlimit verify "$segment"
is $rc 1 "verify finds a rule whose count is 0"
run shmlimit rule set "$segment" r --capacity 3 --rate 1/d
is "$rc $err" "0 " "a damaged rule is set again"
run shmlimit verify "$segment"
is $rc 0 "a segment whose damaged rule was set again is sound"
done_testing
