"""A storage for the package limits, and so for Flask-Limiter and slowapi: shmlimit://NAME, and async+shmlimit://NAME.

Importing this module makes the schemes known to limits, and the strategy "funnel", which is also called "token-bucket".
The segment NAME and its rules are created when they are missing. The fixed window counts with one COUNTER rule. The moving window has a WINDOW rule for each
limit, of up to 65,536. Options, in the query of the URI or in
storage_options: mode, octal as text or a number, group, slots, owner; proxy_warning=no lets Flask-Limiter not say that
behind a proxy all clients are one. An unknown one is refused.

With backend=redis://... all hosts with that backend share the limits: fixed windows exactly, and funnels as leases. Moving
windows are refused. Further options are backend_prefix, deadline_ms, on_failure (deny, allow, local or error) and local_share: see hosts.py.
An answer to "would this be allowed" (test(), and what Flask-Limiter's header fields have) is what this host knows of the count.
In a URI write & of the backend's own as %26, and ? as %3F.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
import errno
import functools
import re
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

from . import hosts
from .forwarded import Watch
from .key import shared_key
from .limiter import NEVER, Algorithm, Count, Error, Mode, Result, Rule
from .shared import COUNTER, COUNTER_MAX, COUNTER_TTL_MAX_NS, Shared

S = 10**9
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "mode": lambda mode: int(mode, 8) if isinstance(mode, str) else int(mode),
    "group": str,
    "slots": int,
    "owner": int,
    "proxy_warning": str,
}
GRANULARITIES = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "month": 30 * 86400, "year": 360 * 86400}
YEARS = replace(COUNTER, period_ns=10 * COUNTER_TTL_MAX_NS)
"""For longer windows, with a resolution of eight milliseconds."""
FLOAT_TIMES = hasattr(limits.storage.Storage, "base_exceptions")


def _time(unix_s: float) -> Any:
    """A time as limits has it: since release 4 a float, before the second in which it is."""
    return unix_s if FLOAT_TIMES else int(unix_s)


@functools.lru_cache(maxsize=4096)
def _bound(limit: str, expiry: int) -> int:
    """The limit that the end of a key says, which is AMOUNT/MULTIPLES/GRANULARITY in the keys of limits. Of any other key no
    limit is known: each addition then asks the backend."""
    said = re.fullmatch(r"(\d+)/(\d+)/(\w+)", limit)
    if said is None or int(said[2]) * GRANULARITIES.get(said[3], 0) != expiry:
        return COUNTER_MAX
    return min(int(said[1]), COUNTER_MAX)


@functools.lru_cache(maxsize=4096)
def _rule(algorithm: Algorithm, amount: int, period_ns: int) -> tuple[str, Rule]:
    """A rule, and its name, which says all of it. A limit of 0 denies always."""
    kind = {Algorithm.FUNNEL: "limits.funnel", Algorithm.LEASE: "limits.lease"}.get(algorithm, "limits")
    mode, capacity = (Mode.ENFORCE, amount) if amount else (Mode.BLOCK, 1)
    count = 0 if algorithm == Algorithm.WINDOW else capacity
    return f"{kind}.{amount}.{period_ns}", Rule(capacity, count, period_ns, mode=mode, algorithm=algorithm)


def _options(uri: str, given: dict[str, Any]) -> dict[str, Any]:
    return {**dict(parse_qsl(urlparse(uri).query, keep_blank_values=True)), **given}


class Store:
    """What both storages do. Nothing here waits, except for a backend."""

    def __init__(self, uri: str, given: dict[str, Any]) -> None:
        url, options = urlparse(uri), _options(uri, given)
        name, known = (url.netloc + url.path).strip("/"), {**OPTIONS, **hosts.OPTIONS}
        where = f"{url.scheme}://{name}"  # what follows may have a password in it
        if not name:
            raise ConfigurationError(f"{uri}: must be shmlimit://NAME, with the name of a segment")
        unknown = ", ".join(options.keys() - known.keys())
        if unknown:
            raise ConfigurationError(f"{where}: unknown option {unknown}; there are {', '.join(known)}")
        try:
            read = {key: known[key](value) for key, value in options.items()}
            backend = hosts.backend_of({key: value for key, value in read.items() if key in hosts.OPTIONS})
            here = {key: value for key, value in read.items() if key in OPTIONS}
            self._watch = Watch("werkzeug's ProxyFix names proxies", here.pop("proxy_warning", True))
            self.hosts = hosts.Hosts(name, backend, **here) if backend else None
            self.shared: Shared = self.hosts or Shared(name, **here)
        except ValueError as error:
            raise ConfigurationError(f"{where}: {error}") from error

    def _look(self, key: str) -> None:
        """A storage is given keys only; that of a request in Flask is known."""
        flask = sys.modules.get("flask")
        if flask is not None and flask.has_request_context():
            environ = flask.request.environ
            peer = environ.get("REMOTE_ADDR", "")
            self._watch.look_cgi(key, environ, [lambda key: peer if f"/{peer}/" in key else None])

    def _read(self, key: str) -> Count:
        count: Count = self.shared.use("count", "limits", COUNTER, key, 0)
        if count.ttl_ns > 0:
            return count
        try:
            return self.shared.limiter().count("limits.years", shared_key(key), 0)
        except Error:  # there is no such rule
            return count

    def incr(self, key: str, expiry: float, elastic: bool, amount: int) -> int:
        if self._watch.looks and self._watch.due():
            self._look(key)
        ttl_ns = int(expiry * S)
        if ttl_ns > YEARS.period_ns:
            raise ConfigurationError(f"a fixed window of {expiry} s: 10 years is the longest")
        name, rule = ("limits", COUNTER) if ttl_ns <= COUNTER_TTL_MAX_NS else ("limits.years", YEARS)
        if self.hosts is None:
            count = self.shared.count(name, rule, key, amount, ttl_ns, elastic)
        elif elastic:
            raise ConfigurationError(f"segment {self.shared.name}: hosts cannot share a fixed window with elastic expiry")
        else:
            bound = _bound("/".join(key.split("/")[-3:]), int(expiry))
            count = self.hosts.use_everywhere(
                "count", name, rule, key, amount, ttl_ns=ttl_ns, saturate=True, bound=bound
            )
        # Beyond what can be counted nothing is within a limit.
        return count.value if count.applied == amount else sys.maxsize

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
        if self.hosts is not None:
            limiter = self.hosts.limiter()
            for name in [name for name in limiter.rules() if name.split(".")[0] == "limits"]:
                self.hosts.everywhere(limiter).reset(name, key)
        if not self.shared.exists():
            return 0
        limiter = self.shared.limiter()
        return sum(limiter.reset(name, key) for name in limiter.rules() if name.split(".")[0] == "limits")

    def decide(self, algorithm: Algorithm, operation: str, key: str, limit: int, period_s: float, amount: int) -> Result:
        """Take from a window or a funnel, or peek."""
        if self._watch.looks and self._watch.due():
            self._look(key)
        try:
            if self.hosts is not None:
                return self._decide_everywhere(operation, key, limit, period_s, amount)
            name, rule = _rule(algorithm, limit, int(period_s * S))
            return cast(Result, self.shared.use(operation, name, rule, key, amount))
        except Error as error:
            if error.errno not in (errno.EFBIG, errno.ERANGE):
                raise
            raise ConfigurationError(f"{limit} per {period_s} s: {error}") from error

    def _decide_everywhere(self, operation: str, key: str, limit: int, period_s: float, amount: int) -> Result:
        name, rule = _rule(Algorithm.LEASE, limit, int(period_s * S))
        answer = cast(hosts.Hosts, self.hosts).use_everywhere(operation, name, rule, key, *[amount] * (operation == "take"))
        if operation == "take":
            return cast(Result, answer)
        allowed, wait_ns = limit > 0 and answer.remaining >= amount, answer.reset_after_ns
        return Result(allowed, limit, answer.remaining if limit else 0, 0, 0 if allowed else wait_ns, wait_ns)

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


def _shares(uri: str | None, options: dict[str, Any]) -> bool:
    return bool(_options(uri or "", options).keys() & hosts.OPTIONS.keys())


class HostsStorage(limits.storage.Storage):
    """shmlimit://NAME?backend=...: it has no moving window, so limits refuses a strategy that needs one at start."""

    STORAGE_SCHEME: list[str] | None = None
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


