#!/bin/sh
# lock: a process that can read a segment's file can hold its lock for as long as it likes. Commands that need the lock
# give up after a while and say which process it is; decisions go on.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"

need flock
segment=$SEGMENT.s
cd "$TMP" || exit 1
shmlimit create "$segment" --slots 16 --mode 0644
shmlimit rule set "$segment" r --capacity 3 --rate 1/d
printf '[r]\nmode = off\n' >rules.ini
mkfifo held release
stranger=
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 .
	chmod 666 held release
	stranger="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
# Opened here, so that the holder ends when this test does.
$stranger flock "$SHM$segment" sh -c 'echo held >held; cat release' >/dev/null &
holder=$!
read -r _ <held
exec 9>release

before=$(sum_file "$SHM$segment")
locked="2 shmlimit: segment $segment: locked by process $holder: not changed (any process that can read \
$SHM$segment can hold its lock; try again, or end that process)"
run shmlimit throttle "$segment" key 15 30 60
is "$rc $out$err" "$locked" "throttle with a new limit does not wait for the lock, and says who holds it"
if unshare --mount mount -t tmpfs tmpfs /proc 2>/dev/null; then
	run unshare --mount sh -c "mount -t tmpfs tmpfs /proc && exec shmlimit throttle $segment key 15 30 60"
	is "$rc $out$err" "$(echo "$locked" | sed "s/ process $holder:/ another process:/")" "without /proc it says that another process holds it"
fi
n=0
while read -r words; do
	n=$((n + 1))
	echo "$words" >"$n.words"
	{ shmlimit $words >"$n.out" 2>&1; echo "$? $(cat "$n.out")" >"$n.end"; } 9>&- &
	eval "pid_$n=\$!"
done <<END
rule set $segment r --mode off
rule remove $segment r
apply $segment rules.ini
grow $segment --slots 64
save $segment file
verify $segment --repair
END
run shmlimit peek "$segment" r key
is $rc 0 "a decision is made while they wait"
while [ $n -gt 0 ]; do
	eval "wait \$pid_$n"
	is "$(grep -v '^~' "$n.end" | tail -n 1 | sed "s/^shmlimit:/2 &/")" "$locked" "$(cat "$n.words"): gives up, and says who holds the lock"
	n=$((n - 1))
done
is "$(sum_file "$SHM$segment")" "$before" "nothing was changed"
[ ! -e file ]
ok $? "nothing was saved"

exec 9>&-
wait $holder
run shmlimit rule set "$segment" r --mode off
is "$rc $err" "0 " "a rule is set when the lock is free again"
run shmlimit throttle "$segment" key 15 30 60
is "$rc $out" "0 0 15 14 -1 2" "throttle makes its rule when the lock is free again"
done_testing
