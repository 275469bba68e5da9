#!/bin/sh
# inspect: what is shown is what happened, and looking changes nothing. The
# rules refill so slowly that the time a test takes shows in no token.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 1Ki --slots-max 1Ki --rules 4 --rules-max 4
shmlimit rule set "$segment" r --capacity 3 --rate 1/d
shmlimit rule set "$segment" watch --capacity 1 --rate 1/h --mode dry-run

run shmlimit inspect "$segment"
is "$rc" 0 "inspect works on a new segment"
is "$(printf '%s\n' "$out" | sed -n '1,11s/:.*//p' | tr '\n' ',')" \
	"segment,layout version,size,slots,rules,on full,clock,owner,mode,state,created," "inspect begins with the geometry"
like "$out" '^slots: 1024 \(at most 1024\)$' "inspect shows how many slots there are"
like "$out" '^rules: 2/4$' "inspect shows the rules in use and the most"
like "$out" "^size: $(shmlimit inspect "$segment" --json | jq .segment.size) \([0-9.]+Ki\)$" "inspect shows the size"
like "$out" '^created: 2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z$' "inspect shows when the segment was made"
like "$out" '^occupancy: free 1024, live 0, refilled 0, tentative 0, stale 0$' "a new segment is free"

# One token of a, two of b, three of c, and c is denied once more.
shmlimit take "$segment" r a --quiet
shmlimit take "$segment" r b --quiet --cost 2
shmlimit take "$segment" r c --quiet --cost 3
shmlimit take "$segment" r c --quiet
shmlimit take "$segment" watch a --quiet
before=$(sum_file "$SHM$segment")

run shmlimit inspect "$segment"
is "$(printf '%s\n' "$out" | sed -n '13,16s/  */ /gp')" \
	"RULE ALGORITHM CAPACITY RATE MODE ALLOWED DENIED SHADOW CLAIMS RECLAIMS EVICTIONS NO-SLOT FAILED-CAS
r funnel 3 1/d enforce 3 1 0 3 0 0 0 0
watch funnel 1 1/h dry-run 1 0 0 1 0 0 0 0
(all) - - - - 4 1 0 4 0 0 0 0" "each rule has its counters, and all have their sum"
like "$out" '^occupancy: free 1020, live 4, refilled 0, tentative 0, stale 0$' "each key that took has a slot"
is "$(printf '%s\n' "$out" | sed -n '19,$s/  */ /gp' | sed 's/ [0-9a-f]\{12\}//; s/\..*//')" \
	"RULE FINGERPRINT REMAINING DEBT TIME-TO-FULL
$(printf '%s\n' "$out" | sed -n '20,$s/  */ /gp' | sed 's/ [0-9a-f]\{12\}//; s/\..*//' | sort -k3nr)" \
	"the slot that is furthest from full comes first"
is "$(printf '%s\n' "$out" | sed -n '20,$p' | awk '{ print $1, $3 }' | tr '\n' ' ')" "r 0 r 1 r 2 watch 0 " \
	"inspect shows what remains in each slot"
like "$(printf '%s\n' "$out" | sed -n 20p)" ' [0-9a-f]{12}  *0  *-  *3d$' "inspect shows each slot's time to full"

run shmlimit inspect "$segment" --json
is "$rc $(printf '%s' "$out" | jq -c keys_unsorted)" '0 ["segment","rules","counters","leases","occupancy"]' "inspect --json is an object"
is "$(printf '%s' "$out" | jq -c '[.rules[] | [.name, .id, .counters.allowed, .counters.denied, .counters.shadow_denied]]')" \
	'[["r",0,3,1,0],["watch",1,1,0,0]]' "of rules with their counters"
is "$(printf '%s' "$out" | jq -c .counters)" \
	'{"allowed":4,"denied":1,"shadow_denied":0,"claims":4,"reclaims":0,"evictions":0,"no_slot":0,"failed_cas":0}' \
	"their sum"
is "$(printf '%s' "$out" | jq -c '.occupancy | [.free, .live, .refilled, .tentative, .stale, .left_out]')" \
	'[1020,4,0,0,0,0]' "how the slots are used"
