#!/bin/sh
# keys_list: what shmlimit keys prints, one key a line. The rules refill so slowly that the time a test takes shows in no
# token.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
tab=$(printf '\t')
shmlimit create "$segment" --slots 64 --store-keys 30
shmlimit rule set "$segment" login --capacity 4 --rate 1/d --max-wait 30d --next-pays yes
shmlimit rule set "$segment" page --capacity 100 --rate 100/w
shmlimit rule set "$segment" dry --capacity 1 --rate 1/w --mode dry-run
run shmlimit keys "$segment"
is "$rc $out$err" "0 " "a segment without live keys prints no line"

shmlimit take "$segment" login user:1 --quiet
shmlimit take "$segment" login user:2 --quiet --cost 4
shmlimit charge "$segment" login user:3 --quiet --tokens 6
shmlimit take "$segment" login --key-ip 203.0.113.9 --quiet --cost 3
shmlimit take "$segment" login --key-ip 2001:db8::1 --quiet --cost 4
shmlimit take "$segment" page user:1 --quiet --cost 2
shmlimit take "$segment" page "$(printf 'a\tb\nc')" --quiet --cost 99
shmlimit take "$segment" page 'star*' --quiet
shmlimit take "$segment" dry user:4 --quiet
before=$(sum_file "$SHM$segment")

# column N: of what was printed.
column() { printf '%s\n' "$out" | cut -f "$1" | tr '\n' ' '; }

run shmlimit keys "$segment"
is "$rc $err$(printf '%s\n' "$out" | sort | sed 's/[0-9a-f]\{12\}/FP/; s/\t[0-9][0-9dhmsw.]*$/\tT/; s/\t[1-9][0-9dhm.]*[dhmsw]\tT/\tD\tT/')" \
	"0 $(sort <<-LINES
	2001:db8::/64${tab}login${tab}FP${tab}0${tab}0s${tab}T
	203.0.113.9${tab}login${tab}FP${tab}1${tab}0s${tab}T
	a\\x09b\\x0ac${tab}page${tab}FP${tab}1${tab}0s${tab}T
	star*${tab}page${tab}FP${tab}99${tab}0s${tab}T
	user:1${tab}login${tab}FP${tab}3${tab}0s${tab}T
	user:1${tab}page${tab}FP${tab}98${tab}0s${tab}T
	user:2${tab}login${tab}FP${tab}0${tab}0s${tab}T
	user:3${tab}login${tab}FP${tab}0${tab}D${tab}T
	user:4${tab}dry${tab}FP${tab}0${tab}0s${tab}T
	LINES
	)" "each live key has a line of six fields"
like "$(printf '%s\n' "$out" | grep user:3)" "${tab}2d${tab}6d\$" \
	"a debt and the time to full are durations"

run shmlimit keys "$segment" --rule page --sort remaining
is "$rc $(column 1)$(column 4)" '0 a\x09b\x0ac user:1 star* 1 98 99 ' "--rule prints the keys of one rule"
run shmlimit keys "$segment" --denied
is "$(printf '%s\n' "$out" | cut -f 1 | sort | tr '\n' ' ')" "2001:db8::/64 user:2 user:3 user:4 " \
	"--denied prints the keys that have no token left, of a dry run too"
for key in user:1 user:2 user:3; do
	shmlimit peek "$segment" login $key --quiet
	is $? "$(printf '%s\n' "$out" | cut -f 1 | grep -cx $key)" "--denied and peek agree about $key"
done
run shmlimit keys "$segment" --match 'user:*' --sort reset
is "$(column 1)" "user:4 user:3 user:2 user:1 user:1 " "--match chooses keys by a pattern, --sort reset by the time to full"
run shmlimit keys "$segment" --match '203.0.113.*'
is "$(column 1)" "203.0.113.9 " "--match knows an address as it is printed"
run shmlimit keys "$segment" --match '*[*]'
is "$(column 1)" "star* " "--match takes what is in brackets as it is"
run shmlimit keys "$segment" --match 'a\x09*'
is "$(column 1)" 'a\x09b\x0ac ' "--match takes a backslash as it is"
run shmlimit keys "$segment" --match nobody
is "$rc $out$err" "0 " "a pattern that no key matches prints no line"

run shmlimit keys "$segment" --rule login --sort denied
is "$(column 1 | cut -d ' ' -f 1,4-)" "user:3 203.0.113.9 user:1 " \
	"--sort denied puts the largest debt first, then the other denied keys, then the smallest share"
run shmlimit keys "$segment" --sort debt --limit 1
is "$(column 1)" "user:3 " "--sort debt puts the largest debt first, and --limit ends the list"
run shmlimit keys "$segment" --limit 3
is "$(printf '%s\n' "$out" | wc -l | tr -d ' ')" 3 "--limit ends an unsorted list"
run shmlimit keys "$segment" --limit 0
is "$rc $out" "0 " "--limit 0 prints no line"

run shmlimit keys "$segment" --json --match 203.0.113.9
is "$rc $(printf '%s\n' "$out" | jq -c '[.key, .key_hex, .key_length, .key_ip, .rule, .remaining, .debt_ns, .lease]')" \
	'0 [null,"0420cb007109",6,"203.0.113.9","login",1,0,null]' "--json prints an object"
run shmlimit keys "$segment" --json
is "$(printf '%s\n' "$out" | jq -c . | wc -l | tr -d ' ') $(printf '%s\n' "$out" | wc -l | tr -d ' ')" "9 9" \
	"--json prints an object a line"
fingerprint=$(shmlimit keys "$segment" --match user:2 | cut -f 3)
is "$(sum_file "$SHM$segment")" "$before" "listing changed nothing"
run shmlimit reset "$segment" --rule login --fingerprint "$fingerprint"
is "$rc $(shmlimit keys "$segment" --match user:2)" "0 " "reset knows the key by the fingerprint that keys prints"

text=$(printf 'q"b\\\303\251\342\202\254\360\237\232\246\177\001')
shmlimit take "$segment" page "$text" --quiet
is "$(shmlimit keys "$segment" --match 'q*' --json | jq -r .key)" "$text" "JSON has the characters of a key"
shmlimit keys "$segment" --match 'q*' --json | LC_ALL=C grep -q '[^ -~]'
is $? 1 "JSON is ASCII"

plain=$SEGMENT.p
shmlimit create "$plain" --slots 64
shmlimit rule set "$plain" r --capacity 4 --rate 1/d
shmlimit take "$plain" r user:1 --quiet
run shmlimit keys "$plain"
like "$out" "^#([0-9a-f]{12})${tab}r${tab}\\1${tab}3${tab}0s${tab}" "a key that is not kept is its fingerprint"
run shmlimit keys "$plain" --match 'user:*'
is "$rc $err" "2 shmlimit: --match user:*: segment $plain stores no keys (create it with: shmlimit create $plain --store-keys \
BYTES)" "--match needs keys that are kept"
run shmlimit keys "$segment" --sort size
is "$rc $err" "2 shmlimit: --sort size: must be denied, debt, remaining or reset" "an unknown order is refused"
run shmlimit keys "$segment" --rule none
is $rc 3 "a rule that is missing exits 3"
if has_terminal; then
	script -qec "shmlimit keys '$plain'" /dev/null </dev/null | tr -d '\r' >"$TMP/typescript"
	is "$(sed -n 1p "$TMP/typescript")" "KEY${tab}RULE${tab}FINGERPRINT${tab}REMAINING${tab}DEBT${tab}TIME-TO-FULL" \
		"a terminal gets headings"
fi

done_testing
