#!/bin/sh
# llm: the gateway of lib/doc/tokens.md under gunicorn, before a model of the test's own that streams what was used.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
need gunicorn curl jq

trap 'end_servers; shmlimit destroy "$SEGMENT" 2>/dev/null; tap_clean' EXIT

# What is asked for: {"steps": [tokens in all after each event], "wait": seconds between two}.
cat >"$TMP/model.py" <<'END'
import http.server, json, time

class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for tokens in asked["steps"]:
            event = {"text": "word"} if tokens is None else {"text": "word", "usage": {"total_tokens": tokens}}
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()
            time.sleep(asked.get("wait", 0))
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
END
timeout 300 python3 "$TMP/model.py" >"$TMP/port" 2>"$TMP/model.err" &
servers="$servers $!"
within [ -s "$TMP/port" ]
block lib/doc/tokens.md 'python gateway.py' |
	sed "s/\"llm\"/\"$SEGMENT\"/; s,100000/minute,1/hour burst 100000," >"$TMP/gateway.py"
# shellcheck disable=SC2046 # several words
MODEL=127.0.0.1:$(cat "$TMP/port") timeout 300 $(block lib/doc/tokens.md indented gunicorn) --chdir "$TMP" --bind "unix:$TMP/gateway.sock" 2>"$TMP/gunicorn.err" &
servers="$servers $!"
within [ -S "$TMP/gateway.sock" ]

ask() { curl -s --max-time "${wait:-60}" --unix-socket "$TMP/gateway.sock" -H "Authorization: $1" -d "$2" -o "$TMP/body" -w '%{http_code}' \
	http://localhost/v1/completions; }
left() { shmlimit peek "$SEGMENT" tokens "$1" --json | jq .remaining; }
is_left() { [ "$(left "$1")" = "$2" ]; }

is "$(ask ada '{"steps": [null, null, 1234]}') $(grep -c '^data: ' "$TMP/body")" "200 4" "an answer is streamed"
within is_left ada 98766
ok $? "what the model said at the end is charged: $(left ada)"
ask ada '{"steps": [10, 20, 30]}' >/dev/null
within is_left ada 98736
ok $? "an estimate that was too much is given back: $(left ada)"
ask ada '{"steps": [null, null]}' >/dev/null
within is_left ada 97736
ok $? "where the model says nothing the estimate stays: $(left ada)"
wait=1 ask bob '{"steps": [100, 200, 300, 40000], "wait": 0.4}' >/dev/null
settled() { left=$(left bob) && [ "$left" -ne 99000 ]; }
within settled
case $left in 99900 | 99800 | 99700 | 60000) true ;; *) false ;; esac
ok $? "a client that goes away has used what was said until then, or in all: $left"
ask ann '{"steps": [500, 2500, 3000, 8000], "wait": 1}' >/dev/null &
client=$!
is_charged() { left=$(left ann) && [ "$left" -lt 99000 ]; }
within is_charged
case $left in 97500 | 97000 | 92000) true ;; *) false ;; esac
ok $? "an answer is charged while the model streams it: $left"
wait $client
within is_left ann 92000
ok $? "when it ends, the sum is what the model said: $(left ann)"
is "$(ask eve '{"steps": [250000]}') $(ask eve '{"steps": [1]}') $(ask ada '{"steps": [1]}')" "200 429 200" \
	"a customer that used too much is refused until that is paid, and others are not"
for _ in 1 2 3 4 5 6 7 8; do
	for _ in 1 2 3 4 5; do ask max '{"steps": [null, 7, 501]}' >/dev/null; done &
	loads="${loads-} $!"
done
# shellcheck disable=SC2086 # a list of words
wait $loads
within is_left max $((100000 - 40 * 501))
ok $? "with eight clients at once the sum is what the model said: $(left max)"
done_testing