is "$(printf '%s' "$out" | jq -c '[.occupancy.shown[] | [.rule, .remaining]]')" '[["r",0],["r",1],["r",2],["watch",0]]' \
	"inspect --json has the live slots in order"
is "$(printf '%s' "$out" | jq '.occupancy.shown | map(.reset_after_ns) | . == (sort | reverse)')" true \
	"the longest time to full first"
is "$(printf '%s' "$out" | jq '.occupancy.shown | map(.fingerprint | test("^[0-9a-f]{12}$")) | all')" true \
	"a fingerprint is 12 hexadecimal digits"

# --rule, --limit
run shmlimit inspect "$segment" --rule watch --json
is "$rc $(printf '%s' "$out" | jq -c '[.rules | length, .[0].name]')" '0 [1,"watch"]' "--rule shows one rule"
is "$(printf '%s' "$out" | jq -c '[.counters.allowed, .occupancy.live, (.occupancy.shown | length), .occupancy.left_out]')" \
	'[1,4,1,0]' "its counters, and its slots among all"
run shmlimit inspect "$segment" --rule watch
is "$(printf '%s\n' "$out" | grep -c '^watch ')" 2 "--rule shows the rule and its slot"
is "$(printf '%s\n' "$out" | grep -c '^r \|^(all)')" 0 "--rule shows no other rule"

run shmlimit inspect "$segment" --limit 2
is "$(printf '%s\n' "$out" | sed -n '20,$p' | awk '{ print $1, $3 }' | tr '\n' ' ')" "r 0 r 1 live left " \
	"--limit shows those furthest from full"
is "$(printf '%s\n' "$out" | tail -n 1)" "live slots left out: 2 (--limit)" "--limit says how many it left out"
run shmlimit inspect "$segment" --limit 0
is "$rc $(printf '%s\n' "$out" | tail -n 1)" "0 live slots left out: 4 (--limit)" "--limit 0 shows none"
run shmlimit inspect "$segment" --limit 3 --rule r
is "$(printf '%s\n' "$out" | grep -c 'left out')" 0 "nothing is said where nothing was left out"
run shmlimit inspect "$segment" --limit 18446744073709551615 --json
is "$rc $(printf '%s' "$out" | jq -c '[(.occupancy.shown | length), .occupancy.left_out]')" '0 [4,0]' \
	"the largest limit shows all"

# --key
run shmlimit inspect "$segment" --rule r --key c
is "$rc" 0 "a key that would be denied is no error"
is "$(printf '%s\n' "$out" | sed -n '16,19p' | tr '\n' ';')" "key: c;decision: denied;limit: 3;remaining: 0;" \
	"--key shows what peek answers"
is "$(printf '%s\n' "$out" | grep -c '^occupancy')" 0 "instead of the slots"
run shmlimit inspect "$segment" --rule r --key b --json
is "$rc $(printf '%s' "$out" | jq -c 'keys_unsorted, (.key | [.key, .allowed, .limit, .remaining])' | tr '\n' ' ')" \
	'0 ["segment","rules","counters","leases","key","paused_ns"] ["b",true,3,1] ' "--key in JSON"
run shmlimit inspect "$segment" --rule r --key "$(printf 'x\377\001')" --json
is "$rc $(printf '%s' "$out" | jq -c '.key | [.key, .key_hex, .key_length]')" '0 [null,"78ff01",3]' \
	"a key that is not UTF-8 is in JSON in hexadecimal"

run shmlimit inspect "$segment" --rule r --key "$(printf '%01024d' 0)"
is "$(printf '%s\n' "$out" | sed -n 's/^key: //p')" "$(printf '%01024d' 0)" "the longest key is shown whole"

is "$(sum_file "$SHM$segment")" "$before" "looking changed nothing"

shmlimit take "$segment" watch a --quiet
run shmlimit inspect "$segment" --rule watch --json
is "$(printf '%s' "$out" | jq -c '.counters | [.denied, .shadow_denied]')" '[0,1]' \
	"what only an enforced rule would have denied is counted as such"

