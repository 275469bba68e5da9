"""A storage for the package limits, and so for Flask-Limiter and slowapi: shmlimit://NAME, and async+shmlimit://NAME.

Importing this module makes the schemes known to limits, and the strategy "funnel". The segment NAME and its rules are
created when they are missing. The fixed window counts with one COUNTER rule. The moving window has a WINDOW rule for each
limit in a second segment, NAME.window, and holds up to window_max requests per key. Options (storage_options): mode, octal
as text or a number, group, slots, window_max (default 128).

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import math
import sys
import time
from typing import Any, cast
from urllib.parse import urlparse

import limits.aio.storage
import limits.aio.strategies
import limits.storage
import limits.strategies
from limits import RateLimitItem
from limits.errors import ConfigurationError

from .limiter import NEVER, Algorithm, Error, Result, Rule
from .key import shared_key
from .shared import Shared

S = 10**9
COUNTER = Rule(2**26 - 1, 0, 366 * 86400 * S, algorithm=Algorithm.COUNTER)
"""Its times have a resolution of half a millisecond."""
WINDOW_BYTES = 2**25
"""Of shared memory for moving windows."""
FLOAT_TIMES = hasattr(limits.storage.Storage, "base_exceptions")


def _time(unix_s: float) -> Any:
    """A time as limits has it: since release 4 a float, before an int."""
    return unix_s if FLOAT_TIMES else math.ceil(unix_s)


class Store:
    """What both storages do. Nothing here waits."""

    def __init__(self, uri: str, options: dict[str, Any]) -> None:
        url = urlparse(uri)
        name = (url.netloc + url.path).strip("/")
        if not name:
            raise ConfigurationError(f"{uri}: must be shmlimit://NAME, with the name of a segment")
        mode, group = options.get("mode", 0), options.get("group")
        mode = int(mode, 8) if isinstance(mode, str) else int(mode)
        self._window_max = int(options.get("window_max", 128))
        slots = max(WINDOW_BYTES // (16 * self._window_max + 16), 16)
        self.counters = Shared(name, mode=mode, group=group, slots=int(options.get("slots", 0)))
        self.windows = Shared(name + ".window", mode=mode, group=group, slots=slots, window_max=self._window_max)

    def incr(self, key: str, expiry: float, elastic: bool, amount: int) -> int:
        count = self.counters.use(
            "count", "limits", COUNTER, key, amount, ttl_ns=int(expiry * S), saturate=True, restart=elastic
        )
        # Beyond what can be counted nothing is within a limit.
        return cast(int, count.value if count.applied == amount else sys.maxsize)

    def get(self, key: str) -> int:
        return cast(int, self.counters.use("count", "limits", COUNTER, key, 0).value)

    def get_expiry(self, key: str) -> Any:
        return _time(time.time() + self.counters.use("count", "limits", COUNTER, key, 0).ttl_ns / S)

    def check(self) -> bool:
        try:
            self.counters.limiter()
        except Error:
            return False
        return True

    def _reset(self, key: bytes | None) -> int:
        keys = 0
        for shared in (self.counters, self.windows):
            limiter = shared.limiter() if shared.exists() else None
            for name in limiter.rules() if limiter else []:
                if limiter and name.split(".")[0] == "limits":
                    keys += limiter.reset(name, key)
        return keys

    def reset(self) -> int | None:
        return self._reset(None)

    def clear(self, key: str) -> None:
        self._reset(shared_key(key))

    def window(self, operation: str, key: str, limit: int, expiry: float, amount: int) -> Result:
        """Take from a moving window, or peek."""
        period_ns = int(expiry * S)
        rule = Rule(limit, 0, period_ns, algorithm=Algorithm.WINDOW)
        try:
            return cast(Result, self.windows.use(operation, f"limits.{limit}.{period_ns}", rule, key, amount))
        except Error as error:
            if error.errno != errno.EFBIG:
                raise
            raise ConfigurationError(
                f"{limit} is more than the {self.windows.limiter().info().window_max} requests that the moving windows of "
                f"segment {self.windows.limiter().name} hold: set the storage option window_max, and destroy that segment"
            ) from error

    def acquire_entry(self, key: str, limit: int, expiry: float, amount: int) -> bool:
        return self.window("take", key, limit, expiry, amount).allowed

    def get_moving_window(self, key: str, limit: int, expiry: float) -> tuple[float, int]:
        remaining = self.window("peek", key, limit, expiry, 1).remaining
        if remaining >= limit:
            return _time(time.time()), 0
        # One more than is left fits when the oldest request leaves the window.
        oldest = self.window("peek", key, limit, expiry, remaining + 1)
        return _time(time.time() + oldest.retry_after_ns / S - expiry), limit - remaining

    def funnel(self, operation: str, item: RateLimitItem, identifiers: tuple[str, ...], cost: int) -> Result:
        """Take from a funnel, or peek."""
        period_ns = int(item.get_expiry() * S)
        rule = Rule(item.amount, item.amount, period_ns)
        key = item.key_for(*identifiers)
        return cast(Result, self.counters.use(operation, f"limits.funnel.{item.amount}.{period_ns}", rule, key, cost))


def _stats(result: Result) -> Any:
    wait_ns = result.reset_after_ns if result.allowed else result.retry_after_ns
    stats = _time(time.time() + (0 if wait_ns == NEVER else wait_ns) / S), result.remaining
    make = getattr(limits, "WindowStats", None)
    return make(*stats) if make else stats


class Storage(limits.storage.Storage, limits.storage.MovingWindowSupport):
    """shmlimit://NAME"""

    STORAGE_SCHEME = ["shmlimit"]
    base_exceptions: Any = Error

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, **({"wrap_exceptions": True} if wrap_exceptions else {}))
        self.store = Store(uri or "", options)

    def incr(self, key: str, expiry: float, elastic_expiry: bool = False, amount: int = 1) -> int:
        return self.store.incr(key, expiry, elastic_expiry, amount)

    def get(self, key: str) -> int:
        return self.store.get(key)

    def get_expiry(self, key: str) -> Any:
        return self.store.get_expiry(key)

    def check(self) -> bool:
        return self.store.check()

    def reset(self) -> int | None:
        return self.store.reset()

    def clear(self, key: str) -> None:
        self.store.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: float, amount: int = 1) -> bool:
        return self.store.acquire_entry(key, limit, expiry, amount)

    def get_moving_window(self, key: str, limit: int, expiry: float) -> Any:
        return self.store.get_moving_window(key, limit, expiry)


