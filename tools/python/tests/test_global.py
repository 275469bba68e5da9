"""The laws of shmlimit.GlobalLimiter, and of a Gate that has a backend.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import errno
import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from crew import children, together

import shmlimit
from shmlimit import Algorithm, Backend, Error, Gate, GlobalLimiter, Limit, Limiter, Mode, OnFailure, Request, Rule, asgi

SEGMENT = os.environ["SEGMENT"]
TMP = os.environ["TMP"]
URL = os.environ["BACKEND"]
BACKEND_PID = int(os.environ["BACKEND_PID"])
NOBODY = f"unix://{TMP}/nobody"
S = 10**9


def lease(capacity, mode=Mode.ENFORCE):
    """A rule so slow that no token comes back within a test."""
    return Rule(capacity, 1, 86400 * S, mode=mode, algorithm=Algorithm.LEASE)


def patient(url=URL, **options):
    """No test depends on speed; leases last as long, so that what is given back is still there."""
    return Backend(url, **{"deadline_ns": 5 * S, "lease_ns": 10 * S, "open_ns": 3600 * S, **options})


def status():
    command = ["shmlimit", "global", "status", SEGMENT, "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)  # it fails where there is no agent


def serving():
    """This process is the agent, and has a connection."""
    now = status()
    return now["serving"] and now["pid"] == os.getpid() and now["connections"] == 1


def until(condition):
    """For a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


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
        """hosts with one backend have one limit"""
        hosts = [self.open(), self.open(self.host(".other"))]
        allowed = [bool(host.take("first", self.key)) for _ in range(20) for host in hosts]
        self.assertEqual(sum(allowed), 5)

    def test_count(self):
        """hosts with one backend have one count, which is exact; one that cannot be shared is refused"""
        hosts = []
        for limiter in self.limiter, self.host(".other"):
            limiter.rule_set("count", Rule(100, 0, 3600 * S, algorithm=Algorithm.COUNTER))
            hosts.append(self.open(limiter, agent_thread=True))
        counts = [host.count("count", self.key, bound=5) for _ in range(10) for host in hosts]
        self.assertEqual([count.value for count in counts if count], [1, 2, 3, 4, 5])
        self.assertEqual({(count.value, count.applied) for count in counts if not count}, {(5, 0)})
        self.assertEqual(hosts[0].count("count", self.key, 3, bound=6, saturate=True)[1:3], (6, 1))
        self.raises(errno.EOPNOTSUPP, hosts[0].count, "first", self.key)
        self.raises(errno.EOPNOTSUPP, hosts[0].count, "count", self.key, -1)
        hosts[0].reset("count", self.key)
        self.assertEqual(hosts[0].count("count", self.key).value, 1)

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

    def test_backend(self):
        """a backend says what it is, and what it has; it is filled up again"""
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
        self.assertIn("backend: No such file", self.raises(errno.ENOENT, limits.ping))
        self.raises(errno.EOPNOTSUPP, limits.peek, "local", "k")
        self.raises(errno.ESRCH, limits.take, "none", "k")
        self.raises(errno.EMSGSIZE, limits.take, "first", "")
        self.assertNotIn("secret", repr(Backend("redis://:secret@host")))

    def test_without(self):
        """without its backend a limit denies, allows, is this host's share, or raises an error"""
        answers = {}
        limits = self.open(url=NOBODY, on_failure=OnFailure.ERROR)
        self.raises(errno.EHOSTDOWN, limits.take, "first", self.key)
        for on_failure in (OnFailure.DENY, OnFailure.ALLOW, OnFailure.LOCAL):
            limits = self.open(url=NOBODY, on_failure=on_failure, local_milli=400)
            answers[on_failure] = sum(bool(limits.take("first", self.key)) for _ in range(10))
        self.assertEqual(answers, {OnFailure.DENY: 0, OnFailure.ALLOW: 10, OnFailure.LOCAL: 2})

    def test_told(self):
        """a problem is reported once, whichever thread meets it"""
        limits = self.open(url=NOBODY)
        self.together(lambda: self.raises(errno.ENOENT, limits.ping))
        self.assertEqual(len(self.told), 1)
        self.assertRegex(self.told[0], r"^backend .*: no connection \(No such file or directory\): must be running")

    def together(self, call, n=8):
        barrier, failed = threading.Barrier(n), []

        def run():
            try:
                barrier.wait()
                call()
            except BaseException as error:
                failed.append(error)

        together(*[run] * n)
        self.assertEqual(failed, [])

    def test_threads(self):
        """threads that share one get the capacity together"""
        self.limiter.rule_set("wide", lease(500))
        limits, taken = self.open(), []
        self.together(lambda: taken.append(sum(bool(limits.take("wide", self.key)) for _ in range(200))))
        self.assertEqual(sum(taken), 500)

    def test_fork(self):
        """children of one that has asked go on, each with a connection of its own"""
        self.limiter.rule_set("wide", lease(100))
        limits = self.open()
        taken = bool(limits.take("wide", self.key))

        def work():
            limits.ping()
            return sum(bool(limits.take("wide", self.key)) for _ in range(50))

        self.assertEqual(taken + children(4, work), 100)
        self.assertEqual(limits.ping().role, "master")

    def agents(self):
        """Threads of this process that are, or try to be, the agent."""
        tasks = [f"/proc/self/task/{task}/comm" for task in os.listdir("/proc/self/task")]
        return sum(open(comm).read() == "shmlimit-agent\n" for comm in tasks if os.path.exists(comm))

    def serve(self, limits):
        """Ask for new keys until this process is the agent."""
        n = itertools.count()
        until(lambda: limits.take("first", f"{self.key}.{next(n)}") and serving())

    def test_no_wait(self):
        """with wait=False and without an agent on_failure decides at once, and says why"""
        limits = self.open(wait=False)
        self.assertEqual(bool(limits.take("first", self.key)), False)
        self.assertIn("no agent serves", self.told[-1])

    def test_agent_thread(self):
        """with agent_thread a thread is the host's agent, also for others, until the object is closed"""
        others = self.open()
        others.take("first", self.key)
        self.assertEqual((self.agents(), status()["serving"]), (0, False))
        limits = self.open(agent_thread=True)
        self.serve(limits)
        self.assertEqual(self.agents(), 1)
        answered = status()["answered"]
        self.assertEqual([bool(others.take("second", self.key)) for _ in range(3)], [True, True, False])
        self.assertGreater(status()["answered"], answered)
        limits.close()
        self.assertEqual(status()["serving"], False)
        until(lambda: self.agents() == 0)
        self.assertEqual(bool(others.take("first", self.key)), True)

    def test_agent_thread_ends(self):
        """a thread ends before its Limiter is closed, and reports nothing to an interpreter that has ended"""
        self.serve(self.open(agent_thread=True))
        self.limiter.close()
        until(lambda: self.agents() == 0)
        script = """if True:
            import shmlimit, sys
            backend = shmlimit.Backend(sys.argv[2], agent_thread=True, open_ns=1_000_000)
            kept = [shmlimit.GlobalLimiter(shmlimit.Limiter(sys.argv[1]), backend, lambda line: None)]
            kept.append(kept)
            for n in range(20):
                kept[0].take("first", f"{n}")
        """
        for url in (URL, NOBODY):
            ended = subprocess.run([sys.executable, "-c", script, SEGMENT, url], stderr=subprocess.PIPE)
            self.assertEqual((ended.returncode, ended.stderr), (0, b""))

    def test_others_run(self):
        """other Python threads run while one waits for a backend"""
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{TMP}/python")
            server.listen()
            thread = threading.Thread(target=lambda: server.accept()[0].close())
            thread.start()
            with self.assertRaises(Error) as caught:
                self.open(url=f"unix://{TMP}/python").ping()
            thread.join()
        # That thread closed the connection. If it had been kept from running, the error would be a missed deadline.
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


class GateLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(shmlimit.destroy, SEGMENT)
        with Limiter.create(SEGMENT, slots=64) as limiter:
            limiter.rule_set("there", lease(2))
            limiter.rule_set("here", Rule(3, 1, 86400 * S))
        self.request = {"user": self.id()}
        self.logged = self.enterContext(self.assertLogs("shmlimit")).output
        logging.getLogger("shmlimit").info("so that there is one")

    def ask(self, gate, times):
        return [gate.ask(self.request).status for _ in range(times)]

    def gate(self, *rules, **options):
        return Gate(SEGMENT, [Limit(rule, user, local=rule == "here") for rule in rules], deadline_ms=5000, **options)

    def test_gate(self):
        """a gate has limits of both kinds, with their fields"""
        gate = self.gate("here", "there", backend=URL)
        self.assertEqual(self.ask(gate, 3), ["passed", "passed", "rejected"])
        self.assertEqual(gate.ask(self.request).fields[0], ("RateLimit-Policy", '"there";q=2;w=172800'))
        self.assertEqual(self.ask(self.gate("here"), 2), ["passed", "rejected"])

    def test_shared(self):
        """four hosts admit a rate once, together; a limit that says so is each host's; what cannot be shared is refused"""
        names = [f"{SEGMENT}.{host}" for host in range(4)]
        for name in names:
            self.addCleanup(shmlimit.destroy, name)
        limits = [Limit("day", user, rate="5/day"), Limit("own", user, rate="5/day", local=True)]
        gates = [[Gate(name, [limit], backend=URL, deadline_ms=5000, slots=64) for name in names] for limit in limits]
        for shared, passed in zip(gates, (5, 20)):
            answers = [answer for _ in range(10) for gate in shared for answer in self.ask(gate, 1)]
            self.assertEqual(answers.count("passed"), passed)
        for refused in {"rate": "5 at once"}, {"rate": "5/day", "algorithm": "window"}, {"rate": "5/day", "algorithm": "funnel"}:
            with self.assertRaisesRegex(Error, "local"):
                Gate(SEGMENT, [Limit("r", user, **refused)], backend=URL)

    def test_agent_thread(self):
        """a gate may ask for a thread that is the host's agent"""
        gate, n = self.gate("there", backend=URL, agent_thread=True), itertools.count()
        until(lambda: gate.ask({"user": f"{self.id()}.{next(n)}"}) and serving())
        answered = status()["answered"]
        self.assertEqual(self.ask(self.gate("there", backend=URL), 3), ["passed", "passed", "rejected"])
        self.assertGreater(status()["answered"], answered)
        del gate
        self.assertEqual(status()["serving"], False)

    def test_gone(self):
        """without its backend a limit denies, or lets pass where the gate fails open, or has a share; and it is logged"""
        self.assertEqual(self.ask(self.gate("there", backend=NOBODY), 1), ["failed"])
        self.assertEqual(self.ask(self.gate("there", backend=NOBODY, fail_open=True), 3), ["passed"] * 3)
        self.assertEqual(self.ask(self.gate("there", backend=NOBODY, local_share=500), 2), ["passed", "rejected"])
        self.assertIn(f"ERROR:shmlimit:backend {TMP}/nobody", "\n".join(self.logged))
        self.assertEqual(self.ask(self.gate("there"), 1), ["failed"])

    def test_asgi(self):
        """ASGI: while a request waits for a backend that hangs, the event loop goes on"""
        decided = []

        async def request(gate):
            scope = {"type": "http", "method": "GET", **self.request}
            await asgi.Middleware(nothing, gate)(scope, None, nothing)
            decided.append(scope["shmlimit.status"])

        async def nothing(*_):
            pass

        async def requests(waits, free):
            waiting = asyncio.ensure_future(request(waits))
            while not server_reads():
                await asyncio.sleep(0.001)
            await request(free)
            server.close()
            connections[0].close()
            await waiting

        def server_reads():
            try:
                connections.append(server.accept()[0])
            except BlockingIOError:
                pass
            return connections

        connections = []
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{TMP}/hangs")
            server.listen()
            server.setblocking(False)
            asyncio.run(requests(self.gate("there", backend=f"unix://{TMP}/hangs"), self.gate("here")))
        self.assertEqual(decided, ["passed", "failed"])


