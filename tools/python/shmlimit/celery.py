"""Celery's rate_limit, for all workers of the host instead of each.

    app.conf.worker_consumer = "shmlimit.celery:Consumer"

A task's rate_limit, such as "10/m", then is the rate at which the workers of the host begin it together: a worker keeps its tasks in
order, has one reservation at a time, and begins the next task when that is due. The tasks of a worker that is killed are the broker's,
as they are with Celery's own limit. `shmlimit_segment` in the configuration names the segment; its default is python-UID, of the user
that workers run as. `celery control rate_limit` changes the limit of all workers.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from celery.utils.time import rate
from celery.worker import consumer

from .limiter import Error, Rule, log
from .line import AHEAD_S, Line, Lines, RateLimited
from .shared import Shared, rule_name

PERIODS = {"s": 1, "m": 60, "h": 3600}
AGAIN_S = 1.0
"""A rule that an operator has set to block is asked so often, and a segment that cannot be opened."""


def parse(limit: Any) -> Rule | None:
    """The rule of a rate_limit: a number of tasks in a second, or such as "10/m". None: there is no limit."""
    if not rate(limit):
        return None
    count, _, unit = str(limit).partition("/")
    tasks = float(count)
    period_ns = PERIODS[unit or "s"] * 10**9
    return Rule(1, int(tasks) if tasks.is_integer() else tasks, period_ns, max_wait_ns=int(AHEAD_S * 1e9))


class Bucket:
    """What a consumer asks of kombu's TokenBucket, whose tokens are those of all workers."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._line = Line()
        self._wait_s = 0.0
        # A timer's thread asks, too.
        self._lock = threading.Lock()
        self.contents: deque[Any] = deque()
        """Tasks that wait, and the tokens of each."""

    def add(self, item: Any) -> None:
        self.contents.append(item)

    def pop(self) -> Any:
        return self.contents.popleft()

    def change(self, lines: Lines) -> None:
        """The limit is another one."""
        with self._lock:
            self.lines, self._line = lines, Line()

    def clear_pending(self) -> None:
        """The connection is lost, and the tasks that wait are the broker's again. The turn passes unused."""
        self.contents.clear()
        self.change(self.lines)

    def can_consume(self, tokens: int = 1) -> bool:
        with self._lock:
            try:
                self._wait_s = self.lines.ask(self._line, "", tokens)
            except RateLimited:
                self._wait_s = AGAIN_S
            except Error as error:
                log.error("%s: %s", self.lines.name, error)
                self._wait_s = AGAIN_S
            return self._wait_s == 0

    def expected_time(self, tokens: int = 1) -> float:
        """The seconds until can_consume(), which has just denied, is to be asked again."""
        return self._wait_s


class Consumer(consumer.Consumer):
    """The consumer of a worker, with limits in the segment."""

    _shared: Shared | None = None

    def bucket_for_task(self, type: Any) -> Bucket | None:
        made = parse(getattr(type, "rate_limit", None))
        if made is None:
            return None
        if self._shared is None:
            self._shared = Shared(self.app.conf.get("shmlimit_segment"))
        lines, bucket = Lines(self._shared, rule_name(f"celery.{type.name}"), made), self.task_buckets[type.name]
        if bucket is None:
            return Bucket(lines)
        bucket.change(lines)
        return bucket  # type: ignore[no-any-return]

    def reset_rate_limits(self) -> None:
        """Tasks that wait do so for the new limits."""
        super().reset_rate_limits()
        for bucket in self.task_buckets.values():
            if bucket and bucket.contents:
                self._schedule_bucket_request(bucket)
