#!/bin/sh
# alerts: a Prometheus server with the alerts of tools/prometheus, beside a Redis server that is stopped. Each time in the alerts
# is a sixtieth of what it is there: a minute is a second.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/backend.inc"
PATH=$BUILD/bin:$PATH
need prometheus curl jq perl python3 setpriv
need_backend

sed -E 's/\b([0-9]+)m\b/\1s/' "$SOURCE/tools/prometheus/shmlimit.yml" >"$TMP/alerts.yml"

start_backend
shmlimit create "$SEGMENT" --slots 1024
shmlimit rule set "$SEGMENT" page --algorithm lease --capacity 1000 --rate 1/d
shmlimit agent "$SEGMENT" "$backend_url" --deadline 5s 2>"$TMP/agent.err" &
servers="$servers $!"
setpriv --pdeathsig KILL python3 "$SOURCE/lib/doc/exporter.py" "$SEGMENT" >"$TMP/exporter" &
servers="$servers $!"
within test -s "$TMP/exporter"
# node_exporter's textfile collector, of a folder that is empty at first.
mkdir "$TMP/textfile"
node_port=$(some_port)
if command -v prometheus-node-exporter >/dev/null; then
	setpriv --pdeathsig KILL prometheus-node-exporter --collector.disable-defaults --collector.textfile \
		"--collector.textfile.directory=$TMP/textfile" "--web.listen-address=127.0.0.1:$node_port" 2>"$TMP/node.err" &
	servers="$servers $!"
fi
cat >"$TMP/prometheus.yml" <<END
global: { scrape_interval: 500ms, evaluation_interval: 500ms }
rule_files: [ alerts.yml ]
scrape_configs: [ { job_name: shmlimit, static_configs: [ { targets: [ "127.0.0.1:$(cat "$TMP/exporter")" ] } ] },
  { job_name: node, static_configs: [ { targets: [ "127.0.0.1:$node_port" ] } ] } ]
END
port=$(some_port)
setpriv --pdeathsig KILL prometheus --config.file "$TMP/prometheus.yml" --storage.tsdb.path "$TMP/data" \
	--web.listen-address "127.0.0.1:$port" >"$TMP/prometheus.log" 2>&1 &
servers="$servers $!"

key=0
request() {
	key=$((key + 1))
	shmlimit global take "$SEGMENT" "$backend_url" page "user:$key" --deadline 5s --quiet 2>/dev/null
}
# Those that fire, of the segment.
firing() {
	curl -s "http://127.0.0.1:$port/api/v1/alerts" | jq -r '.data.alerts[] | select(.state == "firing").labels.alertname' | sort | tr '\n' ' '
}
fires() { request; case " $(firing)" in *" $1 "*) ;; *) return 1 ;; esac; }
quiet() { [ "$(firing)" = "$1" ]; }
# value QUERY: a number of Prometheus's.
value() {
	curl -s --data-urlencode "query=$1" "http://127.0.0.1:$port/api/v1/query" | jq -r '.data.result[0].value[1] // "0"'
}
scraped() { request; [ "$(value "sum_over_time($1[1h])")" -ge "$2" ] 2>/dev/null; }
seen() { [ "$(value "sum_over_time($1[1h])")" -ge "$2" ] 2>/dev/null; }

within scraped up 4 || diag "$(tail -n 3 "$TMP/prometheus.log")"
is "$(firing)" "" "while the backend answers no alert fires"
kill_backend
within fires ShmlimitBackendGone
ok $? "a backend that is gone fires ShmlimitBackendGone"
within fires ShmlimitOnFailure
ok $? "what on_failure decides fires ShmlimitOnFailure"
# Without any request, for longer than the alerts look back.
failing=$(value 'sum_over_time(shmlimit_agent_server_failing[1h])')
within seen shmlimit_agent_server_failing $((failing + 14))
like " $(firing)" ' ShmlimitBackendGone ' "ShmlimitBackendGone fires as long as the backend is gone, while no request comes"
start_backend
within quiet ''
ok $? "when the backend is back the alerts end"

# A segment with a second link is left out, and the file that says so is not written any more.
if command -v prometheus-node-exporter >/dev/null; then
	ln "$SHM$SEGMENT" "/dev/shm/$SEGMENT.link"
	shmlimit metrics --all --output "$TMP/textfile/shmlimit.prom"
	within fires ShmlimitSegmentsLeftOut
	ok $? "a segment that metrics --all leaves out fires ShmlimitSegmentsLeftOut"
	case " $(firing)" in *" ShmlimitMetricsStale "*) false ;; esac
	ok $? "a file that is written does not fire ShmlimitMetricsStale"
	touch -d '10 minutes ago' "$TMP/textfile/shmlimit.prom"
	within fires ShmlimitMetricsStale
	ok $? "a file that nothing writes any more fires ShmlimitMetricsStale"
else
	ok 0 "alerts of the textfile collector # SKIP prometheus-node-exporter is not installed"
fi
done_testing
