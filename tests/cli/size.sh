#!/bin/sh
# size: what it says of slots and memory is what a segment has and takes.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

n=0
# size SLOTS ARGUMENT...: as a segment made so is.
size() {
	slots=$1
	shift
	n=$((n + 1))
	run shmlimit size "$@" --json
	is "$rc $(printf '%s' "$out" | jq .slots)" "0 $slots" "size $*: $slots slots"
	shmlimit create "$SEGMENT.$n" --slots "$slots" --slots-max "$slots" \
		--store-keys "$(printf '%s' "$out" | jq .store_keys)"
	is "$(printf '%s' "$out" | jq .size)" "$(shmlimit inspect "$SEGMENT.$n" --json | jq .segment.size)" "size $*: a segment made so is as large"
}

size 16 --keys 1
size 16 --keys 12
size 20 --keys 13
size 1000 --keys 800
size 1004 --keys 801
size 1252 --keys 1K
size 1280 --keys 1Ki
size 20000 --keys 16000 --rate 1/s --capacity 10
size 76 --keys 60/m --rate 2/m
size 128 --keys 100 --store-keys 1
size 128 --keys 100 --store-keys 62
size 128 --keys 100 --store-keys 1Ki
# 10 tokens at 2 a second are back after 5 s.
size 6252 --keys 1000/s --rate 2/s --capacity 10
size 6256 --keys 60036/m --rate 2/s --capacity 10

run shmlimit size --keys 200000/h --capacity 15 --rate 30/60s
is "$rc $(printf '%s\n' "$out" | sed 's/^size: .*/size: SIZE/' | tr '\n' ';')" \
	"0 keys live at once: 1667 at most;time to full: 30s;slots: 2084;size: SIZE;shmlimit create NAME --slots 2084;" \
	"it says what it counted with, and what to type"
run shmlimit size --keys 60/m --rate 2/m
is "$(printf '%s\n' "$out" | sed -n '1,2p;$p' | tr '\n' ';')" \
	"keys live at once: 60 at most;time to full: 1m;shmlimit create NAME --slots 76;" \
	"a window's time to full is its period"
run shmlimit size --keys 100 --store-keys 40
is "$(printf '%s\n' "$out" | tail -n 1)" "shmlimit create NAME --slots 128 --store-keys 46" "names are rounded up as they will be"
run shmlimit size --keys 100
is "$rc $(printf '%s\n' "$out" | sed 's/^size: .*/size: SIZE/' | tr '\n' ';')" \
	"0 keys live at once: 100;slots: 128;size: SIZE;shmlimit create NAME --slots 128;" "without a rule there is no time to full"
is "$(shmlimit size --keys 100 --json | jq -c 'keys_unsorted, .refill_ns' | tr '\n' ' ')" \
	'["keys_live","refill_ns","slots","store_keys","size","logs_size"] null ' "in JSON likewise"

# What the logs of that many keys take is no more than size says, and not much less.
for of in 1000,10 1000,10000 20,1000 300,1; do
	keys=${of%,*} rate=${of#*,} s=$SEGMENT.logs.$of
	run shmlimit size --keys "$keys" --rate "$rate/d" --json
	shmlimit create "$s" --slots "$(printf '%s' "$out" | jq .slots)"
	shmlimit rule set "$s" r --algorithm window --rate "$rate/d"
	empty=$(du -B 1 "$SHM$s" | cut -f 1)
	seq "$keys" | sed 's/^/take r /' | while read -r _ r key; do shmlimit take "$s" "$r" "$key" --quiet; done
	logs=$(($(du -B 1 "$SHM$s" | cut -f 1) - empty)) most=$(printf '%s' "$out" | jq .logs_size)
	[ "$logs" -le $((most + 8192)) ] && [ $((4 * logs)) -ge "$most" ]
	ok $? "logs of $keys keys of $rate/d take $logs bytes, of $most at most"
	shmlimit destroy "$s"
done

# As many keys as were said find a slot each.
shmlimit create "$SEGMENT.fill" --slots "$(shmlimit size --keys 200 --json | jq .slots)"
shmlimit rule set "$SEGMENT.fill" r --capacity 1 --rate 1/d
for key in $(seq 200); do
	shmlimit take "$SEGMENT.fill" r "$key" --quiet
done
is "$(shmlimit inspect "$SEGMENT.fill" --json | jq -c '[.occupancy.live, .counters.evictions, .counters.no_slot]')" \
	"[200,0,0]" "the keys find room in the segment that size computes"

wrong() {
	message=$1
	shift
	run shmlimit size "$@"
	is "$rc $out$err" "2 shmlimit: $message" "size $* is refused"
}

wrong "size: missing --keys N or --keys N/PERIOD"
wrong "--keys 0: must be 1 to 54975581388" --keys 0
wrong "--keys many: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --keys many
wrong "--keys 5/h: a period needs --rate, and --capacity unless it is a window's" \
	--keys 5/h
wrong "--capacity needs --rate COUNT/PERIOD" --keys 5 --capacity 5
wrong "--store-keys 1025: must be 0 to 1024" --keys 5 --store-keys 1025
wrong "--rate block: takes no slots: must be a count and a period, such as 5/minute" --keys 5 --rate block
wrong "--rate 65537/s: window too large: must be 65536 or less, or have a --capacity" --keys 5 --rate 65537/s
wrong "--keys 54975581389/s: too many live at once: must be 54975581388 or less" --keys 54975581389/s --rate 1/s --capacity 1
wrong "rule 1/30500w: rate 1/30500w is out of range (one token in 146 years to 10^11 a second, in numbers that are round \
enough to be counted exactly)" --keys 5 --rate 1/30500w --capacity 18446744073709551615
for rate in 1/s 1/30500w; do
	pid=$(sh -c 'echo $$; exec shmlimit size --keys 5 --capacity 1000000 --rate "$1" >"$2" 2>&1' sh $rate "$TMP/.out")
	is "$(ls /dev/shm | grep -c "shmlimit-scratch\.$pid\.")" 0 "nothing is left of what it tried with $rate"
done

done_testing
