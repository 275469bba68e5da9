#!/bin/sh
# small_shm: nginx with create=yes in a /dev/shm that is too small for the slots: the site is limited by a smaller table, and the
# check of the configuration, the log and shmlimit check say so.
#
# SPDX-License-Identifier: BSD-2-Clause
OWN_SHM=yes
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"
need nginx curl perl pgrep setpriv
need_module "$nginx_module" nginx-dev
[ -z "$(ls /dev/shm)" ] && mount -o remount,size=4m /dev/shm 2>/dev/null || skip_all "no /dev/shm of one's own is permitted"

# What the smallest segment takes depends on the number of CPUs: there is room for that and half of 65,536 slots.
shmlimit create "$SEGMENT" --slots 16
size=$(($(shmlimit inspect "$SEGMENT" --json | sed -n 's/.*"size": *\([0-9]*\).*/\1/p' | head -n 1) / 4096 + 129))
shmlimit destroy "$SEGMENT"
mount -o "remount,size=$((size * 4))k" /dev/shm

configure_nginx() {
	{
		nginx_begin 2
		cat <<-END
			shmlimit_segment $SEGMENT create=yes mode=0666 slots=65536;
			server {
			    listen 127.0.0.1:$port;
			    root $TMP/html;
			    location / { shmlimit \$arg_client rule=page rate=2/day; }
			}
			}
		END
	} >"$TMP/nginx.conf"
}

start nginx
is "$(for i in 1 1 1 2 2 2 3 3 3; do codes "$url/?client=$i"; done | tr '\n' ' ')" \
	"200 200 429 200 200 429 200 200 429 " "the limit is in force"
within said 'it has [0-9]* slots, since /dev/shm had no room for 65536' >/dev/null
ok $? "the log says that the table is smaller"
# Half as many as there is room for, where two processes tried at once.
slots=$(sed -n 's/.*it has \([0-9]*\) slots, since.*/\1/p' "$TMP/$host.err" | tail -n 1)
[ "${slots:-0}" -ge 4096 ] && [ "$slots" -le 32768 ]
ok $? "the table is not smaller than it must be"
run shmlimit check "$SEGMENT" --interval 1ms
is "$rc" 1 "shmlimit check warns of a table that is smaller"
like "$out" "WARNING - segment $SEGMENT: $slots slots, since /dev/shm had no room for 65536" "shmlimit check says why"
mount -o remount,size=64m /dev/shm
run shmlimit grow "$SEGMENT" --slots 65536
is "$rc" 0 "the segment grows when there is room"
run shmlimit check "$SEGMENT" --interval 1ms
is "$rc" 0 "shmlimit check finds nothing wrong then"
is "$(codes "$url/?client=1")" 429 "a client that was limited is still limited"
stop
shmlimit destroy "$SEGMENT"
mount -o "remount,size=$((size * 4))k" /dev/shm
check_nginx 2>"$TMP/checked"
is "$?" 0 "nginx -t accepts a configuration whose slots do not fit"
like "$(cat "$TMP/checked")" 'warn.*it would have 16384 slots, since /dev/shm has no room for more' \
	"nginx -t says how many slots the segment would have"
done_testing
