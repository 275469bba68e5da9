#!/bin/sh
# endings: under gunicorn, and uvicorn in it, the place of a request is left when it ends, however that is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/python/tests/python.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/endings.inc"
need curl gunicorn perl pgrep python3
python3 -c 'import gevent, uvicorn, wsproto' 2>/dev/null || skip_all "no python3-gevent, python3-uvicorn, python3-wsproto"

# Each path of the applications is one of endings.py. /timeout works for ever.
cat >"$TMP/wsgi.py" <<END
import os, socket, time
from shmlimit import Gate, Limit, wsgi

def work(environ):
    if environ["QUERY_STRING"] == "work":
        with socket.socket(socket.AF_UNIX) as given:
            given.connect(os.environ["ENDINGS_WORK"])
            given.recv(1)

def wait(ends):
    while not ends():
        time.sleep(0.02)

def parts(environ):
    path = environ["PATH_INFO"]
    yield b"part"
    work(environ)
    while path == "/stream":
        time.sleep(0.02)
        yield b"part"
    if path == "/exception-during":
        raise KeyError(path)
    yield b"part"

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path not in ("/parts", "/exception-during"):
        work(environ)
    if environ["QUERY_STRING"] != "work" and path in ("/slow", "/body"):
        wait(lambda: os.path.exists(os.environ["ENDINGS_GO"]))
    if path == "/timeout":
        wait(lambda: False)
    if path == "/exception":
        raise KeyError(path)
    if path == "/redirect":
        start_response("302 Found", [("Location", "/normal"), ("Content-Length", "0")])
        return []
    if path == "/error":
        start_response("404 Not Found", [("Content-Length", "3")])
        return [b"no\n"]
    if path in ("/stream", "/parts", "/exception-during"):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return parts(environ)
    start_response("200 OK", [("Content-Length", "3")])
    return [b"ok\n"]

def key(environ):
    return None if environ["PATH_INFO"] == "/absent" else "all"

def denied(environ):
    return "all" if environ["PATH_INFO"] == "/denied" else None

app = wsgi.Middleware(wsgi.Middleware(app, Gate("$SEGMENT", [Limit("none", denied)])), Gate("$SEGMENT", [Limit("busy", key)]))
END
cat >"$TMP/asgi.py" <<END
import asyncio, os
from shmlimit import Gate, Limit, asgi

async def work(scope):
    if scope["query_string"] == b"work":
        reader, writer = await asyncio.open_unix_connection(os.environ["ENDINGS_WORK"])
        try:
            await reader.read(1)
        finally:
            writer.close()

async def http(scope, receive, send):
    async def start(status, *headers):
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def body(text, more=False):
        await send({"type": "http.response.body", "body": text, "more_body": more})

    path = scope["path"]
    if path not in ("/parts", "/exception-during"):
        await work(scope)
    if scope["query_string"] != b"work" and path in ("/slow", "/body"):
        while not os.path.exists(os.environ["ENDINGS_GO"]):
            await asyncio.sleep(0.02)
    if path == "/timeout":
        await asyncio.wait_for(asyncio.sleep(600), 0.5)
    if path == "/exception":
        raise KeyError(path)
    if path == "/redirect":
        await start(302, (b"location", b"/normal"), (b"content-length", b"0"))
        return await body(b"")
    if path == "/error":
        await start(404, (b"content-length", b"3"))
        return await body(b"no\n")
    if path in ("/stream", "/parts", "/exception-during"):
        await start(200)
        await body(b"part", True)
        await work(scope)
        if path == "/exception-during":
            raise KeyError(path)
        # As frameworks do it: the task that sends is cancelled when the client has gone.
        async def parts():
            while path == "/stream":
                await asyncio.sleep(0.02)
                await body(b"part", True)
        sending = asyncio.create_task(parts())
        while path == "/stream" and (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel() if path == "/stream" else await sending
        return await body(b"part")
    await start(200, (b"content-length", b"3"))
    await body(b"ok\n")

async def websocket(scope, receive, send):
    await receive()
    if scope["path"] == "/websocket-refused":
        return await send({"type": "websocket.close"})
    await send({"type": "websocket.accept"})
    await receive()
    await send({"type": "websocket.send", "text": "x"})
    await receive()
    if scope["query_string"] == b"server":
        await send({"type": "websocket.close"})

async def app(scope, receive, send):
    await (http if scope["type"] == "http" else websocket)(scope, receive, send)

def key(scope):
    return None if scope["path"] == "/absent" else "all"

def denied(scope):
    return "all" if scope["path"] == "/denied" else None

app = asgi.Middleware(asgi.Middleware(app, Gate("$SEGMENT", [Limit("none", denied)])), Gate("$SEGMENT", [Limit("busy", key)]))
END

configure_gunicorn() { :; }
run_gunicorn() {
	exec setpriv --pdeathsig TERM gunicorn --chdir "$TMP" --pid "$TMP/gunicorn.pid" --bind "127.0.0.1:$port" --workers $workers --threads "$threads" \
		--worker-class "$class" --timeout "$timeout" --graceful-timeout 1 --max-requests "$requests" "$application:app" 2>"$TMP/gunicorn.err"
}

# server APPLICATION CLASS THREADS
server() {
	application=$1 class=$2 threads=$3 what="$1, ${2##*.}" timeout=600 requests=0 workers=4
	[ $class != sync ] || workers=$WORKERS
	start gunicorn
}
lifecycle() {
	not_here internal
	begins
	ends reload cut_off HUP
	begins
	ends sigterm cut_off TERM
	wait "$master"
	requests=3
	start gunicorn
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
		codes "$url/normal" >/dev/null
	done
	replaced() { [ "$(said 'Booting worker')" -gt 4 ]; }
	ends recycled within replaced
	requests=0
	stop
	all_endings
}

booted() { [ "$(workers | wc -l)" -eq $workers ]; }
create_places

common='normal stream head exception exception_during denied redirect error gone_before gone_during body_abandoned'
random=$(echo "$common" | tr ' ' ,)
for kind in "sync 1" "gthread 8" "gevent 1"; do
	# shellcheck disable=SC2086 # class and threads
	server wsgi $kind
	within booted
	# shellcheck disable=SC2086 # a list of names
	endings $common
	not_here websocket websocket_server websocket_refused
	if [ "$class" = sync ]; then
		at_random $at_once "$random"
		not_here keep_alive
		stop
		timeout=2 workers=4
		start gunicorn
		endings timeout
		stop
		timeout=600
		start gunicorn
	else
		at_random 20 "$random,keep_alive"
		endings keep_alive
		# Its time-out is for the worker, and not for requests.
		not_here timeout
	fi
	lifecycle
done
server asgi uvicorn.workers.UvicornWorker 1
at_random 20 "$random,keep_alive"
# shellcheck disable=SC2086 # a list of names
endings $common keep_alive timeout websocket websocket_server websocket_refused
lifecycle
done_testing
