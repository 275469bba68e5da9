#!/bin/sh
# keys: a key can be named in each way in which it is made or shown, everywhere.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64 --store-keys 62
shmlimit rule set "$segment" r --capacity 10 --rate 1/d --max-wait 10d

# left ARGUMENT...: what remains to a key.
left() { shmlimit peek "$segment" r --json "$@" | jq .remaining; }

# The same key, by its address and by its bytes.
# same IP HEX [PREFIX]
same() {
	shmlimit reset "$segment" --all >/dev/null
	run shmlimit take "$segment" r --key-ip "$1" ${3:+--prefix} ${3:-} --cost 4 --quiet
	is "$rc $out$err" "0 " "take --key-ip $1 ${3:+--prefix }${3:-} takes"
	is "$(left --key-hex "$2")" 6 "the key of $1 is $2"
	is "$(left --key-ip "$1" ${3:+--prefix} ${3:-})" 6 "peek finds the key of $1 by its address"
}
same 203.0.113.9 0420cb007109
same 203.0.113.9 0418cb007100 24
same 203.0.113.9 0418cb007100 24,48
same 203.0.113.9/24 0418cb007100
same ::ffff:203.0.113.9 0420cb007109
same ::ffff:203.0.113.9/24 0418cb007100
same 2001:db8::1 064020010db8000000000000000000000000
same 2001:db8::1 068020010db8000000000000000000000001 32,128
same 2001:DB8::1/128 068020010db8000000000000000000000001
same 2001:db8::1/0 060000000000000000000000000000000000

# Every command that takes a key takes it so.
shmlimit reset "$segment" --all >/dev/null
for command in take peek reserve acquire charge refund; do
	run shmlimit $command "$segment" r --key-ip 203.0.113.9
	is "$rc $err" "0 " "$command takes --key-ip"
	run shmlimit $command --key-hex 0420CB007109 "$segment" r
	is "$rc $err" "0 " "$command takes --key-hex"
	run shmlimit $command "$segment" r --fingerprint 0123456789ab
	is "$rc $err" "2 shmlimit: $command: --fingerprint: the key's bytes are needed: give KEY, --key-ip or --key-hex (reset and inspect take fingerprints)" "$command takes no fingerprint, and says where one is taken"
	run shmlimit $command "$segment" r key --key-ip 203.0.113.9
	like "$rc $err" "^2 shmlimit: $command: key: one operand too many; usage: shmlimit $command NAME RULE" \
		"$command takes one key"
	run shmlimit $command "$segment" --key-ip 203.0.113.9
	like "$rc $err" "^2 shmlimit: $command: RULE is missing; usage: shmlimit $command NAME RULE" \
		"$command with a key by option needs its other operands"
done
is "$(left --key-ip 203.0.113.9)" 4 "all commands mean the same key by --key-ip and --key-hex"
run shmlimit throttle "$segment" --key-ip 203.0.113.9 15 30 86400
is "$rc $out$err" "0 0 15 14 -1 2880" "throttle takes --key-ip in place of KEY"
run shmlimit throttle "$segment" 15 30 86400 2 --key-hex 0420cb007109
is "$rc $(echo $out | cut -d' ' -f1-3)" "0 0 15 12" "throttle takes --key-hex, and a quantity behind the period"
run shmlimit throttle "$segment" 15 30 --key-hex 0420cb007109
is "$rc $err" "2 shmlimit: throttle: PERIOD is missing; usage: shmlimit throttle NAME CAPACITY COUNT PERIOD [QUANTITY]" \
	"throttle without a period says so"

# reset, and whether it found the key.
reset() { run shmlimit reset "$segment" --rule r "$@"; }
shmlimit reset "$segment" --all >/dev/null
shmlimit take "$segment" r --key-ip 203.0.113.9 --quiet
reset --key-text 203.0.113.9
is "$rc $err" "1 shmlimit: key \"203.0.113.9\": rule r has no such key now: nothing was reset, all its tokens are there" \
	"reset of an address as text finds nothing"
