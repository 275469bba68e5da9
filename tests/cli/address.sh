#!/bin/sh
# address: an address that is typed as text is the key that the servers' users have, or the command says which it takes.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# segment [OPTION...]: a new one with a limit of two.
segment() {
	shmlimit destroy "$SEGMENT" --if-exists
	shmlimit create "$SEGMENT" --slots 1K "$@"
	shmlimit rule set "$SEGMENT" login --capacity 2 --rate 2/h
}
# denies OPTION...: is the key denied?
denies() { shmlimit take "$SEGMENT" login "$@" --quiet 2>/dev/null; [ $? -eq 1 ]; }
spend() { for _ in 1 2; do shmlimit take "$SEGMENT" login "$@" --quiet 2>/dev/null; done; }
as_text='taken as text; servers with prefix= store an address in another form: --key-ip 203.0.113.9 (without this message: --key-text 203.0.113.9)'
as_address() { echo "taken for the address $1, as servers with prefix= store it (the text itself: --key-text 203.0.113.9)"; }

# ---- which key is taken ----
segment
run shmlimit take "$SEGMENT" login 203.0.113.9 --quiet
is "$rc $err" "0 shmlimit: key 203.0.113.9: $as_text" "where nothing shows how servers store it, text is taken, and that is said"
run shmlimit take "$SEGMENT" login 203.0.113.9 --quiet
is "$rc $err" "0 " "a text that has taken tokens is the key"
run shmlimit take "$SEGMENT" login --key-text 203.0.113.10 --quiet
is "$rc $err" "0 " "--key-text is text, without a message"
run shmlimit take "$SEGMENT" login alice --quiet
is "$rc $err" "0 " "a key that is no address is text"

for store in 0 46; do
	for net in 32,64 24,56 8,32; do
		segment --store-keys $store
		spend --key-ip 203.0.113.9 --prefix $net
		shown=203.0.113.9
		[ $net = 24,56 ] && shown=203.0.113.0/24
		[ $net = 8,32 ] && shown=203.0.0.0/8
		run shmlimit take "$SEGMENT" login 203.0.113.9
		is "$rc $err" "1 shmlimit: key 203.0.113.9: $(as_address "$shown")" "store-keys $store, prefix=$net: take takes what servers took"
		for command in peek reserve acquire inspect exec; do
			set -- "$SEGMENT" login 203.0.113.9
			[ $command = inspect ] && set -- "$SEGMENT" --rule login --key 203.0.113.9
			[ $command = exec ] && set -- "$@" -- true
			run shmlimit $command "$@"
			like "$err" "^shmlimit: key 203.0.113.9: taken for the address $shown," \
				"store-keys $store, prefix=$net: $command takes what servers took"
		done
		run shmlimit reset "$SEGMENT" --rule login --key 203.0.113.9
		is "$rc $out" "0 keys reset: 1" "store-keys $store, prefix=$net: reset resets what servers took"
		spend --key-ip 2001:db8:1:2::3 --prefix $net
		run shmlimit take "$SEGMENT" login 2001:db8:1:2::3 --quiet
		is "$rc" 1 "store-keys $store, prefix=$net: take takes what servers took of an IPv6 address"
	done
done

segment --store-keys 46
spend --key-ip 198.51.100.1 --prefix 24,56
run shmlimit take "$SEGMENT" login 203.0.113.9 --json
is "$err" "shmlimit: key 203.0.113.9: $(as_address 203.0.113.0/24)" "other addresses of the rule show how an address is stored"
shmlimit rule set "$SEGMENT" other --capacity 2 --rate 2/h
run shmlimit take "$SEGMENT" other 203.0.113.9 --json
is "$err" "shmlimit: key 203.0.113.9: $(as_address 203.0.113.0/24)" "addresses of other rules do so for a rule without any"
segment --store-keys 46
spend 198.51.100.1
run shmlimit take "$SEGMENT" login 203.0.113.9 --json
is "$rc $err" "0 " "other addresses as text show that an address is text"