class Storage(HostsStorage, limits.storage.MovingWindowSupport):
    """shmlimit://NAME, and what makes the other one."""

    STORAGE_SCHEME = ["shmlimit"]

    def __new__(cls, uri: str | None = None, *arguments: Any, **options: Any) -> Any:
        return HostsStorage(uri, *arguments, **options) if _shares(uri, options) else super().__new__(cls)

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


def _elsewhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, for calls that may wait for a backend."""

    @functools.wraps(function)
    async def coroutine(*arguments: Any, **named: Any) -> Any:
        return await asyncio.to_thread(function, *arguments, **named)

    return coroutine


class AsyncHostsStorage(limits.aio.storage.Storage):
    """async+shmlimit://NAME?backend=...: each call waits in a thread."""

    STORAGE_SCHEME: list[str] | None = None
    base_exceptions: Any = Error

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, **({"wrap_exceptions": True} if wrap_exceptions else {}))
        self.store = Store(uri or "", options)
        self.storage = f"segment {self.store.shared.name}"

    incr, get, get_expiry = _elsewhere(Storage.incr), _later(Storage.get), _later(Storage.get_expiry)
    check, reset, clear = _later(Storage.check), _elsewhere(Storage.reset), _elsewhere(Storage.clear)


class AsyncStorage(AsyncHostsStorage, limits.aio.storage.MovingWindowSupport):
    """async+shmlimit://NAME, and what makes the other one."""

    STORAGE_SCHEME = ["async+shmlimit"]

    def __new__(cls, uri: str | None = None, *arguments: Any, **options: Any) -> Any:
        return AsyncHostsStorage(uri, *arguments, **options) if _shares(uri, options) else super().__new__(cls)

    incr, reset, clear = _later(Storage.incr), _later(Storage.reset), _later(Storage.clear)
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


def _where_it_must(function: Callable[..., Any]) -> Callable[..., Any]:
    here, elsewhere = _later(function), _elsewhere(function)

    @functools.wraps(function)
    async def coroutine(self: Any, *arguments: Any, **named: Any) -> Any:
        return await (here if self.storage.store.hosts is None else elsewhere)(self, *arguments, **named)

    return coroutine


class AsyncFunnelRateLimiter(limits.aio.strategies.RateLimiter):
    """The strategy "funnel" for asyncio."""

    _ask = FunnelRateLimiter._ask
    hit, test = _where_it_must(FunnelRateLimiter.hit), _where_it_must(FunnelRateLimiter.test)
    get_window_stats = _where_it_must(FunnelRateLimiter.get_window_stats)


for _name in ("funnel", "token-bucket"):
    cast(Any, limits.strategies.STRATEGIES)[_name] = FunnelRateLimiter
    cast(Any, limits.aio.strategies.STRATEGIES)[_name] = AsyncFunnelRateLimiter
