#!/bin/sh
# php_fpm: PHP-FPM with four children, asked over FastCGI. Its configuration
# and the script in front of all others are README.md's.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"

PATH=$PATH:/usr/sbin
fpm=$(command -v php-fpm || command -v php-fpm8.2) || skip_all "no php-fpm"
command -v jq >/dev/null || skip_all "no jq"
command -v cgi-fcgi >/dev/null || skip_all "no libfcgi-bin"
php -m | grep -qx apcu || skip_all "no php-apcu"

readme ini opcache.preload >"$TMP/php.ini"
readme php "Gate('web'))" >"$TMP/limit.php"
cat >"$TMP/fpm.conf" <<EOF
[global]
daemonize = no
error_log = $TMP/log
log_level = debug
[web]
user = $(id -un)
listen = $TMP/socket
pm = static
pm.max_children = 4
catch_workers_output = yes
access.log = $TMP/access
access.format = "%p %s"
php_admin_value[error_log] = $TMP/errors
$(readme ini auto_prepend_file)
EOF
cat >"$TMP/hello.php" <<'EOF'
<?php
echo getmypid();
EOF

# ask ADDRESS: a request of this client; prints the whole answer.
ask() {
	env -i SCRIPT_FILENAME="$TMP/hello.php" SCRIPT_NAME=/hello.php REQUEST_METHOD=GET REMOTE_ADDR="$1" \
		timeout 20 cgi-fcgi -bind -connect "$TMP/socket" </dev/null 2>&1 | tr -d '\r'
}
# code: the status of the answer on standard input; 000 if it is none.
code() { awk '/^Status: / { s = $2 } /^Content-type: / { c = 200 } END { print s ? s : c ? c : "000" }'; }
# asks N ADDRESS
asks() {
	for i in $(seq "$1"); do
		ask "$2" | code
	done
}
pids() { sed -n 's/.*child \([0-9]*\) started.*/\1/p' "$TMP/log"; }
started() { [ "$(pids | wc -l)" -ge "$1" ]; }
told() { grep -c "segment $SEGMENT: $1" "$TMP/errors"; }

shmlimit create "$SEGMENT" --slots 1024
# Slow enough that no token leaks back within a test.
rule() {
	shmlimit rule set "$SEGMENT" client --capacity "$1" --rate 1/h
	shmlimit reset "$SEGMENT" --all >/dev/null
}
rule 15
: >"$TMP/log"
timeout 120 "$fpm" -F -R -c "$TMP/php.ini" -y "$TMP/fpm.conf" 2>"$TMP/err" &
server=$!
servers="$servers $server"
ready() { grep -q 'ready to handle connections' "$TMP/log" && started 4; }
within ready || { diag "$(cat "$TMP/err" "$TMP/log")"; exit 1; }

answer=$(ask 10.0.0.7)
is "$(printf '%s\n' "$answer" | code)" 200 "who is within the limit is served"
like "$(printf '%s\n' "$answer" | tail -n 1)" '^[0-9]+$' "by the script that he asked for"
is "$(field RateLimit-Policy)" '"client";q=15;w=54000' "he is told the policy"
is "$(field RateLimit)" '"client";r=14;t=3600' "and what is left of it"
asks 19 ::ffff:10.0.0.7 >"$TMP/codes"
is "$(count 200) $(count 429)" "14 5" "the capacity is served, then nothing"
answer=$(ask 10.0.0.7)
like "$(field Retry-After)" '^3[56][0-9][0-9]$' "Retry-After is the time that a token takes"
is "$(printf '%s\n' "$answer" | tail -n 1)" "too many requests" "who is refused does not reach the script"
is "$(ask 10.0.0.8 | code) $(asks 15 2001:db8::1 | sort -u) $(ask 2001:db8::2 | code)" "200 200 429" \
	"every client has a limit of his own, and a net of IPv6 is one client"

rule 15
asks 6 10.0.0.7 >"$TMP/codes"
kill -KILL "$(pids | head -n 1)"
within started 5
ok $? "a child that is killed is replaced"
asks 14 10.0.0.7 >>"$TMP/codes"
is "$(count 200) $(count 429)" "15 5" "before and after, the capacity is served, exactly"

rule 300
before=$(allowed)
: >"$TMP/access"
begun() { [ "$(allowed)" -gt $((before + 20)) ]; }
loads=
for client in 1 2 3 4 5 6; do
	asks 100 10.0.0.7 >"$TMP/codes.$client" &
	loads="$loads $!"
done
within begun
kill -KILL "$(pids | sed -n 2p)"
# shellcheck disable=SC2086 # a list of words
kill -0 $loads
ok $? "the load goes on when a child is killed"
# shellcheck disable=SC2086
wait $loads
cat "$TMP"/codes.* >"$TMP/codes"
within started 6
ok $? "who is killed under load is replaced, too"
lost=$(count 000)
[ "$(count 200)" -le 300 ] && [ $(($(count 200) + lost)) -ge 300 ]
ok $? "the capacity is served, but for what the killed one had in hand"
[ $(($(count 200) + $(count 429) + lost)) -eq 600 ] && [ "$lost" -le 1 ]
ok $? "and nobody else noticed"
[ "$(cut -d ' ' -f 1 "$TMP/access" | sort -u | wc -l)" -gt 1 ]
ok $? "more than one child served it"
diag "$(count 200) served, $(count 429) refused, $lost lost"

: >"$TMP/errors"
shmlimit destroy "$SEGMENT"
is "$(asks 12 10.0.0.7 | sort | uniq -c | tr -s ' ')" " 12 503" "without a segment nobody is served"
is "$(told 'no such segment: requests that need it are refused')" 1 "which all children together tell once"
shmlimit create "$SEGMENT" --slots 1024
is "$(asks 3 10.0.0.7 | sort -u) $(told 'rule client: no such rule: requests that need it are refused')" "503 1" \
	"a rule that is missing is told, too"
rule 3
asks 5 10.0.0.7 >"$TMP/codes"
is "$(count 200) $(count 429)" "3 2" "a segment that is made anew is opened again"
is "$(told 'in order again; requests that were refused: 12') $(told 'rule client: in order again.*: 3')" "1 1" \
	"and what it has cost is told, once"
is "$(wc -l <"$TMP/errors")" 4 "and nothing else"

kill -TERM $server
wait $server
is $? 0 "the server ends"
done_testing