# Debt.
shmlimit rule set "$segment" r --max-wait 10d --next-pays yes
shmlimit charge "$segment" r c --tokens 2 --quiet
run shmlimit inspect "$segment" --rule r
like "$out" '^r  *funnel  *3  *1/d  *enforce ' "a rule is shown with what is most of it"
is "$(printf '%s\n' "$out" | tail -n 3 | tr -s ' ' | sed 's/ [0-9a-f]\{12\}//; s/ 23h59m/ 1d/g')" \
	"r 0 2d 5d
r 1 - 2d
r 2 - 1d" "a slot shows its debt, where there is one"
run shmlimit inspect "$segment" --rule r --json
is "$(printf '%s' "$out" | jq -c '[.rules[0] | .max_wait_ns, .next_pays]')" '[864000000000000,true]' "a rule in JSON, too"
is "$(printf '%s' "$out" | jq -c '[.occupancy.shown[].debt_ns / 1e12 | ceil]')" '[173,0,0]' "inspect --json has a slot's debt"
shmlimit rule set "$segment" r --max-wait 0 --next-pays no

# States, and the default limit.
shmlimit rule set "$segment" quick --capacity 1 --rate 1/us
shmlimit take "$segment" quick a --quiet
run shmlimit inspect "$segment"
like "$out" '^occupancy: free 1019, live 4, refilled 1, tentative 0, stale 0$' "a funnel that is full again is refilled"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	shmlimit take "$segment" r "more $i" --quiet
done
run shmlimit inspect "$segment" --json
is "$(printf '%s' "$out" | jq -c '[(.occupancy.shown | length), .occupancy.left_out]')" '[20,4]' \
	"without --limit there are 20"
shmlimit rule remove "$segment" r
run shmlimit inspect "$segment" --json
is "$(printf '%s' "$out" | jq -c '.occupancy | [.live, .free + .stale + .refilled, .shown[].rule]')" '[1,1023,"watch"]' \
	"slots of a rule that is gone are free or stale"

