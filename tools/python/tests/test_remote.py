"""A pause, and a server that says "not now": what its answer means, and that all processes heed it.

SPDX-License-Identifier: BSD-2-Clause
"""

import asyncio
import email.utils
import http.server
import os
import threading
import time
import types
import unittest
import urllib.error
import urllib.request
from unittest import mock

from crew import together

import shmlimit
from shmlimit import Limiter, Rule, heed, retry_after

SEGMENT = os.environ["SEGMENT"]
FAST = Rule(capacity=50, refill=1000, period_ns=10**9, max_wait_ns=10 * 10**9)
WORKERS = 4
WINDOW_S = 1


class Headers(dict):
    """Names in any case, as clients have them."""

    def __init__(self, **headers):
        super().__init__({name.lower().replace("_", "-"): value for name, value in headers.items()})

    def get(self, name, default=None):
        return super().get(name.lower(), default)


def answer(status=429, **headers):
    return types.SimpleNamespace(status_code=status, headers=Headers(**headers))


class Answers(unittest.TestCase):
    def test_seconds(self):
        """Retry-After counts with 429 and 503, in seconds"""
        self.assertEqual(retry_after(answer(Retry_After="30")), 30)
        self.assertEqual(retry_after(answer(503, Retry_After=" 7 ")), 7)
        self.assertEqual(retry_after(answer(200, Retry_After="30")), 0)
        self.assertEqual(retry_after(types.SimpleNamespace(status=429, headers=Headers(Retry_After="3"))), 3)

    def test_dates(self):
        """Retry-After may be a date, which is compared with the server's"""
        date, later = (email.utils.formatdate(t, usegmt=True) for t in (1000000000, 1000000030))
        self.assertEqual(retry_after(answer(Retry_After=later, Date=date)), 30)
        self.assertEqual(retry_after(answer(Retry_After=date, Date=later)), 0)
        soon = email.utils.formatdate(time.time() + 3000, usegmt=True)
        self.assertTrue(2900 < retry_after(answer(Retry_After=soon)) <= 3000)

    def test_fields(self):
        """the RateLimit fields count where nothing is left"""
        self.assertEqual(retry_after(answer(200, RateLimit='"a";r=0;t=12')), 12)
        self.assertEqual(retry_after(answer(200, RateLimit='"a";r=3;t=12, "b";r=0;t=5')), 5)
        self.assertEqual(retry_after(answer(200, RateLimit='"a";r=3;t=12')), 0)
        self.assertEqual(retry_after(answer(200, RateLimit="limit=100, remaining=0, reset=50")), 50)
        self.assertEqual(retry_after(answer(200, RateLimit="limit=100, remaining=10, reset=50")), 0)
        self.assertEqual(retry_after(answer(200, RateLimit_Remaining="0", RateLimit_Reset="9")), 9)
        self.assertEqual(retry_after(answer(200, X_RateLimit_Remaining="2", X_RateLimit_Reset="9")), 0)
        at = str(int(time.time()) + 3000)
        self.assertTrue(2900 < retry_after(answer(X_RateLimit_Remaining="0", X_RateLimit_Reset=at)) <= 3000)

    def test_nothing(self):
        """a refusal that says nothing, or what cannot be read, is a default"""
        self.assertEqual(retry_after(answer()), 1)
        self.assertEqual(retry_after(answer(Retry_After="soon"), default=5), 5)
        self.assertEqual(retry_after(answer(200)), 0)


class Server(http.server.BaseHTTPRequestHandler):
    """After its first three requests it refuses all for a while, and says so."""

    lock = threading.Lock()
    seen: list = []
    window = [0.0]

    def do_GET(self):
        with self.lock:
            now = time.monotonic()
            self.seen.append((now, self.path))
            if len(self.seen) == 3:
                self.window[0] = now
            refused = self.window[0] and now < self.window[0] + WINDOW_S
        self.send_response(429 if refused else 200)
        if refused:
            self.send_header("Retry-After", str(WINDOW_S))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


