#!/bin/sh
# replay_suggest: the limit that is proposed denies what was asked for at most, and none that is smaller does.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# A log of some twenty keys over ten minutes, of which a few are busy; in bursts.
seed=${SEED:-$$}
diag "SEED=$seed"
awk -v seed="$seed" 'BEGIN {
	srand(seed)
	for (i = 0; i < 3000; i++) {
		if (rand() < 0.2)
			now += int(rand() * 3)
		if (now >= 600)
			break
		key = int(rand() * rand() * 20)
		printf "10.0.0.%d - - [21/Nov/2026:09:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", key, int(now / 60), now % 60
	}
}' >log
requests=$(wc -l <log)

# denied PATTERN FROM: of 16 numbers from FROM on, what the limit with each of them denies, a line each.
denied() {
	IFS='
'
	# shellcheck disable=SC2046 # a word a line
	shmlimit replay $(awk -v pattern="$1" -v from="$2" 'BEGIN {
		for (n = from; n < from + 16; n++) {
			rule = pattern
			gsub(/[?]/, n, rule)
			print "--rule\n" rule
		}
	}') --slots 1024 --top 0 --json log | jq '.rules[].denied'
}

# smallest PATTERN MOST: the first number whose limit denies at most MOST, by trying each.
smallest() {
	from=1
	while [ $from -lt 4000 ]; do
		n=$from
		for d in $(denied "$1" $from); do
			[ "$d" -le "$2" ] && echo $n && return
			n=$((n + 1))
		done
		from=$((from + 16))
	done
}

for pattern in '?/m burst ?' '10/m burst ?' '?/m burst 50' '?/m window'; do
	for share in 10 2.5 0.1; do
		most=$(awk -v n="$requests" -v share=$share 'BEGIN { printf "%d", n * share / 100 + 1e-9 }')
		run shmlimit replay --rule "$pattern" --suggest "$share%" --json log
		best=$(smallest "$pattern" "$most")
		is "$rc $(printf '%s' "$out" | jq '.rules[0].suggested')" "0 $best" \
			"'$pattern': the smallest number that denies at most $share % is found"
		found=$(printf '%s' "$out" | jq -r '.rules[0].rule')
		is "$(printf '%s' "$out" | jq -c '.rules[0] | [.allowed, .denied, .keys_denied, .first_unix_ns, .last_unix_ns, .denied_by_step, .worst]')" \
			"$(shmlimit replay --rule "$found" --json log | jq -c '.rules[0] | [.allowed, .denied, .keys_denied, .first_unix_ns, .last_unix_ns, .denied_by_step, .worst]')" \
			"'$found' denies what is printed of it when it is replayed"
		run shmlimit replay --rule "$found" --max-denied "$share%" --top 0 log
		is $rc 0 "'$found' does not deny more than $share %"
	done
done

run shmlimit replay --suggest 1% log
like "$(printf '%s\n' "$out" | sed -n '/^RULE/{n;p;q}')" '^([0-9]+)/m burst \1 ' "without --rule it is as many a minute, and a burst of as many"
run shmlimit replay --suggest 1% --rule '?/m window' --rule '5/m window' --json --top 0 log
is "$(printf '%s' "$out" | jq -c '[.rules[1] | .rule, .suggested, .denied]')" \
	"$(shmlimit replay --rule '5/m window' --json --top 0 log | jq -c '[.rules[0] | .rule, .suggested, .denied]')" \
	"a limit that is whole is replayed beside it"
run shmlimit replay --suggest 0% --rule '?/s burst 1' --json --top 0 log
is "$rc $(printf '%s' "$out" | jq -r '.rules[0].denied // "none"')" "2 " "there may be no such number: requests of one second come at once"
like "$err" "^shmlimit: --rule '\\?/s burst 1': no number denies so little" "a rate for which no number exists is reported"

# --max-denied, --since, --until.
run shmlimit replay --rule '1/d burst 1' --max-denied 1% --top 0 log
is "$rc $err" "1 " "--max-denied exits 1 if a limit denies more"
like "$out" '^1/d burst 1 ' "--max-denied prints what a limit denies also when it exits 1"
run shmlimit replay --rule '1/d burst 1' --max-denied 100% --top 0 log
is $rc 0 "no limit denies more than 100 %"
at() { printf '10.0.0.1 - - [21/Nov/2026:09:00:%02d +0000] "GET / HTTP/1.1" 200 1\n' "$1"; }
for i in 0 10 20 30 40; do at $i; done >five
times() { shmlimit replay --rule '1/d burst 1' --json "$@" five | jq -c '[.lines, .outside, .rules[0].allowed + .rules[0].denied]'; }
is "$(times --since 2026-11-21T09:00:10)" "[5,1,4]" "--since leaves out what is before"
is "$(times --until 2026-11-21T09:00:10Z)" "[5,4,1]" "--until leaves out that time and what is behind"
is "$(times --since 2026-11-21T09:00Z --until 2026-11-22)" "[5,0,5]" "a time may lack seconds, or hours"
is "$(times --since 1s)" "$(if [ "$(date +%s)" -gt 1795251641 ]; then echo '[5,5,0]'; else echo '[5,0,5]'; fi)" "a duration is before now"

wrong() {
	message=$1
	shift
	run shmlimit replay "$@" five
	is "$rc $out$err" "2 shmlimit: $message" "replay $* is refused"
}
wrong "--suggest 1: not a share (for example 1% or 0.1%, up to 100%)" --suggest 1
wrong "--suggest 101%: not a share (for example 1% or 0.1%, up to 100%)" --suggest 101%
wrong "--max-denied lots: not a share (for example 1% or 0.1%, up to 100%)" --rule '1/s burst 1' --max-denied lots
wrong "--rule '?/s burst 1': ? stands for a number to find, which needs --suggest SHARE" --rule '?/s burst 1'
wrong "--suggest: nothing to find: give a --rule with a ?, as in '?/m burst 20', '10/s burst ?'" --suggest 1% \
	--rule '1/s burst 1'
wrong "--since 2026-13-01: not a time (for example 2026-11-21T09:00Z, or 2h before now)" --rule '1/s burst 1' --since 2026-13-01
wrong "--since soon: not a time (for example 2026-11-21T09:00Z, or 2h before now)" --rule '1/s burst 1' --since soon
wrong "--since 2h: must be before --until 3h" --rule '1/s burst 1' --since 2h --until 3h

done_testing
