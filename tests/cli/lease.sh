#!/bin/sh
# lease: rules whose tokens are leased from a backend: how they are set, shown, taken from and listed. A program does
# the leasing; here it is a few lines of Python.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 64

refused() {
	message=$1
	shift
	run shmlimit rule set "$segment" "$@"
	is "$rc $out$err" "2 shmlimit: rule $1: $message" "rule set $* is refused"
}

# ---- rules ----
run shmlimit rule set "$segment" g --algorithm lease --capacity 100 --rate 10/s
is "$rc $out$err" "0 " "a lease needs a capacity and a rate"
run shmlimit rule show "$segment" g
is "$(printf '%s\n' "$out" | sed -n '3,8p' | tr '\n' ';')" \
	"algorithm: lease;capacity: 100;rate: 10/s;credit: 0;protected: no;mode: enforce;" "a lease rule is shown as it was set"
is "$(printf '%s\n' "$out" | grep -c overshoot)" 0 "a rule that lends nothing has no overshoot"
run shmlimit rule set "$segment" g --credit 5
is "$rc $out$err" "0 " "a lease can lend to keys that are not known"
run shmlimit rule show "$segment" g
is "$(printf '%s\n' "$out" | sed -n '6p;9p' | tr '\n' ';')" \
	"credit: 5;overshoot: at most 5 on each host that does not know the key;" "a rule that lends is shown with its overshoot"
is "$(shmlimit rule show "$segment" g --json | jq .credit)" 5 "a rule's credit in JSON"
refused "credit 101: must be at most the capacity, 100" g --credit 101
refused "credit 5: must be at most the capacity, 4" g --capacity 4
refused "credit -1: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" g --credit -1
refused "credit 2097152: must be 0 to 2097151" g --credit 2097152
refused "credit: a funnel has none of its own: leave it out" new --capacity 5 --rate 1/s --credit 5
refused "rate 1/s strict: this algorithm is not strict: leave the word out" new --algorithm lease --rate "1/s strict"
refused "capacity 2097152 is out of range (1 to 2097151 at this rate for a lease)" \
	new --algorithm lease --capacity 2097152 --rate 1/s
refused "capacity 2000000 is out of range (1 to 104249 at this rate for a lease)" new --algorithm lease --capacity 2000000 --rate 7/d
printf '[new]\nalgorithm = lease\ncapacity = 2000000\nrate = 7/d\n' >"$TMP/inexact.ini"
run shmlimit apply "$segment" "$TMP/inexact.ini" --dry-run
like "$rc $out$err" "^2 .*inexact.ini:1: rule new: capacity 2000000 is out of range .1 to 104249 at this rate for a lease.$" \
	"apply refuses a lease that cannot be counted exactly, in a dry run too"
refused "max-wait: a lease has none of its own: leave it out" \
	new --algorithm lease --capacity 1 --rate 1/s --max-wait 1s
run shmlimit rule set "$segment" g --algorithm funnel
is $rc 2 "a lease does not become a funnel"
run shmlimit rule set "$segment" g --capacity 50
is "$rc $out$err" "0 " "a lease's capacity can be changed"
run shmlimit rule export "$segment"
like "$out" 'algorithm = lease' "a lease is exported"
printf '%s\n' "$out" >rules
shmlimit rule remove "$segment" g
run shmlimit apply "$segment" rules
is "$rc $out$err" "0 + rule g algorithm lease capacity 50 rate 10/s credit 5" "a lease is made again from a file"

# ---- what is here ----
run shmlimit take "$segment" g key
is $rc 1 "nobody leased anything: nothing is here"
run shmlimit inspect "$segment"
is "$(printf '%s\n' "$out" | grep -c '^leases:')" 0 "inspect says nothing of leases where there were none"

# A library that was built with a sanitizer is for programs that were, too.
if ! python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$BUILD/libshmlimit.so" 2>/dev/null; then
	diag "no Python that can load the library: nothing is leased"
	done_testing
fi
# lease CALLS: a line of Python for each, in which take(), deposit() and deny() are the library's for the key "key".
lease() {
	python3 - "$BUILD/libshmlimit.so" "$segment" <<-END
		import ctypes, sys
		library = ctypes.CDLL(sys.argv[1])
		limiter = ctypes.c_void_p()
		assert library.shmlimit_open(sys.argv[2].encode(), 0, None, ctypes.byref(limiter)) == 0
		rule = library.shmlimit_rule_find(limiter, b"g")
		u64 = ctypes.c_uint64
		room = (ctypes.c_uint32 * 16)(64)
		def take(cost):
		    asked = (u64 * 4)(32, cost, 10**12, 10**12)
		    return library.shmlimit_lease_take(limiter, rule, b"key", u64(3), asked, room, None)
		def deposit(tokens, cost):
		    return library.shmlimit_lease_deposit(limiter, rule, b"key", u64(3), u64(tokens), u64(cost), u64(0), u64(10**12), None)
		def deny(cost):
		    return library.shmlimit_lease_deny(limiter, rule, b"key", u64(3), u64(cost), u64(10**12), None)
		$1
	END
}

run lease 'print(take(1), take(1))'
is "$rc $out" "0 2 3" "one asks for more, and others wait"
run shmlimit inspect "$segment"
like "$out" '^g  *[0-9a-f]{12}  *0  *- .* asked$' "inspect shows that a caller asks for more"
run lease 'print(deposit(11, 1))'
is "$rc $out" "0 0" "the caller that asked deposits"
run shmlimit take "$segment" g key --cost 4
is "$rc" 0 "what was deposited can be spent by another process"
run shmlimit inspect "$segment"
like "$out" '^g  *[0-9a-f]{12}  *6  *- .* tokens$' "inspect shows what is left of a lease"
like "$out" '^leases: 1: tokens 11, spent 5, expired 0$' "inspect shows what became of leased tokens"
is "$(shmlimit inspect "$segment" --json | jq -c '[.leases.leases, .leases.leased, .leases.spent, .occupancy.shown[0].lease]')" \
	'[1,11,5,"tokens"]' "in JSON, too"
shmlimit reset "$segment" --rule g --key key >/dev/null
run lease 'print(deny(1), take(1))'
is "$rc $out" "0 1 1" "a denial is remembered"
run shmlimit inspect "$segment"
like "$out" '^g  *[0-9a-f]{12}  *0  *- .* denied$' "inspect shows a denial"
like "$out" '^known denials: 1$' "inspect counts known denials"
run shmlimit metrics "$segment"
like "$out" "^shmlimit_segment_lease_tokens_total\{segment=\"$segment\",state=\"spent\"\} 5\$" "metrics have what was spent"
like "$out" "^shmlimit_segment_lease_known_denials_total\{segment=\"$segment\"\} 1\$" "metrics have the known denials"
run shmlimit verify "$segment"
is $rc 0 "the segment is sound"
done_testing
