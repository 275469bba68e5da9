"""The laws of calls that wait for their turn, and of the interfaces of other pacers.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import os
import signal
import sys
import threading
import time
import types
import unittest
from unittest import mock

from crew import children, together

import shmlimit
from shmlimit import Algorithm, Limiter, QueueFull, RateLimited, Rule, limit
from shmlimit.line import Lines
from shmlimit.shared import Shared

SEGMENT = os.environ["SEGMENT"]
HOUR_NS = 3600 * 10**9


class Laws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy)
        self.shared = Shared(SEGMENT, slots=64)

    def destroy(self):
        try:
            shmlimit.destroy(SEGMENT)
        except shmlimit.Error:
            pass

    def limit(self, text, rule="r", **options):
        return limit(text, rule=rule, segment=self.shared, **options)

    def owed_hours(self, paced, key=""):
        """Of a limit of one an hour: how many calls have been reserved, or taken."""
        return -(-paced.peek(key).reset_after_ns // HOUR_NS)


async def settle(done):
    while not done():
        await asyncio.sleep(0.001)


class Waiting(Laws):
    def queue(self, paced, *works):
        """Tasks that wait, each behind the last."""

        async def begin():
            tasks = []
            for i, work in enumerate(works, paced.queued + 1):
                tasks.append(asyncio.ensure_future(work))
                await settle(lambda: paced.queued == i)
            return tasks

        return begin()

    async def cancel(self, *tasks):
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def test_places(self):
        """calls that wait for a place have it in the order in which they came, threads and tasks alike"""
        paced, order, threads = self.limit("1 at once"), [], []

        def thread(i):
            with paced:
                order.append(i)

        async def task(i):
            async with paced:
                order.append(i)

        async def main():
            tasks = []
            for i in range(20):
                if i % 2:
                    tasks.append(asyncio.create_task(task(i)))
                else:
                    threads.append(threading.Thread(target=thread, args=(i,)))
                    threads[-1].start()
                await settle(lambda: paced.queued == i + 1)
            paced.__exit__(None, None, None)
            await asyncio.gather(*tasks)

        paced.__enter__()
        asyncio.run(main())
        for each in threads:
            each.join()
        self.assertEqual((order, paced.queued, paced.peek().remaining), (list(range(20)), 0, 1))

    def test_order(self):
        """tasks that wait for tokens have them in the order in which they came"""
        paced, order = self.limit("1000/s burst 1", rule="fast"), []

        async def task(i):
            async with paced.turn():
                order.append(i)

        async def main():
            await asyncio.gather(*map(task, range(20)))

        asyncio.run(main())
        self.assertEqual(order, list(range(20)))

    def test_leaves(self):
        """a task that is cancelled leaves what it had reserved to the next one, also to one that comes later"""
        paced = self.limit("1/hour burst 3", max_wait_s=1e6)

        async def main():
            paced.take(cost=3)
            first, second = await self.queue(paced, paced.acquire_async(), paced.acquire_async(cost=2))
            self.assertEqual(self.owed_hours(paced), 4, "the second one has no reservation")
            await self.cancel(first)
            await settle(lambda: self.owed_hours(paced) == 5)
            await self.cancel(second)
            self.assertEqual((self.owed_hours(paced), paced.queued), (5, 0))
            (third,) = await self.queue(paced, paced.acquire_async(cost=2))
            self.assertEqual(self.owed_hours(paced), 5, "it has what was left")
            await self.cancel(third)

        asyncio.run(main())

    def test_asynchronous_generator(self):
        """an asynchronous generator cannot wait when it is called, which would stop its event loop: it is refused"""

        async def items():
            yield 1

        for text in ("1 at once", "1/s"):
            with self.assertRaisesRegex(TypeError, "items: an asynchronous generator"):
                self.limit(text, rule="generator", wait=True)(items)

    def test_interrupted(self):
        """a thread whose wait ends by an exception leaves its turn to the next one"""
        paced = self.limit("1/hour", max_wait_s=1e6)

        def interrupt(*_):
            if paced.queued == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.01)
            else:
                raise KeyboardInterrupt

        paced.take()
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            self.assertRaises(KeyboardInterrupt, paced.acquire)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertEqual((self.owed_hours(paced), paced.queued), (2, 0))

        async def main():
            await self.cancel(*await self.queue(paced, paced.acquire_async()))

        asyncio.run(main())
        self.assertEqual(self.owed_hours(paced), 2)

    def test_unused(self):
        """a turn that was left passes unused: a call that comes after it waits for another one"""
        paced = self.limit("20/s burst 1", rule="short")

        async def main():
            paced.take()
            await self.cancel(*await self.queue(paced, paced.acquire_async()))
            await asyncio.sleep(0.06)
            begun = time.monotonic()
            for _ in range(3):
                await paced.acquire_async()
            self.assertGreaterEqual(time.monotonic() - begun, 2 / 20 - 0.005)

        asyncio.run(main())

    def test_queue(self):
        """one call more than may wait is refused, and has changed nothing"""
        paced = self.limit("1/hour", max_queue=2, max_wait_s=1e6)

        async def main():
            await paced.acquire_async()
            first, second = await self.queue(paced, paced.acquire_async(), paced.acquire_async())
            for _ in range(2):
                with self.assertRaises(QueueFull) as full:
                    await paced.acquire_async()
                self.assertRaises(QueueFull, paced.acquire)
            self.assertEqual(str(full.exception), "limit r: too many calls wait")
            await self.cancel(second)
            (third,) = await self.queue(paced, paced.acquire_async())
            await self.cancel(first, third)

        asyncio.run(main())
        self.assertEqual(self.owed_hours(paced), 2)
        nobody = self.limit("1/hour", rule="nobody", max_queue=0)
        nobody.acquire()
        for _ in range(3):
            self.assertRaises(QueueFull, nobody.acquire)
        self.assertEqual(self.owed_hours(nobody), 1)

    def test_closed_loop(self):
        """a task of a loop that was closed keeps no other waiting"""
        paced = self.limit("20/s burst 1", max_wait_s=60)
        paced.acquire()
        loop = asyncio.new_event_loop()

        async def begin():
            return asyncio.ensure_future(paced.acquire_async()), await asyncio.sleep(0)

        task = loop.run_until_complete(begin())
        self.assertEqual(paced.queued, 1)
        loop.close()
        paced.acquire()
        self.assertEqual(paced.queued, 0)
        del task

    def test_max_wait(self):
        """a call that would wait for too long behind others is refused at once, and one that waits for a place when that time is over"""
        paced, place = self.limit("1/hour", max_wait_s=2.5 * 3600), self.limit("1 at once", rule="p", max_wait_s=0.05)

        async def main():
            paced.take()
            tasks = await self.queue(paced, paced.acquire_async(), paced.acquire_async())
            with self.assertRaises(RateLimited) as refused:
                await paced.acquire_async()
            self.assertTrue(0 < refused.exception.retry_after_s <= 1800, refused.exception)
            await self.cancel(*tasks)
            async with place:
                with self.assertRaises(RateLimited):
                    await place.turn().__aenter__()

        asyncio.run(main())
        self.assertEqual((self.owed_hours(paced), place.peek().remaining), (2, 1))

    def test_window(self):
        """calls also wait for what cannot be reserved, and without max_wait_s for as long as it takes"""
        window = Rule(2, 0, 10**8, algorithm=Algorithm.WINDOW)
        paced, begun = self.limit(window, max_wait_s=None), time.monotonic()
        for _ in range(5):
            paced.acquire()
        self.assertGreaterEqual(time.monotonic() - begun, 0.19)
        slow = self.limit("1/day", rule="slow", max_wait_s=None)

        async def main():
            slow.take()
            await self.cancel(*await self.queue(slow, slow.acquire_async()))

        asyncio.run(main())
        self.assertRaises(RateLimited, paced.acquire, cost=3)

    def test_decorated(self):
        """with wait, functions of a limit of how many at once wait for a place, which they leave as they end"""
        running, most = [], []

        @self.limit("2 at once", rule="at.once", wait=True)
        def work(i):
            running.append(i)
            most.append(len(running))
            time.sleep(0.001)
            running.remove(i)

        @self.limit("2 at once", rule="at.once", wait=True)
        async def work_async(i):
            running.append(i)
            most.append(len(running))
            await asyncio.sleep(0.001)
            running.remove(i)

        together(*[lambda i=i: work(i) for i in range(20)])

        async def main():
            await asyncio.gather(*map(work_async, range(20)))

        asyncio.run(main())
        self.assertEqual((len(most), max(most), work.limit.peek().remaining), (40, 2, 2))
        self.assertRaises(ValueError, work.limit.acquire)
        self.assertRaises(ValueError, work.limit.turn, "k", 2)

    def test_killed(self):
        """the place of a process that was killed is had by a call that waits"""
        paced, (reads, writes) = self.limit("1 at once for 2 days"), os.pipe()
        pid = os.fork()
        if pid == 0:
            with paced:
                os.write(writes, b"x")
                signal.pause()
        os.read(reads, 1)
        os.close(reads)
        os.close(writes)
        os.kill(pid, signal.SIGKILL)
        with paced:
            self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)

    def test_forked(self):
        """a forked child does not wait behind its parent's calls"""
        paced = self.limit("1/hour", max_wait_s=1e6)

        async def main():
            paced.take()
            tasks = await self.queue(paced, paced.acquire_async())
            self.assertEqual(children(1, lambda: paced.queued), 0)
            await self.cancel(*tasks)

        asyncio.run(main())

    def test_wakes(self):
        """of a thousand tasks that wait no more than one is woken for a turn"""
        paced, steps, passed = self.limit("500/s burst 1", max_wait_s=None), [], []
        step = Lines._step

        def counted(lines, key, waiter):
            steps.append(waiter)
            return step(lines, key, waiter)

        async def task():
            await paced.acquire_async()
            passed.append(1)

        async def main():
            tasks = [asyncio.create_task(task()) for _ in range(1000)]
            await settle(lambda: paced.queued + len(passed) == 1000)
            steps.clear()
            before = len(passed)
            await settle(lambda: len(passed) >= before + 100)
            # One as it is the first, and one as it is its turn, or two where a timer ended early.
            self.assertLessEqual(len(steps), 3 * (len(passed) - before + 1))
            await self.cancel(*tasks)

        with mock.patch.object(Lines, "_step", counted):
            asyncio.run(main())

    def test_processes(self):
        """forty processes, of which five are killed, begin calls no faster than the limit, and go on"""
        per_s, calls, (reads, writes) = 20, 61, os.pipe()
        paced, begun, pids = self.limit(f"{per_s}/s burst 1", max_wait_s=None), time.monotonic(), []
        self.shared.limiter()
        for _ in range(40):
            pids.append(os.fork())
            if pids[-1] == 0:
                try:
                    while True:
                        paced.acquire()
                        os.write(writes, b"%15.6f\n" % time.monotonic())
                finally:
                    os._exit(1)
        times = []
        with os.fdopen(reads, "rb", 0) as pipe:
            while len(times) < calls:
                times.append(float(pipe.read(16)))
                if len(times) % 10 == 0 and len(pids) > 35:
                    pid = pids.pop()
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        os.close(writes)
        self.assertEqual(len(pids), 35)
        for n, at in enumerate(sorted(times)):
            self.assertGreaterEqual(at - begun, n / per_s - 0.005, f"call {n}")


