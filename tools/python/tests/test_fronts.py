"""Storages for limits and Django beside their own: random histories with a moved clock.

SPDX-License-Identifier: BSD-2-Clause
"""

import collections
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
        try:
            shmlimit.destroy(SEGMENT)
        except shmlimit.Error:
            pass

    def same(self, draw, both, longest=4):
        """Each call that is drawn gets the same answer of both. Between two less than `longest` seconds pass."""
        for history in range(HISTORIES):
            told = []
            mine, own = both(history)
            begin()
            for _ in range(STEPS):
                if time.time() % 1 > 0.5:
                    break
                if self.random.random() < 0.4:
                    step(self.random.randrange(longest))
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
        """A moving window of limits' storage in memory is reset by its newest request, of its other storages by the oldest. The time is
        a whole second in limits 2, and in limits 4 also what has passed between the two calls."""
        if name != "get_window_stats":
            return answer
        return answer[1] if "Moving" in type(of).__name__ else (int(answer[0]), answer[1])

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


class FlaskHistories(Histories):
    def told(self, of, name, answer):
        self.seen[answer.status_code] += 1
        return answer.status_code, [(field, answer.headers[field]) for field in ("X-RateLimit-Limit", "X-RateLimit-Remaining") if field in answer.headers]

    def client(self, uri, strategy):
        import flask
        import flask_limiter

        import shmlimit.limits  # noqa: F401  its scheme

        app = flask.Flask(__name__)
        limiter = flask_limiter.Limiter(
            lambda: flask.request.headers["X-Client"],
            app=app,
            default_limits=["3 per 4 second", "7 per 9 second"],
            storage_uri=uri,
            strategy=strategy,
            headers_enabled=True,
        )
        shared = limiter.shared_limit("4 per 3 second", scope="both")
        routes = {
            "default": lambda view: view,
            "exempt": limiter.exempt,
            "own": limiter.limit("2 per 3 second;5 per 10 second"),
            "more": limiter.limit("1 per 2 second", override_defaults=False),
            "post": limiter.limit("1 per 5 second", methods=["POST"]),
            "plan": limiter.limit(lambda: f"{flask.request.args['plan']} per 4 second"),
            "dear": limiter.limit("6 per 5 second", cost=lambda: int(flask.request.args["plan"])),
            "failed": limiter.limit("2 per 4 second", deduct_when=lambda response: response.status_code == 404),
            "one": shared,
            "two": shared,
        }
        for name, route in routes.items():
            def view(code=404 if name == "failed" else 200):
                return "", code

            view.__name__ = name  # the limiter knows it by this
            app.add_url_rule(f"/{name}", name, route(view), methods=["GET", "POST"])
        return app.test_client(), sorted(routes)

    def strategy(self, strategy):
        patch = unittest.mock.patch.object(threading.Timer, "start")
        patch.start()
        self.addCleanup(patch.stop)
        clients = [self.client(uri, strategy) for uri in (f"shmlimit://{SEGMENT}", "memory://")]

        def draw():
            path = f"/{self.random.choice(clients[0][1])}?plan={self.random.randrange(1, 4)}"
            return self.random.choice(("get", "get", "post")), path

        def both(history):
            return [Requests(client, f"client {history}") for client, routes in clients]

        self.seen = collections.Counter()
        self.same(draw, both)
        self.assertGreater(min(self.seen[status] for status in (200, 404, 429)), 10, self.seen)

    def test_fixed(self):
        """Flask-Limiter: over any history a site answers on a fixed window as on a storage in memory"""
        self.strategy("fixed-window")

    def test_moving(self):
        """Flask-Limiter: over any history a site answers on a moving window as on a storage in memory"""
        self.strategy("moving-window")


class Requests:
    """Requests of one client."""

    def __init__(self, client, name):
        self.client = client
        self.headers = {"X-Client": name}

    def get(self, path):
        return self.client.get(path, headers=self.headers)

    def post(self, path):
        return self.client.post(path, headers=self.headers)


def configured():
    """Django's settings, of all the tests."""
    from django.conf import settings

    if not settings.configured:
        settings.configure(SHMLIMIT={"name": SEGMENT}, REST_FRAMEWORK={"DEFAULT_THROTTLE_RATES": {"anon": "3/sec", "user": "4/m"}})


class DRFHistories(Histories):
    def told(self, of, name, answer):
        return answer

    def test_throttles(self):
        """Django REST framework: a throttle refuses what the front-end's own does, when nothing or all has come back"""
        configured()
        import rest_framework.throttling as own
        import shmlimit.drf as ours

        class User:
            is_authenticated = True

            def __init__(self, pk):
                self.pk = pk

        class Throttles:
            def __init__(self, package, history):
                self.package, self.history = package, history

            def allows(self, name, user, address):
                class Request:
                    META = {"REMOTE_ADDR": address}

                Request.user = user
                throttle = getattr(self.package, name)()
                if user is not None:
                    user.pk = f"{user.number}.{self.history}"
                allowed = throttle.allow_request(Request, None)
                return allowed, None if allowed else 0 < throttle.wait() <= throttle.duration

        def draw():
            user = None
            if self.random.random() < 0.5:
                user = User(0)
                user.number = self.random.randrange(2)
            if self.random.random() < 0.1:
                move(61)
            return "allows", self.random.choice(("AnonRateThrottle", "UserRateThrottle")), user, f"192.0.2.{self.random.randrange(2)}"

        self.same(draw, lambda history: (Throttles(ours, history), Throttles(own, history)), 1)


class DjangoHistories(Histories):
    def told(self, of, name, answer):
        """Django's own says True of the deletion of a value that is over, too."""
        return None if name == "delete" else answer

    def test_cache(self):
        """Django: over any history a cache of counters answers like Django's own"""
        configured()
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
