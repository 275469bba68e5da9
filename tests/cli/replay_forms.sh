#!/bin/sh
# replay_forms: in each form that logs have, the client, the time and the user are found; and what is no such line, or
# has no address where the client should be, is counted.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# Each line is understood, and is one request of this client, user and path, at 2026-11-20T09:59:49Z, with this fraction.
#	CLIENT USER PATH FRACTION | LINE
cat >forms <<'TABLE'
203.0.113.7 bob /a 0 | 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a?b=1 HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 203.0.113.7 - bob [20/Nov/2026:10:59:49 +0100] "GET /a HTTP/1.1" 200 5 "https://example.org/" "curl/8 [x]"
203.0.113.7 bob /a 0 | 203.0.113.7 ident bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob_[1] /a 0 | 203.0.113.7 - bob [1] [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 198.51.100.9_x /a 0 | 203.0.113.7 - 198.51.100.9 x [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 123000000 | 203.0.113.7 - - [20/Nov/2026:09:59:49.123 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7 - - [2026-11-20T09:59:49+00:00] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 250000000 | 203.0.113.7 - - [1795168789.250] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7 [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200
203.0.113.7 - /a 0 | 203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] www.example.org "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7  -  -  [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7:50001 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | "203.0.113.7" - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | ::ffff:203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.0/24 - /a 0 | 203.0.113.0/24 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
2001:db8:1:2::/64 - /a 0 | 2001:db8:1:2:3:4:5:6 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
2001:db8:1:2::/64 - /a 0 | [2001:db8:1:2::3]:50001 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
2001:db8:1::/48 - /a 0 | 2001:db8:1::/48 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
fe80::/64 - /a 0 | fe80::1%eth0 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | www.example.org:443 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | www.example.org 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 192.0.2.1:8080 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | [2001:db8::9]:80 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 203.0.113.7, 198.51.100.1 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 203.0.113.7,198.51.100.1,192.0.2.1 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | "203.0.113.7, 198.51.100.1" - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 203.0.113.7:50001, 198.51.100.1:443 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7, 198.51.100.1 192.0.2.1 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | 203.0.113.7 192.0.2.1 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - /a 0 | - 203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | Nov 20 09:59:01 web1 nginx: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | Nov  2 09:59:01 web1 nginx[99]: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | <190>Nov 20 09:59:01 web1 nginx: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | <190>Nov 20 09:59:01 nginx: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob: /a 0 | Nov 20 09:59:01 192.0.2.1 nginx: 203.0.113.7 - bob: [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob: /a 0 | Nov 20 09:59:01 203.0.113.7 - bob: [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | Nov 20 09:59:01.123456 web1 apache2[7]: www.example.org:80 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 2026-11-20T09:59:01.003+00:00 web1 nginx[99]: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 2026-11-20T10:59:01+0100 192.0.2.1 nginx[99]: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | <134>1 2026-11-20T09:59:01.003Z 192.0.2.1 nginx 99 - - 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | <134>1 - - nginx - - [ex@1 ip="192.0.2.1" b="\"]"][c@1] 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 2026-11-20T09:59:01.123456789Z 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 2026-11-20T09:59:01.123456789Z stdout F 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | 2026-11-20T09:59:01.123456789+01:00 stderr F www.example.org 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | web-1  | 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | [pod/web-7d9/nginx] 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 bob /a 0 | {"log":"203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] \"GET /a HTTP/1.1\" 200 5\n","stream":"stdout","time":"2026-11-20T09:59:49.5Z"}
203.0.113.7 bob /a 0 | {"@timestamp":"2026-11-20T09:59:50.5Z","message":"203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] \"GET /a HTTP/1.1\" 200 5","host":"web1"}
203.0.113.7 bob /a 0 | {"MESSAGE":"Nov 20 09:59:01 web1 nginx: 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] \"GET /a HTTP/1.1\" 200 5"}
203.0.113.7 bob /a 0 | {"textPayload":"203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] \"GET /a HTTP/1.1\" 200 5","insertId":"x"}
203.0.113.7 - /a 100000000 | {"log":"{\"ts\":1795168789.1,\"request\":{\"remote_ip\":\"203.0.113.7\",\"uri\":\"/a\"}}\n","stream":"stderr"}
203.0.113.7 - /a 100000000 | {"ts":1795168789.1,"request":{"remote_addr":"203.0.113.7:50001","uri":"/a"},"size":5}
203.0.113.7 - /a 123457000 | {"ts":1795168789.1234567,"request":{"client_ip":"203.0.113.7","remote_ip":"192.0.2.1","uri":"/a"}}
203.0.113.7 bob /a 100000000 | {"time_iso8601":"2026-11-20T09:59:49+00:00","msec":"1795168789.100","remote_addr":"203.0.113.7","remote_user":"bob","request_uri":"/a"}
203.0.113.7 - /a 0 | {"time_local":"20/Nov/2026:10:59:49 +0100","remote_addr":"203.0.113.7","remote_user":"-","request":"GET /a?b HTTP/1.1"}
203.0.113.7 - /a 123456789 | {"StartUTC":"2026-11-20T09:59:49.123456789Z","ClientAddr":"203.0.113.7:50001","ClientHost":"203.0.113.7","RequestPath":"/a"}
2001:db8::/64 - /a 12000000 | {"start_time":"2026-11-20T09:59:49.012Z","downstream_remote_address":"[2001:db8::7]:50001","path":"/a","x_forwarded_for":"192.0.2.1"}
203.0.113.7 - /a 5000000 | {"level":30,"time":1795168789005,"req":{"remoteAddress":"::ffff:203.0.113.7","url":"/a"},"responseTime":3}
203.0.113.7 bob /a 0 | {"@timestamp":"2026-11-20T09:59:49Z","client":{"ip":"203.0.113.7"},"user":{"name":"bob"},"url":{"path":"/a"}}
203.0.113.7 - /a 0 | {"@timestamp":"2026-11-20T09:59:49Z","client.ip":"203.0.113.7","url.path":"/a"}
203.0.113.7 - /a 0 | {"time":0.005,"timestamp":"2026-11-20 09:59:49","http_x_forwarded_for":"203.0.113.7, 192.0.2.1","uri":"/a"}
203.0.113.7 - /a 1000 | {"timestamp":1795168789000001,"ip":"203.0.113.7","path":"/a"}
203.0.113.7 - /a 1 | {"timestamp":1795168789000000001,"ip":"203.0.113.7","path":"/a"}
203.0.113.7 - /a 100000000 | Nov 20 09:59:01 web1 caddy[7]: {"ts":1795168789.1,"request":{"remote_ip":"203.0.113.7","uri":"/a"}}
203.0.113.7 - /a 100000000 | 2026-11-20T09:59:01Z stdout F {"ts":1795168789.1,"request":{"remote_ip":"203.0.113.7","uri":"/a"}}
203.0.113.7 - /a 100000000 | caddy-1  | {"ts":1795168789.1,"request":{"remote_ip":"203.0.113.7","uri":"/a"}}
203.0.113.7 - \x16\x03 0 | 203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "\x16\x03" 400 5
host.example bob /a 0 | host.example - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
host.example 198.51.100.9_x /a 0 | host.example - 198.51.100.9 x [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
host.example bob /a 0 | www.example.org:443 host.example - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
host.example bob /a 0 | host.example ident bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
unix: - /a 0 | unix: - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
TABLE

# found FILE OPTION...: client, user and path, or client and path where there is no user, and the time.
found() {
	file=$1
	shift
	shmlimit replay "$@" --rule '1/d burst 1' --json "$file" 2>/dev/null | jq -r \
		'if .not_understood > 0 then "not understood" else "\(.rules[0].worst[0].key) \(.first_unix_ns) \(.no_address)" end'
}
n=0
while IFS= read -r form; do
	n=$((n + 1))
	line=${form#* | }
	printf '%s\n%s\n' "$line" "$line" >log
	# shellcheck disable=SC2086 # words
	set -- ${form%%" | "*}
	fields=addr+user+path user=" $2"
	[ "$2" = - ] && fields=addr+path user=
	case $1 in *.*[0-9]* | *:*[:0-9]*) none=0 ;; *) none=2 ;; esac
	is "$(found log --key $fields | tr '\\' /)" \
		"$(printf '%s%s %s %s %s' "$1" "$(printf '%s' "$user" | tr _ ' ')" "$3" "$((1795168789000000000 + $4))" $none | tr '\\' /)" \
		"form $n: client, user, path and time are found"
	[ $none = 2 ] && continue
	is "$(printf '%s\r\n%s\r\n' "$line" "$line" | found - --key $fields)" "$(found log --key $fields)" \
		"form $n: a carriage return at the end of lines changes nothing"
done <forms
[ $n -ge 60 ]
ok $? "there are enough forms"

while IFS= read -r line; do
	printf '%s\n%s\n' "$line" '203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5' >log
	is "$(found log)" "not understood" "$(printf '%.40s' "$line" | tr -d '#')...: is not understood"
done <<'TABLE'
203.0.113.7
203.0.113.7 - - "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Nov/2026:09:59:49] "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Nov/2026:09:59:49 +0000 "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Now/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Nov/2026:24:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Nov/2262:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] GET /a HTTP/1.1 200 5
203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1
[20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
- [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
2026/11/20 09:59:49 [error] 99#99: *1 limiting requests, client: 203.0.113.7, server: a, request: "GET /a HTTP/1.1"
<9999>Nov 20 09:59:01 web1 nginx:
{"ts":1795168789.1,"request":{"remote_addr":"-","uri":"/a"}}
{"ts":17.5,"remote_addr":"203.0.113.7"}
{"log":"no line"}
{"log":"{\"log\":\"203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] \\\"GET /a HTTP/1.1\\\" 200 5\"}"}
TABLE

# ---- which address of a list ----
printf '192.0.2.66, 203.0.113.%d:50001, 198.51.100.1 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5\n' 7 7 8 >log
is "$(found log)" "192.0.2.66 1795168789000000000 0" "the first address of a list is the client"
is "$(found log --forwarded -2)" "203.0.113.7 1795168789000000000 0" "--forwarded -2 is the last address but one"
is "$(found log --forwarded -1)" "198.51.100.1 1795168789000000000 0" "--forwarded -1 is the last address"
is "$(found log --forwarded 4 | sed 's/.* //')" 3 "a line whose list is too short has no address"
for wrong in '' 0 -0 1001 -1001 +1 last 1x --1; do
	run shmlimit replay --rule '1/d burst 1' --forwarded "$wrong" log
	is "$rc $err" "2 shmlimit: --forwarded $wrong: must be 1 to 1000 from the first address on, or -1 to -1000 from the last" \
		"--forwarded '$wrong' is refused"
done

# ---- no address ----
printf '%s - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5\n' host.example 203.0.113.7 web1: >log
run shmlimit replay --rule '1/d burst 1' log
is "$rc $err" "0 shmlimit: warning: lines whose client is no address: 2 of 3 (the first: host.example): if the log has its \
clients elsewhere, these limits are not what it would have seen" "a client that is no address is counted, with a warning"
is "$(printf '%s\n' "$out" | sed -n 's/^no address: *//p')" 2 "the lines without an address are shown"
run shmlimit replay --rule '1/d burst 1' --key path log
is "$rc $err" "0 " "a key without an address needs none"

# ---- fractions of a second ----
for form in '{"ts":1795168789.%d,"request":{"client_ip":"203.0.113.7","uri":"/a"}}' \
	'{"time_iso8601":"2026-11-20T09:59:49+00:00","msec":"1795168789.%d00","remote_addr":"203.0.113.7","request_uri":"/a"}' \
	'{"time":"2026-11-20T09:59:49.%d00Z","remote_addr":"203.0.113.7","path":"/a"}' \
	'203.0.113.7 - - [20/Nov/2026:09:59:49.%d +0000] "GET /a HTTP/1.1" 200 5'; do
	for order in '0 1 2 3 4 5 6 7 8 9' '9 3 7 1 8 0 2 6 5 4'; do
		for i in $order; do
			# shellcheck disable=SC2059
			printf "$form\n" "$i"
		done >log
		is "$(shmlimit replay --rule '10/s burst 1' --json log | jq -c '[.rules[0].allowed, .rules[0].denied]')" "[10,0]" \
			"ten requests, one each 100 ms, pass at 10/s, in the order $order"
		is "$(shmlimit replay --rule '9/s burst 1' --json log | jq -c '[.rules[0].allowed, .rules[0].denied]')" "[5,5]" \
			"every other one is denied at 9/s, in the order $order"
	done
done
for i in 3 1 2; do
	printf '{"ts":1795168789.%d,"remote_addr":"203.0.113.%d"}\n' $i 7 $i 8
done >log
is "$(shmlimit replay --rule '?/h burst 1' --suggest 99% --json log | jq -c '[.rules[0].suggested, .keys]')" "[1,2]" \
	"a number is found for a log with fractions of seconds"

# ---- what becomes of files ----
line='203.0.113.7 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5'
printf '\357\273\277%s\n%s\n' "$line" "$line" >log
is "$(found log)" "203.0.113.7 1795168789000000000 0" "a byte order mark is left out"
{ head -c 3000000 /dev/zero && printf '%s\n%s\n' "$line" "$line"; } >log
is "$(found log)" "203.0.113.7 1795168789000000000 0" "NULs of a file that was cut while it was open are left out"

awk -v line="$line" 'BEGIN { srand(7); for (i = 0; i < 30000; i++) { sub(/113\.[0-9]*/, "113." i % 9, line); print line " \"" rand() "\"" } }' >long
want=$(shmlimit replay --rule '5/s burst 5' --json long)
# packed PROGRAM SUFFIX: a file that it made is read, and one that was cut up to there.
packed() {
	command -v "$1" >/dev/null || return 0
	"$1" -c long >"long.$2"
	is "$(shmlimit replay --rule '5/s burst 5' --json "long.$2")" "$want" "a log that $1 compressed is read"
	is "$(shmlimit replay --rule '5/s burst 5' --json <"long.$2")" "$want" "a log that $1 compressed is read from standard input"
	head -c $(($(wc -c <"long.$2") / 2)) "long.$2" >"cut.$2"
	run shmlimit replay --rule '5/s burst 5' --json "cut.$2"
	like "$rc $err" "^0 shmlimit: warning: cut.$2: cut short.* after line [0-9]+, up to which it counts\$" \
		"a log of $1 that was cut is read with a warning"
	lines=$(printf '%s' "$out" | jq .lines)
	whole=$(printf '%s' "$err" | sed 's/.*after line \([0-9]*\),.*/\1/')
	[ "$whole" -eq "$lines" ] || [ $((whole + 1)) -eq "$lines" ]
	ok $? "the warning has the number of whole lines of $1's log"
	[ "$lines" -gt 1000 ] && [ "$lines" -lt 30000 ]
	ok $? "what was read of the cut log of $1 counts"
	is "$(shmlimit replay --rule '5/s burst 5' --json "cut.$2" long 2>/dev/null | jq .lines)" $((lines + 30000)) \
		"the logs after the cut log of $1 are read"
	[ "$1" = gzip ] && return
	run sh -c "cat long.$2 | shmlimit replay --rule '5/s burst 5'"
	is "$rc $err" "2 shmlimit: standard input: compressed by $1: give its file, or unpack it: $1 -dc FILE | shmlimit replay ..." \
		"a pipe with what $1 compressed is refused"
	run env PATH=/none "$(command -v shmlimit)" replay --rule '5/s burst 5' "long.$2"
	like "$rc $err" "^2 shmlimit: long.$2: needs $1, which is not installed \\(on Debian: apt install $1(-utils)?\\)\$" \
		"without $1 that is said"
}
packed gzip gz
packed xz xz
packed zstd zst
packed bzip2 bz2
half=$(($(wc -c <long.gz) / 2))
head -c $half long.gz >damaged.gz
head -c 1000 /dev/zero | tr '\0' '\377' >>damaged.gz
tail -c +$((half + 1001)) long.gz >>damaged.gz
run shmlimit replay --rule '5/s burst 5' damaged.gz
like "$rc $err" "^0 shmlimit: warning: damaged.gz: damaged after line [0-9]+, up to which it counts\$" \
	"a damaged log is read up to there, with a warning"
done_testing