class Others(Laws):
    def test_aiolimiter(self):
        """AsyncLimiter does what aiolimiter's documentation says, over all processes"""
        from shmlimit.aiolimiter import AsyncLimiter

        def make(*numbers):
            return AsyncLimiter(*numbers, rule="aio", segment=self.shared)

        async def fill(n):
            for _ in range(n):
                async with make(4, 3600):
                    pass
            return n

        async def main():
            limiter = make(4, 3600)
            self.assertEqual((limiter.max_rate, limiter.time_period), (4, 3600))
            self.assertEqual([limiter.has_capacity(n) for n in (4, 42)], [True, False])
            with self.assertRaises(ValueError):
                await limiter.acquire(5)
            children(1, lambda: asyncio.run(fill(2)))
            await limiter.acquire(2)
            self.assertFalse(limiter.has_capacity())
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(limiter.acquire(), 0.01)
            self.assertAlmostEqual(limiter._limit.peek().reset_after_ns / 1e9, 4500, delta=300)

        asyncio.run(main())
        fast = AsyncLimiter(1, 0.05, rule="fast", segment=self.shared)

        async def three():
            begun = time.monotonic()
            await asyncio.gather(*(fast.acquire() for _ in range(3)))
            self.assertGreaterEqual(time.monotonic() - begun, 0.09)

        asyncio.run(three())
        asyncio.run(three())
        for wrong in (0,), (1.5,):
            self.assertRaises(ValueError, make, *wrong)
        self.assertRaises(ValueError, fast.has_capacity, 0.5)

    def test_aiolimiter_names(self):
        """without a name, two AsyncLimiters that a module makes are two limits"""
        from shmlimit.aiolimiter import AsyncLimiter

        names = "one = AsyncLimiter(1, 3600, segment=shared)\ntwo = AsyncLimiter(1, 3600, segment=shared)"
        module = {"__name__": __name__, "AsyncLimiter": AsyncLimiter, "shared": self.shared}
        exec(names, module)
        asyncio.run(module["one"].acquire())
        self.assertEqual([module[name].has_capacity() for name in ("one", "two")], [False, True])

    def test_ratelimit(self):
        """limits and sleep_and_retry do what ratelimit's documentation says, over all processes"""
        from shmlimit.ratelimit import RateLimitException, limits, rate_limited, sleep_and_retry

        @limits(calls=40, period=3600, rule="hourly", segment=self.shared)
        def call():
            """Calls."""
            return 1

        def calls():
            done = 0
            for _ in range(20):
                try:
                    done += call()
                except RateLimitException:
                    pass
            return done

        self.assertEqual((children(4, calls), call.__doc__), (40, "Calls."))
        with self.assertRaises(RateLimitException) as refused:
            call()
        self.assertTrue(0 < refused.exception.period_remaining <= 3601)
        quiet = limits(calls=0.5, period=3600, raise_on_limit=False, segment=self.shared)(lambda: "called")
        self.assertEqual([quiet(), quiet()], ["called", None])
        self.assertIs(limits, rate_limited)
        slept, begun = sleep_and_retry(limits(calls=2, period=0.1, segment=self.shared)(lambda: 1)), time.monotonic()
        self.assertEqual(sum(slept() for _ in range(5)), 5)
        self.assertGreaterEqual(time.monotonic() - begun, 0.19)

    def test_pyrate_limiter(self):
        """a bucket takes an item from all of its rates or from none, over all processes, and says how long to wait"""
        try:
            import pyrate_limiter as original
        except ImportError:
            original = stand_in()
        with mock.patch.dict(sys.modules, {"pyrate_limiter": original}):
            from shmlimit.pyrate_limiter import Bucket
        Rate, RateItem = original.Rate, original.RateItem

        def make(*rates):
            return Bucket(rates, rule="api", segment=self.shared)

        def put(bucket, weight=1):
            return bucket.put(RateItem("n", bucket.now(), weight))

        rates = Rate(6, 3600000), Rate(4, 60000)
        self.assertEqual(children(2, lambda: sum(put(make(*rates)) for _ in range(3))), 4)
        bucket = make(*rates)
        self.assertEqual((put(bucket), str(bucket.failing_rate), bucket.count()), (False, str(rates[1]), 4))
        item = RateItem("n", bucket.now())
        self.assertTrue(0 < bucket.waiting(item) <= 60001, bucket.waiting(item))
        self.assertEqual(bucket.waiting(RateItem("n", bucket.now(), 5)), -1)
        self.assertTrue(-60000 < bucket.peek(3).timestamp - bucket.now() <= 0)
        self.assertEqual((bucket.peek(4), bucket.leak(bucket.now()), put(bucket, 0)), (None, 0, True))
        bucket.flush()
        self.assertEqual((bucket.count(), bucket.failing_rate, bucket.waiting(item)), (0, None, 0))
        self.assertEqual([put(bucket, 3), put(bucket, 2), put(bucket), bucket.count()], [True, False, True, 4])
        with Limiter(SEGMENT) as limiter:
            limiter.rule_remove("api.4.60000")
        self.assertEqual([put(bucket, 2), put(bucket)], [True, False])
        self.assertEqual(str(bucket.failing_rate), str(rates[0]))


def stand_in():
    """What a bucket needs of pyrate-limiter where that is not installed."""

    class Rate:
        def __init__(self, limit, interval):
            self.limit, self.interval = limit, interval

    class RateItem:
        def __init__(self, name, timestamp, weight=1):
            self.name, self.timestamp, self.weight = name, timestamp, weight

    class AbstractBucket:
        def now(self):
            return int(time.monotonic() * 1000)

    module = types.ModuleType("pyrate_limiter")
    module.Rate, module.RateItem, module.AbstractBucket = Rate, RateItem, AbstractBucket
    return module
