#!/bin/sh
# grow: a larger table under the same name.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
field() { shmlimit inspect "$segment" --json | jq -c ".segment.$1"; }
remaining() { shmlimit peek "$segment" r "$1" --json | jq -c .remaining; }

shmlimit create "$segment" --slots 64 --slots-max 512
shmlimit rule set "$segment" r --capacity 5 --rate 5/d
is "$(field slots) $(field slots_max) $(field old_slots)" "64 512 0" "inspect shows to how many it can grow"
run shmlimit grow "$segment" --slots 128
is "$rc $out$err" "0 " "an empty table grows and says nothing"
is "$(field slots) $(field old_slots)" "128 0" "an empty table that grew has left no old table"

shmlimit take "$segment" r alice --quiet
shmlimit take "$segment" r bob --quiet
run shmlimit grow "$segment" --slots 256
is $rc 0 "a table with keys in it grows"
like "$out" '^2 keys are left in the old table, the last for [0-9]*[hms]' "grow prints how many keys are left in the old table, and for how long"
is "$(field slots) $(field old_slots)" "256 128" "the old table is used, too, while it has keys"
is "$(shmlimit inspect "$segment" --json | jq -c '.occupancy.live')" 2 "inspect shows what has not moved"
run shmlimit grow "$segment" --slots 512
is $rc 2 "a table cannot grow again before the keys of the old one have moved"
like "$err" '2 keys are left in the old table, the last for [0-9]*[hms].*try again then, or use --wait' \
	"the error of a table that cannot grow yet says how many keys are left, and for how long"
is "$(remaining alice) $(remaining bob)" "4 4" "no key has lost or gained a token by growing"
shmlimit take "$segment" r alice --quiet
run shmlimit grow "$segment"
like "$rc $out" '^0 1 key is left in the old table, for [0-9]*[hms]' "without --slots it says what is left"
shmlimit take "$segment" r bob --quiet
run shmlimit grow "$segment" --wait
is "$rc $out$err" "0 " "when all keys have moved --wait returns at once"
is "$(field old_slots)" 0 "the old table is left when all keys have moved"
is "$(remaining alice) $(remaining bob)" "3 3" "tokens that were taken while keys moved are counted"

shmlimit rule set "$segment" soon --capacity 1 --rate 20/s
shmlimit reset "$segment" --all >/dev/null
shmlimit take "$segment" soon key --quiet
run shmlimit grow "$segment" --slots 512 --wait
is "$rc $out$err" "0 " "--wait waits until the last key has refilled"
is "$(field slots) $(field old_slots)" "512 0" "a table has grown when --wait returns"
is "$(shmlimit verify "$segment" >/dev/null; echo $?)" 0 "the segment is sound"

run shmlimit grow "$segment" --slots 1Ki
like "$rc $err" '^2 .*created for 512 at the most' "a table does not grow beyond the slots that it was created for"
run shmlimit grow "$segment" --slots 600
is $rc 2 "a table does not grow beyond that by any number of slots"
shmlimit create "$segment.2" --slots 64
run shmlimit grow "$segment.2" --slots 100
like "$rc $err" '^2 .*has 64: must be 128 or more' "it grows to twice as many at least"
run shmlimit create "$segment.3" --slots 64 --slots-max 32
like "$rc $err" '^2 .*slots-max 32: must be as many as slots or more' "slots-max cannot be smaller than slots"
run shmlimit rule set "$segment.2" r --algorithm hold --capacity 65536 --period 1m
is "$rc $out$err" "0 " "a table need not grow for a rule of any size"
run shmlimit grow "$SEGMENT.none" --slots 128
is $rc 3 "grow needs a segment"

done_testing
