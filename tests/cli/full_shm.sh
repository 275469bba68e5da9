#!/bin/sh
# full_shm: a /dev/shm that is full: the command says of each key that needs memory for its log or places what --on-full
# says, and check, metrics, inspect, stat and top show how often; everything else goes on.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
need jq
[ -z "$(ls /dev/shm)" ] && mount -o remount,size=4m /dev/shm 2>/dev/null || skip_all "no /dev/shm of one's own is permitted"

fill() { cat /dev/zero >/dev/shm/filler 2>/dev/null; }
drain() { rm -f /dev/shm/filler; }

# The known keys' logs have memory for other keys beside them; these need pages of their own.
make() {
	shmlimit create "$segment" --slots 64 --on-full "$1"
	shmlimit rule set "$segment" window --algorithm window --rate 1000/d
	shmlimit rule set "$segment" places --algorithm hold --capacity 1000 --period 1d
	shmlimit rule set "$segment" funnel --capacity 2 --rate 1/d
	shmlimit take "$segment" window user:1 --quiet
	shmlimit check "$segment" --state "$TMP/state" >/dev/null
	cp "$TMP/state" "$TMP/places"
	fill
}

answer() { shmlimit take "$segment" "$@" --quiet; echo $?; }
count() { jq -c ".counters.no_slot" | tr '\n' ' '; }

for on_full in evict allow deny; do
	segment=$SEGMENT.$on_full
	make $on_full
	want=0
	[ $on_full != deny ] || want=1
	is "$(for key in a b c; do answer window "user:$key"; done | tr '\n' ' ')" "$want $want $want " \
		"$on_full: a key without memory for its log gets what --on-full says"
	is "$(answer places user:1)" "$want" "$on_full: a key without memory for its places gets what --on-full says"
	is "$(answer window user:1) $(for i in 1 2 3; do answer funnel user:1; done | tr '\n' ' ')" "0 0 0 1 " \
		"$on_full: a key that has memory, and one of another algorithm, have their limits"
	run shmlimit peek "$segment" window user:1
	like "$out" 'remaining: 998' "$on_full: the known key's tokens are counted"
	run shmlimit check "$segment" --state "$TMP/state" --max-no-slot 0
	is "$rc" 2 "$on_full: shmlimit check --max-no-slot 0 is critical"
	like "$out" "CRITICAL - segment $segment:.* no_slot 4, .* no_slot=4;;0;0 " "$on_full: shmlimit check shows how many had none"
	is "$(shmlimit metrics "$segment" | sed -n "s/^shmlimit_segment_no_slot_total{.*} //p")" 4 \
		"$on_full: metrics count them for the segment"
	is "$(shmlimit metrics "$segment" | sed -n 's/^shmlimit_rule_no_slot_total{.*rule="\([a-z]*\)".*} /\1 /p' | sort | tr '\n' ' ')" \
		"funnel 0 places 1 window 3 " "$on_full: metrics count them for each rule"
	is "$(shmlimit inspect "$segment" --json | count)" "4 " "$on_full: inspect shows them"
	run shmlimit verify "$segment"
	is "$rc" 0 "$on_full: the segment is sound"

	run shmlimit rule set "$segment" window --algorithm window --rate 2000/d
	is "$rc $err" "0 " "$on_full: a rule gets a larger window without memory"
	drain
	is "$(for key in a b c; do answer window "user:$key"; done | tr '\n' ' ')" "0 0 0 " \
		"$on_full: when there is memory again, the keys have their logs"
	shmlimit check "$segment" --state "$TMP/state" >/dev/null
	answer window user:a >/dev/null
	run shmlimit check "$segment" --state "$TMP/state" --max-no-slot 0
	is "$rc" 0 "$on_full: shmlimit check finds nothing wrong then"
done

# rate COMMAND FIELD: a line of a command that looks every 10 ms has it, while keys find no memory.
rate() {
	mkfifo "$TMP/lines"
	timeout 600 shmlimit "$1" "$segment" --interval 10ms --json --count 1000000 >"$TMP/lines" 2>"$TMP/err" &
	looker=$!
	{
		seen=
		while [ -z "$seen" ] && read -r line; do
			answer window user:without >/dev/null
			seen=$(printf '%s' "$line" | jq -r "$2 | select(. != null and . > 0)")
		done
	} <"$TMP/lines"
	wait $looker
	rm "$TMP/lines"
	[ -n "$seen" ]
}
fill
rate stat .no_slot
ok $? "stat shows how many decisions a second find no memory"
rate top .all.no_slot_per_s
ok $? "top shows how many decisions a second find no memory"
drain
done_testing