class AsyncStorage(limits.aio.storage.Storage, limits.aio.storage.MovingWindowSupport):
    """async+shmlimit://NAME. A call takes less than a microsecond or two, so none goes through a thread."""

    STORAGE_SCHEME = ["async+shmlimit"]
    base_exceptions: Any = Error

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, **({"wrap_exceptions": True} if wrap_exceptions else {}))
        self.store = Store(uri or "", options)

    async def incr(self, key: str, expiry: float, elastic_expiry: bool = False, amount: int = 1) -> int:
        return self.store.incr(key, expiry, elastic_expiry, amount)

    async def get(self, key: str) -> int:
        return self.store.get(key)

    async def get_expiry(self, key: str) -> Any:
        return self.store.get_expiry(key)

    async def check(self) -> bool:
        return self.store.check()

    async def reset(self) -> int | None:
        return self.store.reset()

    async def clear(self, key: str) -> None:
        self.store.clear(key)

    async def acquire_entry(self, key: str, limit: int, expiry: float, amount: int = 1) -> bool:
        return self.store.acquire_entry(key, limit, expiry, amount)

    async def get_moving_window(self, key: str, limit: int, expiry: float) -> Any:
        return self.store.get_moving_window(key, limit, expiry)


class FunnelRateLimiter(limits.strategies.RateLimiter):
    """The strategy "funnel": a burst of the whole limit, which comes back evenly over the period."""

    def _ask(self, operation: str, item: RateLimitItem, identifiers: tuple[str, ...], cost: int) -> Result:
        return cast(Storage, self.storage).store.funnel(operation, item, identifiers, cost)

    def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("take", item, identifiers, cost).allowed

    def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("peek", item, identifiers, cost).allowed

    def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> Any:
        return _stats(self._ask("peek", item, identifiers, 1))


class AsyncFunnelRateLimiter(limits.aio.strategies.RateLimiter):
    """The strategy "funnel" for asyncio."""

    def _ask(self, operation: str, item: RateLimitItem, identifiers: tuple[str, ...], cost: int) -> Result:
        return cast(AsyncStorage, self.storage).store.funnel(operation, item, identifiers, cost)

    async def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("take", item, identifiers, cost).allowed

    async def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("peek", item, identifiers, cost).allowed

    async def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> Any:
        return _stats(self._ask("peek", item, identifiers, 1))


cast(Any, limits.strategies.STRATEGIES)["funnel"] = FunnelRateLimiter
cast(Any, limits.aio.strategies.STRATEGIES)["funnel"] = AsyncFunnelRateLimiter
