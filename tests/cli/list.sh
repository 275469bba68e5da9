#!/bin/sh
# list: every segment there is, also those that cannot be opened, and no other
# file. Other segments may come and go beside this test: it looks at its own.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
need jq

# Our lines, blanks squeezed, our prefix cut off; our objects, as an array.
mine() { printf '%s\n' "$out" | sed -n "s/^$SEGMENT\.//p" | tr -s ' '; }
mine_json() { printf '%s' "$out" | jq -c --arg p "$SEGMENT." "[.[] | select(.name | startswith(\$p))] | $1"; }

run shmlimit list
is "$rc $(mine)" "0 " "what is not there is not listed"
is "$(printf '%s\n' "$out" | head -n 1 | tr -s ' ')" "NAME SIZE SLOTS RULES OWNER MODE STATE" "the head is always there"

shmlimit create "$SEGMENT.b" --slots 1024 --slots-max 1024 --rules 10 --rules-max 20 --mode 0640
shmlimit create "$SEGMENT.a" --slots 16 --on-full deny --clock coarse
shmlimit create "$SEGMENT.c" --slots 16
shmlimit rule set "$SEGMENT.b" r --capacity 1 --rate 1/s
shmlimit disable "$SEGMENT.c"
printf 'not shmlimit\n' >"$SHM$SEGMENT.foreign"
: >"$SHM$SEGMENT.empty"
mkdir "$SHM$SEGMENT.folder" && ln -s "$SEGMENT.a" "$SHM$SEGMENT.link"

user=$(id -un 2>/dev/null) && [ -n "$user" ] || user=$(id -u)
group=$(id -gn 2>/dev/null) && [ -n "$group" ] || group=$(id -g)
run shmlimit list
is "$(mine | awk '{ $2 = "-"; print }')" "a - 16 0/4096 $user:$group 0600 enabled
b - 1024 1/20 $user:$group 0640 enabled
c - 16 0/4096 $user:$group 0600 disabled" "segments are listed by name, and nothing else is"
like "$(mine | awk '{ print $2 }' | tr '\n' ' ')" '^([0-9]+(\.[0-9])?[KM]i ){3}$' "sizes are in units of 1024"

run shmlimit list --json
is "$rc $(mine_json 'map([.error, .enabled, .slots, .rules_used, .rules, .on_full, .clock, .mode])')" \
	'0 [[null,true,16,0,64,"deny","coarse","0600"],[null,true,1024,1,10,"evict","precise","0640"],'\
'[null,false,16,0,64,"evict","precise","0600"]]' "list --json is an array of the same"
is "$(mine_json '.[1] | [((.size + 4095) / 4096 | floor) * 8, .uid, .gid, .owner]')" \
	"[$(stat -c '%b,%u,%g' "$SHM$SEGMENT.b"),\"$user:$group\"]" "size and owner are the file's"

# One that cannot be opened, see damage.sh.
printf '\377' | dd of="$SHM$SEGMENT.a" bs=1 seek=8 conv=notrunc 2>/dev/null
run shmlimit list
is "$rc $(mine | sed -n 1p)" "0 a - - - - - the segment has another layout version" \
	"one that cannot be opened is listed, with the reason"
run shmlimit list --json
ours=$(echo "$SHM" | tr -dc 0-9)
is "$rc $(mine_json '.[0] | del(.name)')" "0 {\"error\":\"the segment has another layout version\",\"layout_version\":$ours}" "in JSON, too"
is "$(mine_json '.[1].error')" null "those that can be opened have no error"

# A name that is not UTF-8.
shmlimit create "$(printf '%s.\377' "$SEGMENT")" --slots 16
run shmlimit list --json
is "$rc $(mine_json 'last.name')" "0 \"$SEGMENT.$(printf '\357\277\275')\"" "a name that is not UTF-8 is still JSON"
printf shmlimit >"$(printf '%s%s.z\033[2J' "$SHM" "$SEGMENT")"
run shmlimit list
is "$rc $(printf '%s' "$out" | tr -dc '\033')" "0 " "no name sends control characters to a terminal"

rmdir "$SHM$SEGMENT.folder"

