"""A storage for the package limits, and so for Flask-Limiter and slowapi: shmlimit://NAME, and async+shmlimit://NAME.

Importing this module makes the schemes known to limits, and the strategy "funnel", which is also called "token-bucket".
The segment NAME and its rules are created when they are missing. The fixed window counts with one COUNTER rule. The moving window has a WINDOW rule for each
limit, in the segment NAME.window, or NAME.windowN for limits of more than 128. Options, in the query of the URI or in
storage_options: mode, octal as text or a number, group, slots, owner. An unknown one is refused.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlparse

import limits.aio.storage
import limits.aio.strategies
import limits.storage
import limits.strategies
from limits import RateLimitItem
from limits.errors import ConfigurationError

from .key import shared_key
from .limiter import NEVER, Algorithm, Count, Error, Mode, Result, Rule
from .shared import COUNTER, COUNTER_TTL_MAX_NS, Shared

S = 10**9
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "mode": lambda mode: int(mode, 8) if isinstance(mode, str) else int(mode),
    "group": str,
    "slots": int,
    "owner": int,
}
YEARS = replace(COUNTER, period_ns=10 * COUNTER_TTL_MAX_NS)
"""For longer windows, with a resolution of eight milliseconds."""
FLOAT_TIMES = hasattr(limits.storage.Storage, "base_exceptions")


def _time(unix_s: float) -> Any:
    """A time as limits has it: since release 4 a float, before the second in which it is."""
    return unix_s if FLOAT_TIMES else int(unix_s)


@functools.lru_cache(maxsize=4096)
def _rule(algorithm: Algorithm, amount: int, period_ns: int) -> tuple[str, Rule]:
    """A rule, and its name, which says all of it. A limit of 0 denies always."""
    kind = "limits.funnel" if algorithm == Algorithm.FUNNEL else "limits"
    mode, capacity = (Mode.ENFORCE, amount) if amount else (Mode.BLOCK, 1)
    count = capacity if algorithm == Algorithm.FUNNEL else 0
    return f"{kind}.{amount}.{period_ns}", Rule(capacity, count, period_ns, mode=mode, algorithm=algorithm)


class Store:
    """What both storages do. Nothing here waits."""

    def __init__(self, uri: str, given: dict[str, Any]) -> None:
        url = urlparse(uri)
        name = (url.netloc + url.path).strip("/")
        if not name:
            raise ConfigurationError(f"{uri}: must be shmlimit://NAME, with the name of a segment")
        options = {**dict(parse_qsl(url.query, keep_blank_values=True)), **given}
        unknown = ", ".join(options.keys() - OPTIONS.keys())
        if unknown:
            raise ConfigurationError(f"{uri}: unknown option {unknown}; there are {', '.join(OPTIONS)}")
        try:
            self.shared = Shared(name, **{key: OPTIONS[key](value) for key, value in options.items()})
        except ValueError as error:
            raise ConfigurationError(f"{uri}: {error}") from error

    def _read(self, key: str) -> Count:
        count: Count = self.shared.use("count", "limits", COUNTER, key, 0)
        if count.ttl_ns > 0:
            return count
        try:
            return self.shared.limiter().count("limits.years", shared_key(key), 0)
        except Error:  # there is no such rule
            return count

    def incr(self, key: str, expiry: float, elastic: bool, amount: int) -> int:
        ttl_ns = int(expiry * S)
        if ttl_ns > YEARS.period_ns:
            raise ConfigurationError(f"a fixed window of {expiry} s: 10 years is the longest")
        name, rule = ("limits", COUNTER) if ttl_ns <= COUNTER_TTL_MAX_NS else ("limits.years", YEARS)
        count = self.shared.use("count", name, rule, key, amount, ttl_ns=ttl_ns, saturate=True, restart=elastic)
        # Beyond what can be counted nothing is within a limit.
        return cast(int, count.value if count.applied == amount else sys.maxsize)

    def get(self, key: str) -> int:
        return self._read(key).value

    def get_expiry(self, key: str) -> Any:
        return _time(time.time() + self._read(key).ttl_ns / S)

    def check(self) -> bool:
        try:
            self.shared.limiter()
        except Error:
            return False
        return True

    def reset(self, key: bytes | None = None) -> int:
        return sum(
            limiter.reset(name, key)
            for limiter in self.shared.segments()
            for name in limiter.rules()
            if name.split(".")[0] == "limits"
        )

    def decide(self, algorithm: Algorithm, operation: str, key: str, limit: int, period_s: float, amount: int) -> Result:
        """Take from a window or a funnel, or peek."""
        name, rule = _rule(algorithm, limit, int(period_s * S))
        try:
            return cast(Result, self.shared.use(operation, name, rule, key, amount))
        except Error as error:
            if error.errno not in (errno.EFBIG, errno.ERANGE):
                raise
            raise ConfigurationError(f"{limit} per {period_s} s: {error}") from error

    def get_moving_window(self, key: str, limit: int, expiry: float) -> tuple[float, int]:
        remaining = self.decide(Algorithm.WINDOW, "peek", key, limit, expiry, 1).remaining
        if remaining >= limit:
            return _time(time.time()), 0
        # One more than is left fits when the oldest request leaves the window.
        oldest = self.decide(Algorithm.WINDOW, "peek", key, limit, expiry, remaining + 1)
        return _time(time.time() + oldest.retry_after_ns / S - expiry), limit - remaining


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
        self.storage = f"segment {self.store.shared.name}"
        """What `flask limiter config` prints."""

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
        self.store.reset(shared_key(key))

    def acquire_entry(self, key: str, limit: int, expiry: float, amount: int = 1) -> bool:
        return self.store.decide(Algorithm.WINDOW, "take", key, limit, expiry, amount).allowed

    def get_moving_window(self, key: str, limit: int, expiry: float) -> Any:
        return self.store.get_moving_window(key, limit, expiry)


def _later(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a coroutine function. A call takes less than a microsecond or two, so none goes through a thread."""

    @functools.wraps(function)
    async def coroutine(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return coroutine


class AsyncStorage(limits.aio.storage.Storage, limits.aio.storage.MovingWindowSupport):
    """async+shmlimit://NAME"""

    STORAGE_SCHEME = ["async+shmlimit"]
    base_exceptions: Any = Error

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, **({"wrap_exceptions": True} if wrap_exceptions else {}))
        self.store = Store(uri or "", options)
        self.storage = f"segment {self.store.shared.name}"

    incr, get, get_expiry = _later(Storage.incr), _later(Storage.get), _later(Storage.get_expiry)
    check, reset, clear = _later(Storage.check), _later(Storage.reset), _later(Storage.clear)
    acquire_entry, get_moving_window = _later(Storage.acquire_entry), _later(Storage.get_moving_window)


