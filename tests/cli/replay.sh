#!/bin/sh
# replay: what limits would have done to a log's requests is what they do, and
# nothing is left of the trial.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq /usr/bin/python3
cd "$TMP" || exit

# Fields of the JSON answer to the arguments behind.
field() {
	filter=$1
	shift
	shmlimit replay "$@" --json 2>warnings | jq -c "$filter"
}

# at SECOND HOST [USER [REQUEST]]: a line of a log.
at() {
	printf '%s - %s [21/Nov/2026:09:00:%02d +0000] "%s" 200 512\n' "$2" "${3:--}" "$1" "${4:-GET / HTTP/1.1}"
}

# ---- what is decided ----
{
	for i in 1 2 3 4 5; do at 0 10.0.0.1; done
	at 0 10.0.0.2
	at 1 10.0.0.1
	at 2 10.0.0.1
	at 2 10.0.0.1
	at 9 10.0.0.1
} >small
run shmlimit replay --rule '1/s burst 3' --rule '4/5s window' small
is "$rc $err" "0 " "a log is replayed"
is "$(printf '%s\n' "$out" | tr -s ' ')" "lines: 10
keys: 2
time: 2026-11-21T09:00:00Z to 2026-11-21T09:00:09Z

RULE ALLOWED DENIED SHARE KEYS FIRST LAST WORST DENIED-THEN
1/s burst 3 7 3 30.00% 1 2026-11-21T09:00:00Z 2026-11-21T09:00:02Z 2026-11-21T09:00:00Z 2/s
4/5s window 6 4 40.00% 1 2026-11-21T09:00:00Z 2026-11-21T09:00:02Z 2026-11-21T09:00:02Z 2/s

RULE KEY REQUESTS DENIED SHARE FIRST LAST
1/s burst 3 10.0.0.1 9 3 33.33% 2026-11-21T09:00:00Z 2026-11-21T09:00:02Z

RULE KEY REQUESTS DENIED SHARE FIRST LAST
4/5s window 10.0.0.1 9 4 44.44% 2026-11-21T09:00:00Z 2026-11-21T09:00:02Z" \
	"each limit by itself: what it denies, to whom and when"
is "$(field '[.rules[] | [.rule, .algorithm, .capacity, .allowed, .denied, .keys_denied, .no_room, ((.first_unix_ns, .last_unix_ns) | if . then tonumber / 1e9 else . end)]]' \
	--rule '1/s burst 3' --rule '4/5s window' small)" \
	'[["1/s burst 3","funnel",3,7,3,1,0,1795251600,1795251602],["4/5s window","window",4,6,4,1,0,1795251600,1795251602]]' \
	"in JSON, too"
is "$(field '[.step_ns / 1e9, (.steps_from_unix_ns | tonumber) / 1e9, .requests_by_step, .rules[0].denied_by_step]' --rule '1/s burst 3' small)" \
	'[1,1795251600,[6,1,2,0,0,0,0,0,0,1],[2,0,1,0,0,0,0,0,0,0]]' "with what was denied when"

# The same by another's arithmetic, on a log of many keys over hours, by fractions and by lists of times.
cat >oracle.py <<'PYTHON'
import random, sys, time
from collections import defaultdict, deque
from fractions import Fraction

seed = int(sys.argv[1])
random.seed(seed)
now, lines = 1795251600, []
for _ in range(20000):
	now += random.choice((0,) * 12 + (1, 1, 2, 9))
	lines.append((now, "10.%d.0.%d" % (random.randrange(2), min(int(random.expovariate(0.2)), 255))))
with open("random", "w") as log:
	for now, host in lines:
		zone = random.randrange(-11, 12)
		log.write('%s - - [%s %+03d00] "GET /" 200 1 "-" "%s"\n' % (host, time.strftime("%d/%b/%Y:%H:%M:%S",
			time.gmtime(now + zone * 3600)), zone, "x" * random.randrange(200)))
