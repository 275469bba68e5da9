"""A cache of Django for counters, such as those of django-ratelimit and django-axes:

    CACHES = {"limits": {"BACKEND": "shmlimit.django_cache.CounterCache", "LOCATION": "web"}}

LOCATION is the segment, which is created if it is missing; OPTIONS may have the other arguments of shmlimit.shared.Shared,
and `backend` and what goes with it (shmlimit.hosts.OPTIONS).
A value is an integer, 0 to 67,108,861; TypeError or ValueError for all else. add(), incr() and decr() are atomic over all
processes. A timeout is at most 366 days, which None is, too. set() of several processes at once: one of their values
stays. In the segment a value is 1 more than it is here, since a count of 0 is none.

With a backend all hosts share the values. They can be added, and raised by incr(), each by one round trip; all else that
changes a value raises NotImplementedError. get() and incr() know of a value that another host added once add() on this host
was refused, and get() returns it as it was at this host's last call. Where the backend does not answer, on_failure decides:
by default nothing is added.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from . import hosts
from .key import shared_key
from .limiter import Count, Error
from .shared import COUNTER, COUNTER_MAX, COUNTER_TTL_MAX_NS

S = 10**9
TRIES = 100


class CounterCache(BaseCache):
    """See above."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        if not location:
            raise ImproperlyConfigured("CACHES: LOCATION must be the name of a segment, which sites share if they have the same")
        try:
            self._shared = hosts.shared({"name": location, **params.get("OPTIONS", {})})
        except ValueError as error:
            raise ImproperlyConfigured(f"CACHES: {location}: {error}") from error
        self._hosts = self._shared if isinstance(self._shared, hosts.Hosts) else None

    def _count(self, key: str, version: Any, n: int = 0, **named: Any) -> Count:
        key = self.make_key(key, version=version)
        self.validate_key(key)
        use = self._shared.use if self._hosts is None else self._hosts.use_everywhere
        count: Count = use("count", "django", COUNTER, key, n, **named)
        return count

    def _alone(self, what: str) -> None:
        if self._hosts is not None:
            raise NotImplementedError(f"{what}: hosts that share a value can only add to it")

    def _ttl_ns(self, timeout: Any) -> int:
        """0: the value is gone at once."""
        seconds = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        if seconds is not None and seconds * S > COUNTER_TTL_MAX_NS:
            raise ValueError(f"a cache of counters has timeouts of 366 days at most, and not {seconds} s")
        return COUNTER_TTL_MAX_NS if seconds is None else max(int(seconds * S), 0)

    @staticmethod
    def _stored(value: Any) -> int:
        if type(value) is not int:
            raise TypeError(f"a cache of counters holds integers, and not {type(value).__name__}")
        if not 0 <= value < COUNTER_MAX - 1:
            raise ValueError(f"a cache of counters holds 0 to {COUNTER_MAX - 2}, and not {value}")
        return value + 1

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Any = None) -> bool:
        stored, ttl_ns = self._stored(value), self._ttl_ns(timeout)
        if ttl_ns == 0:
            return self._count(key, version).value == 0
        return self._count(key, version, stored, ttl_ns=ttl_ns, bound=stored).allowed

    def get(self, key: str, default: Any = None, version: Any = None) -> Any:
        count = self._count(key, version).value
        return count - 1 if count else default

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: Any = None) -> None:
        self._alone("set()")
        stored, ttl_ns = self._stored(value), self._ttl_ns(timeout)
        if ttl_ns == 0:
            self.delete(key, version=version)
            return
        # What other processes add in between is seen in the answer, and taken away again. BOUND: they may go on for ever.
        count = self._count(key, version).value
        for _ in range(TRIES):
            count = self._count(key, version, stored - count, ttl_ns=ttl_ns, saturate=True, restart=True).value
            if count == stored:
                return

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: Any = None) -> bool:
        self._alone("touch()")
        value = self.get(key, version=version)
        if value is not None:
            self.set(key, value, timeout, version)
        return value is not None

    def delete(self, key: str, version: Any = None) -> bool:
        self._alone("delete()")
        had = self._count(key, version).value > 0
        self._shared.limiter().reset("django", shared_key(self.make_key(key, version=version)))
        return had

    def incr(self, key: str, delta: int = 1, version: Any = None) -> int:
        if self._hosts is not None:
            return self._incr_everywhere(key, delta, version)
        value = self._count(key, version).value
        if value == 0 or value + delta < 1:
            raise ValueError(f"Key '{key}' not found, or below 0")
        count = self._count(key, version, delta)
        if not count:
            raise ValueError(f"Key '{key}' out of range: 0 to {COUNTER_MAX - 2}")
        if count.value == delta:
            # It expired, or another process deleted it, since it was looked at: what was added is alone.
            if self._count(key, version, -delta, saturate=True).value == 0:
                self.delete(key, version)  # with its time, which an add() would not begin again
            raise ValueError(f"Key '{key}' not found")
        return count.value - 1

    def _incr_everywhere(self, key: str, delta: int, version: Any) -> int:
        if delta < 0:
            self._alone("decr()")
        known = self._count(key, version)
        if known.value == 0:
            raise ValueError(f"Key '{key}' not found on this host")
        # If it has ended since, this begins another one, which ends as soon as the first would have.
        count = self._count(key, version, delta, ttl_ns=known.ttl_ns)
        if not count or count.value <= delta:
            raise ValueError(f"Key '{key}' not found, out of range: 0 to {COUNTER_MAX - 2}, or the backend does not answer")
        return count.value - 1

    def clear(self) -> None:
        self._alone("clear()")
        try:
            self._shared.limiter().reset("django")
        except Error:
            return
