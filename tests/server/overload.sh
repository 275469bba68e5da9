#!/bin/sh
# overload: nginx before gunicorn and uvicorn. While one tenant asks for more than all places, others are served.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/nginx.inc"

need nginx curl perl pgrep setpriv
need_module "$nginx_module" nginx-dev
python=/usr/bin/python3

cat >"$TMP/application.py" <<'END'
import asyncio, time

def wsgi(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served\n"]

async def asgi(scope, receive, send):
    await asyncio.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"served\n"})
END

# 16 places: the greedy tenant gets 8, and each of three others may still have a place that its last request leaves.
configure_nginx() {
	cat >"$TMP/nginx.conf" <<-END
		$(nginx_begin 2)
		    log_format limited '\$pid \$http_user_agent \$status';
		    access_log $TMP/nginx.log limited;
		    shmlimit_segment $SEGMENT create=yes;
		    server {
		        listen 127.0.0.1:$port;
		        shmlimit all rule=all "rate=16 at once";
		        shmlimit \$http_x_tenant rule=tenants share=1;
		        location / { proxy_pass http://unix:$TMP/application.sock; }
		    }
		}
	END
}

served() { [ "$(curl -s --max-time 60 --unix-socket "$TMP/application.sock" http://localhost/)" = served ]; }

# serves NAME COMMAND...: the command serves the application; requests of four tenants.
serves() {
	name=$1
	shift
	(cd "$TMP" && exec setpriv --pdeathsig TERM "$@") >"$TMP/application.log" 2>&1 &
	application=$!
	servers="$servers $application"
	if ! within served; then
		diag "$(cat "$TMP/application.log")"
		ok 1 "$name serves"
		return
	fi
	chmod 666 "$TMP/application.sock"
	start nginx
	rm -f "$TMP/enough"
	connections=40
	while [ ! -e "$TMP/enough" ]; do crowd -H 'X-Tenant: greedy' "$url/?[1-200]"; done >"$TMP/greedy" &
	load=$!
	within grep -qs 429 "$TMP/greedy"
	small=
	for tenant in alice bob carol; do
		codes -H "X-Tenant: $tenant" "$url/?[1-50]" >"$TMP/$tenant" &
		small="$small $!"
	done
	for pid in $small; do wait "$pid"; done
	: >"$TMP/enough"
	wait $load
	is "$(cat "$TMP/alice" "$TMP/bob" "$TMP/carol" | sort | uniq -c | tr -s ' ')" " 150 200" "$name: each request of three small tenants is served"
	[ "$(grep -c 200 "$TMP/greedy")" -gt 0 ]
	ok $? "$name: the greedy tenant is served, too: $(sort "$TMP/greedy" | uniq -c | tr -s ' \n' ' ')"
	grep -q 'by rule "tenants"' "$TMP/nginx.err"
	ok $? "$name: its share denies it"
	stop
	kill -TERM $application
	wait $application
	shmlimit destroy "$SEGMENT" 2>/dev/null
	rm -f "$TMP/application.sock"
}

for pair in "gunicorn gunicorn" "uvicorn uvicorn"; do
	if ! $python -c "import ${pair% *}" 2>/dev/null; then
		ok 0 "${pair% *} # SKIP it is not installed"
	elif [ "${pair% *}" = gunicorn ]; then
		serves "gunicorn, sync" $python -m gunicorn -k sync -w 4 -b "unix:$TMP/application.sock" application:wsgi
	else
		serves uvicorn $python -m uvicorn --uds "$TMP/application.sock" --no-access-log application:asgi
	fi
done
done_testing
