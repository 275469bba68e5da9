#!/bin/sh
# replay_client: behind a proxy the client is where the proxy wrote it; a log that looks like one of a proxy gets a warning;
# --client names another place. --path, --method and --status leave requests out. Objects may be many on a line.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq
cd "$TMP" || exit

# client LINE OPTION...: the client that replay finds, and how many requests were forwarded.
client() {
	printf '%s\n%s\n' "$1" "$1" >log
	shift
	shmlimit replay "$@" --rule '1/d burst 1' --key addr/32,128 --json log 2>errors |
		jq -r 'if .not_understood > 0 then "not understood" else "\(.rules[0].worst[0].key) \(.forwarded)" end'
}

# ---- who it is, as proxies and servers write it ----
#	CLIENT FORWARDED | LINE
combined='[20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/8"'
json='"time":"2026-11-20T09:59:49Z","path":"/a"'
cat >forms <<TABLE
203.0.113.7 2 | 10.0.0.1 - - $combined "203.0.113.7"
203.0.113.7 2 | 10.0.0.1 - bob $combined "203.0.113.7, 10.0.0.9"
203.0.113.7 2 | 127.0.0.1 - - $combined "203.0.113.7"
203.0.113.7 2 | ::1 - - $combined "203.0.113.7"
203.0.113.7 2 | ::ffff:192.168.7.1 - - $combined "203.0.113.7"
203.0.113.7 2 | 172.31.0.1 - - $combined "203.0.113.7"
203.0.113.7 2 | 100.64.0.1 - - $combined "203.0.113.7"
203.0.113.7 2 | 169.254.7.1 - - $combined "203.0.113.7"
2001:db8::7 2 | fd00::1 - - $combined "2001:db8::7"
2001:db8::7 2 | fe80::1 - - $combined "[2001:db8::7]:50001"
203.0.113.7 2 | unix: - - $combined "203.0.113.7"
172.32.0.1 0 | 172.32.0.1 - - $combined "203.0.113.7"
198.51.100.1 0 | 198.51.100.1 - - $combined "203.0.113.7"
10.0.0.1 0 | 10.0.0.1 - - $combined "-"
10.0.0.1 0 | 10.0.0.1 - - $combined
10.0.0.1 0 | 10.0.0.1 - - $combined "" "example.org"
10.7.7.7 2 | 10.0.0.1 - - $combined "10.7.7.7"
203.0.113.7 2 | 10.0.0.1 - - $combined "-" "203.0.113.7"
203.0.113.7 2 | 10.0.0.1 - - $combined 0.003 [web] 10.0.0.2:8080 "203.0.113.7"
203.0.113.7 2 | 10.0.0.1 - - $combined 203.0.113.7, 10.0.0.9 0.003
203.0.113.7 2 | 10.0.0.1 - - $combined rt=0.003 fwd="203.0.113.7, 10.0.0.9"
10.0.0.1 0 | 10.0.0.1 - - $combined 10.0.0.2:8080 "10.0.0.2:8080" 203.0.113.9:80
10.0.0.1 0 | 10.0.0.1 - - [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5 "203.0.113.9" "203.0.113.8"
203.0.113.7 2 | 10.0.0.1 - - [20/Nov/2026:09:59:49 +0000] "GET /\"a HTTP/1.1" 200 5 "-" "a\" \"203.0.113.9\" \"" "203.0.113.7"
203.0.113.7 2 | 10.0.0.1 203.0.113.7 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
10.0.0.1 0 | 10.0.0.1 - 203.0.113.9 [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 0 | 203.0.113.7 10.0.0.1 - bob [20/Nov/2026:09:59:49 +0000] "GET /a HTTP/1.1" 200 5
203.0.113.7 2 | Nov 20 09:59:01 web1 nginx: 10.0.0.1 - - $combined "203.0.113.7"
203.0.113.7 2 | {"log":"10.0.0.1 - - [20/Nov/2026:09:59:49 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"a\" \"203.0.113.7\"\n"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","http_x_forwarded_for":"203.0.113.7, 10.0.0.9"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","x_forwarded_for":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","X-Forwarded-For":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","x_forward_for":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","x_real_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","http_x_forwarded_for":"198.51.100.9","http_x_real_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","x_real_ip":"198.51.100.9","http_cf_connecting_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","cf_connecting_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","http_true_client_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","proxy_protocol_addr":"203.0.113.7","cf_connecting_ip":"198.51.100.9"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","cf_connecting_ip":"-","proxy_protocol_addr":"","x_real_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"unix:","x_real_ip":"203.0.113.7"}
203.0.113.7 2 | {$json,"x_real_ip":"203.0.113.7"}
198.51.100.1 0 | {$json,"remote_addr":"198.51.100.1","x_real_ip":"203.0.113.7"}
10.0.0.1 0 | {$json,"remote_addr":"10.0.0.1","x_real_ip":"unknown","x_forwarded_for":7}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","forwarded":"for=203.0.113.7"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","http_forwarded":"proto=https; For=203.0.113.7;by=10.0.0.9, for=10.0.0.9"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","request_Forwarded":"for=\"203.0.113.7:4711\", for=_hidden"}
2001:db8::7 2 | {$json,"remote_addr":"10.0.0.1","Forwarded":"for=\"[2001:db8::7]:4711\";proto=http"}
203.0.113.7 2 | {$json,"remote_addr":"10.0.0.1","forwarded":"for=198.51.100.9","x_forwarded_for":"203.0.113.7"}
10.0.0.1 0 | {$json,"remote_addr":"10.0.0.1","forwarded":"by=203.0.113.9;proto=http"}
10.0.0.1 0 | {$json,"remote_addr":"10.0.0.1","forwarded":"for=;=;for"}
10.0.0.1 0 | {$json,"remote_addr":"10.0.0.1","forwarded":true}
203.0.113.7 2 | {"ts":1795168789.1,"request":{"remote_ip":"10.0.0.1","headers":{"Forwarded":["for=203.0.113.7","for=10.0.0.9"]}}}
203.0.113.7 2 | 10.0.0.1 - - $combined "for=203.0.113.7;proto=https"
2001:db8::7 2 | 10.0.0.1 - - $combined "for=\\x22[2001:db8::7]:4711\\x22;proto=https"
2001:db8::7 2 | 10.0.0.1 - - $combined "for=\\"[2001:db8::7]\\""
203.0.113.7 2 | {"start_time":"2026-11-20T09:59:49Z","downstream_remote_address":"10.0.0.1:5000","x_forwarded_for":"203.0.113.7"}
203.0.113.7 2 | {"start_time":"2026-11-20T09:59:49Z","downstream_direct_remote_address":"10.0.0.1:5000","x_forwarded_for":"203.0.113.7"}
203.0.113.7 2 | {"StartUTC":"2026-11-20T09:59:49Z","ClientAddr":"10.0.0.1:5000","ClientHost":"10.0.0.1","request_X-Forwarded-For":"203.0.113.7"}
203.0.113.7 2 | {"StartUTC":"2026-11-20T09:59:49Z","ClientHost":"10.0.0.1","request_X-Real-Ip":"203.0.113.7"}
203.0.113.7 2 | {"ts":1795168789.1,"request":{"remote_ip":"10.0.0.1","client_ip":"10.0.0.1","headers":{"X-Forwarded-For":["203.0.113.7"]}}}
203.0.113.7 2 | {"ts":1795168789.1,"request":{"remote_ip":"10.0.0.1","headers":{"X-Forwarded-For":["203.0.113.7","10.0.0.9"]}}}
203.0.113.7 2 | {"time":1795168789005,"req":{"remoteAddress":"::ffff:10.0.0.1","headers":{"x-forwarded-for":"203.0.113.7"}}}
TABLE
n=0
while IFS= read -r form; do
	n=$((n + 1))
	is "$(client "${form#* | }")" "${form%%" | "*}" "form $n behind a proxy: the client is found"
done <forms
[ $n -ge 50 ]
ok $? "there are enough forms of proxies"

headers='{"ts":1795168789.1,"request":{"remote_ip":"10.0.0.1","headers":{"X-Forwarded-For":["192.0.2.66","203.0.113.7, 203.0.113.8"]}}}'
is "$(client "$headers" --forwarded -1)" "203.0.113.8 2" "a header that came twice is one list"
is "$(client "$headers" --forwarded -2)" "203.0.113.7 2" "a list of two headers has the elements of both"
printf '10.0.0.1 203.0.113.7 - bob %s\n' "$combined" "$combined" >log
is "$(shmlimit replay --rule '1/d burst 1' --key user --json log | jq -r '.rules[0].worst[0].key')" bob \
	"a user stands behind what the proxy wrote"

# ---- --client ----
rfc7239='{"time":"2026-11-20T09:59:49Z","remote_addr":"198.51.100.1","proxied":"for=203.0.113.7;proto=http, for=192.0.2.9"}'
is "$(client "$rfc7239" --client proxied)" "203.0.113.7 2" "--client takes a member as the field Forwarded"
is "$(client "$rfc7239" --client proxied --forwarded -1)" "192.0.2.9 2" "the last of the field Forwarded is what the nearest proxy wrote"
is "$(client "198.51.100.1 - - $combined \"for=203.0.113.7\"" --client -1)" "203.0.113.7 2" "--client takes the field Forwarded of a line of text"
main="10.0.0.1 - bob $combined \"203.0.113.7, 198.51.100.1\""
is "$(client "$main" --client addr)" "10.0.0.1 0" "--client addr is the address that connected"
is "$(client "$main" --client -1 --forwarded -1)" "198.51.100.1 2" "--client -1 is the last field of a line of text"
is "$(client "$main" --client 10)" "203.0.113.7 2" "--client 10 is the tenth field, where quotes and brackets are one"
is "$(client "$main" --client 1)" "10.0.0.1 0" "--client 1 is the first field"
is "$(client "203.0.113.7 10.0.0.1 - - $combined" --client 2)" "10.0.0.1 2" "--client 2 is the second field"
public='{"time":"2026-11-20T09:59:49Z","remote_addr":"198.51.100.1","x":{"client":"203.0.113.7"},"x_real_ip":"192.0.2.9"}'
is "$(client "$public" --client x_real_ip)" "192.0.2.9 2" "--client takes a member though a public address connected"
is "$(client "$public" --client x.client)" "203.0.113.7 2" "--client leads into an object"
is "$(client '{"time":"2026-11-20T09:59:49Z","cip":"203.0.113.7"}')" "" "an object without a client is not understood"
is "$(client '{"time":"2026-11-20T09:59:49Z","cip":"203.0.113.7"}' --client cip)" "203.0.113.7 2" "--client names the client of an object that has no other"
is "$(client '{"log":"{\"ts\":1795168789,\"cip\":\"203.0.113.7\"}","time":"2026-11-20T09:59:49Z"}' --client cip)" "203.0.113.7 2" \
	"--client names a member of an object that docker wrapped"
{ echo "$main" && echo "203.0.113.8 - - $combined \"-\""; } >log
is "$(shmlimit replay --client -1 --rule '1/d burst 1' --json log | jq -c '[.keys, .forwarded]')" "[2,1]" \
	"a line without the field of --client has its address"
for wrong in none 12 -12 0; do
	run shmlimit replay --rule '1/d burst 1' --client $wrong log
	is "$rc $out$err" "2 shmlimit: --client $wrong: no line has it (the name of a member of JSON; or the number of a field of text, -1 \
is the last)" "--client $wrong, which no line has, is an error"
done

# ---- a log that looks like a proxy's ----
# lines N LINE: the line with % replaced by numbers
lines() { for i in $(seq "$1"); do printf '%s\n' "$2" | sed "s/%/$i/g"; done; }
lines 10 "10.0.0.1 - - $combined" >log
run shmlimit replay --rule '1/d burst 1' log
is "$rc $err" "0 shmlimit: warning: one address made all 10 requests: 10.0.0.1: if that is a proxy, these limits take all clients \
for one (if the log has them: --client FIELD)" "a private address that made all requests is warned of"
run shmlimit replay --rule '1/d burst 1' --key user log
is "$rc $err" "0 " "where the key has no address, replay prints no warning about addresses"
lines 9 "10.0.0.1 - - $combined" >log
is "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" "" "few requests of one address are no warning"
lines 99 "203.0.113.9 - - $combined" >log
is "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" "" "99 requests of a public address are no warning"
echo "203.0.113.9 - - $combined" >>log
like "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" '^shmlimit: warning: one address made all 100 requests: 203.0.113.9: ' \
	"a public address that made all of a hundred requests is warned of"
echo "203.0.113.8 - - $combined" >>log
is "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" "" "two addresses are no warning"
lines 20 "198.51.100.4 - - $combined \"203.0.113.%\"" >log
run shmlimit replay --rule '1/d burst 1' log
is "$rc $err" "0 shmlimit: warning: 20 of 20 requests have an address that was forwarded, which was not used, since 198.51.100.4 is \
not private: if that is a proxy, use --client 10" "addresses that a public address forwarded are not used, with a warning"
is "$(shmlimit replay --rule '1/d burst 1' --client 10 --json log 2>&1 | jq -c '[.keys, .forwarded]')" "[20,20]" \
	"the option that the warning names takes them"
lines 20 '{"ts":1795168789.1,"request":{"remote_ip":"198.51.100.4","headers":{"Cf-Connecting-Ip":["203.0.113.%"]}}}' >log
run shmlimit replay --rule '1/d burst 1' log
like "$err" ' use --client request.headers.Cf-Connecting-Ip$' "the warning names a member of JSON"
is "$(shmlimit replay --rule '1/d burst 1' --client request.headers.Cf-Connecting-Ip --json log 2>&1 | jq -c '[.keys, .forwarded]')" \
	"[20,20]" "a name with dots leads to a header"
lines 20 "203.0.113.% - - $combined \"203.0.113.%, 10.0.0.9\"" >log
is "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" "" "a list that has the address itself is no warning"
{ lines 9 "198.51.100.4 - - $combined \"203.0.113.%\"" && lines 11 "203.0.113.% - - $combined \"-\""; } >log
is "$(shmlimit replay --rule '1/d burst 1' log 2>&1 >/dev/null)" "" "fewer than half of the requests are no warning"

# ---- --path, --method, --status ----
at() { printf '203.0.113.%s - - [20/Nov/2026:09:59:49 +0000] "%s HTTP/1.1" %s 5\n' "$1" "$2" "$3"; }
{
	at 1 'GET /login?next=/a' 200
	at 2 'POST /login' 401
	at 3 'POST /signin' 302
	at 4 'GET /api/v1/users' 404
	at 5 'PUT /api/v1/users/7' 500
	at 6 'GET /' 200
} >log
# left OPTION...: the last numbers of clients whose requests are left
left() { shmlimit replay --rule '1/d burst 1' --json "$@" | jq -r '.rules[0].worst[].key' | sed 's/.*\.//' | sort | tr -d '\n'; }
cat log log >twice
is "$(left twice)" 123456 "without filters all requests are looked at"
is "$(left --path /login twice)" 12 "--path compares a path without its query"
is "$(left --path /login,/signin twice)" 123 "--path takes several paths"
is "$(left --path '/api/*' twice)" 45 "--path takes a pattern"
is "$(left --path '/*/users*' twice)" 45 "a pattern has as many stars as one likes"
is "$(left --path '*/users' twice)" 4 "a star at the beginning is any text"
is "$(left --path / twice)" 6 "a path without a star is a whole path"
is "$(left --method POST twice)" 23 "--method keeps these methods"
is "$(left --method post,put twice)" 235 "--method takes several, in small letters"
is "$(left --status 401 twice)" 2 "--status keeps these answers"
is "$(left --status 4xx twice)" 24 "--status takes a class"
is "$(left --status 302,500-599 twice)" 35 "--status takes several, and ranges"
is "$(left --path '/api/*,/login' --method GET,PUT --status 2xx,5xx twice)" 15 "filters together keep what fits all of them"
run shmlimit replay --rule '1/d burst 1' --path /login --method POST twice
is "$rc $err" "0 " "a filter is no reason for a warning"
is "$(printf '%s\n' "$out" | sed -n 's/^filtered: *//p')" 10 "the requests that filters left out are counted"
run shmlimit replay --rule '1/d burst 1' --path /logn twice
is "$rc $err" "0 shmlimit: warning: no request is left: --path, --method and --status leave out all 12" "filters that leave nothing are warned of"
jq -nRc 'inputs | capture("(?<ip>203[0-9.]+) .*\"(?<method>[A-Z]+) (?<uri>[^ ]+).*\" (?<status>[0-9]+)")' twice >parts
while IFS= read -r filter; do
	jq -c ". as \$p | $filter" parts >log
	is "$(left --path '/api/*,/login' --method GET,PUT --status 2xx,5xx log)" 15 "$filter: the filters find path, method and status"
done <<'TABLE'
{time: "2026-11-20T09:59:49Z", remote_addr: .ip, request: "\(.method) \(.uri) HTTP/1.1", status: .status}
{time: "2026-11-20T09:59:49Z", remote_addr: .ip, request_method: .method, uri, status: (.status | tonumber)}
{ts: 1795168789, request: {remote_ip: .ip, method, uri}, status: (.status | tonumber)}
{StartUTC: "2026-11-20T09:59:49Z", ClientHost: .ip, RequestMethod: .method, RequestPath: .uri, DownstreamStatus: (.status | tonumber)}
{start_time: "2026-11-20T09:59:49Z", downstream_remote_address: "\(.ip):9", method, path: .uri, response_code: .status}
{time: 1795168789000, req: {method, url: .uri, remoteAddress: .ip}, res: {statusCode: (.status | tonumber)}}
{"@timestamp": "2026-11-20T09:59:49Z", client: {ip: .ip}, url: {path: .uri}, http: {request: {method}, response: {status_code: (.status | tonumber)}}}
{timestamp: "2026-11-20T09:59:49Z", httpRequest: {remoteIp: .ip, requestMethod: .method, status: (.status | tonumber)}, url: .uri}
TABLE
for wrong in login /a,b '' /a,; do
	run shmlimit replay --rule '1/d burst 1' --path "$wrong" twice
	like "$rc $err" '^2 shmlimit: --path .*: must begin with / or \*$' "--path '$wrong' is refused"
done
run shmlimit replay --rule '1/d burst 1' --path '/login?a' twice
is "$rc $err" "2 shmlimit: --path /login?a: must be without a query: paths are compared without theirs" "--path with a query is refused"
for wrong in 4 40 4x 4xxx 0xx 499-400 40-499 401- 401,; do
	run shmlimit replay --rule '1/d burst 1' --status "$wrong" twice
	like "$rc $err" '^2 shmlimit: --status .*: must be a status such as 401, 4xx or 400-499, or several joined by commas$' "--status '$wrong' is refused"
done
run shmlimit replay --rule '1/d burst 1' --method GET, twice
is "$rc $err" "2 shmlimit: --method GET,: must be a method such as POST, or several joined by commas" "--method with an empty method is refused"

# ---- several objects on a line ----
# A brace in a string is none.
for i in $(seq 5000); do
	printf '{"ts":%d,"remote_addr":"203.0.113.%d","uri":"/{\\\\\\"}[","request":{"a":[{"b":{}}]}}\n' $((1795168789 + i / 100)) $((i % 7))
done >objects
want=$(shmlimit replay --rule '1/h burst 9' --json objects)
is "$(printf '%s' "$want" | jq -c '[.lines, .not_understood, .keys]')" "[5000,0,7]" "objects with braces in their strings are understood"
same() { is "$(shmlimit replay --rule '1/h burst 9' --json objects.2)" "$want" "$1"; }
tr -d '\n' <objects >objects.2
same "objects side by side, without a line's end, are read as if each had a line"
tr '\n' ' ' <objects >objects.2
same "objects with blanks between them are read"
jq -sc . objects >objects.2
same "an array on a line is read"
jq -sc . objects | sed 's/},{"ts/},\n{"ts/g; s/^\[/[\n/; s/]$/\n]/' >objects.2
same "an array with an object a line is read"
paste -d ' ' - - - - <objects | sed 's/^/[/; s/$/]\r/' >objects.2
same "an array in each line is read"
printf '\357\273\277' | cat - objects | tr -d '\n' >objects.2
same "a byte order mark before objects is left out"
gzip -c objects.2 | cat >objects.2.gz && mv objects.2.gz objects.2
same "compressed objects of one line are read"
printf '{"ts":1795168789,"remote_addr":"203.0.113.1"} and more {"ts":1795168789,"remote_addr":"203.0.113.1"}\n{"ts":1}{\n' >objects
is "$(shmlimit replay --rule '1/h burst 9' --json objects | jq -c '[.lines, .not_understood]')" "[3,2]" \
	"a line whose objects are not all is one line, and an object without an end is not understood"
jq . objects 2>/dev/null >pretty
run shmlimit replay --rule '1/h burst 9' pretty
is "$rc $err" "2 shmlimit: pretty: no line is in the common, combined or vhost_combined format, or JSON; line 1: { (an object of \
several lines: jq -c . FILE | shmlimit replay ...)" "an object of several lines is an error that names the way"
done_testing
