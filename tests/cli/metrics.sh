#!/bin/sh
# metrics: what Prometheus reads is what inspect shows, whatever the names, and
# a file is replaced whole or not at all.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
need jq

# Samples as Prometheus' own library reads them, one a line, by both of its parsers: they must agree.
cat >"$TMP/read.py" <<'PYTHON'
import sys
from prometheus_client import openmetrics, parser
from prometheus_client.openmetrics import parser as openmetrics_parser

text = open(sys.argv[1], encoding="utf-8").read()

def samples(read):
	# One of them reads whole numbers as such: beyond 2^53, which a segment of another test may have, they differ by that.
	return [(s.name, tuple(sorted(s.labels.items())), float(s.value)) for f in read(text) for s in f.samples]

new = samples(openmetrics_parser.text_string_to_metric_families)
assert new == samples(parser.text_string_to_metric_families)
assert len({s[:2] for s in new}) == len(new), "a series comes twice"
for name, labels, value in new:
	print(name, *("%s=%s" % label for label in labels), "%.17g" % value)
PYTHON
/usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' 2>/dev/null || skip_all "no python3-prometheus-client"
parse() { /usr/bin/python3 "$TMP/read.py" "$1"; }

segment=$SEGMENT.s
shmlimit create "$segment" --slots 1Ki --slots-max 1Ki --rules 4 --rules-max 4
shmlimit rule set "$segment" r --capacity 3 --rate 1/d
shmlimit rule set "$segment" watch --capacity 1 --rate 2/h --mode dry-run
shmlimit rule set "$segment" w --algorithm window --rate 5/s
for key in a b b b b; do
	shmlimit take "$segment" r $key --quiet
done
shmlimit take "$segment" watch a --quiet
shmlimit take "$segment" watch a --quiet
before=$(sum_file "$SHM$segment")

run shmlimit metrics "$segment"
is "$rc $err" "0 " "metrics of a segment are printed"
is "$(sum_file "$SHM$segment")" "$before" "metrics change nothing in the segment"
is "$(printf '%s\n' "$out" | tail -n 1)" "# EOF" "the last line is that of OpenMetrics"
samples=$(parse "$TMP/.out")
is $? 0 "both of Prometheus' formats read them, and alike"

has() { is "$(printf '%s\n' "$samples" | grep "^shmlimit_$1 " | sed "s/segment=$segment //" | cut -d ' ' -f 2-)" "$2" "$3"; }

has segment_up "1" "the segment is there"
has segment_enabled "1" "is switched on"
has segment_info "clock=precise layout_version=$(shmlimit inspect "$segment" --json | jq -r .segment.layout_version) \
on_full=evict 1" "is of a kind"
has segment_size_bytes "$(shmlimit inspect "$segment" --json | jq .segment.size)" "has a size"
has segment_rules 3 "has rules"
has segment_rules_max 4 "a segment has room for some rules"
has segment_start_time_seconds "$(shmlimit inspect "$segment" --json | jq '(.segment.created_unix_ns | tonumber) / 1e9 | floor')" \
	"a segment was made at a time"
has segment_slots "state=free 1021
state=live 3
state=refilled 0
state=tentative 0
state=stale 0" "each slot is in a state"
has segment_decisions_total "answer=allowed 5
answer=denied 1
answer=shadow_denied 1" "the segment's decisions are counted"
has segment_claims_total 3 "a segment's claims are counted"
has segment_undecided_requests_total "outcome=passed 0
outcome=refused 0" "no request was left undecided"
has agent_serving 0 "a segment without an agent says so"
has agent_waiting_requests 0 "no request waits for an agent"
has agent_connections 0 "no agent has connections"
has agent_breaker_open 0 "no agent's breaker is open"
has rule_on_failure_requests_total "" "rules that lease nothing have no count of what on_failure decided"
for counter in answered failed late spoiled full misses; do
	has agent_${counter}_total 0 "no agent counted requests that were $counter"
done
has agent_unpaid_tokens_total 0 "no agent lent tokens that its backend did not give"
has rule_decisions_total "answer=allowed rule=r 4
answer=allowed rule=watch 1
answer=allowed rule=w 0
answer=denied rule=r 1
answer=denied rule=watch 0
answer=denied rule=w 0
answer=shadow_denied rule=r 0
answer=shadow_denied rule=watch 1
answer=shadow_denied rule=w 0" "each rule's decisions are counted"
has rule_info "algorithm=funnel mode=enforce rule=r 1
algorithm=funnel mode=dry-run rule=watch 1
algorithm=window mode=enforce rule=w 1" "a rule is of a kind"
has rule_capacity_tokens "rule=r 3
rule=watch 1
rule=w 5" "has a capacity"
is "$(printf '%s\n' "$samples" | sed -n 's/^shmlimit_rule_rate_tokens_per_second rule=\([a-z]*\) .* /\1 /p' |
	awk '{ printf "%s %.6f;", $1, $2 * 3600 }')" "r 0.041667;watch 2.000000;w 18000.000000;" "each rule has a rate"
