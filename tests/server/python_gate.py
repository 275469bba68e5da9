"""The laws of shmlimit.Gate and of both middlewares.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import errno
import logging
import os
import unittest
from unittest import mock
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import shmlimit
from shmlimit import Gate, Limit, Limiter, Mode, Rule, asgi, gate, wsgi

SEGMENT = os.environ["SEGMENT"]
HOUR_NS = 3600 * 10**9


def user(request):
    return request.get("user")


class GateLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy)
        self.create()
        self.now = 1000.0
        self.enterContext(mock.patch.object(gate.time, "monotonic", lambda: self.now))
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

    def test_fields(self):
        """its fields are those of each limit, or of the one that refused"""
        gate = Gate(SEGMENT, [Limit("r", user), Limit("s", user)])
        first, second = gate.ask({"user": "u"}), gate.ask({"user": "u"})
        policies = ("RateLimit-Policy", '"r";q=2;w=7200, "s";q=1;w=3600')
        self.assertEqual(first.fields, [policies, ("RateLimit", '"r";r=1;t=3600, "s";r=0;t=3600')])
        self.assertEqual([first.refusal, second.refusal], [None, 429])
        self.assertEqual(second.fields[0], ("RateLimit-Policy", '"s";q=1;w=3600'))
        self.assertRegex(second.fields[1][1], r'^"s";r=0;t=3[56]\d\d$')
        self.assertRegex(str(second.fields[2]), r"^\('Retry-After', '3[56]\d\d'\)$")

    def test_keyless(self):
        """who has no key is not limited"""
        gate = Gate(SEGMENT, [Limit("s", user)])
        self.assertEqual(self.ask(gate, 3, user=None), ["unlimited"] * 3)

    def test_cost(self):
        """the cost may depend on the request"""
        gate = Gate(SEGMENT, [Limit("r", user, lambda request: request["cost"])])
        self.assertEqual([*self.ask(gate, 1, cost=3), *self.ask(gate, 2, cost=2)], ["rejected", "passed", "rejected"])

    def test_bad_key(self):
        """no key is too long or too short to be limited"""
        gate = Gate(SEGMENT, [Limit("s", user)], fail_open=True)
        for key in "", "x" * 1025, b"y" * 100000, "\udcff":
            self.assertEqual(self.ask(gate, 2, user=key), ["passed", "rejected"])
        self.assertEqual(gate.failures, 0)

    def test_dry_run(self):
        """a dry run decides and refuses nobody"""
        gate = Gate(SEGMENT, [Limit("s", user)], dry_run=True)
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected-dry-run"])
        answer = gate.ask({"user": "u"})
        self.assertEqual((answer.refusal, answer.fields), (None, []))
        with Limiter(SEGMENT) as limiter:
            limiter.rule_set("r", Rule(1, 1, HOUR_NS, mode=Mode.DRY_RUN))
        answers = [Gate(SEGMENT, [Limit("r", user)]).ask({"user": "u"}) for _ in range(2)]
        self.assertEqual([answer.status for answer in answers], ["passed", "rejected-dry-run"])
        self.assertEqual([answer[1:] for answer in answers], [(None, [])] * 2)

    def test_missing(self):
        """without a segment all is refused, or all passes, as in a dry run; told once, and counted"""
        self.destroy()
        closed = Gate(SEGMENT, [Limit("s", user)])
        opened = Gate(SEGMENT, [Limit("s", user)], fail_open=True)
        dry = Gate(SEGMENT, [Limit("s", user)], dry_run=True)
        answers = [gate.ask({"user": "u"}) for gate in (closed, opened, dry) for _ in range(5)]
        self.assertEqual([answer.status for answer in answers], ["failed"] * 15)
        self.assertEqual([answer.refusal for answer in answers], [503] * 5 + [None] * 10)
        self.assertEqual([closed.failures, opened.failures], [5, 5])
        told = f"ERROR:shmlimit:segment {SEGMENT}: no such segment: requests that need it %s"
        self.assertEqual(self.logged[1:], [told % "are refused"] + [told % "pass without a limit"] * 2)

    def test_other_version(self):
        """a segment of another version is one that fails, until it is made anew"""
        with open("/dev/shm/" + SEGMENT, "r+b") as file:
            file.seek(8)
            file.write(b"\xff")
        gate = Gate(SEGMENT, [Limit("s", user)])
        self.assertEqual(self.ask(gate, 2), ["failed", "failed"])
        self.assertIn("version", self.logged[1])
        self.destroy()
        self.create()
        self.now += 1
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected"])

    def test_anew(self):
        """a segment that was destroyed and made anew is opened again, looked for once a second"""
        gate = Gate(SEGMENT, [Limit("s", user)], fail_open=True)
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected"])
        self.destroy()
        self.assertEqual(self.ask(gate, 1), ["rejected"])
        self.now += 1
        self.assertEqual(self.ask(gate, 2), ["failed", "failed"])
        self.create()
        self.assertEqual(self.ask(gate, 1), ["failed"])
        self.now += 1
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected"])
        self.assertEqual(len(self.logged), 3)
        self.assertIn("in order again; requests that passed without a limit: 3", self.logged[2])
        self.destroy()
        self.now += 1
        self.assertEqual(self.ask(gate, 1), ["failed"])
        self.assertEqual(len(self.logged), 4)

    def test_stranger(self):
        """a segment that a stranger made is not obeyed"""
        if os.geteuid() != 0:
            self.skipTest("only root can give a segment away")
        os.chown("/dev/shm/" + SEGMENT, 12345, -1)
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("s", user)]), 1), ["failed"])
        self.assertIn("belongs to neither root nor this user", self.logged[1])
        self.assertEqual(self.ask(Gate(SEGMENT, [Limit("s", user)], owner=12345), 1), ["passed"])

    def test_rule(self):
        """a rule that is missing fails, and is found when it is there"""
        gate = Gate(SEGMENT, [Limit("t", user)])
        self.assertEqual(self.ask(gate, 3), ["failed"] * 3)
        self.assertEqual(len(self.logged), 2)
        self.assertIn(f"{SEGMENT}: rule t: no such rule", self.logged[1])
        with Limiter(SEGMENT) as limiter:
            limiter.rule_set("t", Rule(1, 1, HOUR_NS))
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected"])
        over = f"WARNING:shmlimit:segment {SEGMENT}: rule t: in order again; requests that were refused: 3"
        self.assertEqual(self.logged[2:], [over])
        with Limiter(SEGMENT) as limiter:
            limiter.rule_remove("t")
        self.assertEqual(self.ask(gate, 2), ["failed"] * 2)
        self.assertEqual(self.logged[3:], self.logged[1:2])

    def test_bad_cost(self):
        """requests whose costs are no number of tokens fail, and are logged once, whatever their numbers"""
        gate = Gate(SEGMENT, [Limit("s", user, lambda request: request["cost"])])
        statuses = [self.ask(gate, 1, cost=2**64 + i) for i in range(5)]
        self.assertEqual(statuses, [["failed"]] * 5)
        self.assertEqual(len(self.logged), 2)
        self.assertIn(f"segment {SEGMENT}: {2**64}: ", self.logged[1])

    def test_rules(self):
        """of several rules that are missing each is told"""
        gate = Gate(SEGMENT, [Limit("t", lambda request: request["t"]), Limit("u", user)])
        self.assertEqual(self.ask(gate, 2, t="k") + self.ask(gate, 2, t=None), ["failed"] * 4)
        self.assertEqual(len(self.logged), 3)
        self.assertIn(f"{SEGMENT}: rule u: no such rule", self.logged[2])

    def test_limits(self):
        """a gate has 1 to 16 limits"""
        for n in 0, 17:
            self.assertRaises(ValueError, Gate, SEGMENT, [Limit("r", user)] * n)

    def test_names(self):
        """a gate refuses names that no segment, and no rule, can have"""
        for segment, rule in ("a/b", "r"), (".a", "r"), ("", "r"), ("a" * 256, "r"), (SEGMENT, "log in"), (SEGMENT, ""):
            with self.assertRaises(shmlimit.Error) as caught:
                Gate(segment, [Limit("r", user), Limit(rule, user)])
            self.assertIn(caught.exception.errno, (errno.EILSEQ, errno.ENAMETOOLONG))

    def test_client(self):
        """a client is his net; who has no address is one client"""
        self.assertEqual(wsgi.client({"REMOTE_ADDR": "2001:db8::1"}), shmlimit.key_ip("2001:db8::2"))
        self.assertEqual(asgi.client({"client": ("::ffff:10.0.0.7", 99)}), shmlimit.key_ip("10.0.0.7"))
        gate = Gate(SEGMENT, [Limit("s", asgi.client)])
        self.assertEqual(self.ask(gate, 1) + self.ask(gate, 1, client=None), ["passed", "rejected"])

    def test_no_client(self):
        """a client whose address the server does not know is one client, as uvicorn leaves it where all are proxies"""
        self.assertEqual(asgi.client({"client": (None, 0)}), asgi.client({"client": None}))

    def forwarded(self, peer, *headers, proxies=("192.0.2.10", "198.51.100.0/24", "2001:db8:1::/48")):
        """The client of a request from this peer with these headers, by WSGI and by ASGI."""
        environ = {"REMOTE_ADDR": peer, **({"HTTP_X_FORWARDED_FOR": ",".join(headers)} if headers else {})}
        scope = {"client": (peer, 1234) if peer else None, "headers": [(b"host", b"x")]}
        scope["headers"] += [(b"x-forwarded-for", header.encode("latin-1")) for header in headers]
        found = {wsgi.client_behind(*proxies)(environ), asgi.client_behind(*proxies)(scope)}
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_behind(self):
        """behind a proxy the client is what the proxy says, and nobody else"""
        key = shmlimit.key_ip
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
            ("192.0.2.10", ["2001:db8:2::1"], "2001:db8:2::ffff"),
            ("192.0.2.10", ["203.0.113.9, unknown"], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.9, "], "192.0.2.10"),
            ("192.0.2.10", ["unix:"], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.1" + " " * 70], "203.0.113.1"),
            ("192.0.2.10", ["203.0.113.1:" + "1" * 70], "192.0.2.10"),
            ("192.0.2.10", ["203.0.113.1\xe9"], "192.0.2.10"),
        ):
            with self.subTest(peer=peer, headers=headers):
                self.assertEqual(self.forwarded(peer, *headers), key(client))
        self.assertRaises(ValueError, asgi.client_behind, "proxy.example")

    def test_behind_unix(self):
        """a proxy on a Unix socket is one only if that is said"""
        self.assertEqual(self.forwarded("", "203.0.113.1", proxies=["unix:"]), shmlimit.key_ip("203.0.113.1"))
        self.assertEqual(self.forwarded("", "203.0.113.1"), "unix:")

    def test_replaced(self):
        """ASGI: where the server has replaced the peer's address, all are one client, which is logged once"""
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
