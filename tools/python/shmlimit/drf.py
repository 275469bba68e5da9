"""Throttles for Django REST framework: in the setting DEFAULT_THROTTLE_CLASSES, in place of those of rest_framework.throttling.

Rates are those of DEFAULT_THROTTLE_RATES: "5/min" allows 5 requests at once, and gives one back every 12 seconds. All that
shmlimit.rate.parse() reads is a rate, such as "10/s burst 20", "0/min" and "unlimited"; None is no limit. The setting SHMLIMIT, if there is one, has the arguments of shmlimit.shared.Shared: {"name": "web", "mode": 0o660, "group": "www-data"}.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import functools
import os
from typing import Any

from django.conf import settings
from rest_framework import throttling

from .limiter import NEVER, Algorithm, Mode, Result, Rule
from .rate import parse
from .shared import Shared, file_of, rule_name, rule_name_at


@functools.lru_cache(maxsize=None)
def _shared() -> Shared:
    return Shared(**getattr(settings, "SHMLIMIT", {}))


@functools.lru_cache(maxsize=None)
def _rule(scope: str | None, rate: str) -> tuple[str, Rule]:
    """Where no segment is named, the rule's name has the settings' file: two sites of one user are two."""
    rule = parse(rate)
    name = f"drf.{scope}.{rule.capacity}.{rule.refill}.{rule.period_ns}.{rule.mode.name.lower()}"
    if getattr(settings, "SHMLIMIT", {}).get("name"):
        return rule_name(name), rule
    return rule_name_at(name, file_of(os.environ.get("DJANGO_SETTINGS_MODULE", "__main__"))), rule


class RateThrottle(throttling.SimpleRateThrottle):
    """The base of the others, and of throttles of your own: define get_cache_key(), and `rate` or `scope`."""

    def parse_rate(self, rate: str | None) -> tuple[int | None, int | None]:
        """Of a rate, requests and seconds, as the base class has them. ValueError: it is none, or of how many at once."""
        if rate is None:
            return None, None
        rule = parse(rate)
        if rule.algorithm != Algorithm.FUNNEL:
            raise ValueError(f'rate "{rate}": a throttle needs requests and a period, such as 5/min')
        return 0 if rule.mode == Mode.BLOCK else rule.refill, -(-rule.period_ns // 10**9)

    def allow_request(self, request: Any, view: Any) -> bool:
        key = None if self.rate is None else self.get_cache_key(request, view)
        if key is None:
            return True
        name, rule = _rule(self.scope, self.rate)
        self.result: Result = _shared().take(name, rule, key)
        return self.result.allowed

    def wait(self) -> float | None:
        return None if self.result.retry_after_ns == NEVER else self.result.retry_after_ns / 1e9


class AnonRateThrottle(throttling.AnonRateThrottle, RateThrottle):
    """Clients that are not logged in, by address; scope "anon"."""


class UserRateThrottle(throttling.UserRateThrottle, RateThrottle):
    """Users, or addresses of clients that are not logged in; scope "user"."""


class ScopedRateThrottle(throttling.ScopedRateThrottle, RateThrottle):
    """Views that have a throttle_scope."""