# ---- lists ----
for option in '' '--prefix 32,64' '--prefix 24,56'; do
	segment
	# shellcheck disable=SC2086 # words
	set -- $option
	spend --key-ip 203.0.113.9 "$@"
	printf '\357\273\277203.0.113.9\r\n198.51.100.1\r\n' >list
	run shmlimit take "$SEGMENT" login --keys-from list "$@"
	is "$rc $(printf '%s' "$out" | tr '\t\n' ' ;')" "1 denied 203.0.113.9;allowed 198.51.100.1" \
		"a list from Windows with the options '$option' takes what servers took"
done
segment
printf '203.0.113.9\nalice\n' >list
run shmlimit take "$SEGMENT" login --keys-from list --prefix 32,64
is "$rc $out $err" "2 allowed	203.0.113.9 shmlimit: list:2: --key-ip alice: not an address (for example 203.0.113.9 or 2001:db8::1)" \
	"with --prefix a line that is no address is an error"
for option in '--key-ip 203.0.113.9' '--key-hex 00' '--key-text a'; do
	# shellcheck disable=SC2086
	run shmlimit take "$SEGMENT" login --keys-from list $option
	is "$rc $err" "2 shmlimit: --keys-from list: its lines are the keys: must be without --key-ip, --key-text and --key-hex" \
		"$option beside a list is refused"
done
segment
run shmlimit take "$SEGMENT" login 203.0.113.9 login alice --all --quiet
is "$rc $err" "0 shmlimit: key 203.0.113.9: $as_text" "--all says which key it takes, too"
segment
spend --key-ip 203.0.113.9
run shmlimit take "$SEGMENT" login alice login 203.0.113.9 --all --quiet
is "$rc $err" "1 shmlimit: key 203.0.113.9: $(as_address 203.0.113.9)" "--all takes what servers took"

# ---- bans ----
banned() { shmlimit peek "$SEGMENT" ban "$@" --quiet 2>/dev/null; [ $? -eq 1 ]; }
for store in 0 46; do
	segment --store-keys $store
	run shmlimit ban "$SEGMENT" 203.0.113.9 --for 1h
	is "$rc $err$(printf '%s' "$out" | grep key | tr '\n' ';')" '0 key: "203.0.113.9";key: 203.0.113.9;' \
		"store-keys $store: where nothing shows how servers store it, an address is banned in both forms"
	banned --key-text 203.0.113.9 && banned --key-ip 203.0.113.9
	ok $? "store-keys $store: servers with and without prefix= deny it"
	run shmlimit unban "$SEGMENT" 203.0.113.9
	is "$rc" 0 "store-keys $store: the address is unbanned"
	banned --key-text 203.0.113.9 || banned --key-ip 203.0.113.9
	is "$?" 1 "store-keys $store: no form of it stays banned"
	run shmlimit ban "$SEGMENT" --key-text 203.0.113.9 --for 1h
	banned --key-text 203.0.113.9 && ! banned --key-ip 203.0.113.9
	ok $? "store-keys $store: --key-text bans the text alone"
done
segment --store-keys 46
spend --key-ip 198.51.100.1 --prefix 24,56
run shmlimit ban "$SEGMENT" 203.0.113.9 --for 1h --json
is "$rc $(printf '%s' "$out" | jq -r .key_ip | tr '\n' ' ')" "0 203.0.113.0/24 203.0.113.9 " \
	"the addresses of a segment show how its servers store one, which is banned beside the usual form"
banned --key-ip 203.0.113.77 --prefix 24,56 && banned --key-ip 203.0.113.9
ok $? "servers with either prefix deny it"

# ---- how an address can be typed ----
for text in 203.0.113.9:50001 '[2001:db8::1]:443' '[2001:db8::1]' ::ffff:203.0.113.9 ' 203.0.113.9' 203.0.113.9/24; do
	run shmlimit peek "$SEGMENT" login --key-ip "$text" --quiet
	is "$rc $err" "0 " "--key-ip takes '$text'"
done
done_testing
