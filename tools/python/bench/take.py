"""What a decision costs in Python: rows of "figure<TAB>nanoseconds".

    python3 tools/python/bench/take.py NAME SEGMENT SECONDS

SPDX-License-Identifier: BSD-2-Clause
"""

import sys
import time

import shmlimit
from shmlimit import Algorithm, Gate, Limit, Limiter, Rule, asgi, wsgi

NAME, SEGMENT, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
HOUR_NS = 3600 * 10**9
ROUNDS = 50


def once_ns(function, argument, calls):
    begun = time.thread_time_ns()
    for _ in range(calls):
        function(argument)
    return (time.thread_time_ns() - begun) / calls


def row(figure, function, argument=None, without=None):
    """The least of some rounds, in the processor's time, less what is measured without the limit."""
    calls = 100
    while once_ns(function, argument, calls) * calls < SECONDS / ROUNDS * 1e9:
        calls *= 2
    least = min(once_ns(function, argument, calls) for _ in range(ROUNDS))
    print(f"{NAME}: {figure}\t{least - (without or 0):.1f}", flush=True)
    return least


def wsgi_app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello\n"]


def start_response(status, headers, exc_info=None):
    pass


async def asgi_app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello\n"})


async def send(message):
    pass


def run(app):
    """Nothing that is awaited here waits, so no event loop is needed."""

    def call(scope):
        try:
            app(scope, None, send).send(None)
        except StopIteration:
            pass

    return call


limiter = Limiter.create(SEGMENT, slots=1024)
try:
    rule = limiter.rule_set("client", Rule(2**40, 10**9, 10**9))
    limiter.rule_set("count", Rule(2**26 - 1, 0, HOUR_NS, algorithm=Algorithm.COUNTER))
    environ = {"REMOTE_ADDR": "192.168.100.1", "REQUEST_METHOD": "GET"}
    scope = {"type": "http", "method": "GET", "client": ("192.168.100.1", 40000), "headers": []}
    for_wsgi = Gate(SEGMENT, [Limit("client", wsgi.client)])
    for_asgi = Gate(SEGMENT, [Limit("client", asgi.client)])
    row("take", lambda _: limiter.take(rule, "user:42"), without=row("a call", lambda _: None))
    row("take, by the rule's name", lambda _: limiter.take("client", "user:42"))
    row("count", lambda _: limiter.count("count", "user:42", ttl_ns=HOUR_NS, saturate=True))
    row("gate, fields", for_wsgi.ask, environ)
    limited = shmlimit.limit("1000000000/s", segment=SEGMENT, rule="client")(lambda user: None)
    row("@limit", limited, "user:42")

    try:
        import limits
        import shmlimit.limits
    except ImportError:
        pass
    else:
        storage = shmlimit.limits.Storage("shmlimit://" + SEGMENT)
        own, item = limits.storage.MemoryStorage(), limits.parse("1000000000/hour")
        row("storage of limits, a fixed window", lambda key: storage.incr(key, 3600), "user:42")
        row("limits' own storage in memory", lambda key: own.incr(key, 3600), "user:42")
        for figure, where in ("limits, a hit", storage), ("limits, a hit of its own storage in memory", own):
            row(figure, lambda key, hit=limits.strategies.FixedWindowRateLimiter(where).hit: hit(item, key), "user:42")

    def asked(app):
        return lambda environ: app(environ, start_response)

    bare = row("WSGI application, no limit", asked(wsgi_app), environ)
    row("WSGI, added by the middleware", asked(wsgi.Middleware(wsgi_app, for_wsgi)), environ, bare)
    bare = row("ASGI application, no limit", run(asgi_app), scope)
    row("ASGI, added by the middleware", run(asgi.Middleware(asgi_app, for_asgi)), scope, bare)
finally:
    shmlimit.destroy(SEGMENT)