class Pauses(unittest.TestCase):
    def setUp(self):
        self.limiter = Limiter.create(SEGMENT, slots=64)
        self.limiter.rule_set("r", FAST)

    def tearDown(self):
        self.limiter.close()
        shmlimit.destroy(SEGMENT)

    def test_pause(self):
        """nothing passes while a key is paused"""
        self.assertTrue(self.limiter.pause("r", "k", 6000))
        denied = self.limiter.take("r", "k")
        self.assertTrue(not denied and 3000e9 < denied.retry_after_ns <= 6001e9)
        self.assertTrue(3000 < self.limiter.paused("r", "k") <= 6000.001)
        self.assertTrue(self.limiter.pause("r", "k", 1))
        self.assertTrue(3000 < self.limiter.paused("r", "k"))
        self.assertFalse(self.limiter.acquire("r", "k", max_wait_ns=10**9))
        self.limiter.pause("r", "k", 0)
        self.assertEqual(self.limiter.paused("r", "k"), 0)
        self.assertTrue(self.limiter.take("r", "k"))

    def test_acquire(self):
        """acquire() waits until the pause is over"""
        begun = time.monotonic()
        self.limiter.pause("r", "k", 0.3)
        self.assertTrue(self.limiter.acquire("r", "k"))
        self.assertGreaterEqual(time.monotonic() - begun, 0.29)

    def test_acquire_in_a_pause(self):
        """a turn that comes in a pause passes unused, and another is taken after it"""
        self.limiter.rule_set("slow", Rule(capacity=1, refill=5, period_ns=10**9, max_wait_ns=10 * 10**9))
        self.limiter.take("slow", "k")
        ends = []
        timer = threading.Thread(target=lambda: ends.append(self.limiter.acquire("slow", "k")))
        self.limiter.reserve("slow", "k", 4)
        timer.start()
        over = time.monotonic() + 1.5
        self.limiter.pause("slow", "k", 1.5)
        timer.join()
        self.assertTrue(ends[0] and (time.monotonic() >= over - 0.01))

    def test_decorator(self):
        """a function that waits for its turn waits until the pause is over, in asyncio, too"""
        calls = shmlimit.limit("1000/s", segment=SEGMENT, wait=True, max_wait_s=10)
        for wait in (calls.acquire, lambda key: asyncio.run(calls.acquire_async(key))):
            begun = time.monotonic()
            calls.pause("k", 0.2)
            wait("k")
            self.assertGreaterEqual(time.monotonic() - begun, 0.19)

    def test_heed(self):
        """an answer pauses the key, for no longer than it may"""
        self.assertEqual(heed(self.limiter, "r", "k", answer(200)), 0)
        self.assertTrue(3000 <= heed(self.limiter, "r", "k", answer(Retry_After="3000")) <= 3300)
        self.assertTrue(1000 < self.limiter.paused("r", "k") <= 3300.001)
        self.assertEqual(heed(self.limiter, "r", "k", answer(Retry_After="99999"), most=60, jitter=0), 60)

    def test_no_pause(self):
        """it returns None where there is no pause, though one was asked for"""
        refusing = mock.Mock(pause=mock.Mock(return_value=False))
        self.assertIsNone(heed(refusing, "r", "k", answer(Retry_After="3")))
        self.assertEqual(heed(refusing, "r", "k", answer(200)), 0)

    def test_server(self):
        """of each worker at most the request in flight comes while the server refuses"""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def work(worker):
            for _ in range(8):
                self.limiter.acquire("r", "remote")
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{worker}") as response:
                        heed(self.limiter, "r", "remote", response)
                except urllib.error.HTTPError as error:
                    heed(self.limiter, "r", "remote", error)
                    error.close()

        together(*(lambda worker=worker: work(worker) for worker in range(WORKERS)))
        server.shutdown()
        server.server_close()
        begun = Server.window[0]
        late = [path for at, path in Server.seen if begun < at < begun + WINDOW_S]
        self.assertEqual(len(late), len(set(late)), late)
        self.assertEqual(len(Server.seen), 8 * WORKERS)
        self.assertGreater(max(at for at, _ in Server.seen), begun + WINDOW_S)
