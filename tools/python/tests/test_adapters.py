"""The laws of the adapters for limits and Django, in one process. frameworks.sh has their servers.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import os
import time
import unittest

import shmlimit
from shmlimit import Limiter

SEGMENT = os.environ["SEGMENT"]


class Laws(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.destroy, SEGMENT)

    def destroy(self, name):
        try:
            shmlimit.destroy(name)
        except shmlimit.Error:
            pass


class LimitsLaws(Laws):
    def setUp(self):
        super().setUp()
        import limits
        import limits.aio.strategies
        import limits.strategies

        import shmlimit.limits

        self.limits = limits
        self.item = limits.parse("5/hour")

    def storage(self, **options):
        return self.limits.storage.storage_from_string(f"shmlimit://{SEGMENT}", **options)

    def hits(self, strategy, storage):
        limiter = self.limits.strategies.STRATEGIES[strategy](storage)
        hits = [limiter.hit(self.item, "user") for _ in range(6)]
        self.other = self.storage()
        again = self.limits.strategies.STRATEGIES[strategy](self.other)
        reset, remaining = again.get_window_stats(self.item, "user")
        return limiter, hits, [again.hit(self.item, "user"), again.hit(self.item, "other"), remaining], reset - time.time()

    def strategy(self, name, least_s):
        storage = self.storage()
        limiter, hits, others, reset_s = self.hits(name, storage)
        self.assertEqual((hits, others), ([True] * 5 + [False], [False, True, 0]))
        self.assertTrue(least_s <= reset_s <= 3601, reset_s)
        self.assertEqual([limiter.test(self.item, "user"), limiter.test(self.item, "new")], [False, True])
        limiter.clear(self.item, "user")
        self.assertTrue(limiter.hit(self.item, "user", cost=5))
        self.assertFalse(limiter.hit(self.item, "big", cost=6))
        self.assertGreaterEqual(storage.reset(), 1, "the number of keys that were reset")
        self.assertTrue(limiter.hit(self.item, "user", cost=5))

    def test_fixed(self):
        """limits: a fixed window is shared, expires as a whole, and is cleared by key and altogether"""
        self.strategy("fixed-window", 3000)
        with Limiter(SEGMENT) as limiter:
            self.assertEqual(limiter.rules(), ["limits"])

    def test_moving(self):
        """limits: a moving window is shared, and a place is free when the oldest request leaves it"""
        self.strategy("moving-window", 3000)

    def test_funnel(self):
        """limits: the strategy funnel gives requests back one by one"""
        self.strategy("funnel", 600)

    def test_async(self):
        """limits: the asynchronous storage shares the limits of the other"""
        storage = self.limits.storage.storage_from_string(f"async+shmlimit://{SEGMENT}")

        async def hits(strategy):
            limiter = self.limits.aio.strategies.STRATEGIES[strategy](storage)
            hits = [await limiter.hit(self.item, "user") for _ in range(6)]
            reset, remaining = await limiter.get_window_stats(self.item, "user")
            stats = (remaining, reset > time.time(), await limiter.test(self.item, "user"), await storage.check())
            await limiter.clear(self.item, "user")
            return hits, stats, await limiter.test(self.item, "user")

        for strategy in "fixed-window", "moving-window", "funnel", "token-bucket":
            self.assertEqual(asyncio.run(hits(strategy)), ([True] * 5 + [False], (0, True, False, True), True))
        asyncio.run(storage.reset())

    def test_large(self):
        """limits: a count beyond what a counter holds is over every limit"""
        storage = self.storage()
        self.assertEqual(storage.incr("k", 3600, amount=2**26 - 1), 2**26 - 1)
        self.assertGreater(storage.incr("k", 3600), 2**60)
        self.assertEqual(storage.get("k"), 2**26 - 1)

    def test_windows(self):
        """limits: a moving window of any size is exact; one larger than any says so"""
        storage = self.storage()
        moving = self.limits.strategies.MovingWindowRateLimiter(storage)
        for amount in 1, 128, 129, 1000:
            item = self.limits.RateLimitItemPerHour(amount)
            self.assertEqual([moving.hit(item, "k", cost=amount), moving.hit(item, "k")], [True, False], amount)
            self.assertEqual(moving.get_window_stats(item, "k")[1], 0)
        self.assertGreaterEqual(self.storage().reset(), 4, "windows of all sizes were reset")
        self.assertTrue(moving.hit(self.limits.RateLimitItemPerHour(1000), "k"))
        with self.assertRaisesRegex(self.limits.errors.ConfigurationError, "^65537 per 3600"):
            moving.hit(self.limits.RateLimitItemPerHour(65537), "k")

    def test_periods(self):
        """limits: a period may be of years, and a limit may be 0"""
        for name, strategy in self.limits.strategies.STRATEGIES.items():
            if "sliding" in name:
                continue
            storage = self.storage()
            limiter = strategy(storage)
            years = self.limits.parse("2 per 2 year")
            self.assertEqual([limiter.hit(years, name) for _ in range(3)], [True, True, False], name)
            self.assertGreater(limiter.get_window_stats(years, name)[0], time.time() + 0.9 * 365 * 86400)
            none = self.limits.parse("0/minute")
            self.assertEqual([limiter.hit(none, "k"), limiter.test(none, "k"), limiter.get_window_stats(none, "k")[1]], [False, False, 0])
        with self.assertRaisesRegex(self.limits.errors.ConfigurationError, "10 years"):
            self.storage().incr("k", 11 * 366 * 86400)

    def test_reset_time(self):
        """limits: the reset time is that of limits' own storages"""
        own, ours = self.limits.storage.storage_from_string("memory://"), self.storage()
        for strategy in self.limits.strategies.FixedWindowRateLimiter, self.limits.strategies.MovingWindowRateLimiter:
            while True:
                before = int(time.time())
                told = []
                for storage in own, ours:
                    limiter = strategy(storage)
                    limiter.clear(self.item, "k")
                    limiter.hit(self.item, "k")
                    told.append(limiter.get_window_stats(self.item, "k")[0])
                if int(time.time() + 0.01) == before:
                    break
            self.assertAlmostEqual(told[0], told[1], delta=0.1)

    def test_options(self):
        """limits: the segment has the mode and the slots that the options say; an unknown one is refused, as is a missing name"""
        self.assertTrue(self.storage(mode="0640").check())
        self.destroy(SEGMENT)
        self.assertTrue(self.limits.storage.storage_from_string(f"shmlimit://{SEGMENT}?mode=0640", slots=64).check())
        with Limiter(SEGMENT) as limiter:
            self.assertEqual((limiter.info().mode, limiter.info().slots), (0o640, 64))
        for uri in "shmlimit://", f"shmlimit://{SEGMENT}?slot=64", f"shmlimit://{SEGMENT}?slots=many", f"shmlimit://{SEGMENT}?mode":
            for scheme in "", "async+":
                with self.assertRaises(self.limits.errors.ConfigurationError):
                    self.limits.storage.storage_from_string(scheme + uri)

    def test_backend_options(self):
        """limits: what cannot be shared by hosts is refused at start, and no message has the backend's password"""
        where = f"shmlimit://{SEGMENT}"
        for query in ("on_failure=deny", "local_share=400", "backend_prefix=a", "backend=", "backend=redis://h&backed=1", "bakend=redis://h",
                      "backend=redis://h&on_failure=perhaps", "backend=redis://h&on_failure=local", "backend=redis://h&local_share=0.5", "backend=redis://h&local_share=1001",
                      "backend=redis://h&local_share=1&on_failure=allow", "backend=redis://:secret@h&deadline_ms=soon", "backend=redis://:secret@h:99999", "backend=redis://:secret@h/first",
                      "backend=redis://h&deadline_ms=11000"):  # fmt: skip
            for scheme in "", "async+":
                with self.assertRaises(self.limits.errors.ConfigurationError) as raised:
                    self.limits.storage.storage_from_string(f"{scheme}{where}?{query}")
                self.assertNotIn("secret", str(raised.exception))
        storage = self.storage(backend="unix:///nobody")
        with self.assertRaises(NotImplementedError):
            self.limits.strategies.MovingWindowRateLimiter(storage)
        with self.assertRaisesRegex(self.limits.errors.ConfigurationError, "elastic"):
            storage.incr("key", 60, True)
        self.assertFalse(self.limits.strategies.FixedWindowRateLimiter(storage).hit(self.item, "user"))
        opened = self.storage(backend="unix:///nobody", on_failure="allow")
        opened.cycle = opened  # the collector deletes it, with a thread that runs
        allowing = self.limits.strategies.FixedWindowRateLimiter(opened)
        self.assertEqual([allowing.hit(self.item, "user") for _ in range(9)], [True] * 9)

    def test_command(self):
        """Flask-Limiter: its own command shows the storage"""
        try:
            import flask
            import flask_limiter
            from flask_limiter import commands
        except ImportError:
            self.skipTest("no flask_limiter")
        app = flask.Flask("app")
        flask_limiter.Limiter(str, app=app, storage_uri=f"shmlimit://{SEGMENT}")
        result = app.test_cli_runner().invoke(commands.cli, ["config"])
        self.assertEqual((result.exception, "segment" in result.output), (None, True), result.output)

    def test_check(self):
        """limits: a segment that cannot be opened is not healthy, and its errors are the library's"""
        storage = self.storage()
        with open(os.environ["SHM"] + SEGMENT, "w") as file:
            file.write("no segment")
        self.addCleanup(os.unlink, os.environ["SHM"] + SEGMENT)
        self.assertFalse(storage.check())
        self.assertRaises(shmlimit.Error, storage.incr, "k", 1)


