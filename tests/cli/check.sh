#!/bin/sh
# check: its exit status and its line tell a healthy segment from one that needs attention, as Nagios plugins do.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
cd "$TMP" || exit

segment=$SEGMENT.s
shmlimit create "$segment" --slots 16 --slots-max 16 --on-full deny
shmlimit rule set "$segment" r --capacity 2 --rate 1/d
shmlimit rule set "$segment" other --capacity 1 --rate 1/d
before=$(sum_file "$SHM$segment")

# The line without what depends on time.
line() { printf '%s' "$out$err" | sed 's/ in [0-9.dhms]*s |/ in T |/'; }
data() { printf 'denied=%s evictions=%s no_slot=%s backend_errors=%s breaker_openings=%s on_failure=0;;;0 undecided=0;;;0 unregistered=0;;;0 allowed=%s' "$@"; }
none=$(data '0;;;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0')

run shmlimit check "$segment" --interval 1ms
is "$rc $(line)" "0 SHMLIMIT OK - segment $segment: healthy, 0 decisions in T | $none" "a segment in which nothing happens is healthy"
run shmlimit check "$segment" --state state
is "$rc $(line)" "0 SHMLIMIT OK - segment $segment: healthy, 0 decisions in T | $none" "the first check has nothing to compare with"
is "$(sum_file "$SHM$segment")" "$before" "checking changed nothing"
for i in 1 2 3 4 5; do shmlimit take "$segment" r a --quiet; done
shmlimit take "$segment" other a --quiet

# since WANT LINE OPTION...: since the first check.
since() {
	cp state again
	want=$1
	text=$2
	shift 2
	run shmlimit check "$segment" --state again "$@"
	is "$rc $(line)" "$want SHMLIMIT $text" "check $* is $want"
}
since 0 "OK - segment $segment: healthy, 6 decisions in T | $(data '3;;;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '3;;;0')"
since 0 "OK - segment $segment: healthy, 6 decisions in T | $(data '3;;3;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '3;;;0')" --max-denied 3
since 2 "CRITICAL - segment $segment: denied 3, 6 decisions in T | $(data '3;;2;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '3;;;0')" \
	--max-denied 2
since 1 "WARNING - segment $segment: denied 3, 6 decisions in T | $(data '3;2;3;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '3;;;0')" \
	--max-denied 2,3
since 2 "CRITICAL - segment $segment: denied 3, 6 decisions in T | $(data '3;1;2;0' '0;;0;0' '0;;;0' '0;;;0' '0;;;0' '3;;;0')" \
	--max-denied 1,2 --max-evictions 0
run shmlimit check "$segment" --state again --max-denied 0
is "$rc $(line)" "0 SHMLIMIT OK - segment $segment: healthy, 0 decisions in T | $(data '0;;0;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0')" \
	"what one check has counted the next one does not"

shmlimit check "$segment" --rule other --state other >/dev/null
shmlimit take "$segment" r a --quiet
run shmlimit check "$segment" --rule other --state other --max-denied 0
is "$rc $(line)" "0 SHMLIMIT OK - segment $segment rule other: healthy, 0 decisions in T | $(data '0;;0;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0' '0;;;0')" \
	"--rule counts one rule"

# Sixteen slots, and more keys.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do shmlimit take "$segment" r "$i" --quiet; done
cp state again
run shmlimit check "$segment" --state again --max-no-slot 0
is $rc 2 "a key that finds no slot is critical with --max-no-slot 0"
like "$out" "segment $segment: denied|no_slot [1-9]" "the line has what is above its limit"
evicting=$SEGMENT.e
shmlimit create "$evicting" --slots 16 --slots-max 16
shmlimit rule set "$evicting" r --capacity 2 --rate 1/d
shmlimit check "$evicting" --state evictions >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do shmlimit take "$evicting" r "$i" --quiet; done
run shmlimit check "$evicting" --state evictions --max-evictions 0,1000
like "$rc $out" "^1 SHMLIMIT WARNING - segment $evicting: evictions [1-9][0-9]*, 20 decisions in " "an eviction is a warning, if so asked"

