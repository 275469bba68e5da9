"""AsyncLimiter with the interface of aiolimiter 1, for one limit of all processes of the host.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import sys
from typing import Any

from .decorator import limit, name_at
from .key import Key
from .limiter import Rule
from .shared import Shared


def _whole(name: str, number: float) -> int:
    if number != int(number) or number < 1:
        raise ValueError(f"{name}: {number} must be a whole number, 1 or more")
    return int(number)


class AsyncLimiter:
    """At most `max_rate` at once, and as many in `time_period` seconds. Without `rule` the name is made of the limit and of the module
    that makes it, as limit() does it."""

    def __init__(
        self,
        max_rate: float,
        time_period: float = 60,
        *,
        rule: str | None = None,
        key: Key = "",
        segment: str | Shared | None = None,
    ) -> None:
        self.max_rate = _whole("max_rate", max_rate)
        self.time_period = time_period
        made = Rule(self.max_rate, self.max_rate, int(time_period * 1e9))
        name = rule or name_at(self, f"{max_rate}/{time_period}", sys._getframe(1))
        self._key = key
        self._limit = limit(made, key=key, rule=name, max_wait_s=None, segment=segment)

    def has_capacity(self, amount: float = 1) -> bool:
        return amount <= self.max_rate and self._limit.peek(self._key, _whole("amount", amount)).allowed

    async def acquire(self, amount: float = 1) -> None:
        if amount > self.max_rate:
            raise ValueError("Can't acquire more than the maximum capacity")
        await self._limit.acquire_async(self._key, _whole("amount", amount))

    async def __aenter__(self) -> None:
        await self._limit.acquire_async(self._key)

    async def __aexit__(self, *_error: Any) -> None:
        pass