denied = [defaultdict(int), defaultdict(int)]
tokens, last = defaultdict(lambda: Fraction(7)), {}
admitted = defaultdict(deque)
for now, host in lines:
	tokens[host] = min(Fraction(7), tokens[host] + Fraction(3, 70) * (now - last.get(host, now)))
	last[host] = now
	if tokens[host] >= 1:
		tokens[host] -= 1
	else:
		denied[0][host] += 1
	while admitted[host] and admitted[host][0] <= now - 60:
		admitted[host].popleft()
	if len(admitted[host]) < 5:
		admitted[host].append(now)
	else:
		denied[1][host] += 1
for each in denied:
	print(*("%s=%d" % k for k in sorted(each.items(), key=lambda k: (-k[1], k[0]))))
PYTHON
seed=${SEED:-$$}
diag "SEED=$seed"
/usr/bin/python3 oracle.py "$seed" >wanted
field '.rules[] | [.worst[] | [.key, .denied]] | sort_by(-.[1], .[0]) | map("\(.[0])=\(.[1])") | join(" ")' \
	--rule '3/70s burst 7' --rule '5/m window' --top 1000 random | tr -d '"' >got
cmp -s wanted got && [ "$(wc -w <got)" -gt 20 ]
ok $? "thousands of requests are decided to the one as by fractions and lists of times"
is "$(field '[.keys, .rules[0].denied]' --rule '3/70s burst 7' random)" \
	"$(awk 'NR == 1 { n = 0; for (i = 1; i <= NF; i++) { sub(/.*=/, "", $i); n += $i } print n }' wanted |
	sed "s/.*/[$(cut -d ' ' -f 1 random | sort -u | wc -l),&]/")" "random logs are summed up as they were written"
is "$(field '[(.requests_by_step | add), (.rules[0] | (.denied_by_step | add) == .denied), .step_ns > 1e9, (.requests_by_step | length) <= 512]' \
	--rule '3/70s burst 7' random)" '[20000,true,true,true]' "no step loses a request"
run shmlimit replay --rule '1/h burst 1' --top 3 random
like "$out" '^keys left out: [0-9]+ \(--top\)$' "--top shows this number of keys, and says that there are more"
run shmlimit replay --rule '1/h burst 1' --top 0 random
is "$(printf '%s\n' "$out" | grep -c KEY\ )" 0 "--top 0 shows none"
run shmlimit replay --rule '1/d burst 5' --slots 16 random
like "$out" '^rule 1/d burst 5: requests that found no slot: [0-9]+ \(give more --slots\)$' "keys that find no room are counted"
like "$(ulimit -f 10 && shmlimit replay --rule '1/d burst 5' --slots 64K /dev/null 2>&1)" \
	'^shmlimit: /dev/shm: .*: must have room for a segment of 64000 slots [(]use fewer --slots[)]$' "where the segment has no room, it says what takes less"

# ---- where it comes from ----
want=$(shmlimit replay --rule '3/70s burst 7' random)
gzip -k random
is "$(shmlimit replay --rule '3/70s burst 7' random.gz)" "$want" "a compressed log is the same"
is "$(shmlimit replay --rule '3/70s burst 7' <random)" "$want" "a log on standard input is the same"
is "$(shmlimit replay --rule '3/70s burst 7' - <random.gz)" "$want" "by its name, and compressed"
head -n 7000 random >access.log.2
gzip access.log.2
sed -n 7001,15000p random >access.log.10
sed -n '15001,$p' random >access.log
: >access.log.empty
is "$(shmlimit replay --rule '3/70s burst 7' access.log*)" "$want" "several are read from the oldest on"
{ cat random && printf '10.0.0.1 - - [21/Nov/2026:09' ; } >torn
is "$(field '[.lines, .not_understood]' --rule '1/s burst 1' torn)" '[20001,1]' "a last line that is torn is not understood"
head -c 3000 random.gz >torn.gz
run shmlimit replay --rule '1/s burst 1' torn.gz
like "$rc $err" '^0 shmlimit: warning: torn.gz: cut short after line [0-9]+, up to which it counts$' \
	"a compressed file that is torn is read up to there, with a warning"

# ---- order ----
# Each line up to half an hour late, as Apache writes them, whose lines have the time at which a request began.
/usr/bin/python3 - "$seed" <<'PYTHON'
import random, sys

