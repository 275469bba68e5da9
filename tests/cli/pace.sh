#!/bin/sh
# pace: jobs that cron starts share one pace. The scripts and the crontab are those of shmlimit.1, word for word. Only
# lower bounds of time are checked.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need jq

# example FIRST: the manual's literal block whose first line matches.
example() {
	sed -n '/^\.Bd -literal/,/^\.Ed/p' "$SOURCE/tools/shmlimit/shmlimit.1" |
		awk -v first="$1" '/^\.Bd/ { block = ""; next }
			/^\.Ed/ { if (block ~ first) printf "%s", block; next }
			{ block = block $0 "\n" }' | sed 's/\\&//g; s/\\e/\\/g'
}

mkdir "$TMP/bin"
PATH=$TMP/bin:$PATH
# Names apart, so that the test has a segment of its own, all is as in the manual.
ours() { sed "s/\\<jobs\\>/$SEGMENT.jobs/"; }
example '^@reboot' | ours >"$TMP/crontab"
example '^#!/bin/sh\nshmlimit rule set jobs' | ours >"$TMP/bin/pace-rules"
example '^#!/bin/sh\nwhile read' | ours >"$TMP/bin/send-mails"
cat >"$TMP/bin/send" <<'EOF'
#!/bin/sh
echo "$1" >>sent
EOF
chmod +x "$TMP"/bin/*
cd "$TMP" || exit

is "$(wc -l <"$TMP/crontab") $(grep -c '^@reboot ' crontab)" "3 1" "shmlimit.1 has a crontab"
sed -n 's/^@reboot *//p' crontab >reboot
run sh reboot
is "$rc $err" "0 " "what cron does after a reboot makes the segment and the rule"
like "$(shmlimit rule show "$SEGMENT.jobs" mail)" '^capacity: 20$' "as the manual says it"

# lines N NAME: a list of that many.
lines() { seq -f "$2 %g" "$1" >"$2"; }
# Hundredths of a second since boot: steps of 10 ms, so that a difference may be short by one.
now() { awk '{ printf "%d", $1 * 100 }' /proc/uptime; }
# cron: every job of the crontab at once, until all have ended.
cron() {
	sed -n 's/^\*[^ ]* \* \* \* \*  *//p' crontab >jobs
	while read -r job; do
		sh -c "$job" &
	done <jobs
	wait
}

lines 13 customers
lines 12 partners
start=$(now)
cron
elapsed=$(($(now) - start))
is "$(sort sent)" "$(sort customers partners)" "every mail of both lists is sent, once"
[ $elapsed -ge 49 ]
ok $? "25 of capacity 20 at 10 a second take 500 ms, over both scripts"
[ $elapsed -ge 49 ] || diag "took $elapsed hundredths of a second"


# A debt is a minute at most, so at 10 a second it would soon be less.
rm sent
shmlimit rule set "$SEGMENT.jobs" mail --rate 1/h
shmlimit charge "$SEGMENT.jobs" mail relay --tokens 1000 --quiet
run send-mails customers
is "$rc $out$err" "1 " "a command that would have to wait for over a minute gives up"
[ ! -e sent ]
ok $? "a command that gives up has sent nothing"

# A pace so slow that what it waits for is not there while the test runs.
shmlimit rule set "$SEGMENT.jobs" daily --capacity 20 --rate 1/d --max-wait 9d
shmlimit take "$SEGMENT.jobs" daily relay --cost 20 --quiet
shmlimit acquire "$SEGMENT.jobs" daily relay --quiet &
victim=$!
reserved() { [ "$(shmlimit inspect "$SEGMENT.jobs" --json --rule daily | jq ".rules[0].counters.allowed")" -eq 2 ]; }
tries=0
until reserved || [ $tries -gt 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
reserved
ok $? "a process waits for a token of tomorrow"
kill -KILL $victim
wait $victim 2>"$TMP/.err"
is $? 137 "a process that waits can be killed"
run shmlimit refund "$SEGMENT.jobs" daily relay --tokens 20
like "$out" '^remaining: 19$' "a killed process has cost that token, and delays no other"

done_testing
