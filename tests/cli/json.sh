#!/bin/sh
# json: the manual has each member of each object that the command prints, and no other. What asks a backend is held to
# the manual by the tests of the library for many hosts.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
. "$SOURCE/tests/cli/json.inc"
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --store-keys 14
shmlimit rule set "$segment" r --capacity 5 --rate 1/d --max-wait 1h
shmlimit rule set "$segment" gone --capacity 5 --rate 1/d
for key in a b c; do shmlimit take "$segment" r "$key" --quiet; done
for i in 1 2; do echo '10.0.0.1 - - [21/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 5'; done >log

decisions=
for command in take "take --at-most 1" peek reserve acquire charge refund; do
	members decision . "$(shmlimit $command "$segment" r d --json)"
	decisions="$decisions $printed"
done
is "$(printf '%s\n' $decisions breaker_ns | sort -u)" "$(documented decision)" "every member of a decision is documented, and printed"
like "$(documented decision)" '^wait_ns$' "the manual is read"

members decision 'del(.key, .key_hex, .key_length, .key_ip)' "$(echo d | shmlimit take "$segment" r --keys-from - --json)"
limits=$(shmlimit take "$segment" r d r e --all --json)
members limits . "$limits"
members decision '.limits[] | del(.rule, .key, .key_hex, .key_length, .key_ip)' "$limits"

all() { is "$(printf '%s\n' $printed | sort -u)" "$(documented "$1")" "$1: every documented member is printed"; }

inspected=$(shmlimit inspect "$segment" --json)
one=$(shmlimit inspect "$segment" --rule r --key a --json)
members segment .segment "$inspected"
all segment
members segment '.[]' "$(shmlimit list --json)"
members rule '.rules[]' "$inspected"
all rule
members rule . "$(shmlimit rule show "$segment" r --json)"
members rule '.[]' "$(shmlimit rule list "$segment" --json)"
members inspect . "$inspected"
whole=$printed
members inspect . "$one"
printed="$whole $printed"
all inspect
members counters .counters "$inspected"
all counters
members counters '.rules[].counters' "$inspected"
members leases .leases "$inspected"
all leases
members occupancy .occupancy "$inspected"
all occupancy
members slot '.occupancy.shown[]' "$inspected"
all slot
members slot . "$(shmlimit keys "$segment" --limit 1 --json)"
all slot
members stat . "$(shmlimit stat "$segment" --interval 10ms --count 1 --json)"
all stat
looked=$(shmlimit top "$segment" --interval 10ms --json)
members top . "$looked"
all top
members row .all "$looked"
all row
members row '.rules[]' "$looked"
members slot '.keys[]' "$looked"
all slot
shmlimit rule set "$segment" app --algorithm counter
members count . "$(shmlimit count "$segment" app d --ttl 1h --json)"
all count
shmlimit rule remove "$segment" app
members pause . "$(shmlimit pause "$segment" r paused --for 1h --json)"
all pause
members throttle . "$(shmlimit throttle "$segment" key 3 1 100 --json)"
all throttle
members key '.key | del(.allowed, .shadow_denied, .limit, .remaining, .retry_after_ns, .reset_after_ns)' "$one"
all key
members ban . "$(shmlimit ban "$segment" d --for 1h --json)"
all ban
members slot . "$(shmlimit bans "$segment" --json)"
members reset . "$(shmlimit unban "$segment" d --json)"
shmlimit rule remove "$segment" ban
members size . "$(shmlimit size --keys 10 --json)"
all size
replayed=$(shmlimit replay --rule '1/d burst 1' log --json)
members replay . "$replayed"
all replay
echo '* 1/d' >plans
members plan '.plans[]' "$(shmlimit replay --limit-field addr --limits plans log --json)"
all plan
members replayed '.rules[]' "$replayed"
all replayed
members worst '.rules[].worst[]' "$replayed"
all worst
# A free slot with a word.
broken=$SEGMENT.v
shmlimit create "$broken" --slots 64 --slots-max 64 --rules 2 --rules-max 2
printf '\001' | dd of="$SHM$broken" bs=1 seek=$(($(segment_end "$broken") - 8)) conv=notrunc 2>/dev/null
found=$(shmlimit verify "$broken" --json)
members verify . "$found"
whole=$printed
members problem '.problems[]' "$found"
all problem
repaired=$(shmlimit verify "$broken" --repair --json)
members verify . "$repaired"
printed="$whole $printed"
all verify
members problem '.repairs[]' "$repaired"
all problem

