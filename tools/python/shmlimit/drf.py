"""Throttles for Django REST framework: in the setting DEFAULT_THROTTLE_CLASSES, in place of those of rest_framework.throttling.

Rates are those of DEFAULT_THROTTLE_RATES: "5/min" allows 5 requests at once, and gives one back every 12 seconds. All that
shmlimit.rate.parse() reads is a rate, such as "10/s burst 20", "0/min" and "unlimited"; None is no limit.

A throttle whose requests have rates of their own, such as those of a customer's plan, defines request_rate():

    class PlanThrottle(shmlimit.drf.UserRateThrottle):
        def request_rate(self, request, view):
            return request.user.plan.rate  # "100/min"; None: the throttle's own rate

The setting SHMLIMIT, if there is one, has the arguments of shmlimit.shared.Shared: {"name": "web", "mode": 0o660, "group": "www-data"}.
{"name": "web", "proxy_warning": False} does not say that behind a proxy all clients are one.
With {"name": "web", "backend": "redis://..."} all hosts share each rate, as a lease: shmlimit.hosts has the options.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import functools
import math
import os
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from rest_framework import throttling

from . import hosts
from .forwarded import UNIX, Watch
from .limiter import NEVER, Algorithm, Mode, Result, Rule
from .rate import parse
from .shared import Shared, file_of, rule_name, rule_name_at


@functools.lru_cache(maxsize=None)
def _shared() -> Shared:
    given = getattr(settings, "SHMLIMIT", {})
    return hosts.shared({name: value for name, value in given.items() if name != "proxy_warning"})


@functools.lru_cache(maxsize=None)
def _watch() -> Watch:
    return Watch("NUM_PROXIES of REST_FRAMEWORK says how many proxies there are", getattr(settings, "SHMLIMIT", {}).get("proxy_warning", True))


def _name(name: str) -> str:
    """Where no segment is named, the rule's name has the settings' file: two sites of one user are two."""
    if getattr(settings, "SHMLIMIT", {}).get("name"):
        return rule_name(name)
    return rule_name_at(name, file_of(os.environ.get("DJANGO_SETTINGS_MODULE", "__main__")))


@functools.lru_cache(maxsize=None)
def _rule(scope: str, rate: str) -> tuple[str, Rule]:
    rule = parse(rate)
    return _name(f"drf.{scope}.{rule.capacity}.{rule.refill}.{rule.period_ns}.{rule.mode.name.lower()}"), rule


@functools.lru_cache(maxsize=None)
def _plans(scope: str) -> tuple[str, Rule]:
    """The rule of requests that have rates of their own."""
    return _name(f"drf.{scope}.plans"), Rule(0, 0, 0, algorithm=Algorithm.GCRA)


class RateThrottle(throttling.SimpleRateThrottle):
    """The base of the others, and of throttles of your own: define get_cache_key(), and `rate` or `scope`."""

    def parse_rate(self, rate: str | None) -> tuple[int | None, int | None]:
        """Of a rate, requests and seconds, as the base class has them. ValueError: it is none, or of how many at once."""
        if rate is None:
            return None, None
        rule = parse(rate)
        if rule.algorithm != Algorithm.FUNNEL:
            raise ValueError(f'rate "{rate}": a throttle needs requests and a period, such as 5/min')
        return 0 if rule.mode == Mode.BLOCK else math.ceil(rule.refill), -(-rule.period_ns // 10**9)

    def _group(self) -> str:
        """Throttles with one scope are one limit, as in REST framework; each class without a scope is its own."""
        return self.scope or f"{type(self).__module__}.{type(self).__qualname__}"

    def request_rate(self, request: Any, view: Any) -> str | None:
        """The rate of this request; None: the throttle's own. However many there are, they are under one rule, and a key that is
        asked with another one owes at most that one's time to full. ValueError: it is none."""
        return None

    def allow_request(self, request: Any, view: Any) -> bool:
        rate = self.request_rate(request, view)
        key = None if rate is None and self.rate is None else self.get_cache_key(request, view)
        if key is None:
            return True
        if _watch().looks and _watch().due():
            self._look(getattr(request, "META", {}), key)
        if rate is None:
            name, rule = _rule(self._group(), self.rate)
            self.result: Result = _shared().take(name, rule, key)
        elif isinstance(_shared(), hosts.Hosts):
            raise ImproperlyConfigured("SHMLIMIT: hosts cannot share the rates of request_rate(): leave out the backend")
        else:
            name, rule = _plans(self._group())
            self.result = _shared().use("take", name, rule, key, limit=rate)
        return self.result.allowed

    def _look(self, meta: Any, key: str) -> None:
        """REST framework's keys end with the address, or with a user's id, which is no address."""
        peer = meta.get("REMOTE_ADDR") or UNIX
        _watch().look_cgi(key, meta, [lambda key: peer if key.endswith(f"_{peer}") else None])

    def wait(self) -> float | None:
        return None if self.result.retry_after_ns == NEVER else self.result.retry_after_ns / 1e9


class AnonRateThrottle(throttling.AnonRateThrottle, RateThrottle):
    """Clients that are not logged in, by address; scope "anon"."""


class UserRateThrottle(throttling.UserRateThrottle, RateThrottle):
    """Users, or addresses of clients that are not logged in; scope "user"."""


class ScopedRateThrottle(throttling.ScopedRateThrottle, RateThrottle):
    """Views that have a throttle_scope."""
