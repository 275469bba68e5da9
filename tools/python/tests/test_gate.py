"""The laws of shmlimit.Gate and of both middlewares. What libshmlimit-gate does is tested in C: here stands what lies between.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import errno
import logging
import os
import subprocess
import time
import unittest
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

from crew import children, together

import shmlimit
from shmlimit import Gate, Limit, Limiter, Mode, Rule, asgi, wsgi

SEGMENT = os.environ["SEGMENT"]
HOUR_NS = 3600 * 10**9


def user(request):
    return request.get("user")


class GateLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy)
        self.create()
        self.logged = self.enterContext(self.assertLogs("shmlimit")).output
        logging.getLogger("shmlimit").info("so that there is one")

    def create(self):
        with Limiter.create(SEGMENT, slots=64) as limiter:
            limiter.rule_set("r", Rule(2, 1, HOUR_NS))
            limiter.rule_set("s", Rule(1, 1, HOUR_NS))

    def destroy(self):
        try:
            shmlimit.destroy(SEGMENT)
        except shmlimit.Error:
            pass

    def ask(self, gate, times, **request):
        return [gate.ask({"user": "u", **request}).status for _ in range(times)]

    def test_limit(self):
        """a gate lets the capacity pass and refuses the rest"""
        gate = Gate(SEGMENT, [Limit("r", user)])
        self.assertEqual(self.ask(gate, 3), ["passed", "passed", "rejected"])
        self.assertEqual(self.ask(gate, 1, user="other"), ["passed"])

    def test_answer(self):
        """an answer says what is left, what to send to the client, and when the request fits"""
        gate = Gate(SEGMENT, [Limit("r", user), Limit("s", user)])
        first, second = gate.ask({"user": "u"}), gate.ask({"user": "u"})
        told = [("RateLimit-Policy", '"r";q=2;w=7200'), ("RateLimit", '"r";r=1;t=3600')]
        told += [("RateLimit-Policy", '"s";q=1;w=3600'), ("RateLimit", '"s";r=0;t=3600')]
        self.assertEqual(first, ("passed", 0, told, 0, 0, None))
        self.assertEqual((bool(first), bool(second), second.status, second.refusal), (True, False, "rejected", 429))
        self.assertEqual([name for name, _ in second.fields], ["RateLimit-Policy", "RateLimit", "Retry-After"])
        self.assertTrue(0 < second.retry_after_ns <= HOUR_NS)

    def test_keyless(self):
        """a request without a key is not limited"""
        gate = Gate(SEGMENT, [Limit("s", user)])
        self.assertEqual(self.ask(gate, 3, user=None), ["unlimited"] * 3)

    def test_cost(self):
        """the cost may depend on the request, and one of 0 is not limited"""
        gate = Gate(SEGMENT, [Limit("r", user, lambda request: request["cost"])])
        self.assertEqual([*self.ask(gate, 1, cost=3), *self.ask(gate, 2, cost=2)], ["rejected", "passed", "rejected"])
        self.assertEqual(self.ask(gate, 1, cost=0), ["unlimited"])
        self.assertEqual(self.ask(gate, 3, cost=2**64), ["rejected"] * 3)
        self.assertEqual(gate.ask({"user": "u", "cost": 2**100}).retry_after_ns, shmlimit.NEVER)
        self.assertRaises(ValueError, self.ask, gate, 1, cost=-1)

    def test_bad_key(self):
        """no key is too long or too short to be limited, and one that is no text is an error"""
        gate = Gate(SEGMENT, [Limit("s", user)], fail_open=True)
        for key in "", "x" * 1025, b"y" * 100000, "\udcff", "\ud800", bytearray(b"array"), memoryview(b"view"):
            self.assertEqual(self.ask(gate, 2, user=key), ["passed", "rejected"])
        for key in 1, 1.5, []:
            self.assertRaisesRegex(TypeError, "^a key must be str", self.ask, gate, 1, user=key)

    def test_own_limit(self):
        """a request may bring its limit beside its key, and rate_error is that of one that brings none"""
        def plan(request):
            return request["user"], request["plan"]

        gate = Gate(SEGMENT, [Limit("plans", plan, algorithm="gcra", rate_error="1/h"), Limit("r", lambda r: (r["user"], None), 0)])
        self.assertEqual([self.ask(gate, 4, user=p, plan=p).count("passed") for p in ("3/h", "block", "unlimited", "2/m burst 1")], [3, 0, 4, 1])
        self.assertEqual(gate.ask({"user": "f", "plan": "7/h"}).fields[0], ("RateLimit-Policy", '"plans";q=7;w=3600'))
        self.assertEqual([self.ask(gate, 2, user="u" + str(p), plan=p) for p in (None, "", "many", "\udcff")], [["passed", "rejected"]] * 4)
        self.assertEqual(self.ask(gate, 1, user=None, plan="5/h"), ["unlimited"])
        self.assertEqual([line for line in self.logged if "many" in line][0].split(": ")[-1], "rate_error= decides")
        self.assertRaisesRegex(TypeError, "^a limit must be str, and not <class 'int'>", self.ask, gate, 1, plan=5)
        self.assertRaisesRegex(TypeError, "^a key with its limit must be .key, limit.", Gate(SEGMENT, [Limit("s", lambda _: ("u",))]).ask, {})

    def test_exception(self):
        """an exception of a key or of a cost is the caller's, and takes nothing"""
        broken = Limit("s", lambda request: request["none"])
        gate = Gate(SEGMENT, [Limit("r", user), broken])
        self.assertRaises(KeyError, gate.ask, {"user": "u"})
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("r", user)]), 2), ["passed"] * 2)

    def test_dry_run(self):
        """a dry run decides and refuses no request"""
        gate = Gate(SEGMENT, [Limit("s", user)], dry_run=True)
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected-dry-run"])
        self.assertEqual(gate.ask({"user": "u"})[1:3], (0, []))
        with Limiter(SEGMENT) as limiter:
            limiter.rule_set("r", Rule(1, 1, HOUR_NS, mode=Mode.DRY_RUN))
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("r", user)]), 2), ["passed", "rejected-dry-run"])

    def test_missing(self):
        """without a segment all requests are refused, or all pass, as in a dry run; each gate reports it once"""
        self.destroy()
        closed = Gate(SEGMENT, [Limit("s", user)])
        opened = Gate(SEGMENT, [Limit("s", user)], fail_open=True)
        answers = [gate.ask({"user": "u"}) for gate in (closed, opened) for _ in range(5)]
        self.assertEqual([answer.status for answer in answers], ["failed"] * 10)
        self.assertEqual([answer.refusal for answer in answers], [503] * 5 + [0] * 5)
        told = f"ERROR:shmlimit:segment {SEGMENT}: no such segment: requests that need it %s"
        self.assertEqual(self.logged[1:], [told % "are refused", told % "pass without a limit"])
        self.create()
        self.assertTrue(closed.attach())
        self.assertEqual(self.ask(closed, 2), ["passed", "rejected"])
        self.assertIn("WARNING:shmlimit:", self.logged[3])
        self.assertIn("in order again; requests that were refused: 5", self.logged[3])

    def test_creates(self):
        """a gate whose limits have rates creates segment and rules, and as many gates as like do so together"""
        self.destroy()
        limits = [Limit("login", user, rate="2 per hour"), Limit("site", user, rate="100/day burst 3", algorithm="funnel")]
        gates = [Gate(SEGMENT, limits, mode=0o640, slots=128) for _ in range(3)]
        self.assertFalse(os.path.exists(os.environ["SHM"] + SEGMENT), "not before the first request")
        self.assertEqual([self.ask(gate, 1) for gate in gates], [["passed"], ["passed"], ["rejected"]])
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.rules(), ["login", "site"])
            self.assertEqual((limiter.info().mode, limiter.info().slots), (0o640, 128))

    def test_peek(self):
        """a limit that only peeks refuses what a take would refuse, and takes nothing"""
        gate = Gate(SEGMENT, [Limit("s", user, peek=True)])
        self.assertEqual(self.ask(gate, 3), ["passed"] * 3)
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("s", user)]), 1) + self.ask(gate, 1), ["passed", "rejected"])

    def test_ban(self):
        """a ban by the command is in force from the next request, and after unban the client passes"""
        gate = Gate(SEGMENT, [Limit("r", user), Limit("ban", user, peek=True)])

        def ask():
            return gate.ask({"user": "203.0.113.9"}).status

        self.assertEqual(ask(), "passed")
        subprocess.run(["shmlimit", "ban", SEGMENT, "203.0.113.9", "--for", "1h"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual([ask() for _ in range(9)], ["rejected"] * 9)
        subprocess.run(["shmlimit", "unban", SEGMENT, "203.0.113.9"], check=True)
        self.assertEqual([ask(), ask()], ["passed", "rejected"], "a ban takes no tokens")

    def test_protected(self):
        """a limit creates a rule that is protected"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("p", user, rate="9/day", protected=True), Limit("s", user, rate="9/day")])
        self.assertEqual(self.ask(gate, 1), ["passed"])
        with Limiter(SEGMENT) as limiter:
            self.assertEqual([limiter.rule_get(rule).protected for rule in ("p", "s")], [True, False])

    def test_x_fields(self):
        """a gate writes the older fields, too"""
        names = [name for name, _ in Gate(SEGMENT, [Limit("r", user)], x_fields=True).ask({"user": "u"}).fields]
        self.assertEqual(names[2:], ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"])

    def test_stranger(self):
        """a segment of another user is not opened, unless that user is the owner that is trusted"""
        if os.geteuid() != 0:
            self.skipTest("only root can give a segment away")
        os.chown(os.environ["SHM"] + SEGMENT, 65534, -1)
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("s", user)]), 1), ["failed"])
        self.assertIn("belongs to neither root nor this user", self.logged[1])
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("s", user)], owner="nobody"), 1), ["passed"])

    def test_limits(self):
        """a gate has 1 to 16 limits"""
        for n in 0, 17:
            self.assertRaises(ValueError, Gate, SEGMENT, [Limit("r", user)] * n)
        gate = Gate(SEGMENT, [Limit("r", user)] * 16)
        self.assertEqual(self.ask(gate, 1), ["rejected"])

    def test_wrong(self):
        """what is wrong in a gate is an error that names it, and no text becomes a word of its own"""
        for segment, rule in ("a/b", "r"), (".a", "r"), ("", "r"), (SEGMENT, "log in"), (SEGMENT, ""), (SEGMENT, 'r" dry_run "'):
            with self.assertRaises(shmlimit.Error) as caught:
                Gate(segment, [Limit("r", user), Limit(rule, user)])
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            self.assertIn("must be a", str(caught.exception))
        self.assertRaises(shmlimit.Error, Gate, SEGMENT + "\0", [Limit("r", user)])
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("r", user, rate="5 a minute")])
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("r", user)], status=200)

    def free(self):
        with Limiter(SEGMENT) as limiter:
            return limiter.peek("p", "u").remaining

    def places(self):
        self.destroy()
        return Gate(SEGMENT, [Limit("p", user, rate="1 at once for 2 days"), Limit("s", user, rate="9/day")])

    def test_shares(self):
        """a key of a limit with a share holds at most that many times the places that are free in the limit before it"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("all", lambda _: "all", rate="4 at once for 1h"), Limit("tenants", user, share=1)])
        answers = [gate.enter({"user": tenant}) for tenant in "aaabcc"]
        self.assertEqual(
            [answer.status for answer in answers], ["passed", "passed", "rejected", "passed", "passed", "rejected"]
        )
        for answer in answers:
            gate.leave(answer.places)
        with Limiter(SEGMENT) as limiter:
            self.assertEqual((limiter.peek("all", "all").remaining, limiter.peek("tenants", "a").remaining), (4, 4))
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("tenants", user, share=0.0001)])

    def test_places(self):
        """a request holds a place until it leaves, and one that only asks keeps it"""
        gate = self.places()
        first, second = gate.enter({"user": "u"}), gate.enter({"user": "u"})
        self.assertEqual((first.status, first.refusal, second.status, second.places), ("passed", 0, "rejected", None))
        self.assertIn(("RateLimit", '"p";r=0'), second.fields)
        gate.leave(second.places)
        self.assertEqual(self.free(), 0)
        gate.leave(first.places)
        self.assertEqual(self.free(), 1)
        gate.leave(first.places)
        self.assertEqual(self.free(), 1)
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.peek("s", "u").remaining, 8, "a request without a place takes nothing")
        self.assertIsNone(gate.ask({"user": "u"}).places)
        self.assertEqual(self.free(), 0)

    def test_wsgi_places(self):
        """WSGI: a request holds its place until the server closes the response, or the application fails"""

        def app(environ, start_response):
            if environ.get("fails"):
                raise KeyError("app")
            start_response("200 OK", [("Content-Type", "text/plain")])
            return environ.get("body", [b"here\n"])

        class Body:
            closed = 0

            def __iter__(self):
                return iter([b"a", b"b"])

            def close(self):
                self.closed += 1
                raise OSError("close")

        def get(**more):
            environ = {"QUERY_STRING": "", "user": "u", **more}
            setup_testing_defaults(environ)
            return middleware(environ, lambda status, headers, exc_info=None: None)

        middleware = wsgi.Middleware(app, self.places())
        body = get()
        self.assertEqual((b"".join(body), self.free()), (b"here\n", 0))
        self.assertEqual(list(get()), [b"429 Too Many Requests\n"])
        body.close()
        self.assertEqual(self.free(), 1)
        body = get()
        self.assertEqual(self.free(), 0)
        del body
        self.assertEqual(self.free(), 1, "a response that is dropped unclosed")
        self.assertRaises(KeyError, get, fails=True)
        self.assertEqual(self.free(), 1)
        given = Body()
        body = get(body=given)
        self.assertEqual((list(body), self.free()), ([b"a", b"b"], 0))
        self.assertRaises(OSError, body.close)
        self.assertEqual((given.closed, self.free()), (1, 1))

    def test_asgi_places(self):
        """ASGI: a request holds its place until the application has ended, also by an exception or a cancellation"""
        seen = []

        async def app(scope, receive, send):
            seen.append(self.free())
            if scope["path"] == "/fails":
                raise KeyError("app")
            if scope["path"] == "/waits":
                await asyncio.Event().wait()

        async def send(message):
            seen.append(message["type"])

        middleware = asgi.Middleware(app, self.places())

        async def get(path):
            await middleware({"type": "http", "method": "GET", "path": path, "user": "u"}, None, send)

        async def main():
            await get("/")
            with self.assertRaises(KeyError):
                await get("/fails")
            task = asyncio.create_task(get("/waits"))
            await asyncio.sleep(0)
            await get("/")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())
        self.assertEqual(seen, [0, 0, 0, "http.response.start", "http.response.body"])
        self.assertEqual(self.free(), 1)

    def left(self, rule, limit=None, key="u"):
        with Limiter(SEGMENT) as limiter:
            return limiter.peek(rule, key, limit=limit).remaining

    def test_settle(self):
        """what a request used is charged afterwards, by rules' names, and the same again changes nothing"""
        self.destroy()
        plans = Limit("plans", lambda request: (request["user"], "50/200 days"), algorithm="gcra", estimate=lambda request: 5)
        gate = Gate(SEGMENT, [Limit("t", user, rate="100/200 days", estimate=10), plans, Limit("s", user, rate="9/200 days")])
        places = gate.enter({"user": "u"}).places
        self.assertEqual((self.left("t"), self.left("plans", "50/200 days"), self.left("s")), (90, 45, 8))
        for used, *left in ({"t": 40}, 60, 45), ({"t": 40}, 60, 45), ({"plans": 20}, 60, 30), ({"t": 0, "plans": 1, "s": 5}, 100, 49):
            gate.settle(places, used)
            self.assertEqual([self.left("t"), self.left("plans", "50/200 days"), self.left("s")], [*left, 8], used)
        gate.settle(None, {"t": 1})
        self.assertRaises(ValueError, gate.settle, places, {"t": -1})
        gate.settle(places, {"t": 300})
        self.assertEqual(gate.enter({"user": "u"}).refusal, 429, "what it used too much is debt")
        self.assertIsNone(gate.enter({"user": "u"}).places)
        gate.leave(places)

    def test_charge_max(self):
        """a wrong amount refuses a key for as long as charge_max says, and by default for an hour"""
        for charge_max, longest_s in (60.5, 60.5), (None, 3600):
            self.destroy()
            gate = Gate(SEGMENT, [Limit("t", user, rate="1/s", estimate=1, charge_max=charge_max)])
            gate.end(gate.enter({"user": "u"}).places, {"t": 10**12})
            answer = gate.enter({"user": "u"})
            # The request itself waits for a second more.
            self.assertTrue(0 < answer.retry_after_ns <= (longest_s + 1) * 10**9, answer)
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("t", user, rate="1/s", charge_max=60.0)])
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("t", user, rate="1/s", estimate=1, charge_max=0.0)])

    def test_charge(self):
        """a request that goes on is charged when it has used its estimate again, is given nothing back, and settled in the end"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="100/200 days", estimate=10), Limit("s", user, rate="9/200 days")])
        places = gate.enter({"user": "u"}).places
        for used, left in ({}, 90), ({"t": 0}, 90), ({"t": 19}, 90), ({"t": 20, "s": 5}, 80), ({"t": 3}, 80), ({"t": 55}, 45):
            gate.charge(places, used)
            self.assertEqual((self.left("t"), self.left("s")), (left, 8), used)
        self.assertRaises(ValueError, gate.charge, places, {"t": -1})
        gate.charge(None, {"t": 90})
        gate.end(places, {"t": 21})
        self.assertEqual(self.left("t"), 79)

    def test_delay(self):
        """threads wait for their tokens, each its turn, and none is refused"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="50/s burst 1", delay=60.0)])
        begun = time.monotonic()
        outcomes = sum(together(*[lambda: self.ask(gate, 5)] * 4), [])
        # On a busy machine a token can be there when its turn comes.
        self.assertEqual((len(outcomes), set(outcomes) <= {"passed", "delayed"}), (20, True), outcomes)
        self.assertGreaterEqual(time.monotonic() - begun, 19 / 50)

    def test_delay_async(self):
        """in asyncio other tasks run while one waits for its tokens; a task that is cancelled gives back what it took"""
        self.destroy()
        slow = Limit("t", user, rate="1/200 days burst 1", delay=3600.0)
        self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("t", user, rate="1 at once", delay=1.0)])
        gate = Gate(SEGMENT, [slow, Limit("s", user, rate="9/200 days"), Limit("q", user, rate="1/h burst 1", delay=3600.0)])

        async def ask(name):
            return shmlimit.Answer(*await gate.enter_async({"user": name}))

        async def several():
            self.assertEqual((await ask("u")).status, "passed")
            refused = await ask("u")
            self.assertEqual((refused.status, refused.refusal), ("rejected", 429), "a wait of days is none")

        async def waiting():
            quick = Gate(SEGMENT, [Limit("s", user), Limit("q", user, rate="1/h burst 1", delay=3600.0)])
            taking = {"user": "v"}
            self.assertEqual((await quick.enter_async(taking))[0], "passed")
            task = asyncio.create_task(quick.enter_async(taking))
            while self.left("s", key="v") != 7:
                await asyncio.sleep(0)
            self.assertEqual((await quick.enter_async({"user": "w"}))[0], "passed")
            self.assertFalse(task.done())
            task.cancel()
            await asyncio.wait([task])
            self.assertEqual(self.left("s", key="v"), 8)
            second = asyncio.create_task(quick.enter_async(taking))
            while self.left("s", key="v") != 7:
                await asyncio.sleep(0)
            self.assertFalse(second.done(), "it waits in the turn of the one that was cancelled")
            second.cancel()
            await asyncio.wait([second])

        async def served(scope, receive, send):
            done.append(time.monotonic())

        async def middleware():
            app = asgi.Middleware(served, Gate(SEGMENT, [Limit("fast", user, rate="50/s burst 1", delay=60.0)]))
            scope = {"type": "http", "method": "GET", "user": "u"}
            await asyncio.gather(*(app(dict(scope), None, None) for _ in range(10)))

        done, begun = [], time.monotonic()
        asyncio.run(several())
        asyncio.run(waiting())
        asyncio.run(middleware())
        self.assertEqual(len(done), 10, "ASGI: all are served")
        self.assertGreaterEqual(done[-1] - begun, 9 / 50, "ASGI: none before its turn")

    def test_denials(self):
        """a limit counts what it refuses under the rule that it names"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="2/200 days", denials="abuse")])
        self.ask(gate, 5)
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.count("abuse", "u", 0)[1], 3)

    def test_wsgi_settle(self):
        """WSGI and ASGI: what the application says of its use is charged when the response is done, also if it fails"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="100/200 days", estimate=10)])

        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])

            def body():
                for tokens in 5, 19:
                    environ["shmlimit.used"]["t"] = tokens
                    yield b"chunk"

            return body()

        environ = {"QUERY_STRING": "", "user": "u"}
        setup_testing_defaults(environ)
        body = wsgi.Middleware(app, gate)(environ, lambda status, headers, exc_info=None: None)
        self.assertEqual((b"".join(body), self.left("t")), (b"chunkchunk", 90))
        body.close()
        self.assertEqual(self.left("t"), 81)

        async def served(scope, receive, send):
            scope["shmlimit.used"]["t"] = 3
            raise KeyError("app")

        with self.assertRaises(KeyError):
            asyncio.run(asgi.Middleware(served, gate)({"type": "http", "method": "GET", "user": "u"}, None, None))
        self.assertEqual(self.left("t"), 78)

    def test_streams(self):
        """WSGI and ASGI: a response that streams is charged while it does"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="100/200 days", estimate=10)])
        seen, tokens = [], (5, 20, 27, 33)

        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            for used in tokens:
                environ["shmlimit.used"]["t"] = used
                yield b"chunk"

        environ = {"QUERY_STRING": "", "user": "u"}
        setup_testing_defaults(environ)
        body = wsgi.Middleware(app, gate)(environ, lambda status, headers, exc_info=None: None)
        for _ in body:
            seen.append(self.left("t"))
        body.close()
        self.assertEqual((seen, self.left("t")), ([90, 80, 80, 67], 67))

        async def served(scope, receive, send):
            await send({"type": "http.response.start", "status": 200})
            for used in tokens:
                scope["shmlimit.used"]["t"] = used
                await send({"type": "http.response.body", "body": b"chunk", "more_body": True})

        async def send(message):
            seen.append(self.left("t"))

        seen = []
        asyncio.run(asgi.Middleware(served, gate)({"type": "http", "method": "GET", "user": "u"}, None, send))
        self.assertEqual((seen, self.left("t")), ([57, 57, 47, 47, 34], 34))

    def test_streams_without_estimate(self):
        """a response whose limits have no estimate is passed on as it is"""
        self.destroy()
        gate = Gate(SEGMENT, [Limit("t", user, rate="2 at once")])
        self.assertFalse(gate.charges)
        environ = {"QUERY_STRING": "", "user": "u"}
        setup_testing_defaults(environ)
        body = wsgi.Middleware(lambda environ, start_response: [b"chunk"], gate)(environ, lambda *_: None)
        self.assertEqual(type(iter(body)), type(iter([])))
        body.close()

    def test_threads(self):
        """threads on one gate get the capacity together"""
        with Limiter(SEGMENT) as limiter:
            limiter.rule_set("r", Rule(1000, 1, HOUR_NS))
        gate = Gate(SEGMENT, [Limit("r", user)])
        statuses = sum(together(*[lambda: self.ask(gate, 400)] * 4), [])
        self.assertEqual([statuses.count("passed"), statuses.count("rejected")], [1000, 600])

    def test_fork(self):
        """children that are forked go on with the gate, and get the capacity together"""
        with Limiter(SEGMENT) as limiter:
            limiter.rule_set("r", Rule(100, 1, HOUR_NS))
        gate = Gate(SEGMENT, [Limit("r", user)])
        self.assertEqual(children(4, lambda: self.ask(gate, 50).count("passed")), 100)

    def test_client(self):
        """a client is its net, and what has no address is one client"""
        gate = Gate(SEGMENT, [Limit("s", wsgi.client)])
        asked = [gate.ask({"REMOTE_ADDR": address}).status for address in ("2001:db8::1", "2001:db8::2", "", "")]
        self.assertEqual(asked, ["passed", "rejected"] * 2)
        gate = Gate(SEGMENT, [Limit("s", asgi.client)])
        clients = ("::ffff:10.0.0.7", 99), ("10.0.0.7", 1), (None, 0), None
        asked = [gate.ask({"client": client}).status for client in clients]
        self.assertEqual(asked, ["passed", "rejected", "rejected", "rejected"])
        wide = Gate(SEGMENT, [Limit("s", wsgi.client, prefix=(24, 64))])
        self.assertEqual([wide.ask({"REMOTE_ADDR": f"10.9.9.{i}"}).status for i in range(2)], ["passed", "rejected"])

    def forwarded(self, peer, *headers, proxies=("192.0.2.10", "198.51.100.0/24", "2001:db8:1::/48")):
        """The client of a request from this peer with these headers, by WSGI and by ASGI."""
        environ = {"REMOTE_ADDR": peer, **({"HTTP_X_FORWARDED_FOR": ",".join(headers)} if headers else {})}
        scope = {"client": (peer, 1234) if peer else None, "headers": [(b"host", b"x")]}
        scope["headers"] += [(b"x-forwarded-for", header.encode("latin-1")) for header in headers]
        found = {wsgi.client_behind(*proxies)(environ), asgi.client_behind(*proxies)(scope)}
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_behind(self):
        """behind a proxy the client is what the proxy says, and no other"""
        for peer, headers, client in (
            ("203.0.113.1", ["203.0.113.9"], "203.0.113.1"),
            ("192.0.2.10", [], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.1"], "203.0.113.1"),
            ("::ffff:192.0.2.10", ["203.0.113.1"], "203.0.113.1"),
            ("192.0.2.11", ["203.0.113.1"], "192.0.2.11"),
            ("192.0.2.10", ["203.0.113.9, 203.0.113.1"], "203.0.113.1"),
            ("192.0.2.10", ["203.0.113.9", "203.0.113.1"], "203.0.113.1"),
            ("192.0.2.10", ["203.0.113.1, 198.51.100.7"], "203.0.113.1"),
            ("192.0.2.10", ["198.51.100.6,198.51.100.7"], "198.51.100.6"),
            ("192.0.2.10", ["203.0.113.1:8443"], "203.0.113.1"),
            ("2001:db8:1::1", ["[2001:db8:2::1]:8443"], "2001:db8:2::1"),
            ("192.0.2.10", ["2001:db8:2::1"], "2001:db8:2::1"),
            ("192.0.2.10", ["203.0.113.9, unknown"], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.9, "], "192.0.2.10"),
            ("192.0.2.10", ["unix:"], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.1" + " " * 70], "203.0.113.1"),
            ("192.0.2.10", ["203.0.113.1:" + "1" * 70], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.1\xe9"], "192.0.2.10"),
        ):
            with self.subTest(peer=peer, headers=headers):
                self.assertEqual(self.forwarded(peer, *headers), client)
        self.assertRaises(ValueError, asgi.client_behind, "proxy.example")

    def test_behind_unix(self):
        """a proxy on a Unix socket is one only if that is said"""
        self.assertEqual(self.forwarded("", "203.0.113.1", proxies=["unix:"]), "203.0.113.1")
        self.assertEqual(self.forwarded("", "203.0.113.1"), "unix:")

    def test_replaced(self):
        """ASGI: where the server has replaced the peer's address, all requests are of one client, which is logged once"""
        client = asgi.client_behind("127.0.0.1")
        headers = [[(b"x-forwarded-for", b"203.0.113.%d" % i)] for i in range(3)]
        found = {client({"client": (f"203.0.113.{i}", 0), "headers": headers[i]}) for i in range(3)}
        self.assertEqual(found, {asgi.REPLACED})
        self.assertEqual(len(self.logged), 2)
        self.assertIn("--no-proxy-headers", self.logged[1])

    def wsgi(self, method="GET", **options):
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"here\n"]

        replies = []

        def get():
            environ = {"REQUEST_METHOD": method, "QUERY_STRING": "", "user": "u"}
            setup_testing_defaults(environ)
            body = middleware(environ, lambda status, headers, exc_info=None: replies.append((status, dict(headers))))
            replies.append((environ["shmlimit.status"], b"".join(body)))
            if hasattr(body, "close"):
                body.close()

        middleware = validator(wsgi.Middleware(validator(app), Gate(SEGMENT, [Limit("s", user)], **options)))
        get(), get()
        return replies

    def test_wsgi(self):
        """WSGI: what passes has the application's answer and the fields, what does not has 429"""
        (status, fields), went, (refused, told), stopped = self.wsgi()
        self.assertEqual((status, fields["RateLimit"], went), ("200 OK", '"s";r=0;t=3600', ("passed", b"here\n")))
        self.assertEqual(fields["Content-Type"], "text/plain")
        self.assertEqual((refused, stopped), ("429 Too Many Requests", ("rejected", b"429 Too Many Requests\n")))
        self.assertEqual((told["Content-Length"], told["Retry-After"][:1]), ("22", "3"))

    def test_wsgi_head(self):
        """WSGI: a refused HEAD has no body"""
        self.assertEqual(self.wsgi("HEAD")[3], ("rejected", b""))

    def test_status(self):
        """the status of a refusal can be chosen"""
        self.assertEqual(self.wsgi(status=503)[2][0], "503 Service Unavailable")

    def asgi(self, kind):
        async def app(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
            await send({"type": "http.response.body", "body": b"here\n"})

        sent = []

        async def send(message):
            sent.append(message)

        middleware = asgi.Middleware(app, Gate(SEGMENT, [Limit("s", user)]))
        for _ in range(2):
            asyncio.run(middleware({"type": kind, "method": "GET", "user": "u"}, None, send))
        return sent

    def test_asgi(self):
        """ASGI: what passes has the application's answer and the fields, what does not has 429"""
        start, body, refused, why = self.asgi("http")
        fields = [(b"x", b"y"), (b"ratelimit-policy", b'"s";q=1;w=3600'), (b"ratelimit", b'"s";r=0;t=3600')]
        self.assertEqual((start["status"], start["headers"], body["body"]), (200, fields, b"here\n"))
        self.assertEqual((refused["status"], why["body"]), (429, b"429 Too Many Requests\n"))
        self.assertIn(b"retry-after", dict(refused["headers"]))

    def test_websocket(self):
        """ASGI: a WebSocket that is refused is closed, unaccepted"""
        self.assertEqual(self.asgi("websocket")[2:], [{"type": "websocket.close", "code": 1013}])

    def test_lifespan(self):
        """ASGI: what is no request is not limited"""
        self.assertEqual(len(self.asgi("lifespan")), 4)