# Made again: what was counted before is not taken off.
cp state again
shmlimit destroy "$segment"
shmlimit create "$segment" --slots 16
shmlimit rule set "$segment" r --capacity 2 --rate 1/d
shmlimit take "$segment" r a --quiet
run shmlimit check "$segment" --state again
like "$rc $(line)" "^0 .*: healthy, 1 decision in T .* allowed=1;;;0\$" "check counts everything in a segment that was created again"

shmlimit disable "$segment"
run shmlimit check "$segment" --interval 1ms
is "$rc $(line)" "1 SHMLIMIT WARNING - segment $segment: disabled, every decision answers allowed; 0 decisions in T | $none" \
	"a segment that is disabled is a warning"
shmlimit enable "$segment"
run shmlimit check "$segment" --rule none
is "$rc $out$err" "2 SHMLIMIT CRITICAL - segment $segment: the rule is missing" "a rule that is missing is critical"
run shmlimit check "$SEGMENT.none"
is "$rc $out$err" "2 SHMLIMIT CRITICAL - segment $SEGMENT.none: no such segment" "a segment that is missing is critical"
printf 'not ours' >"$SHM$SEGMENT.foreign|x"
run shmlimit check "$SEGMENT.foreign|x"
like "$rc $out" '^2 SHMLIMIT CRITICAL - segment .*foreign\\x7cx: [^|]*$' "a bar in a name begins no performance data"
printf 'nonsense' >again
run shmlimit check "$segment" --state again
is "$rc $out" "3 SHMLIMIT UNKNOWN - segment $segment: its state file cannot be read, or is none" "a state file that is none is unknown"
is "$(cat again)" nonsense "a state file that is none is left as it is"
run shmlimit check "$segment" --state no/such/state
is "$rc $out" "3 SHMLIMIT UNKNOWN - segment $segment: its state file cannot be written" \
	"a state file that cannot be written is unknown"

wrong() {
	message=$1
	shift
	run shmlimit check "$segment" "$@"
	is "$rc $out$err" "3 shmlimit: $message" "check $* is refused, and the state is unknown"
}
wrong "--max-denied few: not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --max-denied few
wrong "--max-denied : not a whole number (for example 1500, 1.5k, 2M or 64Ki)" --max-denied 1,
wrong "--max-denied 5,3: the first number, of a warning, must not be above the second" --max-denied 5,3
wrong "--interval 0: must be more than 0, and 1d or less" --interval 0
wrong "--interval and --state cannot be combined" --interval 1s --state again

# Alerts for Prometheus.
rules=$SOURCE/tools/prometheus/shmlimit.yml
shmlimit metrics "$segment" | sed -n 's/^\([a-z_]*\){.*/\1/p; s/^# TYPE \([a-z_]*\) gauge$/\1/p; s/^# TYPE \([a-z_]*\) counter$/\1_total/p' | sort -u >metrics
echo shmlimit_segments_left_out >>metrics # of metrics --all
is "$(grep -o 'shmlimit_[a-z_]*' "$rules" | sort -u | grep -v -x -F -f metrics)" "" "alerts are about metrics that there are"
is "$(grep -c '^      - alert: Shmlimit' "$rules")" "$(grep -c 'severity: \(info\|warning\|critical\)$' "$rules")" \
	"each alert has a severity"
for alert in Evictions NoSlot BackendGone BackendBusy BreakerOpen SegmentMissing SegmentsLeftOut MetricsStale; do
	is "$(grep -c "^      - alert: Shmlimit$alert\$" "$rules")" 1 "there is an alert for $alert"
done
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
	is "$(/usr/bin/python3 -c 'import sys, yaml
for group in yaml.safe_load(open(sys.argv[1]))["groups"]:
	for rule in group["rules"]:
		assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}, rule
		assert set(rule["annotations"]) == {"summary", "description"}, rule' "$rules" 2>&1)" "" "alerts are what Prometheus reads"
