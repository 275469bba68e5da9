#!/bin/sh
# rule: rules are set, shown, listed and removed; what is wrong changes nothing.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

segment=$SEGMENT.s
shmlimit create "$segment" --slots 16 --rules 3 --rules-max 3

no_segment() {
	run shmlimit "$@"
	is "$rc $out$err" "3 shmlimit: segment $SEGMENT.none: no such segment (shmlimit create $SEGMENT.none makes one; \
shmlimit list lists all)" "$1 $2 needs a segment"
}

no_segment rule set "$SEGMENT.none" login --capacity 15 --rate 30/60s
no_segment rule show "$SEGMENT.none" login
no_segment rule list "$SEGMENT.none"
no_segment rule remove "$SEGMENT.none" login

missing="shmlimit: rule login: no such rule in segment $segment (shmlimit rule set $segment login --capacity N \
--rate N/s makes it; shmlimit rule list $segment lists them)"

no_rule() {
	run shmlimit "$@"
	is "$rc $out$err" "3 $missing" "$1 $2 needs a rule: $*"
}

no_rule rule show "$segment" login
no_rule rule remove "$segment" login
no_rule rule set "$segment" login --mode off
run shmlimit rule set "$segment" login --capacity 15
is "$rc $out$err" "2 shmlimit: rule login: not in segment $segment yet, and a new rule needs a rate too, such as --rate 5/m \
(shmlimit rule list $segment lists its rules)" "a new rule without a rate is told what it needs"

run shmlimit rule list "$segment"
is "$rc $out" "0 RULE  ID  ALGORITHM  CAPACITY  RATE  WARMUP  COLD-FACTOR  COUNT-REFUSED  MAX-WAIT  \
NEXT-PAYS  CREDIT  PROTECTED  MODE" "a list of no rules is a head"
run shmlimit rule list "$segment" --json
is "$rc $out" "0 []" "a list of no rules is an empty list in JSON"

# Setting.
run shmlimit rule set "$segment" login --capacity 15 --rate 30/60s
is "$rc $out$err" "0 " "rule set prints nothing"
run shmlimit rule show "$segment" login
is $rc 0 "rule show works"
is "$(printf '%s\n' "$out" | sed -n 1,9p | tr '\n' ';')" \
	"rule: login;id: 0;algorithm: funnel;capacity: 15;rate: 30/m;max-wait: 0s;next-pays: no;protected: no;mode: enforce;" \
	"a rule is shown as it was set, enforced, without debt"
like "$out" '^resolution: [0-9.]+[nu]s$' "a rule's resolution is shown in nanoseconds"
like "$out" '^time to full: 30s$' "15 tokens at 30 a minute take 30 seconds"
like "$out" '^range back: [0-9]{3,}d[0-9hms.]*$' "a rule's range back is over a year"
like "$out" '^range ahead: [0-9]+d[0-9hms.]*$' "a rule's range ahead is over days"

run shmlimit rule show "$segment" login --json
is "$(printf '%s' "$out" | jq -c '[.name, .id, .capacity, .rate, .refill, .period_ns,
	.max_wait_ns, .next_pays, .mode, .refill_ns]')" \
	'["login",0,15,"30/m",30,60000000000,0,false,"enforce",30000000000]' "the same as JSON"
is "$(printf '%s' "$out" | jq '.back_ns > 365 * 86400e9 and .ahead_ns > 86400e9 and .resolution_ps > 0')" true \
	"a rule's JSON has what its clock can tell"

run shmlimit rule set "$segment" login --mode off
is "$rc $out$err" "0 " "the mode alone can be set"
mode() { shmlimit rule show "$segment" "$1" --json | jq -r '"\(.capacity) \(.rate) \(.mode)"'; }
is "$(mode login)" "15 30/m off" "setting the mode alone leaves capacity and rate as they are"
run shmlimit rule set "$segment" login --capacity 15 --rate 30/60s
is "$rc $(mode login)" "0 15 30/m off" "what is not given stays: the mode"
run shmlimit rule set "$segment" login --capacity 15 --mode dry-run
is "$rc $(mode login)" "0 15 30/m dry-run" "what is not given stays: the rate"
run shmlimit rule set "$segment" login --rate 30/60s --mode enforce
is "$rc $(mode login)" "0 15 30/m enforce" "what is not given stays: the capacity"
run shmlimit rule set "$segment" watch --capacity 1 --rate 1/h --mode dry-run
is "$rc $(mode watch)" "0 1 1/h dry-run" "a new rule can begin in any mode"

