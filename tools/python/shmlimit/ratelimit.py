"""limits and sleep_and_retry with the interface of ratelimit 2, for one limit of all processes of the host.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .decorator import limit
from .key import Key
from .limiter import Algorithm, Rule
from .line import RateLimited
from .shared import COUNTER_MAX, Shared

Function = TypeVar("Function", bound=Callable[..., Any])


class RateLimitException(Exception):
    """As ratelimit's: after `period_remaining` seconds the next period begins."""

    def __init__(self, message: str, period_remaining: float) -> None:
        super().__init__(message)
        self.period_remaining = period_remaining


class RateLimitDecorator:
    """At most `calls` in a period of this number of seconds, which begins with its first call. Without `rule` the name is made of that of the
    first function that it decorates, as limit() does it."""

    def __init__(
        self,
        calls: float = 15,
        period: float = 900,
        *,
        raise_on_limit: bool = True,
        rule: str | None = None,
        key: Key = "",
        segment: str | Shared | None = None,
    ) -> None:
        made = Rule(max(1, min(COUNTER_MAX, math.floor(calls))), 0, int(period * 1e9), algorithm=Algorithm.COUNTER)
        self._limit = limit(made, rule=rule, segment=segment)
        self._key = key
        self._period = period
        self._raise_on_limit = raise_on_limit

    def __call__(self, function: Function) -> Function:
        self._limit.name_for(function)

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            try:
                self._limit.take(self._key)
            except RateLimited as error:
                if self._raise_on_limit:
                    raise RateLimitException("too many calls", self._period if error.retry_after_s is None else error.retry_after_s) from None
                return None
            return function(*args, **kwargs)

        return limited  # type: ignore[return-value]


def sleep_and_retry(function: Function) -> Function:
    """The function, which is called again when the period has ended of a limit that denied it."""

    @functools.wraps(function)
    def retried(*args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                return function(*args, **kwargs)
            except RateLimitException as error:
                time.sleep(error.period_remaining)

    return retried  # type: ignore[return-value]


limits = rate_limited = RateLimitDecorator