for counter in claims reclaims evictions no_slot failed_cas; do
	is "$(printf '%s\n' "$samples" | awk -v name=shmlimit_rule_${counter}_total '$1 == name { sum += $NF } END { print sum }') \
$(printf '%s\n' "$samples" | sed -n "s/^shmlimit_segment_${counter}_total .* //p")" \
		"$(shmlimit inspect "$segment" --json | jq -r "[.counters.$counter, .counters.$counter] | join(\" \")")" \
		"$counter are those that inspect shows, by rule and over all"
done

# Counters of a segment never go back, while others decide, and whatever becomes of its rules.
counted() { parse "$1" | grep '^shmlimit_segment_[a-z_]*_total ' | tr '\n' ';'; }
(for i in 1 2 3 4 5 6 7 8 9; do for key in a b c d e f g h; do shmlimit take "$segment" w $key$i --quiet; done; done) &
taker=$!
: >"$TMP/readings"
for i in 1 2 3 4 5; do
	shmlimit metrics "$segment" >"$TMP/now"
	counted "$TMP/now" >>"$TMP/readings"
	echo >>"$TMP/readings"
done
wait $taker
shmlimit metrics "$segment" >"$TMP/now"
counted "$TMP/now" >>"$TMP/readings"
is "$(awk -F '[ ;]' '{ n = 0; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+$/) { if ($i < last[++n]) back++; last[n] = $i } }
	END { print NR, n, back + 0 }' "$TMP/readings")" "6 17 0" "no counter of a segment goes back while others decide"
shmlimit metrics "$segment" >"$TMP/now"
samples=$(parse "$TMP/now")
like "$(printf '%s\n' "$samples" | grep '^shmlimit_segment_decisions_total answer=allowed ')" ' 77$' "metrics have each decision that was made meanwhile"
shmlimit rule remove "$segment" r
shmlimit metrics "$segment" >"$TMP/later"
later=$(parse "$TMP/later")
is "$(printf '%s\n' "$later" | grep '^shmlimit_segment_[a-z_]*_total ')" \
	"$(printf '%s\n' "$samples" | grep '^shmlimit_segment_[a-z_]*_total ')" "removing a rule takes nothing from the segment's counters"
is "$(printf '%s\n' "$later" | grep -c 'rule=r ')" 0 "though its own are gone"

# A rule that finds its number of places: what it found for the key that has most of them.
shmlimit rule set "$segment" found 'auto 4 to 64 at once'
shmlimit metrics "$segment" >"$TMP/now"
samples=$(parse "$TMP/now")
has rule_places "" "a rule whose number no key has found yet has no number"
i=0
until grep -q '^shmlimit_rule_places_base_seconds{' "$TMP/now" || [ $((i += 1)) -gt 1000 ]; do
	shmlimit hold "$segment" found busy -- true
	shmlimit metrics "$segment" >"$TMP/now"
done
shmlimit hold "$segment" found idle -- true
shmlimit metrics "$segment" >"$TMP/now"
samples=$(parse "$TMP/now")
number=$(shmlimit hold "$segment" found busy -- shmlimit inspect "$segment" --json |
	jq -c '.occupancy.shown | map(select(.rule == "found"))[0] | [.number, .base_ns / 1e9, .queue_milli / 1e3]')
is "$(for metric in places places_base_seconds places_waiting; do
	printf '%s\n' "$samples" | sed -n "s/^shmlimit_rule_$metric rule=found .* //p"
done | jq -cs .)" "$number" \
	"once it is found, the number, base and queue are those of inspect"
shmlimit disable "$segment"
samples=$(shmlimit metrics "$segment" >"$TMP/off" && parse "$TMP/off")
has segment_enabled 0 "a segment that is switched off says so"

# Names as bad as they can be, and no two that become one.
for name in 'a"b' 'a\b' 'a\x5cb' "a$(printf '\303\251')" "a$(printf '\351')" 'a\xe9' 'a{b="c"} 1' 'a b'; do
	shmlimit create "$SEGMENT.$name" --slots 16
	shmlimit rule set "$SEGMENT.$name" @:+ --capacity 1 --rate 1/s