# Changing, live.
facts() {
	shmlimit rule show "$segment" "$1" --json |
		jq -r '"\(.capacity) \(.rate) \(.max_wait_ns) \(.next_pays) \(.mode)"'
}
shmlimit rule set "$segment" watch --capacity 10 --rate 1/d --mode enforce
shmlimit take "$segment" watch key --cost 4 --quiet
left() { shmlimit peek "$segment" watch key --json | jq .remaining; }
is "$(facts watch) $(left)" "10 1/d 0 false enforce 6" "capacity and rate of a rule can be changed"
run shmlimit rule set "$segment" watch --capacity 20
is "$rc $out$err $(facts watch)" "0  20 1/d 0 false enforce" "the capacity alone can be set"
is "$(left)" 6 "a key keeps its tokens under a larger capacity"
run shmlimit rule set "$segment" watch --capacity 5 --rate 2/d
is "$rc $(facts watch) $(left)" "0 5 2/d 0 false enforce 5" "a key keeps as many tokens as fit under a smaller capacity"
run shmlimit rule set "$segment" watch --max-wait 36h
is "$rc $out$err $(facts watch)" "0  5 2/d 129600000000000 false enforce" "the longest wait alone can be set"
run shmlimit rule set "$segment" watch --next-pays yes
is "$rc $out$err $(facts watch)" "0  5 2/d 129600000000000 true enforce" "next-pays can be changed alone"
run shmlimit rule show "$segment" watch
like "$(printf '%s' "$out" | tr '\n' ';')" ';max-wait: 1d12h;next-pays: yes;protected: no;mode: enforce;' "the longest wait and who pays are shown"
run shmlimit rule set "$segment" watch --max-wait 0 --next-pays no --capacity 1 --rate 1/h --mode dry-run
is "$rc $(facts watch)" "0 1 1/h 0 false dry-run" "all can be set at once"
while read -r text ns shown; do
	shmlimit rule set "$segment" watch --max-wait "$text"
	is "$(facts watch)" "1 1/h $ns false dry-run" "a wait of $text is $ns ns"
	like "$(shmlimit rule show "$segment" watch)" "^max-wait: $shown\$" "a wait of $text is shown as $shown"
done <<END
2s 2000000000 2s
500ms 500000000 500ms
1m 60000000000 1m
90s 90000000000 1m30s
120seconds 120000000000 2m
7d 604800000000000 1w
1500us 1500000 1.5ms
1.5s 1500000000 1.5s
1h30m 5400000000000 1h30m
1d1h1m1.000000001s 90061000000001 1d1h1m1.000000001s
61.5s 61500000000 1m1.5s
0.25ms 250000 250us
1.5w 907200000000000 10d12h
0s 0 0s
0 0 0s
END

# Refusing.
unchanged() { is "$(mode login)" "15 30/m enforce" "an error leaves the rule unchanged"; }

refused() {
	message=$1
	shift
	run shmlimit rule set "$segment" login "$@"
	is "$rc $out$err" "2 shmlimit: rule login: $message" "rule set $* is refused"
	unchanged
}

refused "nothing to set: give --capacity and --rate, --mode, or another option"
refused "capacity 0: must be 1 or more" --capacity 0
refused "capacity 0: must be 1 or more" --capacity 0 --rate 30/60s --mode off
refused "capacity -1: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --capacity -1
refused "capacity 15KB: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --capacity 15KB
refused "capacity : not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --capacity ''
refused "capacity 18446744073709551616: must be 1 to 18446744073709551615" --capacity 18446744073709551616
refused "rate 0/s: goes without capacity and mode: leave them out" --rate 0/s --mode off
refused "rate block: goes without capacity and mode: leave them out" --rate block --capacity 15
refused "capacity 15: the rate 5/m burst 10 says 10" --rate "5/m burst 10" --capacity 15
refused "mode on: must be enforce, dry-run, off or block" --mode on
refused "mode : must be enforce, dry-run, off or block" --mode ''
refused "mode enforc: must be enforce, dry-run, off or block" --mode enforc
refused "next-pays maybe: must be yes or no" --next-pays maybe
refused "next-pays : must be yes or no" --next-pays '' --capacity 16
soon="not a duration (for example 2s, 500ms or 1m; or 0)"
refused "max-wait soon: $soon" --max-wait soon
refused "max-wait s: $soon" --max-wait s
refused "max-wait : $soon" --max-wait ''
refused "max-wait -1s: $soon" --max-wait -1s
refused "max-wait 5: unit missing: write 5s if these are seconds (or ns, us, ms, s, m, h, d, w, month or y)" --max-wait 5
refused "max-wait 1.s: unit .s: must be ns, us, ms, s, m, h, d, w, month or y" --max-wait 1.s
refused "max-wait 0.1ns: duration finer than a nanosecond: must be a whole number of them" --max-wait 0.1ns
refused "max-wait 1m1h: unit h: must be shorter than the one before it, as in 1h30m" --max-wait 1m1h
refused "max-wait 1h30: unit missing: write 1h30s if these are seconds (or ns, us, ms, s, m, h, d, w, month or y)" --max-wait 1h30
refused "max-wait 2 s x: unit  x: must be ns, us, ms, s, m, h, d, w, month or y" --max-wait '2 s x'
refused "max-wait 30501w: duration too long: must be 213503d23h34m33.709551614s or less" --max-wait 30501w
refused "max-wait 30000w is out of range at this rate" --max-wait 30000w
refused "capacity 281474976710657 is out of range (1 to 281474976710656 at this rate)" \
	--capacity 281474976710657 --rate 1000000/s

