#!/bin/sh
# logins: the programs of the guide for PAM and fail2ban: only a denial refuses a login, whatever the client's host is called; and a
# fail2ban that runs bans, keeps and ends bans, and reports nothing.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
cd "$TMP" || exit
segment=$SEGMENT.s

own() { sed "s/\bweb\b/$segment/"; }
block lib/doc/logins.md 'sh limit-login' | own >limit-login
like "$(cat limit-login)" '^#!/bin/sh' "the guide has the program for PAM"
# attempt HOST: as pam_exec runs it, which leaves nothing else in the environment.
attempt() { env -i PATH="$PATH" ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} ASAN_OPTIONS="${ASAN_OPTIONS-}" PAM_TYPE="${type:-auth}" ${1:+PAM_RHOST="$1"} sh limit-login 2>err; }

# What cannot decide refuses no attempt.
attempt 203.0.113.9
is "$? $(cat err)" "0 shmlimit: segment $segment: no such segment (shmlimit create $segment makes one; shmlimit list lists all)" "without a segment no attempt is refused, and a message says why"
shmlimit create "$segment" --slots 64 --store-keys 46
attempt 203.0.113.9
is "$?" 0 "without a rule no attempt is refused"
shmlimit rule set "$segment" login --capacity 2 --rate 1/d
(PATH=/usr/bin:/bin && ! command -v shmlimit >/dev/null) && { PATH=/usr/bin:/bin attempt 203.0.113.9; is "$?" 0 "without the command no attempt is refused"; }

# Each host is a client of its own.
for host in 203.0.113.9 2001:db8:0:1::9 '[2001:db8:0:2::9]:22' ::ffff:203.0.113.7 gate.example.com GATE 'a b' -h --help -- --key-text=x "x';id" 300.1.1.1 ''; do
	attempt "$host" && attempt "$host"
	is "$?" 0 "a client called '$host' may try twice"
	attempt "$host"
	is "$? $(cat err)" "1 " "a third attempt of '$host' is refused, without a message"
done
attempt 2001:db8:0:1:5::77
is "$?" 1 "another address of an IPv6 client's network is the same client"
attempt ::ffff:203.0.113.9
is "$?" 1 "an IPv4 client that is written as IPv6 is the same client"
shmlimit peek "$segment" login --key-ip 203.0.113.9 --quiet
is "$?" 1 "the key of an address is that of servers with prefix=32,64"
type=open_session attempt 203.0.113.9
is "$?" 0 "the end of a session is no attempt"
shmlimit disable "$segment"
attempt 203.0.113.9
is "$?" 0 "a segment that is switched off refuses no attempt"
shmlimit enable "$segment"
run shmlimit take "$segment" login name --prefix 33
is "$rc $err" "2 shmlimit: --prefix 33: must be N or N,M: 0 to 32 bits of IPv4, 0 to 128 of IPv6" "a prefix that is none is refused with a name, too"

# fail2ban itself, on a socket of its own.
if ! command -v fail2ban-client >/dev/null; then
	ok 0 "fail2ban bans and unbans by the guide's action # SKIP no fail2ban"
	done_testing
	exit
fi
mkdir -p f/action.d f/filter.d f/jail.d
block lib/doc/logins.md 'ini shmlimit.conf' | own >f/action.d/shmlimit.conf
printf '[Definition]\nfailregex = ^refused <HOST>$\ndatepattern = {NONE}\n' >f/filter.d/test.conf
: >attempts
cat >f/fail2ban.conf <<END
[Definition]
loglevel = INFO
logtarget = $TMP/f/log
syslogsocket = auto
socket = $TMP/f/sock
pidfile = $TMP/f/pid
dbfile = None
END
printf '[test]\nenabled = true\nfilter = test\nbackend = polling\nlogpath = %s\nmaxretry = 1\nfindtime = 1h\nbantime = %s\naction = shmlimit\n' \
	"$TMP/attempts" 1h >f/jail.conf
client() { fail2ban-client -c f -s "$TMP/f/sock" -p "$TMP/f/pid" "$@" >f/out 2>&1; }
banned() { shmlimit bans "$segment" --rule fail2ban 2>err | cut -f 1 | sort | tr '\n' ' '; }
shmlimit ban "$segment" --key-ip 203.0.113.20 --for 30d >out
client start
is "$?" 0 "fail2ban starts with the guide's action"
trap 'client stop; tap_clean' EXIT
client set test banip 203.0.113.20 203.0.113.21 2001:db8:0:3::9
until [ "$(banned)" = "2001:db8:0:3::/64 203.0.113.20 203.0.113.21 " ] || [ -n "$(grep ERROR f/log)" ]; do sleep 0.1; done
is "$(banned)" "2001:db8:0:3::/64 203.0.113.20 203.0.113.21 " "fail2ban bans addresses, as servers with prefix=32,64 look them up"
shmlimit unban "$segment" --rule fail2ban --key-ip 203.0.113.21 2>err
client set test unbanip 203.0.113.20 203.0.113.21
until [ "$(banned)" = "2001:db8:0:3::/64 " ] || [ -n "$(grep ERROR f/log)" ]; do sleep 0.1; done
is "$(shmlimit bans "$segment" | cut -f 1)" 203.0.113.20 "what it unbans stays banned where a person has banned it"
client set test bantime -1
client set test banip 203.0.113.22
until [ "$(banned)" = "2001:db8:0:3::/64 203.0.113.22 " ] || [ -n "$(grep ERROR f/log)" ]; do sleep 0.1; done
like "$(shmlimit bans "$segment" --rule fail2ban | grep '^203.0.113.22')" '	(1y|36[45]d)' "a ban for ever is a ban for a year"
is "$(grep -E 'ERROR|WARNING' f/log)" "" "fail2ban has nothing to report, also of a ban that has ended before"
client stop
is "$? $(banned)" "0 " "when it stops it ends its bans"
trap tap_clean EXIT
done_testing
