#!/bin/sh
# nft: bans as nftables sets. The sets themselves are tried in a network namespace of its own, where that is permitted.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
ban() { shmlimit ban "$segment" "$@" >"$TMP/ban"; }
# elements [OPTION...]: a line for each range, without its time.
elements() { shmlimit bans "$segment" --nft "$@" 2>"$TMP/err" | sed -n 's/^\t\([^ ]*\) timeout .*/\1/p' | tr '\n' ' '; }
shmlimit create "$segment" --slots 256 --store-keys 46

run shmlimit bans "$segment" --nft
like "$rc $(printf '%s\n' "$out" | tr '\n' ';')" '^0 add table inet shmlimit;add set inet shmlimit bans4 \{ type ipv4_addr; flags interval,timeout; \};flush set inet shmlimit bans4;' \
	"while nobody is banned the sets are made, and empty"
is "$(printf '%s\n' "$out" | grep -c 'add element')" 0 "an empty set has no elements"

ban --key-ip 203.0.113.0 --prefix 24,64 --for 1h
is "$(elements)" "203.0.113.0-203.0.113.255 " "a net is a range"
ban --key-ip 203.0.113.9 --for 10m
is "$(elements)" "203.0.113.0-203.0.113.255 " "a shorter ban in a net's longer one changes nothing"
ban --key-ip 203.0.113.9 --for 2h
is "$(elements)" "203.0.113.0-203.0.113.8 203.0.113.9 203.0.113.10-203.0.113.255 " "a longer ban in a net cuts the net's range"
like "$(shmlimit bans "$segment" --nft | sed -n 's/^\t203.0.113.\(8\|9\) timeout \([0-9]*\)ms,/\2/p')" '^(7[12]|6[0-9])[0-9]{5}$' "it keeps its longer time"
ban --key-ip 2001:db8::1 --for 3h
ban --key-text 198.51.100.7 --for 30m
ban --key-ip 198.51.100.7 --for 40m
is "$(elements | tr ' ' '\n' | grep -c '^198.51.100.7$')" 1 "an address that is banned as text and as a net is there once"
ban --key-text ::ffff:198.51.100.8 --for 30m
is "$(elements | grep -o '198.51.100.8 ')" "198.51.100.8 " "an IPv4-mapped address is IPv4"
is "$(shmlimit bans "$segment" --nft | sed -n '/bans6 {$/,/^}/p' | sed -n 's/^\t\([^ ]*\) .*/\1/p')" "2001:db8::-2001:db8::ffff:ffff:ffff:ffff" \
	"IPv6 has a set of its own"
ban --key-ip 255.255.255.0 --prefix 24,64 --for 1h
ban --key-ip 255.255.255.255 --for 2h
ban --key-ip ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --prefix 32,128 --for 1h
is "$(elements | sed 's/.* 203[^ ]* //')" "255.255.255.0-255.255.255.254 255.255.255.255 2001:db8::-2001:db8::ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff " \
	"a range ends with the last address that there is"

ban alice --for 1h
ban --key-text 198.51.100.9:80 --for 1h
ban --key-ip 0.0.0.0 --prefix 0,0 --for 1h
all=$(elements)
is "$(cat "$TMP/err")" "shmlimit: bans left out: 2, since their keys are not addresses
shmlimit: bans left out: 1, since their nets are wider than /24 of IPv4 or /48 of IPv6 (drop them, too: --widest N,M)" \
	"keys that are not an address are left out and counted, and so is the net of all addresses"
is "$(printf '%s' "$all" | grep -c -e 198.51.100.9 -e 0.0.0.0)" 0 "what is left out is not in a set"
shmlimit create "$SEGMENT.bare" --slots 64
shmlimit ban "$SEGMENT.bare" --key-ip 203.0.113.9 --for 1h >"$TMP/ban"
run shmlimit bans "$SEGMENT.bare" --nft
is "$rc $err $(printf '%s\n' "$out" | grep -c timeout,)" \
	"0 shmlimit: bans left out: 1, since the segment does not store their keys (create --store-keys) 0" "a segment without keys says so"