class FunnelRateLimiter(limits.strategies.RateLimiter):
    """The strategy "funnel", a token bucket: a burst of the whole limit, which comes back evenly over the period."""

    def _ask(self, operation: str, item: RateLimitItem, identifiers: tuple[str, ...], cost: int) -> Result:
        store, key = cast(Storage, self.storage).store, item.key_for(*identifiers)
        return store.decide(Algorithm.FUNNEL, operation, key, item.amount, item.get_expiry(), cost)

    def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("take", item, identifiers, cost).allowed

    def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        return self._ask("peek", item, identifiers, cost).allowed

    def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> Any:
        return _stats(self._ask("peek", item, identifiers, 1))


class AsyncFunnelRateLimiter(limits.aio.strategies.RateLimiter):
    """The strategy "funnel" for asyncio."""

    _ask = FunnelRateLimiter._ask
    hit, test = _later(FunnelRateLimiter.hit), _later(FunnelRateLimiter.test)
    get_window_stats = _later(FunnelRateLimiter.get_window_stats)


for _name in ("funnel", "token-bucket"):
    cast(Any, limits.strategies.STRATEGIES)[_name] = FunnelRateLimiter
    cast(Any, limits.aio.strategies.STRATEGIES)[_name] = AsyncFunnelRateLimiter