random.seed(sys.argv[1])
with open("random") as log:
	lines = log.readlines()
now, begin = 0, []
for n, line in enumerate(lines):
	time = line.split("[")[1]
	day, hour, minute, second = int(time[:2]), int(time[12:14]), int(time[15:17]), int(time[18:20])
	zone = int(time[21:24])
	begin.append(((day * 24 + hour - zone) * 3600 + minute * 60 + second + random.random() * 1800, n))
with open("late", "w") as log:
	log.writelines(lines[n] for _, n in sorted(begin))
PYTHON
cmp -s late random
is "$?" 1 "a log can be out of order"
run shmlimit replay --rule '3/70s burst 7' late
is "$rc $err $out" "0  $want" "lines that are late by less than an hour are put in order"
is "$(shmlimit replay --rule '3/70s burst 7' <late)" "$want" "lines of standard input that are late are put in order"
zcat access.log.2.gz >oldest
cat access.log oldest >unordered
run shmlimit replay --rule '3/70s burst 7' unordered
late=$(printf '%s\n' "$out" | sed -n 's/^too late: //p')
is "$rc $err" "0 shmlimit: warning: lines left out: $late of $(wc -l <unordered): each is over 60 minutes, or 4194304 \
requests, earlier than a line before it (give logs as files, which are read in order of time)" \
	"lines that are later are left out, with a warning"
[ "$late" -gt 1000 ] && [ "$late" -le 7000 ]
ok $? "a line that is late by less than an hour is not left out among them"
is "$(field '[.too_late, (.requests_by_step | add)]' --rule '1/s burst 1' unordered 2>/dev/null)" \
	"[$late,$(($(wc -l <unordered) - late))]" "JSON has the number of lines that were left out, and the rest is decided"

# ---- formats ----
sed 's/^/www.example.org:443 /' random >vhost
is "$(shmlimit replay --rule '3/70s burst 7' vhost)" "$want" "vhost_combined is the same with a server before it"
{
	at 0 2001:db8::1 && at 0 2001:db8::1 'a b'
	echo "www.example.org:80 $(at 0 2001:db8::1)"
	echo "10.0.0.9:8080 $(at 0 2001:db8::1 'a b')"
	echo "[2001:db8::9]:80 $(at 0 2001:db8::1)"
} >mixed
is "$(field '[.not_understood, .keys, .rules[0].worst[0].key, .rules[0].denied]' --rule '1/d burst 1' mixed)" \
	'[0,1,"2001:db8::/64",4]' "an address that ends in a colon and digits is no server"
for n in 1 2 3; do echo "$n: [error] no log $(printf '\033')"; done >none-is
any=" (any log can be made JSON with the members time, remote_addr and path: see shmlimit(1))"
{ echo && cat none-is && head -c 300 /dev/zero | tr '\0' x; } >error.log
run shmlimit replay --rule '1/s burst 1' error.log
is "$rc $out$err" "2 shmlimit: error.log: no line is in the common, combined or vhost_combined format, or JSON; line 2: \
1: [error] no log \x1b$any" "a file in which no line is understood is an error that shows the first"
run shmlimit replay --rule '1/s burst 1' small error.log
is "$rc $out" "2 " "a file in which no line is understood is an error among others, too"
run sh -c "shmlimit replay --rule '1/s burst 1' <error.log"
like "$rc $err" '^2 shmlimit: standard input: no line is ' "standard input in which no line is understood is an error"
run shmlimit replay --rule '1/s burst 1' access.log.empty small
is "$rc $err" "0 " "an empty file among logs is no error"
tail -n 1 error.log >x.log
run shmlimit replay --rule '1/s burst 1' x.log
is "$err" "shmlimit: x.log: no line is in the common, combined or vhost_combined format, or JSON; line 1: \
$(head -c 160 x.log)$any" "160 bytes of a long line that is not understood are shown"