# The caller's own address.
spared="shmlimit: a ban is not dropped where it has this session's address, one of --keep, the default route's net, a \
resolver, or a private or local address (drop private ones, too: --private)"
for address in 127.0.0.1 127.8.9.10 ::1; do ban --key-ip $address --prefix 32,128 --for 1h; done
is "$(elements)" "$all" "loopback addresses are never dropped"
is "$(grep -c "$spared" "$TMP/err")" 1 "a message says that a ban is not dropped everywhere"
is "$(SSH_CONNECTION='203.0.113.9 40000 192.0.2.1 22' elements | cut -d ' ' -f 2-4)" "198.51.100.8 203.0.113.0-203.0.113.8 203.0.113.10-203.0.113.255" \
	"the address of SSH_CONNECTION is never dropped, and the rest of its net is"
is "$(SSH_CONNECTION='203.0.113.9 40000 192.0.2.1 22' sh -c 'env -u SSH_CONNECTION shmlimit bans "$1" --nft 2>/dev/null; true' sh "$segment" |
	grep -c '203.0.113.9 ')" 0 "it is found in the environment of the process that began this one, as under sudo"
is "$(elements --keep 203.0.113.0/25 --keep 2001:db8::/32 --keep 255.0.0.0/8)" \
	"198.51.100.7 198.51.100.8 203.0.113.128-203.0.113.255 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff " "--keep takes nets, and several of them"

# What a process that may write to the segment can have dropped is bounded.
wide() { shmlimit ban "$SEGMENT.wide" --key-ip "$1" --prefix "$2,$2" --for 1h >"$TMP/ban"; }
# addresses [OPTION...]: how many addresses of IPv4 are dropped.
addresses() {
	shmlimit bans "$SEGMENT.wide" --nft "$@" 2>"$TMP/err" | sed -n 's/^\t\([0-9.]*\)-*\([0-9.]*\) timeout .*/\1 \2/p' |
		awk 'function n(a, b) { split(a, b, "."); return ((b[1] * 256 + b[2]) * 256 + b[3]) * 256 + b[4] }
			{ all += $2 == "" ? 1 : n($2) - n($1) + 1 } END { print all + 0 }'
}
shmlimit create "$SEGMENT.wide" --slots 16K --store-keys 46
wide 0.0.0.0 1
wide 128.0.0.0 1
is "$(addresses) $(cat "$TMP/err")" \
	"0 shmlimit: bans left out: 2, since their nets are wider than /24 of IPv4 or /48 of IPv6 (drop them, too: --widest N,M)" \
	"two bans of half of all addresses drop nothing"
wide 203.0.113.9 32
wide 198.51.100.0 22
is "$(addresses) $(addresses --widest 22,48)" "1 1025" "--widest lets wider nets be dropped"
for net in 11 12 13 14 15 16 17 18 19; do wide $net.0.0.0 10; done
wide 203.0.113.0 24
is "$(addresses --widest 16,48 | sed 's/$/ /')$(addresses --widest 8,48)" "1280 37750016" "a net of the width of --widest is dropped"
is "$(($(addresses --widest 24,48) <= 4096 * 256))" 1 "no more is dropped than 4096 nets of the widest"
run shmlimit bans "$SEGMENT.wide" --nft --widest 33
is "$rc $err" "2 shmlimit: --widest 33: must be N or N,M: 0 to 32 bits of IPv4, 0 to 128 of IPv6" "--widest takes the bits of an address"
run shmlimit bans "$SEGMENT.wide" --private
is "$rc $err" "2 shmlimit: --private: needs --nft or --over" "--private needs something to act on"

