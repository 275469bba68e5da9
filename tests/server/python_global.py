"""The laws of shmlimit.GlobalLimiter, and of a Gate that has an engine.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import errno
import logging
import os
import socket
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import shmlimit
from shmlimit import Algorithm, Engine, Error, Gate, GlobalLimiter, Limit, Limiter, Mode, OnFailure, Request, Rule, asgi

SEGMENT = os.environ["SEGMENT"]
TMP = os.environ["TMP"]
URL = os.environ["ENGINE"]
NOBODY = f"unix://{TMP}/nobody"
S = 10**9


def lease(capacity, mode=Mode.ENFORCE):
    """So slow that no token leaks back within a test."""
    return Rule(capacity, 1, 86400 * S, mode=mode, algorithm=Algorithm.LEASE)


def patient(url=URL, **options):
    """No test depends on speed; leases last as long, so that what is given back is still there."""
    return Engine(url, **{"deadline_ns": 5 * S, "lease_ns": 10 * S, "open_ns": 3600 * S, **options})


def user(request):
    return request.get("user")


class GlobalLaws(unittest.TestCase):
    def setUp(self):
        self.limiter = self.host("")
        self.key = self.id()
        self.told = []

    def host(self, suffix):
        limiter = Limiter.create(SEGMENT + suffix, slots=64)
        self.addCleanup(shmlimit.destroy, SEGMENT + suffix)
        self.addCleanup(limiter.close)
        limiter.rule_set("first", lease(5))
        limiter.rule_set("second", lease(2))
        limiter.rule_set("local", Rule(3, 1, 86400 * S))
        return limiter

    def open(self, limiter=None, **options):
        opened = GlobalLimiter(limiter or self.limiter, patient(**options), self.told.append)
        self.addCleanup(opened.close)
        return opened

    def raises(self, number, call, *arguments):
        with self.assertRaises(Error) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.errno, number)
        return str(caught.exception)

    def left(self, limits, rule):
        """Of a lease what is there and what is here."""
        there = limits.peek(rule, self.key).remaining if rule != "local" else 0
        return there + self.limiter.peek(rule, self.key).remaining

    def requests(self, *rules):
        return [Request(rule, self.key) for rule in rules]

    def test_hosts(self):
        """hosts with one engine have one limit"""
        hosts = [self.open(), self.open(self.host(".other"))]
        allowed = [bool(host.take("first", self.key)) for _ in range(20) for host in hosts]
        self.assertEqual(sum(allowed), 5)

    def test_local(self):
        """a rule that is no lease is this host's"""
        limits = self.open(url=NOBODY)
        self.assertEqual([limits.take("local", self.key).remaining for _ in range(2)], [2, 1])

    def test_many(self):
        """many requests are decided each by itself, and an error is its own"""
        answers = self.open().take_many([*self.requests("second", "second", "second", "none"), Request("first", "")])
        self.assertEqual([bool(answer) for answer in answers[:3]], [True, True, False])
        self.assertEqual([answer.errno for answer in answers[3:]], [errno.ESRCH, errno.EMSGSIZE])
        self.raises(errno.EINVAL, self.open().take_many, self.requests(*["first"] * 65))

    def test_engine(self):
        """an engine says what it is, and what it has; it is filled up again"""
        limits = self.open()
        self.assertEqual((limits.ping().mode, limits.ping().role), ("standalone", "master"))
        limits.take("first", self.key, 5)
        self.assertEqual(limits.peek("first", self.key).remaining, 0)
        limits.reset("first", self.key)
        self.assertTrue(limits.take("first", self.key, 5))
        limits.reset("first")
        self.assertTrue(limits.take("first", self.key, 5))

    def test_errors(self):
        """what is wrong is said in words, and no password is shown"""
        self.assertIn("scheme: must be redis://", self.raises(errno.EINVAL, lambda: self.open(url="http://host")))
        self.raises(errno.EINVAL, lambda: self.open(deadline_ns=1))
        self.raises(errno.EINVAL, lambda: self.open(deadline_ns=-1))
        self.raises(errno.EINVAL, lambda: self.open(url="redis://host\0"))
        limits = self.open(url=NOBODY)
        self.assertIn("engine: no connection (No such file", self.raises(errno.ENOENT, limits.ping))
        self.raises(errno.EOPNOTSUPP, limits.peek, "local", "k")
        self.raises(errno.ESRCH, limits.take, "none", "k")
        self.raises(errno.EMSGSIZE, limits.take, "first", "")
        self.assertNotIn("secret", repr(Engine("redis://:secret@host")))

    def test_without(self):
        """without its engine a limit denies, allows, or is this host's share"""
        answers = {}
        for on_failure in OnFailure:
            limits = self.open(url=NOBODY, on_failure=on_failure, local_milli=400)
            answers[on_failure] = sum(bool(limits.take("first", self.key)) for _ in range(10))
        self.assertEqual(answers, {OnFailure.DENY: 0, OnFailure.ALLOW: 10, OnFailure.LOCAL: 2})

    def test_told(self):
        """what is wrong is told once, whichever thread meets it"""
        limits = self.open(url=NOBODY)
        self.together(lambda: self.raises(errno.ENOENT, limits.ping))
        self.assertEqual(len(self.told), 1)
        self.assertRegex(self.told[0], r"^engine .*: no connection \(No such file or directory\): must be running")

    def together(self, call, n=8):
        barrier, failed = threading.Barrier(n), []

        def run():
            try:
                barrier.wait()
                call()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=run) for _ in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_threads(self):
        """threads that share one get the capacity together"""
        self.limiter.rule_set("wide", lease(500))
        limits, taken = self.open(), []
        self.together(lambda: taken.append(sum(bool(limits.take("wide", self.key)) for _ in range(200))))
        self.assertEqual(sum(taken), 500)

    def test_handles(self):
        """no two threads have the same connection at once"""
        seconds, calls, shared, together = sys.getswitchinterval(), [], [], []
        sys.setswitchinterval(1e-6)
        self.addCleanup(sys.setswitchinterval, seconds)
        limits = self.open()

        class Spy:
            def global_ping(self, handle, info):
                calls.append(handle)
                shared.append(len(calls) - len(set(calls)))
                together.append(len(calls))
                answer = library.global_ping(handle, info)
                calls.remove(handle)
                return answer

            def __getattr__(self, name):
                return getattr(library, name)

        library, limits._library = limits._library, Spy()
        self.together(lambda: [limits.ping() for _ in range(50)])
        self.assertEqual((len(shared), max(shared), calls), (400, 0, []))
        self.assertGreater(max(together), 1)

    def test_fork(self):
        """children of one that has asked go on, each with a connection of its own"""
        self.limiter.rule_set("wide", lease(100))
        limits = self.open()
        taken = bool(limits.take("wide", self.key))
        reads, writes = os.pipe()
        children = []
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                limits.ping()
                os.write(writes, b"%d\n" % sum(bool(limits.take("wide", self.key)) for _ in range(50)))
                os._exit(0)
            children.append(pid)
        os.close(writes)
        for pid in children:
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        with os.fdopen(reads) as pipe:
            self.assertEqual(taken + sum(map(int, pipe)), 100)
        self.assertEqual(limits.ping().role, "master")

    def test_others_run(self):
        """other Python threads run while one waits for an engine"""
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{TMP}/python")
            server.listen()
            thread = threading.Thread(target=lambda: server.accept()[0].close())
            thread.start()
            with self.assertRaises(Error) as caught:
                self.open(url=f"unix://{TMP}/python").ping()
            thread.join()
        # It is that thread who closed the connection: who kept it from running would have had no answer in time.
        self.assertIn(caught.exception.errno, (errno.EPIPE, errno.ECONNRESET))

    def test_closed(self):
        """what was closed is an error, whichever of the two, and closing it again is none"""
        limits = self.open()
        limits.take("first", self.key)
        limits.close()
        limits.close()
        self.raises(errno.EINVAL, limits.take, "first", self.key)
        limits = self.open()
        self.limiter.close()
        self.raises(errno.EINVAL, limits.take, 0, "k")

    def test_all(self):
        """limits of both kinds take all or none"""
        self.limiter.rule_set("wide", lease(50))
        limits, requests = self.open(), self.requests("wide", "local", "second")
        # A lease grows while it is used up early. One that is spent to the last token may make place for another key's.
        while self.limiter.peek("wide", self.key).remaining < 4:
            self.assertTrue(limits.take("wide", self.key))
        before = self.left(limits, "wide")
        answers = [limits.take_all(requests) for _ in range(3)]
        self.assertEqual([(bool(answer), answer.failed) for answer in answers], [(True, -1), (True, -1), (False, 2)])
        self.assertEqual([result.limit for result in answers[0].results], [50, 3, 2])
        self.assertEqual([(r.limit, r.remaining, r.allowed) for r in answers[2].results], [(2, 0, False)])
        self.assertEqual([self.left(limits, rule) for rule in ("wide", "local", "second")], [before - 2, 1, 0])

    def test_all_local(self):
        """where a limit of this host denies no engine is asked"""
        limits = self.open(url=NOBODY)
        self.limiter.take("local", self.key, 3)
        answer = limits.take_all(self.requests("first", "local"))
        self.assertEqual((bool(answer), answer.failed, answer.results[-1].limit, self.told), (False, 1, 3, []))

    def test_all_failed(self):
        """where an engine is gone, or a request wrong, what was taken is given back"""
        self.assertFalse(self.open(url=NOBODY).take_all(self.requests("local", "first")))
        self.raises(errno.EMSGSIZE, self.open().take_all, [*self.requests("local"), Request("first", "")])
        self.raises(errno.EINVAL, self.open().take_all, self.requests(*["local", "first"] * 9))
        self.assertEqual(self.limiter.peek("local", self.key).remaining, 3)

    def test_given_back(self):
        """what this host had leased is given back, whatever answers for an engine that is gone"""
        here = {}
        self.limiter.rule_set("none", lease(1))
        for on_failure in OnFailure:
            self.key = f"{self.id()} {on_failure}"
            # A lease that was used up early is followed by one of twice as much.
            self.assertTrue(all(self.open().take("first", self.key) for _ in range(2)))
            held = self.limiter.peek("first", self.key).remaining
            self.assertGreater(held, 0)
            limits = self.open(url=NOBODY, on_failure=on_failure)
            answer = limits.take_all([Request("first", self.key, held), Request("none", self.key, 2)])
            self.assertEqual(answer.failed, 1)
            here[on_failure] = held - self.limiter.peek("first", self.key).remaining
        self.assertEqual(here, dict.fromkeys(OnFailure, 0))

    def test_dry(self):
        """a lease in a dry run denies nobody, and what it has not taken is not given back"""
        self.limiter.rule_set("dry", lease(1, Mode.DRY_RUN))
        limits = self.open()
        answers = [limits.take_all(self.requests("dry", "second")) for _ in range(3)]
        self.assertEqual([bool(answer) for answer in answers], [True, True, False])
        self.assertEqual([answer.results[0].retry_after_ns > 0 for answer in answers[:2]], [False, True])
        self.assertEqual(limits.peek("dry", self.key).remaining, 0)


class GateLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(shmlimit.destroy, SEGMENT)
        self.create()
        self.request = {"user": self.id()}
        self.logged = self.enterContext(self.assertLogs("shmlimit")).output
        logging.getLogger("shmlimit").info("so that there is one")

    def create(self):
        with Limiter.create(SEGMENT, slots=64) as limiter:
            limiter.rule_set("there", lease(2))
            limiter.rule_set("here", Rule(3, 1, 86400 * S))

    def ask(self, gate, times):
        return [gate.ask(self.request).status for _ in range(times)]

    def gate(self, *rules, **options):
        return Gate(SEGMENT, [Limit(rule, user) for rule in rules], **options)

    def test_gate(self):
        """a gate has limits of both kinds, with their fields"""
        gate = self.gate("here", "there", engine=patient())
        first = gate.ask(self.request)
        policies = ("RateLimit-Policy", '"here";q=3;w=259200, "there";q=2;w=172800')
        self.assertEqual((first.status, first.fields[0]), ("passed", policies))
        self.assertEqual(self.ask(gate, 1), ["passed"])
        denied = gate.ask(self.request)
        self.assertEqual((denied.status, denied.fields[0]), ("rejected", ("RateLimit-Policy", '"there";q=2;w=172800')))
        self.assertEqual([name for name, _ in denied.fields], ["RateLimit-Policy", "RateLimit", "Retry-After"])
        self.assertEqual(self.ask(self.gate("here"), 2), ["passed", "rejected"])

    def test_none(self):
        """a lease without an engine fails, and is told once; other limits count"""
        self.assertEqual(self.ask(self.gate("there", "here"), 2), ["failed"] * 2)
        told = f"ERROR:shmlimit:segment {SEGMENT}: rule there: it is a lease, and there is no engine to lease from: "
        self.assertEqual(self.logged[1:], [told + "requests that need it are refused"])
        self.assertEqual(self.ask(self.gate("here"), 4), ["passed"] * 3 + ["rejected"])

    def test_wrong(self):
        """so does one whose engine has a wrong URL"""
        gate = self.gate("there", engine="http://host")
        self.assertEqual(self.ask(gate, 1), ["failed"])
        self.assertIn("engine's URL: scheme: must be redis://", self.logged[1])

    def test_gone(self):
        """an engine that is gone denies, or lets pass where the gate fails open, or has a share"""
        self.assertEqual(self.ask(self.gate("there", engine=NOBODY), 1), ["rejected"])
        self.assertEqual(self.ask(self.gate("there", engine=NOBODY, fail_open=True), 3), ["passed"] * 3)
        self.assertEqual(self.ask(self.gate("there", engine=NOBODY, dry_run=True), 3), ["passed"] * 3)
        share = self.gate("there", engine=patient(NOBODY, on_failure=OnFailure.LOCAL, local_milli=500))
        self.assertEqual(self.ask(share, 2), ["passed", "rejected"])
        self.assertIn(f"segment {SEGMENT}: engine {TMP}/nobody", self.logged[1])

    def test_anew(self):
        """a segment that is made anew has its engine"""
        gate = self.gate("there", engine=patient())
        self.assertEqual(self.ask(gate, 1), ["passed"])
        shmlimit.destroy(SEGMENT)
        self.create()
        gate._look_at = 0
        self.assertEqual(self.ask(gate, 2), ["passed", "rejected"])

    def serve(self, gate, *keys, but_one=lambda: None):
        """What becomes of requests that begin together, in the order in which they are decided, each with its keys for
        the rules there and here. `but_one` is called when all but one are decided."""
        decided = []

        async def app(scope, receive, send):
            pass

        async def send(message):
            pass

        async def request(number, there, here):
            scope = {"type": "http", "method": "GET", "there": there, "here": here}
            await asgi.Middleware(app, gate)(scope, None, send)
            decided.append((number, scope["shmlimit.status"]))
            if len(decided) == len(keys) - 1:
                but_one()

        async def requests():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            await asyncio.gather(*(request(i, *pair) for i, pair in enumerate(keys)))

        asyncio.run(requests())
        return decided

    def both(self, engine):
        return Gate(SEGMENT, [Limit(rule, lambda scope, rule=rule: scope[rule]) for rule in ("there", "here")], engine=engine)

    def lease(self):
        """Lease more tokens for the key "leased" than are spent, and have the key "denied" denied."""
        with Limiter(SEGMENT) as limiter, GlobalLimiter(limiter, patient()) as limits:
            limiter.rule_set("there", lease(50))
            while limiter.peek("there", "leased" + self.id()).remaining < 2:
                self.assertTrue(limits.take("there", "leased" + self.id()))
            self.assertTrue(limits.take("there", "denied" + self.id(), 50))
            self.assertFalse(limits.take("there", "denied" + self.id()))

    def test_asgi(self):
        """ASGI: only a request that the engine must be asked about goes through a thread"""
        self.lease()
        gate, went = self.both(patient()), []
        asked = [(None, None), (None, "k"), ("leased", None), ("leased", "k"), ("denied", "k"), ("new", None)]
        for there, here in asked:
            with mock.patch.object(asgi.asyncio, "to_thread", wraps=asyncio.to_thread) as to_thread:
                [(_, status)] = self.serve(gate, (there and there + self.id(), here))
            went.append((status, to_thread.call_count))
        self.assertEqual(
            went,
            [("unlimited", 0), ("passed", 0), ("passed", 0), ("passed", 0), ("rejected", 0), ("passed", 1)],
        )
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.peek("here", "k").remaining, 1, "what another limit denied was given back")

    def test_asgi_waits(self):
        """ASGI: while a request waits for an engine that hangs, all that need not ask it are answered"""
        self.lease()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{TMP}/hangs")
            server.listen()
            gate = self.both(patient(f"unix://{TMP}/hangs", deadline_ns=10 * S))
            keys = ("new", None), (None, None), (None, "k"), ("leased", "k"), ("denied", None)
            keys = [(there and there + self.id(), here) for there, here in keys]
            decided = self.serve(gate, *keys, but_one=server.close)
        self.assertEqual(decided[-1], (0, "rejected"))
        self.assertEqual(
            sorted(decided[:-1]), [(1, "unlimited"), (2, "passed"), (3, "passed"), (4, "rejected")]
        )