# ---- lines ----
{
	at 5 '2001:db8:1:2:3::1'
	at 5 '2001:db8:1:2::9'
	at 4 ::ffff:10.0.0.1
	at 6 10.0.0.200 lao\ qian 'GET /a?b HTTP/1.1'
	at 6 host.example bob '\x16\x03'
	echo
	echo 'nothing of the kind'
	at 7 10.0.0.1 | sed s/Nov/Now/
	at 7 10.0.0.1 | sed 's/21\/Nov/00\/Nov/'
	at 7 10.0.0.1 | sed 's/2026/9999/'
	at 7 10.0.0.1 | sed 's/"//g'
	head -c 700000 /dev/zero | tr '\0' x
	echo
	at 8 10.0.0.1 - "GET /$(head -c 2000 /dev/zero | tr '\0' y) HTTP/1.1"
	printf '10.0.0.1 - - [21/Nov/2026:11:00:09 +0200] "GET / HTTP/1.1" 200 1 "' && head -c 700000 /dev/zero | tr '\0' '"'
	echo
	printf '10.0.0.1 - - [21/Nov/2026:05:30:09 -0330] "GET / HTTP/1.1" 200 1 "-" "Mozilla"\r\n'
} >lines
is "$(field '[.lines, .not_understood, .too_late, .keys, ((.last_unix_ns | tonumber) - (.first_unix_ns | tonumber)) / 1e9]' --rule '1/d burst 1' lines)" \
	'[15,7,0,4,5]' "lines are understood, or counted"
like "$(cat warnings)" '^shmlimit: warning: lines whose client is no address: 1 of 15 [(]the first: host.example[)]' \
	"a client that is no address is warned of"

# keys FIELDS: each key that was denied.
keys() {
	head -n 5 lines >twice
	sed 's/09:00:[0-9]*/09:00:20/' twice >again
	cat twice again | shmlimit replay --rule '1/d burst 1' --top 100 --json --key "$1" - 2>warnings |
		jq -r '.rules[0].worst[].key' |
		sort | tr '\n' ';'
}
is "$(keys addr)" "10.0.0.1;10.0.0.200;2001:db8:1:2::/64;host.example;" "by default a key is an address, or an IPv6 net"
is "$(keys addr/24)" "10.0.0.0/24;2001:db8:1:2::/64;host.example;" "a key can be a network of this number of bits"
is "$(keys addr/0,48)" "0.0.0.0/0;2001:db8:1::/48;host.example;" "a key can be a network of a number of bits for each kind"
is "$(keys addr/32,128)" "10.0.0.1;10.0.0.200;2001:db8:1:2:3::1;2001:db8:1:2::9;host.example;" "a key can be an address in full"
is "$(keys user)" "bob;lao qian;" "a key can be a user, where there is one"
is "$(keys path)" '/;/a;\x16\x03;' "a key can be a path, without its query"
is "$(keys user+addr/8+path)" "bob host.example \\x16\\x03;lao qian 10.0.0.0/8 /a;" "a key can be several of these"
is "$(field .without_key --rule '1/s burst 1' --key user lines)" 6 "a request without a key is counted, and not limited"
{ at 0 10.0.0.1 - "GET /$(printf '\033[31m') HTTP/1.1" && at 0 10.0.0.1 - "GET /$(printf '\033[31m') HTTP/1.1"; } >escape
is "$(shmlimit replay --rule '1/d burst 1' --key path escape | tail -n 1 | cut -c 14-23)" "/\x1b[31m " "a terminal gets no control characters"

# ---- --plot ----
if command -v gnuplot >/dev/null; then
	run shmlimit replay --rule '3/70s burst 7' --rule '5/m window' random --plot picture.svg
	is "$rc $err" "0 " "--plot draws"
	/usr/bin/python3 -c 'import sys, xml.dom.minidom as x; sys.exit(x.parse("picture.svg").documentElement.tagName != "svg")'
	ok $? "a picture that is well-formed SVG"
	is "$(grep -c 'denied by 3/70s burst 7\|denied by 5/m window\|>requests<' picture.svg)" 3 "of requests and of each limit's denials"
	before=$(cksum <picture.svg)
	run shmlimit replay --rule '1/s burst 1' /dev/null --plot picture.svg
	is "$rc $err $(cksum <picture.svg)" "2 shmlimit: --plot: nothing to draw: no requests in the log $before" \
		"where there is nothing to draw the old one stays"
	is "$(ls picture*)" picture.svg "a plot that is not drawn leaves no file"
	shmlimit replay --rule '1/s burst 1' small --plot - >streamed.svg
	is "$? $(head -c 5 streamed.svg) $(grep -c "</svg>\|^RULE" streamed.svg) $(ls -- - 2>/dev/null)" "0 <?xml 1 " \
		"--plot - writes the picture, and nothing else, to standard output"