class DjangoLaws(unittest.TestCase):
    def setUp(self):
        from django.conf import settings

        if not settings.configured:
            settings.configure()
        self.key = self.id()

    def host(self, suffix, **options):
        from shmlimit.django_cache import CounterCache

        self.addCleanup(shmlimit.destroy, SEGMENT + suffix)
        options = {"backend": URL, "deadline_ms": 5000, **options}
        return CounterCache(SEGMENT + suffix, {"TIMEOUT": 3600, "OPTIONS": options})

    def test_counts(self):
        """Django: hosts share what they add to a cache's values"""
        one, other = self.host(".1"), self.host(".2")
        self.assertTrue(one.add(self.key, 0))
        self.assertRaises(ValueError, other.incr, self.key)
        self.assertIs(other.add(self.key, 0), False)
        self.assertEqual([one.incr(self.key), other.incr(self.key), one.incr(self.key, 3), other.incr(self.key)], [1, 2, 5, 6])
        self.assertEqual([one.get(self.key), other.get(self.key), one.get("none")], [5, 6, None])
        self.assertEqual(other.get_or_set(self.key, 7), 6)
        self.assertTrue(3500 < one._count(self.key, None).ttl_ns / S <= 3600.001)

    def test_requests(self):
        """Django: what django-ratelimit does admits a limit's requests on all hosts together, to the request"""
        caches, admitted, limit = [self.host(".1"), self.host(".2")], [], 40

        def requests(cache):
            for _ in range(30):
                # as django_ratelimit.core.get_usage() does it
                count = 1 if cache.add(self.key, 1) else cache.incr(self.key)
                admitted.extend([count] * (count <= limit))

        together(*[lambda cache=cache: requests(cache) for cache in caches * 2])
        self.assertEqual(sorted(admitted), list(range(1, limit + 1)))

    def test_refusals(self):
        """Django: what hosts cannot do with a value they share says so, and changes nothing"""
        cache, key = self.host(".1"), self.key
        cache.add(key, 2)
        for call in (
            lambda: cache.set(key, 1),
            lambda: cache.delete(key),
            lambda: cache.touch(key),
            lambda: cache.decr(key),
            lambda: cache.clear(),
        ):
            self.assertRaisesRegex(NotImplementedError, "can only add", call)
        self.assertEqual(cache.incr(key), 3)

    def test_outage(self):
        """Django: without the backend nothing is added, or what on_failure says"""
        cache = self.host(".1", backend=NOBODY, deadline_ms=100)
        self.assertIs(cache.add(self.key, 1), False)
        self.assertRaises(ValueError, cache.incr, self.key)
        cache = self.host(".2", backend=NOBODY, deadline_ms=100, local_share=1000)
        self.assertTrue(cache.add(self.key, 1))
        self.assertEqual([cache.incr(self.key), cache.get(self.key)], [2, 2])

    def test_options(self):
        """Django: an option that is wrong is named when the cache is made"""
        from django.core.exceptions import ImproperlyConfigured
        from shmlimit.django_cache import CounterCache

        for options in {"local_share": 250}, {"backend": URL, "on_failure": "maybe"}:
            self.assertRaisesRegex(ImproperlyConfigured, "^CACHES: web: ", CounterCache, "web", {"OPTIONS": options})


