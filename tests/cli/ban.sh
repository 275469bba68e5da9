#!/bin/sh
# ban: a ban is in force until it ends, through save, load and grow. Bans are hours, so that no title depends on how
# long a command takes, except one, whose end is waited for.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit 1

segment=$SEGMENT.s
tab=$(printf '\t')
shmlimit create "$segment" --slots 64 --store-keys 30
# is_banned KEY...: denied by a limit that peeks?
is_banned() { shmlimit peek "$segment" ban "$@" --quiet; [ $? -eq 1 ]; }

run shmlimit bans "$segment"
is "$rc $out$err" "0 " "while there is no rule, nobody is banned"
run shmlimit unban "$segment" alice
is "$rc $err" "0 shmlimit: key alice: not banned by rule ban" "while there is no rule, no key is banned, which unban says"
run shmlimit unban "$segment" alice --rule typo
is $rc 3 "unban exits 3 for a rule that was named and is missing"
run shmlimit ban "$segment" alice --for 2h
is "$rc $(printf '%s' "$out" | tr '\n' ,)$err" "0 key: alice,rule: ban,ends in: 2h" "a ban prints the key, the rule and the time"
is "$(shmlimit rule show "$segment" ban --json | jq -c '[.algorithm, .capacity, .protected]')" '["counter",1,true]' \
	"the first ban makes the rule, protected"
is_banned alice
ok $? "a banned key is denied"
is_banned bob
is $? 1 "another key is allowed"
shmlimit ban "$segment" --key-ip 203.0.113.9 --for 1h >out
is_banned --key-ip 203.0.113.9
ok $? "an address is banned as servers make a key of it"
shmlimit ban "$segment" --key-ip 2001:db8::1 --prefix 32,48 --for 3h >out
is_banned --key-ip 2001:db8:0:9::2 --prefix 32,48
ok $? "--prefix bans a net"

run shmlimit bans "$segment"
like "$rc $(printf '%s' "$out" | sed "s/${tab}[0-9a-f]\{12\}${tab}/ /; s/\([0-9]h\).*/\1/" | tr '\n' ,)" \
	'^0 2001:db8::/48 [23]h,alice [12]h,203.0.113.9 (1h|[0-9]+m)' "bans prints a line for each, the longest first"
run shmlimit bans "$segment" --json
is "$rc $(printf '%s\n' "$out" | jq -c '[.key, .key_ip, .remaining, .reset_after_ns > 3000000000000]' | tr '\n' ' ')" \
	'0 [null,"2001:db8::/48",0,true] ["alice",null,0,true] [null,"203.0.113.9",0,true] ' "--json prints an object a line"
like "$(shmlimit bans "$segment" | sed -n "s/^alice.*${tab}//p")" '^(2h|1h[0-9]+m)$' "the time is that of --for"
shmlimit ban "$segment" alice --for 30m >out
like "$(shmlimit bans "$segment" | sed -n "s/^alice.*${tab}//p")" '^(30|[12][0-9])m' "a second ban of a key replaces the time"
fingerprint=$(shmlimit bans "$segment" --json | jq -r 'select(.key_ip == "2001:db8::/48").fingerprint')
run shmlimit unban "$segment" --fingerprint "$fingerprint"
is "$rc $(shmlimit bans "$segment" | grep -c /48)" "0 0" "unban takes the fingerprint that bans prints"

shmlimit grow "$segment" --slots 256 >out
is_banned alice && is_banned --key-ip 203.0.113.9
ok $? "bans survive grow"
shmlimit save "$segment" state
shmlimit destroy "$segment"
shmlimit load "$segment" state >out
is_banned alice && is_banned --key-ip 203.0.113.9
ok $? "bans survive save and load"
like "$(shmlimit count "$segment" ban alice --by 0)" '^1 0 1[0-9]{3}\.' "bans keep their time through save and load"

run shmlimit unban "$segment" alice
is "$rc $out$err" "0 " "unban ends a ban"
is_banned alice
is $? 1 "after unban the key is allowed"
run shmlimit unban "$segment" alice
is "$rc $err" "0 shmlimit: key alice: not banned by rule ban" "unban of what has ended is no error, and says so"
run shmlimit unban "$segment" alice --json
is "$rc $(printf '%s' "$out" | jq .keys_reset)" "0 0" "unban --json prints how many bans ended"
shmlimit ban "$segment" short --for 10ms >out
for i in $(seq 1000); do
	is_banned short || break
	sleep 0.03
done
is_banned short
is $? 1 "a ban ends by itself"
is "$(shmlimit bans "$segment" | grep -c short)" 0 "bans does not list a ban that has ended"