# What other versions of shmlimit left: they are in files of their own. Files with other names are not listed.
for layout in 3 999999; do
	cp "$SHM$SEGMENT.c" "/dev/shm/shmlimit.$layout.$SEGMENT.other"
done
for file in shmlimit.0.$SEGMENT.other shmlimit.01.$SEGMENT.other shmlimit.1000000.$SEGMENT.other shmlimit..$SEGMENT.other \
	shmlimit.3x.$SEGMENT.other "shmlimit.3.$SEGMENT.not" "$SEGMENT.other"; do
	cp "$SHM$SEGMENT.c" "/dev/shm/$file"
done
printf 'not shmlimit\n' >"/dev/shm/shmlimit.3.$SEGMENT.not"
run shmlimit list
is "$rc $(mine | grep "^other")" "0 other - - - - - has layout version 3, and this shmlimit has $ours
other - - - - - has layout version 999999, and this shmlimit has $ours" "segments of other layouts are listed, with these"
run shmlimit list --json
is "$(mine_json 'map(select(.layout_version != null and .error != null) | .layout_version)')" "[$ours,3,999999]" "in JSON, too"
other="segment $SEGMENT.other: has layout version 999999, and this shmlimit has $ours (to keep its tokens: save it with the \
shmlimit that made it, and load that with this one; without them: shmlimit create $SEGMENT.other; shmlimit destroy \
$SEGMENT.other --layout 999999 removes the old one, once no process uses it)"
for command in inspect "take r k" 'save -' verify 'rule list' destroy; do
	# shellcheck disable=SC2086 # a command and its operands
	set -- $command
	if [ "$1" = rule ]; then run shmlimit rule list "$SEGMENT.other"; else word=$1 && shift && run shmlimit "$word" "$SEGMENT.other" "$@"; fi
	is "$rc $out$err" "3 shmlimit: $other" "$command names the layout of what another version left"
done
run shmlimit check "$SEGMENT.other"
is "$rc $out" "2 SHMLIMIT CRITICAL - segment $SEGMENT.other: has layout version 999999, and this shmlimit has $ours" "check, too"
run shmlimit create "$SEGMENT.other" --slots 16
is "$rc $out$err" "0 " "a segment of another layout does not take the name"
run shmlimit check "$SEGMENT.other"
like "$rc $out" "^0 SHMLIMIT OK .*: healthy, 0 decisions in [0-9.a-z]*; another shmlimit left a segment of layout version 999999: once no process uses it, shmlimit destroy $SEGMENT.other --layout 999999 [|] " \
	"check names what is left, and how to remove it"
run shmlimit destroy "$SEGMENT.other"
is "$rc $out$err $(ls /dev/shm/shmlimit.*."$SEGMENT.other" | wc -l)" "0  7" "destroy leaves other layouts alone"
for layout in 3 999999; do
	run shmlimit destroy "$SEGMENT.other" --layout $layout
	is "$rc $out$err $(ls /dev/shm/shmlimit.$layout."$SEGMENT.other" 2>/dev/null)" "0  " "destroy --layout $layout removes that"
	run shmlimit destroy "$SEGMENT.other" --layout $layout
	is "$rc $err" "3 shmlimit: segment $SEGMENT.other: none of layout version $layout (shmlimit list lists all)" "it is gone"
	run shmlimit destroy "$SEGMENT.other" --layout $layout --if-exists
	is "$rc $out$err" "0 " "with --if-exists that is no error"
done
run shmlimit destroy "$SEGMENT.not" --layout 3
is "$rc $err" "2 shmlimit: segment $SEGMENT.not: layout version 3: not a shmlimit segment" "what is no segment is left alone"
for layout in 0 1000000 x; do
	run shmlimit destroy "$SEGMENT.c" --layout $layout
	like "$rc $err" "^2 shmlimit: --layout $layout: " "--layout $layout is refused"
done
run shmlimit destroy "$SEGMENT.c" --layout "$ours"
is "$rc $out$err" "0 " "--layout can be this version's"
run shmlimit destroy "$SEGMENT.not" --layout 3 --force
is "$rc $err" "2 shmlimit: --force: not with --layout of another version" "--force is for this version's files"
rm -f /dev/shm/shmlimit*"$SEGMENT.other"
done_testing
