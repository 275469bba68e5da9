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

shmlimit create "$SEGMENT.b" --slots 1024 --slots-max 1024 --rules 10 --mode 0640
shmlimit create "$SEGMENT.a" --slots 16 --on-full deny --clock coarse
shmlimit create "$SEGMENT.c" --slots 16
shmlimit rule set "$SEGMENT.b" r --capacity 1 --rate 1/s
shmlimit disable "$SEGMENT.c"
printf 'not shmlimit\n' >/dev/shm/"$SEGMENT.foreign"
: >/dev/shm/"$SEGMENT.empty"
mkdir /dev/shm/"$SEGMENT.folder" && ln -s "$SEGMENT.a" /dev/shm/"$SEGMENT.link"

user=$(id -un 2>/dev/null) && [ -n "$user" ] || user=$(id -u)
group=$(id -gn 2>/dev/null) && [ -n "$group" ] || group=$(id -g)
run shmlimit list
is "$(mine | awk '{ $2 = "-"; print }')" "a - 16 0/64 $user:$group 0600 enabled
b - 1024 1/10 $user:$group 0640 enabled
c - 16 0/64 $user:$group 0600 disabled" "segments are listed by name, and nothing else is"
like "$(mine | awk '{ print $2 }' | tr '\n' ' ')" '^([0-9]+(\.[0-9])?[KM]i ){3}$' "sizes are in units of 1024"

run shmlimit list --json
is "$rc $(mine_json 'map([.error, .enabled, .slots, .rules_used, .rules_max, .on_full, .clock, .mode])')" \
	'0 [[null,true,16,0,64,"deny","coarse","0600"],[null,true,1024,1,10,"evict","precise","0640"],'\
'[null,false,16,0,64,"evict","precise","0600"]]' "list --json is an array of the same"
is "$(mine_json '.[1] | [((.size + 4095) / 4096 | floor) * 8, .uid, .gid, .owner]')" \
	"[$(stat -c '%b,%u,%g' /dev/shm/"$SEGMENT.b"),\"$user:$group\"]" "size and owner are the file's"

# One that cannot be opened: another version, see damage.sh.
printf '\377' | dd of=/dev/shm/"$SEGMENT.a" bs=1 seek=8 conv=notrunc 2>/dev/null
run shmlimit list
is "$rc $(mine | sed -n 1p)" "0 a - - - - - the segment has another layout version" \
	"one that cannot be opened is listed, with the reason"
run shmlimit list --json
is "$rc $(mine_json '.[0] | del(.name)')" '0 {"error":"the segment has another layout version"}' "in JSON, too"
is "$(mine_json '.[1].error')" null "those that can be opened have no error"

# A name that is not UTF-8.
shmlimit create "$(printf '%s.\377' "$SEGMENT")" --slots 16
run shmlimit list --json
is "$rc $(mine_json 'last.name')" "0 \"$SEGMENT.$(printf '\357\277\275')\"" "a name that is not UTF-8 is still JSON"
printf shmlimit >"$(printf '/dev/shm/%s.z\033[2J' "$SEGMENT")"
run shmlimit list
is "$rc $(printf '%s' "$out" | tr -dc '\033')" "0 " "no name sends control characters to a terminal"

rmdir /dev/shm/"$SEGMENT.folder"
done_testing