# A proxy that the server was not told of is the only client.
shmlimit create "$SEGMENT.proxy" --slots 256 --store-keys 46
shmlimit rule set "$SEGMENT.proxy" abuse --algorithm counter --period 1m --capacity 1000
proxies="10.0.0.1 172.31.255.1 192.168.1.1 100.64.0.1 127.0.0.1 fd12:3456:789a::1 ::1"
for address in $proxies 203.0.113.9; do shmlimit count "$SEGMENT.proxy" abuse --key-ip $address --by 200 --ttl 1m --quiet; done
run shmlimit bans "$SEGMENT.proxy" --over abuse=100 --for 10m
is "$rc $(printf '%s\n' "$out" | cut -f 1)" "0 203.0.113.9" "--over bans no private or local address"
like "$err" 'not banned: a private or local address, usually a proxy that the server is not configured for \(ban such ones, too: --private\)$' "a message names a private address that is not banned"
run shmlimit bans "$SEGMENT.proxy" --over abuse=100 --for 10m --private
is "$rc $(printf '%s\n' "$out" | wc -l)" "0 8" "--private bans such addresses, too"
is "$(shmlimit bans "$SEGMENT.proxy" --nft 2>"$TMP/err" | sed -n 's/^\t\([^ ]*\) timeout .*/\1/p' | tr '\n' ' ')" "203.0.113.9 " \
	"--nft drops no private or local address"
is "$(shmlimit bans "$SEGMENT.proxy" --nft --private 2>"$TMP/err" | grep -c ' timeout ')" 6 "--nft --private drops private ones, and no loopback address"

# Heavy offenders.
shmlimit rule set "$segment" abuse --algorithm counter --period 1m --capacity 1000
shmlimit count "$segment" abuse --key-ip 198.51.100.105 --by 100 --quiet
shmlimit count "$segment" abuse --key-ip 198.51.100.106 --by 99 --quiet
run shmlimit bans "$segment" --over abuse=100 --for 2d --json
is "$rc $err $(printf '%s\n' "$out" | head -n 1 | jq -r .key_ip)" "0  198.51.100.105" "--over bans a key that was counted so often"
is "$(printf '%s\n' "$out" | grep -c 198.51.100.106)" 0 "--over bans no key that was counted once less"
is "$(elements | grep -c 198.51.100.105)" 1 "its ban is one like others"
shmlimit count "$segment" abuse --key-ip 198.51.100.109 --by 200 --ttl 1m >"$TMP/out"
shmlimit ban "$segment" --key-ip 198.51.100.109 --for 30d >"$TMP/out"
shmlimit bans "$segment" --over abuse=100 --for 10m >"$TMP/out"
like "$(sed -n 's/^198\.51\.100\.109.*	//p' "$TMP/out")" '^(30d|29d)' "--over does not shorten the ban that a person made"
shmlimit ban "$segment" --key-ip 198.51.100.109 --for 1m >"$TMP/out"
shmlimit count "$segment" abuse --key-ip 198.51.100.109 --by 200 --ttl 1m >"$TMP/out"
shmlimit bans "$segment" --over abuse=100 --for 3d >"$TMP/out"
like "$(sed -n 's/^198\.51\.100\.109.*	//p' "$TMP/out")" '^(3d|2d)' "--over lengthens a shorter ban"
shmlimit unban "$segment" --key-ip 198.51.100.109
shmlimit unban "$segment" --key-ip 198.51.100.105
is "$(shmlimit bans "$segment" --over abuse=100 --for 2d | grep -c 198.51.100.105)" 0 "a key that was unbanned is not banned again by the same count"

# check OPTIONS... MESSAGE: wrong usage.
check() {
	for message in "$@"; do :; done
	n=$#
	for word in "$@"; do
		shift
		n=$((n - 1))
		[ $n -eq 0 ] || set -- "$@" "$word"
	done
	run shmlimit bans "$segment" "$@"
	is "$rc $err" "2 shmlimit: $message" "it is an error: $*"
}
check --apply "--apply: needs --nft"
check --nft --json "--nft and --json: give only one of them"
check --nft --every 5s "--every 5s: needs --apply"
check --nft --apply --every 5ms "--every 5ms: must be 100ms or more"
check --nft --keep 203.0.113.0/33 "--keep 203.0.113.0/33: must be an address or a net, such as 203.0.113.9 or 2001:db8::/32"
check --nft --table 'a; flush ruleset' "--table a; flush ruleset: must be a letter, then letters, digits and _, 63 at most"
check --nft --set 4 "--set 4: must be a letter, then letters, digits and _, 63 at most"
check --for 1h "--for 1h: needs --over COUNTER=N"
check --over abuse "--over abuse: must be COUNTER=N, such as abuse=100"
check --over abuse=100 "--over abuse=100: missing --for DURATION, how long a ban lasts, such as --for 10m"
check --over ban=1 --for 1h "--over ban=1: rule ban has the bans; the counter must be another rule"
check --over abuse=1001 --for 1h "--over abuse=1001: rule abuse counts to 1000 at most"
run shmlimit bans "$segment" --over none=1 --for 1h
is $rc 3 "--over with a rule that is missing exits 3"
run env PATH="$TMP/none" "$BUILD/bin/shmlimit" bans "$segment" --nft --apply
is "$rc $(printf '%s\n' "$err" | tail -n 1)" "2 shmlimit: nft is not installed (on Debian: apt install nftables)" "without nft nothing is applied"