is "$(left --key-ip 203.0.113.9)" 9 "a reset of the text leaves the key of the address as it is"
reset --key 203.0.113.9
is "$rc $out$err $(left --key-ip 203.0.113.9)" "0 keys reset: 1 10" "reset of an address resets the key that servers made of it"
reset --key 203.0.113.9
is "$rc $out$err" "1 shmlimit: key \"203.0.113.9\": rule r has no such key now: nothing was reset, all its tokens are there \
(if servers limit this address: --key-ip 203.0.113.9)" "reset of an address that has taken nothing says what may be meant"
shmlimit take "$segment" r --key-ip 203.0.113.9 --quiet
reset --key-ip 203.0.113.9
is "$rc $out$err $(left --key-ip 203.0.113.9)" "0 keys reset: 1 10" "reset --key-ip resets the key of an address"
reset --key-ip 203.0.113.9
is "$rc $out$err" "1 shmlimit: key 203.0.113.9: rule r has no such key now: nothing was reset, all its tokens are there" \
	"reset of a key that is not there exits 1"
shmlimit take "$segment" r --key-hex 00ff --quiet
reset --key-hex 00ff
is "$rc $out$err" "0 keys reset: 1" "reset --key-hex resets a key of any bytes"
reset --key-hex 00ff
is "$rc $err" '1 shmlimit: key \x00\xff: rule r has no such key now: nothing was reset, all its tokens are there' \
	"reset names a key that is not there as listings show it"
for key in a b c; do
	shmlimit take "$segment" r "$key" --quiet
done
fingerprint=$(shmlimit inspect "$segment" --json | jq -r '.occupancy.shown[] | select(.key == "b").fingerprint')
run shmlimit inspect "$segment" --rule r --fingerprint "$fingerprint" --json
is "$rc $(printf '%s' "$out" | jq -c '[.occupancy.shown[].key]')" '0 ["b"]' "inspect --fingerprint shows the slot that has it"
reset --fingerprint "$fingerprint"
is "$rc $out$err $(left a) $(left b) $(left c)" "0 keys reset: 1 9 10 9" "reset --fingerprint resets that key and no other"
reset --fingerprint "#$fingerprint"
is "$rc $out$err" "1 shmlimit: key #$fingerprint: rule r has no such key now: nothing was reset, all its tokens are there" \
	"reset takes a fingerprint as top shows it, and exits 1 if no key has it"
reset
is "$rc $out" "0 keys reset: 2" "reset of a rule says how many keys it found"
reset
is "$rc $out" "0 keys reset: 0" "reset of a rule without keys says 0"
shmlimit throttle "$segment" key 15 30 60 >/dev/null
run shmlimit reset "$segment" --all
is "$rc $out" "0 keys reset: 1" "reset of all counts the keys of a throttle"

# Listings tell text from addresses.
for key in 203.0.113.9 203.0.113.0/24 2001:db8::1 '"quoted"' plain 300.1.1.1; do
	shmlimit take "$segment" r "$key" --quiet
done
for ip in 203.0.113.9 203.0.113.9/24 2001:db8::1 2001:db8::1/128; do
	shmlimit take "$segment" r --key-ip "$ip" --quiet
done
want='""quoted""
"2001:db8::1"
"203.0.113.0/24"
"203.0.113.9"
2001:db8::/64
2001:db8::1/128
203.0.113.0/24
203.0.113.9
300.1.1.1
plain'
is "$(shmlimit inspect "$segment" | sed -n '/^RULE .* KEY$/,$p' | sed '1d; s/.* //' | LC_ALL=C sort)" "$want" \
	"inspect shows text that reads as an address in quotes"
is "$(shmlimit top "$segment" --interval 10ms | sed -n '/^RULE .* KEY$/,$p' | sed '1d; s/.* //' | LC_ALL=C sort)" "$want" \
	"top shows text that reads as an address in quotes"
for ip in 203.0.113.9 203.0.113.0/24 2001:db8::/64 2001:db8::1/128; do
	is "$(left --key-ip "$ip")" 9 "--key-ip reads $ip as it is shown"
done

