"""The laws of limits that were given no name: each is one of its own, and the same one in each process.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, WebSocket

import shmlimit
from shmlimit import Gate, Limit, Limiter, RateLimited, asgi, limit
from shmlimit.fastapi import TRY_AGAIN_LATER, RateLimit

SEGMENT = os.environ["SEGMENT"]
SLOTS = 64


def rate_limit(text, **options):
    return RateLimit(text, segment=SEGMENT, slots=SLOTS, **options)


async def _exchange(app, kind, path, header=b"", method="GET", headers=()):
    """The messages that the application sends."""
    received = [{"type": "websocket.connect"}] if kind == "websocket" else [{"type": "http.request", "body": b""}]
    sent = []

    async def receive():
        return received.pop(0) if received else {"type": f"{kind}.disconnect", "code": 1000}

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "path": path, "root_path": "",
        "raw_path": path.encode(), "query_string": b"", "headers": [(b"x-client", header), *headers], "client": ("203.0.113.9", 1234),
        "server": ("127.0.0.1", 80), "subprotocols": [],
    }  # fmt: skip
    await app(scope, receive, send)
    return sent


async def _ask(app, kind, path, header=b""):
    """What the application answers: a status; of a WebSocket the code that it is closed with, and the text before it."""
    sent = await _exchange(app, kind, path, header)
    if kind == "http":
        return sent[0]["status"]
    return [message.get("text", message.get("code")) for message in sent if message["type"] in ("websocket.send", "websocket.close")]


def ask(app, path, times=1, kind="http", header=b""):
    return [asyncio.run(_ask(app, kind, path, header)) for _ in range(times)]


class NameLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy)
        self.app = FastAPI()

    def destroy(self):
        try:
            shmlimit.destroy(SEGMENT)
        except shmlimit.Error:
            pass

    def route(self, path, *limits, app=None):
        (app or self.app).get(path, dependencies=[Depends(each) for each in limits])(lambda: "hello")

    def test_routes(self):
        """two routes with one rate are two limits, and a text that changes changes neither"""
        for path in "/search", "/login":
            self.route(path, rate_limit("3/day"))
        self.assertEqual((ask(self.app, "/search", 4), ask(self.app, "/login", 4)), ([200, 200, 200, 429], [200, 200, 200, 429]))

    def test_rates_of_requests(self):
        """two routes whose rate is one function are two limits"""

        def plan(connection):
            return "1/day"

        for path in "/search", "/login":
            self.route(path, rate_limit(plan))
        self.assertEqual((ask(self.app, "/search", 2), ask(self.app, "/login", 2)), ([200, 429], [200, 429]))

    def test_shared(self):
        """routes share a limit where they have one object, a router's or an application's dependency, or one rule"""
        one = rate_limit("3/day")
        self.route("/a", one)
        self.route("/b", one)
        self.assertEqual(ask(self.app, "/a", 2) + ask(self.app, "/b", 2), [200, 200, 200, 429])
        router = APIRouter(dependencies=[Depends(rate_limit("3/day"))])
        self.route("/c", app=router)
        self.route("/d", app=router)
        self.app.include_router(router)
        self.assertEqual(ask(self.app, "/c", 2) + ask(self.app, "/d", 2), [200, 200, 200, 429])
        self.route("/e", rate_limit("3/day", rule="named"))
        self.route("/f", rate_limit("3/day", rule="named"))
        self.assertEqual(ask(self.app, "/e", 2) + ask(self.app, "/f", 2), [200, 200, 200, 429])
        everywhere = FastAPI(dependencies=[Depends(rate_limit("3/day"))])
        self.route("/g", app=everywhere)
        self.route("/h", rate_limit("1/day"), app=everywhere)
        self.assertEqual(ask(everywhere, "/h", 2) + ask(everywhere, "/g", 2), [200, 429, 200, 429])

    def test_processes(self):
        """processes that run the same program share its limits, each for itself"""
        program = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_routes import *
from fastapi import Depends, FastAPI
app = FastAPI()
def per_day(count):
    return RateLimit(f"{{count}}/day", segment=SEGMENT, slots=SLOTS)
for path in "/search", "/login":
    app.get(path, dependencies=[Depends(per_day(3))])(lambda: "hello")
first, second = limit("3/day", segment=SEGMENT), limit("3/day", segment=SEGMENT)
def left(it):
    try:
        return it.take().remaining
    except RateLimited:
        return "denied"
print(ask(app, "/search", 2), ask(app, "/login"), left(first), left(first), left(second))
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "app.py")
            with open(path, "w") as file:
                file.write(program)
            runs = [subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout for _ in range(2)]
        self.assertEqual(runs, ["[200, 200] [200] 2 1 2\n", "[200, 429] [200] 0 denied 1\n"])
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(len(limiter.rules()), 4)

    def test_websocket(self):
        """a WebSocket that the limit refuses is closed before it is accepted, and its route does not run; others go on"""
        served = []

        @self.app.websocket("/ws")
        async def ws(socket: WebSocket, limited=Depends(rate_limit("2/day"))):
            served.append(1)
            await socket.accept()
            await socket.send_text("hello")
            await socket.close()

        self.assertEqual(ask(self.app, "/ws", 3, "websocket"), [["hello", 1000], ["hello", 1000], [TRY_AGAIN_LATER]])
        self.assertEqual(len(served), 2)

    def test_websocket_everywhere(self):
        """a limit of the application counts requests and WebSockets, and its key is a function of both"""
        app = FastAPI(dependencies=[Depends(rate_limit("2/day", key=lambda connection: connection.headers["x-client"]))])
        self.route("/", app=app)

        @app.websocket("/ws")
        async def ws(socket: WebSocket, limited=Depends(app.router.dependencies[0].dependency)):
            await socket.accept()
            await socket.close()

        self.assertEqual(ask(app, "/", 1, header=b"a") + ask(app, "/ws", 2, "websocket", b"a"), [200, [1000], [TRY_AGAIN_LATER]])
        self.assertEqual(ask(app, "/", 1, header=b"a") + ask(app, "/ws", 1, "websocket", b"b"), [429, [1000]])

    def test_same_as_middleware(self):
        """the middleware closes a WebSocket with the same code"""
        app = asgi.Middleware(None, Gate(SEGMENT, [Limit("r", asgi.client, rate="block")], slots=SLOTS))
        self.assertEqual(ask(app, "/ws", 1, "websocket"), [[TRY_AGAIN_LATER]])

    def refused(self, call):
        with self.assertRaises(RateLimited):
            call()

    def test_cors(self):
        """The guide's application: preflights are not counted, and a page of another origin can read a 429."""
        guide = Path(__file__).parents[3].joinpath("lib/doc/cors.md").read_text(encoding="utf-8")
        program = guide.split("```python api.py\n")[1].split("```")[0]
        there = {}
        exec(compile(program.replace('"web"', repr(SEGMENT)), "api.py", "exec"), there)  # noqa: S102 (it is ours)
        origin = (b"origin", b"https://shop.example")

        def answer(method, *headers):
            start = asyncio.run(_exchange(there["app"], "http", "/", b"", method, [origin, *headers]))[0]
            fields = {name.lower(): value for name, value in start["headers"]}
            return start["status"], fields.get(b"access-control-allow-origin"), b"retry-after" in fields

        preflights = [answer("OPTIONS", (b"access-control-request-method", b"GET")) for _ in range(5)]
        self.assertEqual(preflights, [(200, origin[1], False)] * 5)
        self.assertEqual([answer("GET") for _ in range(4)], [(200, origin[1], False)] * 3 + [(429, origin[1], True)])

    def test_objects(self):
        """limits of one text are each its own in a class, and one in each function that makes them again and again"""

        class One:
            pace = limit("1/day", segment=SEGMENT)

        class Two:
            pace = limit("1/day", segment=SEGMENT)

        def one():
            limit("1/day", segment=SEGMENT).take()

        def two():
            limit("1/day", segment=SEGMENT).take()

        for call in One.pace.take, Two.pace.take, one, two:
            call()
            self.refused(call)

    def test_decorators(self):
        """functions with one text are each its own limit, and a limit that decorates two is one"""
        both = limit("2/day", segment=SEGMENT)
        one, two = (limit("1/day", segment=SEGMENT)(each) for each in (self.test_routes.__func__, self.test_shared.__func__))
        self.assertNotEqual(one.limit._lines.name, two.limit._lines.name)
        first, second = both(lambda: "first"), both(lambda: "second")
        self.assertEqual((first(), second()), ("first", "second"))
        self.refused(first)

    def test_throttles(self):
        """throttles of REST framework without a scope are each its own limit; those with one scope are one"""
        from django.conf import settings

        if not settings.configured:
            settings.configure(SHMLIMIT={"name": SEGMENT, "slots": SLOTS})
        import shmlimit.drf

        class Plain(shmlimit.drf.RateThrottle):
            rate = "1/day"

            def get_cache_key(self, request, view):
                return "k"

        class First(Plain):
            pass

        class Second(Plain):
            pass

        class Scoped(Plain):
            scope = "s"

        class AlsoScoped(Plain):
            scope = "s"

        allowed = [each().allow_request(None, None) for each in (First, Second, First, Scoped, AlsoScoped)]
        self.assertEqual(allowed, [True, True, False, True, False])
