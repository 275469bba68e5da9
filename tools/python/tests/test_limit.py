"""The laws of shmlimit.limit, and of the segment that it shares with the adapters.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

from crew import children, together

import shmlimit
from shmlimit import Algorithm, Gate, Limit, Limiter, RateLimited, Rule, limit, rate
from shmlimit.shared import Shared, rule_name

SEGMENT = os.environ["SEGMENT"]
HOUR_NS = 3600 * 10**9


class LimitLaws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy)
        self.shared = Shared(SEGMENT, slots=64)

    def destroy(self, name=SEGMENT):
        try:
            shmlimit.destroy(name)
        except shmlimit.Error:
            pass

    def limit(self, text, **options):
        return limit(text, segment=self.shared, **options)

    def refused(self, call, *arguments):
        with self.assertRaises(RateLimited) as caught:
            call(*arguments)
        return caught.exception

    def test_function(self):
        """a limit on a function lets the capacity pass, for each key, and then says when the next call fits"""

        @self.limit("2/hour", key=lambda user, **_: user)
        def hello(user, *, loud=False):
            """Says hello."""
            return user.upper() if loud else user

        self.assertEqual([hello("a"), hello("a", loud=True), hello("b"), hello.__doc__], ["a", "A", "b", "Says hello."])
        self.assertTrue(1700 < self.refused(hello, "a").retry_after_s <= 1800)
        with Limiter(SEGMENT) as limiter:
            self.assertRegex(limiter.rules()[0], r"^\S*t_function\._locals_\.hello@[0-9a-f]{10}$")

    def test_held(self):
        """a limit of how many at once counts a call until it ends, however it ends"""

        @self.limit("2 at once for 2 days", key=lambda depth: "k")
        def nested(depth):
            return nested(depth - 1) if depth else "end"

        self.assertEqual(nested(1), "end")
        self.assertTrue(0 < self.refused(nested, 2).retry_after_s <= 2 * 86400 + 1)
        self.assertEqual(nested(1), "end", "a denied call left the places of those that it was called from")
        self.assertRaises(ValueError, nested.limit.take)
        self.assertRaises(ValueError, self.limit, "2 at once", cost=2)

    def test_held_long(self):
        """a call counts for as long as it takes, unless its limit says how long at most"""

        def nested(depth):
            time.sleep(0.005)
            return self_[0](depth - 1) if depth else "end"

        self_ = [None]
        self_[0] = self.limit("1 at once for 1ms", key="k", rule="long")(nested)
        self.refused(self_[0], 1)
        self.assertEqual(self_[0](0), "end")
        self_[0] = self.limit("1 at once at most 1ms each", key="k", rule="cut")(nested)
        self.assertEqual(self_[0](1), "end")

    def test_held_async(self):
        """a limit of how many at once counts a coroutine until it ends"""

        @self.limit("1 at once for 2 days")
        async def wait(event):
            await event.wait()

        async def main():
            event = asyncio.Event()
            task = asyncio.create_task(wait(event))
            await asyncio.sleep(0)
            with self.assertRaises(RateLimited):
                await wait(event)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            event.set()
            await wait(event)

        asyncio.run(main())

    def one(self, function):
        """The function, one at once."""
        return self.limit("1 at once for 2 days", key="k", rule="one")(function)

    def free(self):
        with Limiter(SEGMENT) as limiter:
            return limiter.peek("one", "k").remaining

    def test_held_generator(self):
        """a limit of how many at once counts a generator from its call until it is exhausted, closed, failed or collected"""

        def items(n=3):
            try:
                got = yield 0
                for i in range(1, n):
                    got = yield (i, got)
                return "end"
            except KeyError:
                yield "caught"

        for close in (
            lambda g: self.assertEqual(list(g), [0, (1, None), (2, None)]),
            lambda g: g.close(),
            lambda g: (next(g), g.close()),
            lambda g: next(g),
            lambda g: None,
            lambda g: (next(g), self.assertRaises(ZeroDivisionError, g.throw, ZeroDivisionError())),
            lambda g: (next(g), self.assertEqual((g.send("s"), g.throw(KeyError())), ((1, "s"), "caught"))),
        ):
            generators = [self.one(items)()]
            with self.assertRaises(RateLimited):
                self.limit("1 at once for 2 days", key="k", rule="one")(items)()
            self.assertEqual(self.free(), 0)
            close(generators.pop())
            self.assertEqual(self.free(), 1)
        self.assertRaises(TypeError, self.one(items), 1, 2)
        self.assertEqual(self.free(), 1)

    def test_held_async_generator(self):
        """a limit of how many at once counts an async generator from its call until it is exhausted, closed, failed, cancelled or collected"""

        async def items(n=3):
            try:
                got = yield 0
                for i in range(1, n):
                    await asyncio.sleep(0)
                    got = yield (i, got)
            except KeyError:
                yield "caught"
            finally:
                await asyncio.sleep(0)

        async def exhausted(g):
            self.assertEqual([item async for item in g], [0, (1, None), (2, None)])

        async def begun(g):
            await g.__anext__()

        async def closed(g):
            await begun(g)
            await g.aclose()

        async def thrown(g):
            await begun(g)
            with self.assertRaises(ZeroDivisionError):
                await g.athrow(ZeroDivisionError())

        async def sent(g):
            await begun(g)
            self.assertEqual((await g.asend("s"), await g.athrow(KeyError())), ((1, "s"), "caught"))

        async def cancelled(g):
            await begun(g)
            task = asyncio.create_task(g.__anext__())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        async def main():
            for end in exhausted, begun, closed, thrown, sent, cancelled, lambda g: g.aclose(), lambda g: asyncio.sleep(0):
                generators = [self.one(items)()]
                with self.assertRaises(RateLimited):
                    self.limit("1 at once for 2 days", key="k", rule="one")(items)()
                self.assertEqual(self.free(), 0)
                await end(generators.pop())
                # Where it was collected, the event loop closes it.
                for _ in range(10):
                    await asyncio.sleep(0)
                self.assertEqual(self.free(), 1, end)

        asyncio.run(main())
        generator = self.one(items)()
        self.assertEqual(self.free(), 0)
        del generator
        self.assertEqual(self.free(), 1, "without an event loop")

    def test_held_awaitable(self):
        """a limit of how many at once counts what a plain function returns to be awaited until that has ended"""

        async def work(event):
            await event.wait()
            return "done"

        async def main():
            event = asyncio.Event()
            task = asyncio.ensure_future(self.one(lambda event: work(event))(event))
            await asyncio.sleep(0)
            self.assertEqual(self.free(), 0)
            event.set()
            self.assertEqual((await task, self.free()), ("done", 1))

        asyncio.run(main())

    def test_coroutine(self):
        """a limit on a coroutine function does the same"""

        @self.limit("1/hour")
        async def hello():
            return "hello"

        self.assertEqual(asyncio.run(hello()), "hello")
        self.refused(lambda: asyncio.run(hello()))

    def test_never(self):
        """what costs more than the capacity never fits"""
        self.assertIsNone(self.refused(self.limit("1/hour", rule="r").take, "k", 2).retry_after_s)

    def test_waits(self):
        """with wait a call waits until it fits, and is refused where that takes longer than it may"""
        calls = []
        quick = self.limit("20/s burst 1", wait=True, rule="quick")(lambda: calls.append(1))
        for _ in range(3):
            quick()

        async def pace():
            for _ in range(3):
                await quick.limit.acquire_async()

        asyncio.run(pace())
        self.assertEqual(len(calls), 3)
        slow = self.limit("1/hour", rule="slow", max_wait_s=60)
        slow.acquire("k")
        self.refused(slow.acquire, "k")
        self.assertEqual(self.shared.limiter().peek("slow", "k").remaining, 0)

    def test_cancelled(self):
        """whichever of the calls that wait are cancelled, a process has reserved one turn"""
        slow = self.limit("1/hour", rule="slow", max_wait_s=86400 * 30)

        def owed():
            return -(-slow.peek("k").reset_after_ns // HOUR_NS)

        async def come_and_go():
            waiting, came = [], False
            await slow.acquire_async("k")
            for _ in range(300):
                if waiting and random.random() < 0.5:
                    task = waiting.pop(random.randrange(len(waiting)))
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                else:
                    waiting.append(asyncio.ensure_future(slow.acquire_async("k")))
                    came = True
                    await asyncio.sleep(0)
                self.assertEqual((owed(), slow.queued), (1 + came, len(waiting)))
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

        asyncio.run(come_and_go())
        short = self.limit("100/s burst 1", rule="short")

        async def leave():
            for i in range(60):
                short.take(f"passed{i}")
                task = asyncio.ensure_future(short.acquire_async(f"passed{i}"))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await asyncio.sleep(0.001)
            self.assertLess(len(short._lines._lines), 60, "turns that have passed are forgotten")

        asyncio.run(leave())

    def test_again(self):
        """a segment that is destroyed is created again, and a rule that is removed is set again"""
        once = self.limit("1/hour", rule="r")
        once.take()
        with Limiter(SEGMENT) as limiter:
            limiter.rule_remove("r")
        once.take()
        self.refused(once.take)
        self.destroy()
        self.limit("1/hour", rule="new").take()
        once.take()
        self.refused(once.take)

    def test_changed(self):
        """a program that starts with another limit changes it, also to another algorithm; what an operator changed since stays"""

        def calls(text):
            start = limit(text, segment=SEGMENT, rule="r")
            return sum(self.passes(start) for _ in range(9))

        self.assertEqual([calls("1/day"), calls("1/day")], [1, 0])
        while not calls("1000/s"):
            pass
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.rule_get("r").capacity, 1000)
            limiter.rule_set("r", Rule(3, 3, 24 * HOUR_NS))
            limiter.reset()
            self.assertEqual([calls("1000/s"), limiter.rule_get("r").capacity], [3, 3])
            limiter.rule_remove("r")
            limiter.rule_set("r", Rule(3, 0, 24 * HOUR_NS, algorithm=Algorithm.COUNTER))
            self.assertEqual([calls("7/day"), limiter.rule_get("r").algorithm], [7, Algorithm.FUNNEL])

    def test_refused(self):
        """where a new limit cannot be set, the old one stays in force, which is logged once, and the new one is tried again"""
        limit("2/day", segment=self.shared, rule="r").take("other")
        wide = self.limit("1000001/day", rule="r", max_wait_s=1e10)
        with self.assertLogs("shmlimit", "ERROR") as logged:
            self.assertEqual(sum(self.passes(wide) for _ in range(3)), 2)
            self.shared._look_at = 0
            self.assertFalse(self.passes(wide))
        self.assertEqual(len(logged.output), 1, logged.output)
        self.assertIn("rule r: its new limit is refused, and the old one stays: ", logged.output[0])
        name = self.shared.name

        def told(status):
            run = subprocess.run(["shmlimit", "check", name, "--interval", "1ms"], capture_output=True, text=True)
            self.assertEqual(run.returncode, status, run.stdout)
            shows = (["rule", "show", name, "r"], ["metrics", name])
            return run.stdout + "".join(subprocess.run(["shmlimit", *show], capture_output=True, text=True).stdout for show in shows)

        gauge = f'\nshmlimit_rule_change_refused_timestamp_seconds{{segment="{name}",rule="r"}} '
        text = told(1)
        self.assertIn(f"WARNING - segment {name}: rule r was refused another limit and keeps the old one, ", text)
        self.assertRegex(text, r"\nrefused: another limit, \w+ ago: this one is in force\n")
        self.assertIn(gauge + "1", text)
        with Limiter(name) as limiter:
            limiter.rule_set("r", limiter.rule_get("r"))
        text = told(0)
        self.assertNotIn("keeps the old one", text)
        self.assertNotIn("\nrefused: ", text)
        self.assertIn(gauge + "0\n", text)

    def test_apart(self):
        """two programs whose functions have the same names do not share a rule; with rule= they do"""
        script = "import shmlimit\n@shmlimit.limit('1/day', segment=%r, **dict(%s))\ndef fetch(): pass\nfetch()\n"
        for named, codes in ("", [0, 0, 1, 1]), ("rule='mine'", [0, 1, 1, 1]):
            self.destroy()
            with tempfile.TemporaryDirectory() as folder:
                for program in "one", "two":
                    os.mkdir(f"{folder}/{program}")
                    with open(f"{folder}/{program}/main.py", "w") as file:
                        file.write(script % (SEGMENT, named))
                self.assertEqual(
                    [
                        subprocess.run([sys.executable, f"{folder}/{program}/main.py"], stderr=subprocess.DEVNULL).returncode
                        for program in ("one", "two", "one", "two")
                    ],
                    codes,
                )

    def test_deployed(self):
        """a release of a program has the rules of the release before it, and another program has its own"""
        script = f"import shmlimit\n@shmlimit.limit('1/day', segment={SEGMENT!r})\ndef fetch(): pass\nfetch()\n"
        with tempfile.TemporaryDirectory() as folder:

            def starts(path, current=None):
                os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
                with open(f"{folder}/{path}", "w") as file:
                    file.write(script)
                if current is not None:
                    link, target = f"{folder}/{current[0]}", current[1]
                    if os.path.islink(link):
                        os.remove(link)
                    os.symlink(target, link)
                return subprocess.run([sys.executable, f"{folder}/{path}"], stderr=subprocess.DEVNULL).returncode

            for told, wanted in (
                (starts("a/releases/1/src/main.py"), 0),
                (starts("a/releases/20261126T1850/src/main.py"), 1),
                (starts("a/current/src/main.py"), 1),
                (starts("b/releases/1/src/main.py"), 0),
                (starts("c/app-1.0/main.py", ("c/current", "app-1.0")), 0),
                (starts("c/app-1.1/main.py"), 1),
                (starts("c/app-1.2/main.py", ("c/current", "app-1.2")), 1),
                (starts("c/current/main.py"), 1),
                (starts("c/other/main.py"), 0),
                (starts("d/customer-1/main.py"), 0),
                (starts("d/customer-2/main.py"), 0),
                (starts("e/customer-1/main.py", ("e/current", "../a/releases/1")), 0),
                (starts("e/customer-2/main.py"), 0),
            ):
                self.assertEqual(told, wanted)
            with Limiter(SEGMENT) as limiter:
                self.assertEqual(len(limiter.rules()), 8)

    def passes(self, limited):
        try:
            limited.take("k")
        except RateLimited:
            return False
        return True

    def test_race(self):
        """processes and threads that create the segment at once share it"""
        once = limit("30/hour", rule="r", segment=SEGMENT)

        def take():
            return sum(self.passes(once) for _ in range(10))

        self.assertEqual(children(4, lambda: sum(together(take, take))), 30)

    def test_keys(self):
        """a key of any length and of any characters is one"""
        once = self.limit("1/hour", rule="r")
        for key in "", "x" * 2000, "x" * 2001, b"\0\0", "\udcff", "\ud800\udcfe", bytearray(b"array"), memoryview(b"view"):
            once.take(key)
            self.refused(once.take, key)

    def test_names(self):
        """any text makes a rule's name"""
        for text in "", "a b/c", "x" * 100, "\u00e9", "10/s burst 20":
            self.shared.take(rule_name(text), Rule(1, 1, HOUR_NS), "k")

    def test_blocked(self):
        """a decorator with a limit of 0 denies each call for ever, and an unlimited one none"""
        for text, allowed in ("0/s", 0), ("block", 0), ("unlimited", 50), ("off", 50):
            for wait in False, True:
                function = limit(text, segment=self.shared, wait=wait, rule=f"b.{text}.{wait}")(lambda: 1)
                count = 0
                for _ in range(50):
                    try:
                        count += function()
                    except RateLimited as error:
                        self.assertIsNone(error.retry_after_s)
                self.assertEqual(count, allowed, text)

    def test_throttle(self):
        """a throttle of Django REST framework reads each rate, and takes 0 and unlimited for what they say"""
        try:
            import django
            from django.conf import settings
            import rest_framework  # noqa: F401
        except ImportError:
            self.skipTest("no Django REST framework")
        settings.configure(SHMLIMIT={"name": SEGMENT}, REST_FRAMEWORK={"DEFAULT_THROTTLE_RATES": {}})
        django.setup()
        from shmlimit import drf

        class Throttle(drf.RateThrottle):
            scope = "x"

            def get_cache_key(self, request, view):
                return "k"

        for text, allowed in ("0/min", 0), ("block", 0), ("unlimited", 30), ("5/m", 5), ("10/h burst 20", 20), ("9/d strict", 5):
            Throttle.rate = text
            throttle = Throttle()
            self.assertEqual(sum(throttle.allow_request(None, None) for _ in range(30)), allowed, text)
            if allowed == 0:
                self.assertEqual((throttle.num_requests, throttle.wait()), (0, None))
        for text in "5/minut", "20 at once", "5":
            Throttle.rate = text
            self.assertRaises(ValueError, Throttle)
        self.throttle_of_customers(drf)
        self.throttle_of_hosts(drf, settings, Throttle)

    def throttle_of_customers(self, drf):
        """10,000 customers, each asked four times with the rate of its plan, once in each of four processes. None has four: the
        last of four processes is denied, if it read its clock before the first one did and decides after the others."""
        plans = 0, 1, 2, 3, 5, 6, 7

        class Throttle(drf.RateThrottle):
            scope = "plan"
            THROTTLE_RATES = {"plan": None}

            def get_cache_key(self, request, view):
                return str(request)

            def request_rate(self, request, view):
                return f"{plans[request % 7]}/day"

        def ask():
            return bytes(Throttle().allow_request(n, None) for n in range(10000))

        self.destroy()
        self.shared = Shared(SEGMENT, slots=16384)
        self.shared.limiter()
        pipes = [os.pipe() for _ in range(4)]
        for _, writes in pipes:
            if os.fork() == 0:
                code = 1
                try:
                    with os.fdopen(writes, "wb") as pipe:
                        pipe.write(ask())
                    code = 0
                except BaseException as error:
                    print(f"# {error!r}", flush=True)
                finally:
                    os._exit(code)
            os.close(writes)
        told = []
        for reads, _ in pipes:
            with os.fdopen(reads, "rb") as pipe:
                told.append(pipe.read())
            self.assertEqual(os.wait()[1], 0)
        self.assertEqual([sum(each) for each in zip(*told)], [min(plans[n % 7], 4) for n in range(10000)])

    def throttle_of_hosts(self, drf, settings, throttle):
        """With a backend that is not there: what on_failure says, not what this host's funnel would."""
        throttle.rate = "5/m"
        for options, allowed in ({}, 0), ({"on_failure": "allow"}, 30), ({"local_share": 400}, 2):
            settings.SHMLIMIT = {"name": SEGMENT, "backend": "unix:///nobody", **options}
            drf._shared.cache_clear()
            throttle.get_cache_key = lambda self, request, view, key=str(options): key
            self.assertEqual(sum(throttle().allow_request(None, None) for _ in range(30)), allowed, options)
        throttle.request_rate = lambda self, request, view: "5/m"
        self.assertRaises(drf.ImproperlyConfigured, throttle().allow_request, None, None)
        for wrong in {"backend": "unix:///nobody", "on_failure": "perhaps"}, {"local_share": 400}, {"bakend": "redis://h"}:
            settings.SHMLIMIT = {"name": SEGMENT, **wrong}
            drf._shared.cache_clear()
            self.assertRaises((ValueError, TypeError), throttle().allow_request, None, None)

    def test_rates(self):
        """a rate means to Python what it means to a gate, and what is none is none to both"""
        Limiter.create(SEGMENT, slots=64).close()
        for i, text in enumerate(
            "5/minute|100 per hour|10/s burst 20|10r/s|1 / 3 days|2K/h|1M per 2weeks burst=3M| 7/month |1/Y|3 PER min BURST 9|"
            "1k/s|1/1.5s|5/1m30s|9/h strict|block|unlimited|off|0|5/minut|20 at once| 3  AT ONCE FOR 2days |1K at once for minute|2 at once for 5|2 at once for|0 at once|2 at onces|2 at oncefor 5m|3at once|1/s at once|20 at once at most 5 minutes each|"
            "0/s|5|5/|/s|5/fortnight|5 a day|-1/s|1/0s|1/s burst 0|1/s burst|1/sburst 3|1.5/s|5/s 3|x|5m/s|1/s burst 3 4".split("|")
        ):
            try:
                wanted = rate.parse(text)
            except ValueError:
                self.assertRaises(shmlimit.Error, Gate, SEGMENT, [Limit("r", str, rate=text)])
                continue
            Gate(SEGMENT, [Limit(f"r{i}", str, rate=text)]).ask("k")
            with Limiter(SEGMENT) as limiter:
                self.assertEqual(limiter.rule_get(f"r{i}"), wanted, text)