class DjangoLaws(Laws):
    def cache(self, **params):
        from django.conf import settings

        if not settings.configured:
            settings.configure()
        from shmlimit.django_cache import CounterCache

        return CounterCache(SEGMENT, params)

    def test_cache(self):
        """Django: a cache has integers, which all processes see"""
        cache, other = self.cache(), self.cache()
        cache.set("k", 5)
        self.assertEqual([other.get("k"), other.incr("k"), cache.decr("k", 3), other.get("k")], [5, 6, 3, 3])
        self.assertEqual([cache.get("none"), cache.get("none", 7), "k" in cache, "none" in cache], [None, 7, True, False])
        self.assertEqual(cache.get_many(["k", "none"]), {"k": 3})
        cache.set_many({"a": 0, "b": 2})
        self.assertEqual([cache.get("a"), cache.get("b"), cache.get_or_set("b", 9), cache.get_or_set("c", 9)], [0, 2, 2, 9])
        self.assertEqual([cache.delete("k"), cache.delete("k"), cache.get("k")], [True, False, None])
        cache.clear()
        self.assertIsNone(cache.get("b"))

    def test_add(self):
        """Django: add stores only what is not there, also if it is 0"""
        cache = self.cache()
        self.assertEqual([cache.add("k", 0), cache.add("k", 9), cache.get("k")], [True, False, 0])
        self.assertEqual([cache.add("l", 3), cache.add("l", 3), cache.get("l")], [True, False, 3])

    def test_timeouts(self):
        """Django: a value lives as long as its timeout says, which touch begins again, and set replaces"""
        cache = self.cache(TIMEOUT=3600)

        def ttl_s():
            return cache._count("k", None).ttl_ns / 1e9

        cache.set("k", 1)
        self.assertTrue(3500 < ttl_s() <= 3600.001)
        cache.set("k", 1, 7200)
        self.assertTrue(7000 < ttl_s() <= 7200.001)
        self.assertEqual([cache.touch("k", None), cache.touch("none")], [True, False])
        self.assertTrue(ttl_s() > 365 * 86400)
        cache.set("k", 4, 60)
        self.assertEqual((cache.get("k"), ttl_s() <= 60.001, cache.incr("k")), (4, True, 5))
        cache.set("k", 1, 0)
        self.assertIsNone(cache.get("k"))
        self.assertEqual([cache.add("k", 1, 0), cache.get("k")], [True, None])
        cache.set("k", 1, 0.001)
        while cache.get("k") is not None:
            pass

    def test_refused(self):
        """Django: what is no count is refused, and changes nothing"""
        from django.core.exceptions import ImproperlyConfigured

        cache = self.cache()
        self.assertRaises(ImproperlyConfigured, type(cache), "", {})
        self.assertRaises(ValueError, cache.set, "k", 5, 367 * 86400)
        cache.set("k", 5)
        for value in "5", 5.0, None, [5], True, b"5":
            self.assertRaises(TypeError, cache.set, "k", value)
            self.assertRaises(TypeError, cache.add, "new", value)
        for value in -1, 2**26 - 2, 2**64:
            self.assertRaises(ValueError, cache.set, "k", value)
        self.assertRaises(ValueError, cache.incr, "none")
        self.assertRaises(ValueError, cache.decr, "k", 6)
        self.assertRaises(ValueError, cache.incr, "k", 2**26)
        self.assertEqual([cache.get("k"), cache.get("none"), cache.get("new")], [5, None, None])
        cache.set("k", 2**26 - 3)
        self.assertEqual(cache.get("k"), 2**26 - 3)