# JSON has the bytes.
shmlimit reset "$segment" --all >/dev/null
shmlimit take "$segment" r 'a\"b' --quiet
shmlimit take "$segment" r --key-hex 00ff0a --quiet
shmlimit take "$segment" r --key-ip 10.0.0.1 --quiet
shmlimit take "$segment" r "$(printf '%070d' 0)" --quiet
run shmlimit inspect "$segment" --json
is "$(printf '%s' "$out" | jq -c '.occupancy.shown[] | [.key, .key_hex, .key_length, .key_ip]' | LC_ALL=C sort)" \
	"$(printf '%s\n' '["'"$(printf '%054d' 0)"'","'"$(printf '%054d' 0 | sed 's/0/30/g')"'",70,null]' \
		'["\u0004 \n\u0000\u0000\u0001","04200a000001",6,"10.0.0.1"]' '["a\\\"b","615c2262",4,null]' \
		'[null,"00ff0a",3,null]' | LC_ALL=C sort)" "JSON has each key as text, in hexadecimal, with its length, and as an address"
run shmlimit inspect "$segment" --rule r --key-ip 10.0.0.1 --json
is "$rc $(printf '%s' "$out" | jq -c '.key | [.key_hex, .key_length, .key_ip, .remaining]')" '0 ["04200a000001",6,"10.0.0.1",9]' \
	"inspect --key-ip peeks"
like "$(shmlimit inspect "$segment" --rule r --key-ip 10.0.0.1)" '^key: 10\.0\.0\.1$' "inspect --key-ip shows the key as listings do"

# What is none.
wrong() {
	message=$1
	shift
	run shmlimit reset "$segment" --rule r "$@"
	is "$rc $out$err" "2 shmlimit: $message" "reset $(printf %.60s "$*") is refused"
}
address="not an address (for example 203.0.113.9 or 2001:db8::1)"
wrong "--key-ip localhost: $address" --key-ip localhost
wrong "--key-ip : $address" --key-ip ''
wrong "--key-ip 203.0.113: $address" --key-ip 203.0.113
wrong "--key-ip /24: $address" --key-ip /24
wrong "--key-ip 203.0.113.9/33: prefix: must be /0 to /32" --key-ip 203.0.113.9/33
wrong "--key-ip ::ffff:203.0.113.9/33: prefix: must be /0 to /32" --key-ip ::ffff:203.0.113.9/33
wrong "--key-ip 2001:db8::1/129: prefix: must be /0 to /128" --key-ip 2001:db8::1/129
wrong "--key-ip 203.0.113.9/: prefix: must be /0 to /32" --key-ip 203.0.113.9/
prefix="must be N or N,M: 0 to 32 bits of IPv4, 0 to 128 of IPv6"
wrong "--prefix 33: $prefix" --key-ip 203.0.113.9 --prefix 33
wrong "--prefix 24,129: $prefix" --key-ip 203.0.113.9 --prefix 24,129
wrong "--prefix ,64: $prefix" --key-ip 203.0.113.9 --prefix ,64
wrong "--key-ip 203.0.113.9/24 --prefix 24: two prefixes: give only one" --key-ip 203.0.113.9/24 --prefix 24
wrong "--prefix 24: missing address (usage: --key-ip ADDR --prefix N,M)" --key-hex 00 --prefix 24
wrong "--prefix 33: $prefix" --key name --prefix 33
wrong "--key-hex 0: must be two hexadecimal digits for each byte" --key-hex 0
wrong "--key-hex 012: must be two hexadecimal digits for each byte" --key-hex 012
wrong "--key-hex 0g: must be two hexadecimal digits for each byte" --key-hex 0g
wrong "--key-hex $(printf '%040d' 0)...: key of 1025 bytes: must be 1 to 1024" --key-hex "$(printf '%02050d' 0)"
finger="must be the 12 hexadecimal digits that inspect shows"
wrong "--fingerprint 12: $finger" --fingerprint 12
wrong "--fingerprint 0123456789ag: $finger" --fingerprint 0123456789ag
wrong "--fingerprint 000000000000: $finger" --fingerprint 000000000000
wrong "--key, --key-ip, --key-text, --key-hex and --fingerprint: give only one" --key a --key-hex 61
wrong "--key, --key-ip, --key-text, --key-hex and --fingerprint: give only one" --key-ip 10.0.0.1 --key-hex 61
run shmlimit inspect "$segment" --key-ip 10.0.0.1
is "$rc $err" "2 shmlimit: --key needs --rule RULE" "inspect --key-ip needs a rule"

done_testing
