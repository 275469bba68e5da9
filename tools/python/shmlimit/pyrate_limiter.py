"""A bucket for pyrate-limiter 3 and 4, in shared memory: one for all processes of the host.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from pyrate_limiter import AbstractBucket, Rate, RateItem

from .key import Key, shared_key
from .limiter import NEVER, Algorithm, Error, Request, Result, Rule
from .shared import Shared, rule_name

MS = 10**6


class Bucket(AbstractBucket):
    """All processes share the bucket of a rule and key: a sliding window for each of up to 16 rates, of which an item is taken from all or
    from none, at the time of put()."""

    is_async = False

    def __init__(self, rates: Sequence[Rate], *, rule: str, key: Key = "", segment: str | Shared | None = None) -> None:
        super().__init__()
        self.rates = sorted(rates, key=lambda rate: rate.interval)
        self.failing_rate = None
        self._key = key
        self._shared = segment if isinstance(segment, Shared) else Shared(segment)
        self._windows = [
            (rule_name(f"{rule}.{rate.limit}.{rate.interval}"), Rule(rate.limit, 0, rate.interval * MS, algorithm=Algorithm.WINDOW))
            for rate in self.rates
        ]

    def _take_all(self, cost: int) -> int:
        key = shared_key(self._key)
        return self._shared.limiter().take_all([Request(name, key, cost) for name, _ in self._windows]).failed

    def put(self, item: RateItem) -> bool:
        if item.weight == 0:
            return True
        try:
            failed = self._take_all(item.weight)
        except Error as error:
            if error.errno != errno.ESRCH:
                raise
            for window in self._windows:
                self._peek(window, 1)  # sets a rule that is missing
            failed = self._take_all(item.weight)
        self.failing_rate = None if failed < 0 else self.rates[failed]
        return failed < 0

    def _peek(self, window: tuple[str, Rule], cost: int) -> Result:
        result: Result = self._shared.use("peek", *window, self._key, cost)
        return result

    def waiting(self, item: RateItem) -> int:
        """Milliseconds until the item fits; -1: it never does."""
        waits = [self._peek(window, item.weight).retry_after_ns for window in self._windows]
        return -1 if NEVER in waits else -(-max(waits) // MS)

    def count(self) -> int:
        """Of the longest rate."""
        return self.rates[-1].limit - self._peek(self._windows[-1], 1).remaining

    def peek(self, index: int) -> RateItem | None:
        """The item before `index` later ones, of the longest rate. Its name is not known."""
        count, rate = self.count(), self.rates[-1]
        if not 0 <= index < count:
            return None
        ends_ns = self._peek(self._windows[-1], rate.limit - index).retry_after_ns
        return RateItem("", int(self.now()) + ends_ns // MS - rate.interval)

    def leak(self, current_timestamp: int | None = None) -> int:
        """Nothing to do: items leave by themselves."""
        return 0

    def flush(self) -> None:
        self.failing_rate = None
        for name, rule in self._windows:
            self._shared.use("reset", name, rule, self._key)