# Names.
# bad_name NAME MESSAGE
bad_name() {
	for verb in 'set --capacity 1 --rate 1/s' show remove; do
		run shmlimit rule $verb -- "$segment" "$1"
		is "$rc $out$err" "2 shmlimit: rule $2" "rule $verb of '$(printf %.20s "$1" | tr -d '\033')' is refused"
	done
}

name="bad name: must be 1 to 63 letters, digits and . _ : @ + -"
long=$(printf '%064d' 0)
bad_name '' "\"\": $name"
bad_name 'log in' "log in: $name"
bad_name a/b "a/b: $name"
bad_name "$(printf 'esc\033[31m')" 'esc\x1b[31m: '"$name"
bad_name "$(printf 'l\303\266gin')" 'l\xc3\xb6gin: '"$name"
bad_name "$long" "$long: name too long: must be 1 to 63 characters"

edge=$(printf '%059d.:@+' 0)
run shmlimit rule set "$segment" "$edge" --capacity 1 --rate 1/s
is "$rc" 0 "a name of 63 legal characters is fine"
run shmlimit rule set "$segment" fourth --capacity 1 --rate 1/s
is "$rc $err" "2 shmlimit: rule fourth: no room for another rule in segment $segment: remove one first (shmlimit rule remove), or create the segment with a larger --rules-max" "a segment that is full of rules takes no more"

run shmlimit rule set "$segment" login --protected yes
is "$rc $out$err$(shmlimit rule show "$segment" login | grep ^protected)" "0 protected: yes" "a rule can be protected"
is "$(shmlimit rule show "$segment" login --json | jq .protected)" true "rule show --json has the protection"
shmlimit rule export "$segment" >"$TMP/rules"
shmlimit rule set "$segment" login --protected no
run shmlimit apply "$segment" "$TMP/rules"
is "$rc $(printf '%s\n' "$out" | grep -c 'login protected no -> yes')$(shmlimit rule show "$segment" login | grep ^protected)" \
	"0 1protected: yes" "a rules file has the protection"
run shmlimit rule set "$segment" login --protected maybe
is "$rc $err" "2 shmlimit: rule login: protected maybe: must be yes or no" "the protection is yes or no"
shmlimit rule set "$segment" login --protected no

# Listing.
run shmlimit rule list "$segment"
is "$(printf '%s\n' "$out" | tr -s ' ')" "RULE ID ALGORITHM CAPACITY RATE WARMUP COLD-FACTOR COUNT-REFUSED \
MAX-WAIT NEXT-PAYS CREDIT PROTECTED MODE
login 0 funnel 15 30/m - - - 0s no - no enforce
watch 1 funnel 1 1/h - - - 0s no - no dry-run
$edge 2 funnel 1 1/s - - - 0s no - no enforce" "rule list shows each rule"
is "$(printf '%s\n' "$out" | sed 's/ENFORCE\|enforce\|dry-run//' | awk '{ print length }' | sort -u | wc -l)" 2 \
	"in columns"
run shmlimit rule list "$segment" --json
is "$(printf '%s' "$out" | jq -c '[.[] | [.name, .id, .mode]]')" \
	"[[\"login\",0,\"enforce\"],[\"watch\",1,\"dry-run\"],[\"$edge\",2,\"enforce\"]]" "rule list --json is an array"
is "$(printf '%s' "$out" | jq -c '.[0]')" "$(shmlimit rule show "$segment" login --json | jq -c .)" \
	"of what rule show --json prints"

# Removing.
shmlimit take "$segment" login key --cost 15 --quiet
run shmlimit rule remove "$segment" login
is "$rc $out$err" "0 " "rule remove prints nothing"
no_rule rule show "$segment" login
is "$(shmlimit rule list "$segment" --json | jq -r '.[].name' | tr '\n' ' ')" "watch $edge " "the others stay"
shmlimit rule set "$segment" login --capacity 15 --rate 30/60s
run shmlimit take "$segment" login key
like "$out" '^remaining: 14$' "a rule that is set again has forgotten its keys"

done_testing