fi
if command -v promtool >/dev/null; then
	run promtool check rules "$rules"
	is $rc 0 "promtool has nothing to say"
	cat >test.yml <<-YAML
	rule_files: ["$rules"]
	evaluation_interval: 1m
	tests:
	  - interval: 1m
	    input_series:
	      - series: 'shmlimit_segment_up{segment="gone"}'
	        values: '1x9 _x20'
	      - series: 'shmlimit_segment_up{segment="web"}'
	        values: '1x40'
	      - series: 'shmlimit_segment_evictions_total{segment="web"}'
	        values: '0+60x40'
	      - series: 'shmlimit_agent_server_failing{segment="web",server="redis://a"}'
	        values: '0x9 1x20 0x20'
	      - series: 'shmlimit_rule_on_failure_requests_total{segment="web",rule="page"}'
	        values: '0x9 0+60x20 1200x20'
	      - series: 'shmlimit_agent_full_total{segment="web"}'
	        values: '0x9 0+60x20 1200x20'
	      - series: 'shmlimit_rule_change_refused_timestamp_seconds{segment="web",rule="page"}'
	        values: '0x9 1795000000x20 0x20'
	    alert_rule_test:
	      - eval_time: 8m
	        alertname: ShmlimitRuleChangeRefused
	      - eval_time: 28m
	        alertname: ShmlimitRuleChangeRefused
	        exp_alerts:
	          - exp_labels: { severity: warning, segment: web, rule: page }
	            exp_annotations:
	              summary: Rule page of segment web keeps an old limit
	              description: >-
	                A program or a server was refused another limit for it, and its log says why. Look at: shmlimit rule
	                show web page.
	      - eval_time: 33m
	        alertname: ShmlimitRuleChangeRefused
	      - eval_time: 8m
	        alertname: ShmlimitBackendGone
	      - eval_time: 28m
	        alertname: ShmlimitBackendGone
	        exp_alerts:
	          - exp_labels: { severity: critical, segment: web, server: 'redis://a' }
	            exp_annotations:
	              summary: The agent of segment web cannot reach redis://a
	              description: 'on_failure decides what this host has not leased. Try: shmlimit global ping web URL.'
	      - eval_time: 33m
	        alertname: ShmlimitBackendGone
	      - eval_time: 28m
	        alertname: ShmlimitOnFailure
	        exp_alerts:
	          - exp_labels: { severity: critical, segment: web, rule: page }
	            exp_annotations:
	              summary: Rule page of segment web is decided without its backend
	              description: 1 requests a second are decided by on_failure.
	      - eval_time: 39m
	        alertname: ShmlimitOnFailure
	      - eval_time: 28m
	        alertname: ShmlimitBackendBusy
	        exp_alerts:
	          - exp_labels: { severity: warning, segment: web }
	            exp_annotations:
	              summary: The agent of segment web has no room for requests
	              description: >-
	                1 times a second 64 requests waited for the backend at once, and another one had to try again. The
	                backend is slow, or this host asks too much of it.
	      - eval_time: 18m
	        alertname: ShmlimitSegmentMissing
	        exp_alerts:
	          - exp_labels: { severity: critical, segment: gone }
	            exp_annotations:
	              summary: Segment gone is missing
	              description: 'Servers answer without it, as they are configured. Make it again: shmlimit apply --all.'
	      - eval_time: 18m
	        alertname: ShmlimitEvictions
	        exp_alerts:
	          - exp_labels: { severity: warning, segment: web }
	            exp_annotations:
	              summary: Segment web evicts keys that are limited
	              description: '1 keys a second lose their slot. Give the segment more slots: shmlimit grow web --slots N.'
	      - eval_time: 18m
	        alertname: ShmlimitNoSlot
	YAML
	run promtool test rules test.yml
	is $rc 0 "alerts come when they should, and no others"
fi

done_testing