# Keys.
named=$SEGMENT.n
shmlimit create "$named" --slots 64 --store-keys 22
shmlimit rule set "$named" r --capacity 4 --rate 1/d
# keys: as inspect shows them, of one token taken each, by text and by JSON.
keys() {
	LC_ALL=$1
	run shmlimit inspect "$named" --json
	by_json=$(printf '%s' "$out" | jq -r '.occupancy.shown[].key_hex')
	run shmlimit inspect "$named"
	LC_ALL=C
	printf '%s\n' "$out" | sed -n '1,/^RULE .* KEY$/d; s/.*[0-9][smhdw]  //p' >"$TMP/keys"
}
# shown LOCALE KEY WANT
shown() {
	shmlimit reset "$named" --all >/dev/null
	shmlimit take "$named" r "$2" --quiet
	keys "$1"
	is "$(cat "$TMP/keys")" "$3" "a key is shown as $3 in $1"
	hex=$(printf %s "$2" | od -An -v -tx1 | tr -d ' \n')
	is "${by_json:-none}" "${hex%"${hex#"$by_json"}"}" "JSON has the bytes of $3, as far as they are kept"
}
like "$(shmlimit inspect "$named")" '^store keys: 22$' "inspect shows how many bytes of each key a segment stores"
shown C alice alice
shown C 'a key of 22 bytes, all' 'a key of 22 bytes, all'
shown C 'a key of 23 bytes, more' 'a key of 23 by\...[23]'
shown C 'say "\x41"' 'say "\\x41"'
shown C "$(printf 'a\033[31mb\177\001')" 'a\x1b[31mb\x7f\x01'
shown C "$(printf '\303\251\377\233')" '\xc3\xa9\xff\x9b'
shown C.UTF-8 "$(printf '\303\251\377\233\\')" "$(printf '\303\251')\\xff\\x9b\\\\"
shown C.UTF-8 "$(printf 'a\302\233b\342\200\256c\314\201')" 'a\xc2\x9bb\xe2\x80\xaec\xcc\x81'
shown C "$(printf '\004\030\313\001\161')" '\x04\x18\xcb\x01q'
shown C "$(printf '\004\037\313\001\161\372')" 203.1.113.250/31
shown C "$(printf '\004\040\313\001\161\372')" 203.1.113.250
shown C "$(printf '\004\031\313\001\161\372')" '\x04\x19\xcb\x01q\xfa'
shmlimit reset "$named" --all >/dev/null
for i in 1 2 3; do
	shmlimit take "$named" r "$i" --quiet --cost "$i"
done
shmlimit rule set "$named" big --capacity 1000 --rate 1000/w --max-wait 1w --next-pays yes
shmlimit take "$named" big half --cost 500 --quiet
shmlimit take "$named" big none --cost 1000 --quiet
shmlimit take "$named" r denied --cost 4 --quiet
shmlimit charge "$named" big owing --tokens 1001 --quiet
keys C
is "$(tr '\n' ' ' <"$TMP/keys")" "owing none denied half 3 2 1 " "without --top the longest time to full comes first"
run shmlimit inspect "$named" --top 5
is "$(printf '%s\n' "$out" | sed -n '1,/^RULE .* KEY$/d; s/.*[0-9][smhdw]  //p' | tr '\n' ' ')" "owing none denied 3 half " \
	"with --top the deepest in denial, then those with the smallest share left"
is "$(printf '%s\n' "$out" | tail -n 1)" "live slots left out: 2 (--top)" "--top says how many live slots it left out"
is "$(shmlimit inspect "$named" --rule r --top 2 --json | jq -c '[.occupancy.shown[].key]')" '["denied","3"]' "--top shows the deepest of one rule"
# One letter changed.
shmlimit reset "$named" --all >/dev/null
shmlimit take "$named" r mallory --quiet
is "$(grep -c mallory "$SHM$named")" 1 "the key stands in the segment's file"
printf o | dd of="$SHM$named" bs=1 seek=$(($(head -c 16777216 "$SHM$named" | grep -abo mallory | cut -d: -f1) + 6)) conv=notrunc status=none
is "$(shmlimit inspect "$named" --json | jq -c '[.occupancy.shown[].key]')" '[null]' "what is not the slot's key is not shown"
like "$(shmlimit inspect "$named" | tail -n 1)" '[0-9][smhdw]  -$' "a key that is not the slot's is shown as a dash"
run shmlimit verify "$named"
is "$rc" 0 "a key that is not the slot's is no damage"

# Errors.
wrong() {
	message=$1
	shift
	run shmlimit inspect "$@"
	is "$rc $out$err" "$message" "inspect $* is refused"
}

wrong "2 shmlimit: --key needs --rule RULE" "$segment" --key a
wrong "2 shmlimit: key of 0 bytes: must be 1 to 1024" "$segment" --rule watch --key ''
wrong "2 shmlimit: --limit and --top: cannot be combined" "$segment" --limit 1 --top 1
wrong "2 shmlimit: --top few: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" "$segment" --top few
wrong "2 shmlimit: --limit few: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" "$segment" --limit few
wrong "2 shmlimit: --limit 18446744073709551616: must be 0 to 18446744073709551615" "$segment" \
	--limit 18446744073709551616
wrong "3 shmlimit: rule none: no such rule in segment $segment (shmlimit rule set $segment none --capacity N \
--rate N/s makes it; shmlimit rule list $segment lists them)" "$segment" --rule none
wrong "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; shmlimit list \
lists all)" "$SEGMENT.none"
wrong "2 shmlimit: segment a/b: bad name: must be 1 to 239 bytes without '/' and control characters, the first not '.'" \
	a/b

shmlimit create "$SEGMENT.grown" --slots 64
shmlimit rule set "$SEGMENT.grown" r --rate 1/h
shmlimit take "$SEGMENT.grown" r key --quiet
shmlimit grow "$SEGMENT.grown" --slots 128 >/dev/null
is "$(shmlimit inspect "$SEGMENT.grown" | grep slots:)" "slots: 128 (at most 1024)
old slots: 64" "a table that has grown is shown with the old one, while keys are left in it"
done_testing