done
shmlimit throttle "$SEGMENT.a b" key 15 30 60 >/dev/null
head -c 8192 "$SHM$segment" >"$SHM$SEGMENT.cut"
printf 'not ours\n' >"$SHM$SEGMENT.other"
run shmlimit metrics --all
is "$rc $err" "0 " "--all prints all segments"
samples=$(parse "$TMP/.out")
is $? 0 "--all prints names that have to be escaped"
mine=$(printf '%s\n' "$samples" | grep "^shmlimit_segment_up segment=$SEGMENT\.")
is "$(printf '%s\n' "$mine" | sed "s/.*segment=$SEGMENT\.//" | sort)" "$(cat <<-END | sort
	a b 1
	a"b 1
	a\\\\b 1
	a\\\\x5cb 1
	a\\\\xe9 1
	a\\xe9 1
	a$(printf '\303\251') 1
	a{b="c"} 1 1
	cut 0
	s 1
	END
)" "no two become one, one that is damaged is down, and what is not ours is left out"
is "$(printf '%s\n' "$samples" | grep -c "^shmlimit_rule_info .*rule=@:+ segment=$SEGMENT")" 8 "--all prints each segment's rules"
is "$(printf '%s\n' "$samples" | grep -c "^shmlimit_rule_info .*rule=~throttle segment=$SEGMENT.a b")" 1 \
	"--all prints rules without a name"
run shmlimit metrics "$SEGMENT.a b"
is "$(parse "$TMP/.out" | grep -c 'segment=' | awk '{ print ($1 > 20) }') $(grep -c 'segment="[^"]*a b"' "$TMP/.out")" \
	"1 $(grep -vc '^#' "$TMP/.out")" "metrics of one segment are of that one alone"

# --output
file=$TMP/limits.prom
echo old >"$file"
ln "$file" "$TMP/witness"
(umask 027 && shmlimit metrics --all --output "$file")
is "$? $(cat "$TMP/witness")" "0 old" "--output makes a new file and does not write into the old one"
# samples: of this test's segments, a line each, without the values. Where it has no /dev/shm of its own, others come and go.
samples() { grep -F "segment=\"$SEGMENT" | sed -n 's/^\(shmlimit.*}\) .*/\1/p' | sort; }
is "$(samples <"$file")" "$(shmlimit metrics --all | samples)" "the file of --output is complete"
is "$(/usr/bin/python3 -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
print(*(f.name for f in text_string_to_metric_families(open(sys.argv[1]).read()) if f.type in ("unknown", "untyped")))' "$file")" "" \
	"in the file of --output each metric has its type"
is "$(stat -c %a "$file")" 640 "the file of --output has the permissions of any new file"
before=$(cksum <"$file")
run shmlimit metrics "$SEGMENT.none" --output "$file"
is "$rc $(cksum <"$file")" "3 $before" "where nothing can be said the file stays"
run shmlimit metrics --all --output "$TMP/no/such"
is "$rc $err" "2 shmlimit: $TMP/no/such: No such file or directory" \
	"a file that cannot be made is named"
mkdir "$TMP/folder"
run shmlimit metrics --all --output "$TMP/folder"
is "$rc $err" "2 shmlimit: $TMP/folder: not a regular file" \
	"a folder in the file's place is refused"
err=$( (ulimit -f 0 && trap '' XFSZ && shmlimit metrics --all --output "$file") 2>&1)
is "$? $err $(cksum <"$file")" \
	"2 shmlimit: $file: File too large $before" \
	"a file that cannot be written whole replaces nothing"
is "$(find "$TMP" -name '*.prom.*' -o -name 'folder.*')" "" "nothing is left of those"

run shmlimit metrics
is "$rc $err" "2 shmlimit: metrics: missing NAME or --all" "metrics of nothing is refused"
run shmlimit metrics "$segment" --all
is "$rc $err" "2 shmlimit: metrics: $segment and --all: give only one" "metrics of a segment and of all is refused"

# The dashboard: each metric that it names is one of these.
dashboard=$SOURCE/tools/grafana/shmlimit.json
named=$(jq -r '.. | objects | (.expr // empty), (.definition // empty)' "$dashboard" | grep -o 'shmlimit_[a-z_]*' | sort -u)
is "$(printf '%s\n' "$named" | wc -l | awk '{ print ($1 > 8) }')" 1 "the dashboard shows metrics"
is "$(printf '%s\n' "$named" | while read -r name; do
	printf '%s\n' "$samples" | grep -q "^$name " || echo "$name"
done)" "" "each of which there is"
is "$(jq '[.panels[].id] | length == (unique | length)' "$dashboard") $(jq '[.panels[] | select(.targets == [])] | length' "$dashboard")" \
	"true 0" "its panels differ, and none is empty"
for label in $(jq -r '.. | .expr? // empty' "$dashboard" | grep -o '[{,][a-z]*=' | tr -d '{,=' | sort -u); do
	printf '%s\n' "$samples" | grep -q " $label="
	ok $? "there is a label $label"
done

done_testing