printf '[r]\ncapacity = 6\n[new]\ncapacity = 1\nrate = 1/s\n[*]\nenabled = no\n' >rules.ini
plan=$(shmlimit apply "$segment" rules.ini --prune --dry-run --json)
members apply . "$plan"
all apply
members change '.rules[]' "$plan"
all change
is "$(printf '%s' "$plan" | jq -c '[.created, .enabled, [.rules[] | [.rule, .change, .fields.capacity]]]')" \
	'[false,false,[["gone","remove",null],["r","change",{"from":"5","to":"6"}],["new","add",{"from":null,"to":"1"}]]]' \
	"a plan has the changes of each rule"
is "$(shmlimit apply "$segment" rules.ini --prune --json)" "$plan" "what apply does is what its dry run said"
is "$(shmlimit apply "$segment" rules.ini --prune --json | jq -c '[.rules, .enabled]')" '[[],null]' "without changes it is empty"
mkdir folder && cp rules.ini "folder/$segment.conf" && cp rules.ini "folder/$SEGMENT.fresh.conf"
sed -i '/^\[r\]/,/^capacity/d' "folder/$SEGMENT.fresh.conf"
is "$(shmlimit apply --all folder --json | jq -c '[.segment, .created, .rules[].rule]')" '["'"$SEGMENT"'.fresh",true,"new"]' \
	"apply --all has an object for each segment that changes"
shmlimit enable "$segment"
members reset . "$(shmlimit reset "$segment" --rule r --key a --json)"
all reset
run shmlimit reset "$segment" --rule r --key nobody --json
is "$rc $(printf '%s' "$out" | jq -c .)" '1 {"keys_reset":0}' "a key that is not found is none that was reset"
members grow . "$(shmlimit grow "$segment" --slots 128 --json)"
all grow

# Each object of the manual is held to it by this test or by that of the commands that ask a backend.
sed -n '/^\.Sh JSON/,/^\.Sh EXIT/s/^\.It Em //p' "$SOURCE/tools/shmlimit/shmlimit.1" | sed 's/ \(Pq\|No\) .*//' >objects
while read -r object; do
	grep -q "^members \"*$object\"* " "$SOURCE/tests/cli/json.sh" "$SOURCE"/*/*/tests/*.sh || echo "$object"
done <objects >untested
is "$(cat untested)" "" "every object of the manual is tested"

# What prints facts prints them as JSON, too. The others print nothing, what their command prints, or text of a fixed form:
# help, a file for apply, OpenMetrics, a line for Nagios.
for command in $(shmlimit --help | sed -n 's/^  \([a-z ]*\( --\)\{0,1\}[a-z]*[a-z]\) *[A-Z]*.*/\1/p' | sed 's/   *.*//; s/ /_/g'); do
	# shellcheck disable=SC2046 # two words
	shmlimit $(echo "$command" | tr _ ' ') --help | grep -q -e '--json' || printf '%s ' "$command"
done >without
is "$(cat without)" "help create destroy rule_set rule_remove rule_export exec hold agent enable disable metrics check save load " \
	"every command that prints facts has --json"

# A number that a double cannot have exactly is a string.
shmlimit rule set "$segment" slow --capacity 3 --rate 1/52w
shmlimit take "$segment" slow a --cost 2 --quiet
is "$(shmlimit rule show "$segment" slow --json | jq -c '[.capacity, .period_ns]')" '[3,"31449600000000000"]' \
	"a number above 2^53 is a string of its digits"
is "$(shmlimit keys "$segment" --rule slow --json | jq -c '[.remaining, (.reset_after_ns | type, (tonumber / 1e12 | ceil))]')" \
	'[1,"string",62900]' "a slot's time is a string that jq reads as a number"
is "$(shmlimit list --json | jq -c --arg name "$segment" '.[] | select(.name == $name) | [.created_unix_ns | type, length]')" \
	'["string",19]' "the time of creation is a string"

done_testing