shmlimit rule set "$segment" abuse --algorithm counter --capacity 20
shmlimit count "$segment" abuse eve --by 7 --ttl 1h --quiet
run shmlimit ban "$segment" eve --for 2h --rule abuse --json
is "$rc $err" "0 shmlimit: rule abuse: not protected: other keys may evict the ban when the table is full (shmlimit rule set \
$segment abuse --protected yes)" "a ban by a rule that is not protected is in force, with a warning"
shmlimit rule set "$segment" abuse --protected yes
run shmlimit ban "$segment" eve --for 2h --rule abuse --json
is "$rc $err" "0 " "a ban by a rule that was made protected has no warning"
is "$(shmlimit count "$segment" abuse eve --by 0 | cut -d ' ' -f 1)" 20 "a ban by another counter brings the count to its bound"
is "$(shmlimit bans "$segment" --rule abuse | cut -f 1)" eve "bans --rule lists the bans of that rule"

run shmlimit ban "$segment" alice
is "$rc $err" "2 shmlimit: ban: missing --for DURATION, how long the ban lasts, such as --for 1h" "a ban needs a time"
run shmlimit ban "$segment" alice --for 600
like "$rc $err" '^2 shmlimit: --for 600: unit missing: write 600s if these are seconds \(or ' "a time without a unit says what to write"
run shmlimit ban "$segment" alice --for 0
is "$rc $err" "2 shmlimit: --for 0: must be more than 0" "a ban of no time is refused"
longest=$(shmlimit rule show "$segment" ban | sed -n 's/^time to full: //p')
run shmlimit ban "$segment" alice --for 20000d
is "$rc $err" "2 shmlimit: --for 20000d: rule ban counts for $longest at most (for longer bans set a rule of its own: shmlimit rule \
set $segment RULE --algorithm counter --period 20000d; then ban --rule RULE)" "a ban that is too long is refused"
shmlimit rule set "$segment" page --capacity 1 --rate 1/h
for command in "ban --for 1h" bans; do
	# shellcheck disable=SC2086 # words
	run shmlimit $command --rule page "$segment" $([ "$command" = bans ] || echo alice)
	is "$rc $err" "2 shmlimit: rule page: not a counter (use another rule, or set one with --algorithm counter)" \
		"${command%% *} refuses a rule that is no counter"
done
run shmlimit bans "$segment" --rule none
is $rc 3 "bans of a rule that is missing exits 3"
shmlimit disable "$segment"
run shmlimit ban "$segment" alice --for 1h
is "$rc $err" "2 shmlimit: rule ban: the rule or the segment is off: nobody is banned" "a ban that is not in force is an error"

shmlimit create "$SEGMENT.pruned" --slots 64
printf '[login]\ncapacity = 5\nrate = 5/h\n' >rules.ini
shmlimit apply "$SEGMENT.pruned" rules.ini --prune >out
shmlimit ban "$SEGMENT.pruned" alice --for 30d >out
run shmlimit apply "$SEGMENT.pruned" rules.ini --prune
is "$rc $err $(shmlimit bans "$SEGMENT.pruned" | cut -f 1)" "0 shmlimit: rule ban: kept, since keys are banned by it (to end \
these bans: shmlimit rule remove $SEGMENT.pruned ban) #$(shmlimit bans "$SEGMENT.pruned" | cut -f 2)" \
	"apply --prune does not end the bans that a person made"
shmlimit unban "$SEGMENT.pruned" alice
run shmlimit apply "$SEGMENT.pruned" rules.ini --prune
is "$rc $out" "0 - rule ban" "without bans their rule is pruned like any other"

shmlimit create "$SEGMENT.flood" --slots 16
shmlimit rule set "$SEGMENT.flood" page --capacity 1 --rate 1/d
shmlimit ban "$SEGMENT.flood" alice --for 1h >out
for i in $(seq 64); do shmlimit take "$SEGMENT.flood" page "$i" --quiet; done
is "$(shmlimit bans "$SEGMENT.flood" | wc -l)" 1 "keys that are full later than a ban ends do not evict it"
shmlimit rule set "$SEGMENT.flood" ban --protected no
is "$(shmlimit bans "$SEGMENT.flood" | wc -l)" 1 "a ban stays when its rule is protected no more"
for i in $(seq 100 164); do shmlimit take "$SEGMENT.flood" page "$i" --quiet; done
is "$(shmlimit bans "$SEGMENT.flood" | wc -l)" 0 "without protection they do"

