#!/bin/sh
# replay_format: a log of JSON objects is replayed as the same requests in the combined format are; and limits on bytes.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# SECOND HOST USER PATH BYTES
cat >requests <<'END'
0 203.0.113.9 - / 100
0 203.0.113.9 alice /login 900
1 2001:db8::1 bob /a 100
1 203.0.113.9 alice /login 0
2 203.0.113.9 alice /login 5000
9 203.0.113.9 bob /b 100
END
awk '{ printf "%s - %s [21/Nov/2026:10:00:%02d +0100] \"GET %s?q=1 HTTP/1.1\" 200 %s \"-\" \"a\"\n", $2, $3, $1, $4, $5 }' \
	requests >combined
# as FILTER: the requests as JSON objects, a line each.
as() { jq -Rc "split(\" \") | {s: (.[0] | tonumber), host: .[1], user: .[2], path: .[3], bytes: (.[4] | tonumber)} | $1" requests; }

# Formats with fractions of a second are compared with one without.
whole='walk(if type == "object" then with_entries(if (.key | endswith("unix_ns")) and .value then .value |= tostring[:10] else . end) else . end)'
replayed() {
	shmlimit replay --rule '1/h burst 2' --rule '1000/h burst 1000' --key addr+user+path --json "$@" | jq -S "$whole"
}
want=$(replayed combined)
is "$(echo "$want" | jq -c '[.lines, .not_understood, .without_key, .keys, .rules[0].denied]')" "[6,0,1,3,1]" "the combined format is the standard"
json() {
	is "$(replayed "$2")" "$want" "$1: the same requests give the same result"
	is "$(shmlimit replay --cost bytes --rule '1000/h burst 1000' --json "$2" | jq -S "$whole")" "$bytes" "$1: the bytes are the same"
}
bytes=$(shmlimit replay --cost bytes --rule '1000/h burst 1000' --json combined | jq -S "$whole")
is "$(echo "$bytes" | jq -c '.rules[0] | [.allowed, .denied]')" "[4,2]" "--cost bytes takes the bytes of a response"

as '{time_local: "21/Nov/2026:10:00:0\(.s) +0100", remote_addr: .host, remote_user: (if .user == "-" then "" else .user end),
	request: "GET \(.path)?q=1 HTTP/1.1", status: "200", body_bytes_sent: "\(.bytes)"}' >nginx
json "nginx" nginx
as '{time_iso8601: "2026-11-21T10:00:0\(.s)+01:00", remote_addr: .host, remote_user: .user, request_uri: "\(.path)?q=1",
	body_bytes_sent: .bytes, bytes_sent: 99999}' >nginx2
json "nginx with ISO 8601" nginx2
as '{msec: "\(1795251600 + .s).250", remote_addr: .host, remote_user: .user, uri: .path, bytes_sent: .bytes}' >nginx3
json "nginx with msec" nginx3
as '{level: "info", ts: (1795251600.5 + .s), request: {remote_ip: "192.0.2.1", client_ip: .host, method: "GET", uri: "\(.path)?q=1"},
	user_id: (if .user == "-" then "" else .user end), size: .bytes, status: 200}' >caddy
json "Caddy" caddy
as '{ClientHost: .host, ClientUsername: .user, RequestPath: "\(.path)?q=1", DownstreamContentSize: .bytes,
	StartUTC: "2026-11-21T09:00:0\(.s).123456789Z"}' >traefik
json "Traefik" traefik
as '{timestamp: ((1795251600 + .s) * 1000), clientip: .host, user: .user, path: .path, bytes: .bytes}' >ms
json "milliseconds" ms
jq -Rc '{MESSAGE: ., __REALTIME_TIMESTAMP: "1", _SYSTEMD_UNIT: "apache2.service"}' combined >journal
json "the journal, combined" journal
jq -Rc '{MESSAGE: ., __REALTIME_TIMESTAMP: "1"}' caddy >journal2
json "the journal, JSON" journal2
head -n 3 combined >mixed
tail -n 3 caddy >>mixed
json "a file of both" mixed
tail -n 3 caddy >b.log
head -n 3 traefik | gzip >b.log.1.gz
is "$(replayed b.log b.log.1.gz)" "$want" "several files are read from the oldest on, compressed or not"

{
	echo '{"ts": 1795251600, "remote_addr": "10.0.0.1", "size": 1}'
	echo '{"ts": "1795251600", "remote_addr": "10.0.0.1", "size": -1, "user": {"a": 1}, "path": 5}'
	for bad in '' '{' '{}' '{"ts": 1795251600}' '{"ts": 1795251600, "remote_addr": 7}' '{"ts": 1795251600, "remote_addr": ""}' \
		'{"ts": "later", "remote_addr": "10.0.0.1"}' '{"ts": -5, "remote_addr": "10.0.0.1"}' \
		'{"ts": 1e300, "remote_addr": "10.0.0.1"}' '{"ts": -1e300, "remote_addr": "10.0.0.1"}' \
		'{"ts": "2026-11-21T10:00:00+x", "remote_addr": "10.0.0.1"}' '{"ts": "21/Now/2026:10:00:00 +0100", "remote_addr": "10.0.0.1"}' \
		'{"MESSAGE": "no log"}' '{"MESSAGE": "{"}' '{"MESSAGE": "{\"MESSAGE\": \"{\\\"ts\\\": 1}\"}"}' '{"MESSAGE": 5}' \
		'[{"ts": 1795251600, "remote_addr": "10.0.0.1"}]'; do
		printf '%s\n' "$bad"
	done
} >lines
is "$(shmlimit replay --rule '1/d burst 1' --json lines | jq -c '[.lines, .not_understood, .keys, .rules[0].denied]')" "[19,16,1,2]" \
	"objects are understood, or counted"
is "$(shmlimit replay --rule '1/d burst 1' --cost bytes --json lines | jq -c .not_understood)" 18 \
	"with --cost bytes a line without bytes is not understood"
{
	echo '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET /\"a\" HTTP/1.1" 200 7 "-" "a"'
	echo '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 304 -'
	printf '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 1\r\n'
	echo '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 x'
	echo '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 99999999999999999999'
	echo '10.0.0.1 - - [21/Nov/2026:10:00:00 +0100] "GET / HTTP/1.1"'
} >sizes
is "$(shmlimit replay --rule '1/d burst 8' --cost bytes --json sizes | jq -c '[.not_understood, .rules[0].allowed, .rules[0].denied]')" \
	"[3,3,0]" "the bytes of a response are read behind escaped quotation marks, and - is none"

run shmlimit replay --cost bytes --suggest 1% combined
is "$rc $err" "2 shmlimit: --cost bytes: no number can be found for it: must be without --suggest" "--cost bytes suggests nothing"
run shmlimit replay --cost tokens --rule '1/s burst 1' combined
is "$rc $err" "2 shmlimit: --cost tokens: must be requests or bytes" "an unknown cost is refused"
done_testing