class AgentLaws(unittest.TestCase):
    """A host with an agent. While the server stands still, requests that need it wait, and hold nothing up."""

    def setUp(self):
        self.addCleanup(shmlimit.destroy, SEGMENT)
        self.limiter = Limiter.create(SEGMENT, slots=64)
        self.addCleanup(self.limiter.close)
        self.limiter.rule_set("there", lease(2))
        self.limiter.rule_set("here", Rule(9, 1, 86400 * S))
        self.limiter.rule_set("places", Rule(8, 0, 86400 * S, algorithm=Algorithm.HOLD))
        options = ["--deadline", "10s", "--lease", "10s"]
        self.agent = subprocess.Popen(["shmlimit", "agent", SEGMENT, URL, *options], stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)
        while not status()["serving"] or status()["connections"] != 1:
            time.sleep(0.01)
        limits = [Limit(rule, user, local=rule != "there") for rule in ("here", "there", "places")]
        self.gate = Gate(SEGMENT, limits, deadline_ms=10000, backend=URL)
        self.local = Gate(SEGMENT, limits[:1])

    def end(self):
        self.agent.terminate()
        self.agent.wait()

    def left(self, name):
        return [self.limiter.peek(rule, name).remaining for rule in ("here", "places")]

    async def request(self, name):
        async def app(*_):
            pass

        scope = {"type": "http", "method": "GET", "user": name}
        await asgi.Middleware(app, self.gate)(scope, None, app)
        return scope["shmlimit.status"]

    async def waiting(self, n):
        while status()["waiting"] != n:
            await asyncio.sleep(0.001)

    def still(self):
        os.kill(BACKEND_PID, signal.SIGSTOP)
        self.addCleanup(os.kill, BACKEND_PID, signal.SIGCONT)

    def test_awaits(self):
        """asyncio: a request awaits the agent without a thread, and other requests are decided while it waits"""

        async def main():
            self.still()
            tasks = [asyncio.create_task(self.request(name)) for name in ("a", "b", "b", "b")]
            await self.waiting(2)
            self.assertEqual(threading.active_count(), 1)
            self.assertEqual(self.local.ask({"user": "a"}).status, "passed")
            self.assertEqual([task.done() for task in tasks], [False] * 4)
            os.kill(BACKEND_PID, signal.SIGCONT)
            return await asyncio.gather(*tasks)

        self.assertEqual(sorted(asyncio.run(main())), ["passed", "passed", "passed", "rejected"])
        self.assertEqual(self.left("b"), [7, 8])

    def test_cancelled(self):
        """asyncio: a task that is cancelled while it awaits the agent takes nothing"""

        async def main():
            self.still()
            task = asyncio.create_task(self.request("c"))
            await self.waiting(1)
            self.assertEqual(self.left("c"), [9, 7])
            task.cancel()
            await asyncio.wait([task])
            self.assertTrue(task.cancelled())
            self.assertEqual(self.left("c"), [9, 8])
            os.kill(BACKEND_PID, signal.SIGCONT)
            return [await self.request("c") for _ in range(3)]

        self.assertEqual(asyncio.run(main()), ["passed", "passed", "rejected"])

    def test_agent_ends(self):
        """asyncio: a request whose agent ends is asked for by a thread"""

        async def main():
            self.still()
            task = asyncio.create_task(self.request("d"))
            await self.waiting(1)
            self.end()
            os.kill(BACKEND_PID, signal.SIGCONT)
            return await task

        self.assertEqual(asyncio.run(main()), "passed")
        self.assertEqual(self.left("d"), [8, 8])
