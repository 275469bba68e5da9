"""Storages for limits and Django beside their own: random histories with a moved clock.

SPDX-License-Identifier: BSD-2-Clause
"""

import math
import os
import random
import threading
import time
import unittest
import unittest.mock

import shmlimit

SEGMENT = os.environ["SEGMENT"]
SEED = int(os.environ.get("SEED", random.randrange(2**32)))
HISTORIES, STEPS = 20, 60
moved_s = 0.0


def move(seconds):
    """Let time pass for all clocks of this process: libfaketime reads the file at each look."""
    global moved_s
    moved_s += seconds
    path = os.environ["FAKETIME_TIMESTAMP_FILE"]
    with open(path + ".new", "w") as file:
        file.write(f"+{moved_s:.6f}s\n")
    os.rename(path + ".new", path)


def begin():
    """A history begins with a second, and what it does before the middle of one: limits' own storage cuts times to seconds."""
    move(100 + math.ceil(time.time()) - time.time() + 0.02)


def step(seconds):
    """Whole seconds, and so much more that what ends with them has ended."""
    move(seconds + 0.003)


class Histories(unittest.TestCase):
    def setUp(self):
        print(f"# SEED={SEED}", flush=True)
        self.random = random.Random(SEED)
        self.addCleanup(self.destroy)

    def destroy(self):
        for name in SEGMENT, SEGMENT + ".window":
            try:
                shmlimit.destroy(name)
            except shmlimit.Error:
                pass

    def same(self, draw, both):
        """Each call that is drawn gets the same answer of both."""
        for history in range(HISTORIES):
            told = []
            mine, own = both(history)
            begin()
            for _ in range(STEPS):
                if time.time() % 1 > 0.5:
                    break
                if self.random.random() < 0.4:
                    step(self.random.randrange(4))
                name, *arguments = draw()
                told.append((name, arguments, self.answer(mine, name, arguments), self.answer(own, name, arguments)))
                self.assertEqual(told[-1][2], told[-1][3], told[-5:])

    def answer(self, of, name, arguments):
        try:
            answer = getattr(of, name)(*arguments)
            return self.told(of, name, answer)
        except (ValueError, TypeError) as error:
            return type(error)


class LimitsHistories(Histories):
    def told(self, of, name, answer):
        """A moving window of limits' storage in memory is reset by its newest request, of its other storages by the oldest."""
        return answer[1] if name == "get_window_stats" and "Moving" in type(of).__name__ else answer

    def strategy(self, name):
        # The threads of limits' own storage would wait by the clock that stands still.
        patch = unittest.mock.patch.object(threading.Timer, "start")
        patch.start()
        self.addCleanup(patch.stop)
        import limits.storage
        import limits.strategies

        import shmlimit.limits

        storages = [limits.storage.storage_from_string(uri) for uri in (f"shmlimit://{SEGMENT}", "memory://")]
        items = [limits.parse(text) for text in ("3 per 2 second", "10 per 5 second", "1 per 3 second")]

        def both(history):
            return [limits.strategies.STRATEGIES[name](storage) for storage in storages]

        def draw():
            item, key = self.random.choice(items), self.random.choice("ab")
            call = self.random.choices(("hit", "test", "get_window_stats", "clear"), (8, 2, 4, 1))[0]
            return call, item, key

        self.same(draw, both)

    def test_fixed(self):
        """limits: over any history a fixed window answers like limits' own, and resets at the same time"""
        self.strategy("fixed-window")

    def test_elastic(self):
        """limits: over any history an elastic fixed window answers like limits' own, and resets at the same time"""
        self.strategy("fixed-window-elastic-expiry")

    def test_moving(self):
        """limits: over any history a moving window answers like limits' own"""
        self.strategy("moving-window")


class DjangoHistories(Histories):
    def told(self, of, name, answer):
        """Django's own says True of the deletion of a value that is over, too."""
        return None if name == "delete" else answer

    def test_cache(self):
        """Django: over any history a cache of counters answers like Django's own"""
        from django.conf import settings

        if not settings.configured:
            settings.configure()
        from django.core.cache.backends.locmem import LocMemCache

        from shmlimit.django_cache import CounterCache

        def both(history):
            mine, own = CounterCache(SEGMENT, {}), LocMemCache(f"own{history}", {})
            mine.clear()
            return mine, own

        def draw():
            key, n, timeout = self.random.choice("abc"), self.random.randrange(1, 5), self.random.choice((2, 5, None, 0))
            return self.random.choice(
                [("get", key), ("set", key, n, timeout), ("add", key, n, timeout), ("incr", key, n), ("touch", key, timeout)]
                + [("delete", key), ("has_key", key), ("get_or_set", key, n, timeout)]
            )

        self.same(draw, both)
