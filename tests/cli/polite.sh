#!/bin/sh
# polite: the guide's script of lib/doc/pacing.md, in several processes, and a server that answers 429 in earnest. What it sees is
# what is looked at: how many requests came while it had said "not now".
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need curl

command -v python3 >/dev/null || skip_all "python3 is not installed"
block lib/doc/pacing.md 'sh polite.sh' | sed "s/ web / $SEGMENT.web /" >"$TMP/polite.sh"
[ "$(wc -l <"$TMP/polite.sh")" -gt 10 ]
ok $? "the guide has the script"

# It serves five requests, and then says "not now" for a second, in which it counts the requests that come.
cat >"$TMP/server.py" <<'END'
import http.server, sys, threading, time

lock = threading.Lock()
seen = {"served": 0, "refused": 0, "crowd": 0, "until": 0, "early": 0}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with lock:
            now = time.monotonic()
            if now < seen["until"]:
                seen["early"] += 1
                status = 429
            elif seen["served"] % 5 == 4 and seen["refused"] <= seen["served"] // 5:
                seen["until"], seen["refused"], seen["early"] = now + 1, seen["refused"] + 1, 0
                status = 429
            else:
                seen["served"] += 1
                status = 200
            seen["crowd"] = max(seen["crowd"], seen["early"])
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()
        with open(sys.argv[1] + ".new", "w") as file:
            print(seen["served"], seen["refused"], seen["crowd"], file=file)

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[2], "w") as file:
    print(server.server_port, file=file)
server.serve_forever()
END
python3 "$TMP/server.py" "$TMP/seen" "$TMP/port" &
server=$!
trap 'kill $server 2>/dev/null; tap_clean' EXIT
tries=0
until [ -s "$TMP/port" ]; do
	tries=$((tries + 1))
	[ $tries -lt 500 ] || { ok 1 "the server begins"; done_testing; }
	sleep 0.02
done
read -r port <"$TMP/port"

shmlimit create "$SEGMENT.web" --slots 1K
shmlimit rule set "$SEGMENT.web" crawl --limit '50/s burst 1' --max-wait 1h
cd "$TMP" || exit
workers=
for worker in 1 2 3 4; do
	sh "$TMP/polite.sh" "http://localhost:$port/$worker/1" "http://localhost:$port/$worker/2" "http://localhost:$port/$worker/3" \
		"http://localhost:$port/$worker/4" "http://localhost:$port/$worker/5" >"$TMP/out.$worker" 2>&1 &
	workers="$workers $!"
done
for pid in $workers; do wait "$pid"; done
is "$(cat "$TMP"/out.* | sort | cut -d/ -f1,4-)" "$(for w in 1 2 3 4; do for p in 1 2 3 4 5; do echo "200 http:/$w/$p"; done; done)" \
	"four workers fetch all pages"
read -r served refused crowd <"$TMP/seen.new"
is "$served" 20 "each page was served once"
[ "$refused" -ge 4 ]
ok $? "the server said \"not now\" ($refused times)"
[ "$crowd" -le 3 ]
ok $? "while it had said so, at most a request of each other worker was on its way ($crowd)"
shmlimit destroy "$SEGMENT.web"
done_testing