fi
run env PATH=/none "$(command -v shmlimit)" replay --rule '1/s burst 1' small --plot picture2.svg
is "$rc $out$err" "2 shmlimit: --plot: gnuplot is not installed (on Debian: apt install gnuplot-nox)" \
	"without gnuplot that is said at once"

# ---- progress ----
sed "p;p;p" random >long
is "$(shmlimit replay --rule '1/s burst 1' long 2>&1 >out)" "" "no bar is drawn where there is no terminal"
if has_terminal; then
	script -qec "shmlimit replay --rule '1/s burst 1' long 2>&1 >/dev/null" typescript </dev/null | tr '\r' '\n' >seen
	like "$(cat seen)" '^\[#+ *\] +[0-9]+ %  [0-9]+ lines' "on a terminal there is a bar"
	is "$(tail -n 1 seen | od -An -c | tr -d ' \n')" '033[K' "the bar on a terminal is wiped away"
fi

# ---- nothing is left ----
mkfifo pipe
shmlimit replay --rule '1/s burst 1' --rule '9/s window' pipe >out 2>&1 &
pid=$!
exec 9>pipe
is "$(ls /dev/shm | grep -c "\.$pid\.")" 0 "while a log is read its segments have no names"
kill -TERM $pid
wait $pid 2>/dev/null
is "$?" 143 "replay ends with the signal's status when it is killed there"
exec 9>&-
is "$(ls /dev/shm | grep -c "\.$pid\.")" 0 "nothing is left"

# ---- errors ----
wrong() {
	message=$1
	shift
	run shmlimit replay "$@"
	is "$rc $out$err" "2 shmlimit: $message" "replay $* is refused"
}

wrong "replay: missing --rule LIMIT (for example '10/s burst 20' or '100/h window')" small
wrong '--rule 10/s bursts 3: not an option: did you mean "10/s burst 3"?' --rule '10/s bursts 3' small
wrong '--rule 10/s window 3: must be "burst N", strict, window, "in ZONE" or nothing at the end' --rule '10/s window 3' small
wrong '--rule 20 at once: no log says how long a place is held: use COUNT/PERIOD' --rule '20 at once' small
wrong '--rule 1/s burst 0: burst 0: must be 1 or more, which is how many pass at once: did you mean "1/s burst 1"?' \
	--rule '1/s burst 0' small
wrong "--rule 65537/s window: window too large: must be 65536 or less" --rule '65537/s window' small
wrong "rule 1/600w window: rate 1/600w with period 600w: cannot be represented: must be times of less than nine years \
together" --rule '1/600w window' small
for key in '' addr/33 addr/24,129 addr/ addr/24, user/8 host addr+ +user addr+user+path+path+path addr24; do
	wrong "--key $key: must be addr, addr/24 or addr/24,64, user, path, or several of them joined by +" \
		--rule '1/s burst 1' --key "$key" small
done
wrong "none: No such file or directory" \
	--rule '1/s burst 1' small none
wrong ".: Is a directory" --rule '1/s burst 1' .
wrong "pipe: not a file, among several" \
	--rule '1/s burst 1' small pipe
wrong "-: standard input cannot be read beside files" --rule '1/s burst 1' small -
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do set -- "$@" --rule "$i/d burst 1"; done
is "$(field '[.rules[].denied] | unique' "$@" small)" '[8]' "sixteen limits are tried side by side"
wrong "replay: --rule 17/d burst 1: given too often (at most 16 times)" "$@" --rule '17/d burst 1' small

done_testing