# ---- a ban denies the members of its net, or is refused ----
# users PREFIX|text: a new segment, whose limits look up addresses in this form. visit ADDR: does the ban deny its request?
users() {
	form=$1
	shmlimit destroy "$SEGMENT.net" --if-exists
	shmlimit create "$SEGMENT.net" --slots 16K --store-keys $2
	shmlimit rule set "$SEGMENT.net" page --capacity 5 --rate 5/d
	seen 198.51.100.7 take page && seen 2001:db8:ffff::1 take page
}
seen() {
	if [ "$form" = text ]; then
		shmlimit "$2" "$SEGMENT.net" "$3" --key-text "$1" --quiet 2>/dev/null
	else
		shmlimit "$2" "$SEGMENT.net" "$3" --key-ip "$1" --prefix "$form" --quiet 2>/dev/null
	fi
}
denied() { seen "$1" peek ban; [ $? -eq 1 ]; }
# BAN|A MEMBER|NO MEMBER
cases='203.0.113.9|203.0.113.9|198.51.100.9
203.0.113.0/24|203.0.113.200|203.0.114.1
203.0.113.128/25|203.0.113.255|203.0.112.1
203.0.112.0/22|203.0.115.254|203.0.116.1
203.0.113.9/32|203.0.113.9|198.51.100.9
203.0.0.0/16|203.0.255.254|203.1.0.1
2001:db8:1::9|2001:db8:1::9|2001:db8:2::9
2001:db8:1:2::/64|2001:db8:1:2::9|2001:db8:2::9
2001:db8:1:200::/56|2001:db8:1:2fe::9|2001:db8:2::9
2001:db8:1:2::9/128|2001:db8:1:2::9|2001:db8:2::9
2001:db8::/32|2001:db8:9::9|2001:db9::9'
for form in 32,64 24,56 32,128 text; do
	for option in '' --key-ip; do
		silent='' wide=''
		for case in $cases; do
			rest=${case#*|}
			users "$form" 46
			# shellcheck disable=SC2086 # words
			run shmlimit ban "$SEGMENT.net" $option "${case%%|*}" --for 1h
			case $rc in
			0) denied "${rest%|*}" || silent="$silent ${case%%|*}" ;;
			*) ! denied "${rest%|*}" && [ -n "$err" ] || silent="$silent ${case%%|*}" ;;
			esac
			denied "${rest#*|}" && wide="$wide ${case%%|*}"
			[ $rc -ne 0 ] || shmlimit unban "$SEGMENT.net" $option "${case%%|*}" || wide="$wide unban:${case%%|*}"
			! denied "${rest%|*}" || wide="$wide unban:${case%%|*}"
		done
		is "$silent$wide" "" "where limits look up $form, a ban by ${option:-KEY} denies its net and no other, or is refused"
	done
done
for form in 32,64 text; do
	users $form 0
	for net in 203.0.113.9 198.51.100.0/24 192.0.2.128/25; do
		shmlimit ban "$SEGMENT.net" $net --for 1h >out
	done
	denied 203.0.113.9 && denied 198.51.100.255 && denied 192.0.2.200
	ok $? "where keys are not stored a ban denies a net of users that look up $form"
done
users 32,64 46
shmlimit ban "$SEGMENT.net" --key-ip 203.0.113.0 --prefix 24,48 --for 1h >out
shmlimit ban "$SEGMENT.net" 203.0.113.9 --for 1h >out
denied 203.0.113.9
ok $? "the ban of an address is not swallowed by that of its net"
run shmlimit unban "$SEGMENT.net" 203.0.113.9
denied 203.0.113.9
is "$? $rc $err" "1 0 shmlimit: net 203.0.113.0/24: unbanned" "an address that is unbanned is allowed, by nets around it too, and a message names them"
run shmlimit ban "$SEGMENT.net" 203.0.0.0/16 --for 1h
is "$rc $err" "2 shmlimit: net 203.0.0.0/16: limits look up addresses with a prefix of 32 bits, so this ban is 65536 keys: must be \
1024 or fewer here (give a limit with peek prefix=16 and ban with --prefix 16; or let the firewall drop the net)" \
	"a net of too many keys is refused, with two ways on"
run shmlimit unban "$SEGMENT.net" 203.0.0.0/16
is "$rc $err" "2 shmlimit: net 203.0.0.0/16: has more than 1024 keys: unban smaller nets (shmlimit bans $SEGMENT.net lists what is banned)" \
	"a net of too many keys is not said to be unbanned"
users 32,64 46
run shmlimit ban "$SEGMENT.net" 203.0.113.0/24 --for 1h --json
is "$(printf '%s' "$out" | jq -c '[.key_ip, .keys]') $(shmlimit bans "$SEGMENT.net" | wc -l)" '["203.0.113.0/24",256] 256' \
	"the ban of a net prints how many keys it has"
shmlimit unban "$SEGMENT.net" 203.0.113.77
denied 203.0.113.77
is "$? $(shmlimit bans "$SEGMENT.net" | wc -l)" "1 255" "one address of a banned net can be let in"
shmlimit create "$SEGMENT.tiny" --slots 256
run shmlimit ban "$SEGMENT.tiny" 203.0.113.0/24 --for 1h
like "$rc $err" "^2 .*must be 32 or fewer here" "a net that would fill a segment is refused"

for full in allow deny; do
	shmlimit create "$SEGMENT.$full" --slots 16 --on-full $full
	shmlimit rule set "$SEGMENT.$full" page --capacity 1 --rate 1/d
	for i in $(seq 64); do shmlimit take "$SEGMENT.$full" page "$i" --quiet; done
	run shmlimit ban "$SEGMENT.$full" alice --for 1h
	is "$rc $err" "2 shmlimit: rule ban: the segment is full: the key is not banned (see shmlimit grow)" \
		"a key without a slot is not banned, with --on-full $full"
done
done_testing