# In a network namespace: packets of an address are dropped while its ban lasts.
cat >"$TMP/space" <<'END'
set -e
ip link set lo up
ip addr add 203.0.113.9/32 dev lo
ip addr add 198.51.100.20/32 dev lo
perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => "198.51.100.20", LocalPort => 8080, Listen => 9) or die; print "ready\n"; close STDOUT; while (my $c = $s->accept) { close $c }' >ready &
server=$!
trap 'kill $server' EXIT
while ! [ -s ready ]; do sleep 0.01; done
# A connection from 203.0.113.9. One that is dropped hangs, so the counter of the rule that drops is looked at.
reach() {
	perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(LocalAddr => $ARGV[0], PeerAddr => "198.51.100.20:8080", Timeout => 1)' "$1"
}
drops() { nft -j list chain inet shmlimit input | jq '[.. | .counter? // empty | .packets] | add > 0'; }
reach 203.0.113.9 && echo "before: passed"
shmlimit bans "$1" --nft --apply --private
reach 203.0.113.9 || echo "banned: dropped $(drops)"
reach 198.51.100.20 && echo "other: passed"
shmlimit bans "$1" --nft --apply --private --keep 203.0.113.9
reach 203.0.113.9 && echo "kept: passed"
shmlimit bans "$1" --nft --apply --private --every 100ms &
follower=$!
while ! nft get element inet shmlimit bans4 '{ 203.0.113.9 }' >get 2>&1; do sleep 0.01; done
shmlimit unban "$1" --key-ip 203.0.113.9
while nft get element inet shmlimit bans4 '{ 203.0.113.9 }' >get 2>&1; do sleep 0.01; done
reach 203.0.113.9 && echo "unbanned: passed"
kill $follower
shmlimit ban "$1" --key-ip 203.0.113.9 --for 300ms >get
shmlimit bans "$1" --nft --apply --private
while nft get element inet shmlimit bans4 '{ 203.0.113.9 }' >get 2>&1; do sleep 0.01; done
reach 203.0.113.9 && echo "ended: passed"
nft add table inet filter
shmlimit bans "$1" --nft --apply --table filter --set bad
nft list table inet filter | grep -c -e 'set bad4' -e 'set bad6'
nft list table inet filter | grep -c chain || true
END
missing=$(for command in nft ip perl; do command -v $command >/dev/null || echo "$command "; done)
if [ -n "$missing" ]; then
	ok 0 "packets of a banned address are dropped # SKIP $missing is not installed"
elif ! unshare -n nft list ruleset >"$TMP/ban" 2>&1; then
	ok 0 "packets of a banned address are dropped # SKIP no network namespace with nftables can be made here"
else
	shmlimit create "$SEGMENT.n" --slots 64 --store-keys 46
	shmlimit ban "$SEGMENT.n" --key-ip 203.0.113.9 --for 1h >"$TMP/ban"
	cd "$TMP" || exit 1
	run unshare -n sh "$TMP/space" "$SEGMENT.n"
	is "$out" "before: passed
banned: dropped true
other: passed
kept: passed
unbanned: passed
ended: passed
2
0" "packets of a banned address are dropped by the kernel until the ban ends, or is ended; a table of one's own gets the sets only"
	is "$rc $(printf '%s\n' "$err" | grep -v "$spared")" "0 " "nft says nothing against it"
fi
done_testing
