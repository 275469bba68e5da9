#!/bin/sh
# textfile: node_exporter's textfile collector passes on each metric of the file with its type and help.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
need prometheus-node-exporter curl setpriv

shmlimit create "$SEGMENT" --slots 16
shmlimit rule set "$SEGMENT" login --rate 5/m
shmlimit take "$SEGMENT" login user:42 --quiet
shmlimit rule set "$SEGMENT" page --algorithm lease --capacity 10 --rate 1/d
mkdir "$TMP/metrics"
file=$TMP/metrics/shmlimit.prom
shmlimit metrics "$SEGMENT" --output "$file"

port=$(some_port)
setpriv --pdeathsig KILL prometheus-node-exporter --collector.disable-defaults --collector.textfile \
	"--collector.textfile.directory=$TMP/metrics" "--web.listen-address=127.0.0.1:$port" 2>"$TMP/exporter.err" &
servers="$servers $!"
within curl -sfo "$TMP/out" "http://127.0.0.1:$port/metrics"
ok $? "node_exporter answers" || diag "$(tail -n 3 "$TMP/exporter.err")"

# Metrics that have samples: of others the collector shows nothing.
names=$(sed -n 's/^\(shmlimit_[a-z_]*\){.*/\1/p' "$file" | sed 's/^\(shmlimit_agent_round_trip_seconds\)_.*/\1/' | sort -u)
ok $(($(echo "$names" | wc -w) < 30)) "the file has metrics"
for name in $names; do
	is "$(grep -E "^# (HELP|TYPE) $name " "$TMP/out")" "$(grep -E "^# (HELP|TYPE) $name ." "$file")" "$name has its type and help"
	is "$(grep -c "^# TYPE $name " "$file")" 1 "$name has one type in the file"
done
is "$(sed -n 's/^node_textfile_scrape_error //p' "$TMP/out")" 0 "the collector found nothing wrong with the file"
like "$(grep '^node_textfile_mtime_seconds' "$TMP/out")" "file=\"[^\"]*shmlimit[^\"]*\"" \
	"the file's age has the label that the alert ShmlimitMetricsStale looks for"
is "$(grep -c node_textfile_mtime_seconds.file=~ "$SOURCE/tools/prometheus/shmlimit.yml")" 1 "the alert for a stale file is among the alerts"
done_testing
