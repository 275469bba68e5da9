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
cat >"$TMP/prometheus.yml" <<END
global: { scrape_interval: 500ms, evaluation_interval: 500ms }
rule_files: [ alerts.yml ]
scrape_configs: [ { job_name: shmlimit, static_configs: [ { targets: [ "127.0.0.1:$(cat "$TMP/exporter")" ] } ] } ]
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
done_testing
