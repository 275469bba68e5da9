"""Calls that wait for their turn, of threads and of asyncio alike.

The first call that waits here has a reservation, and the others wait behind it. So processes take turns, and a killed process
loses one reservation of a key. A call that ends by an exception leaves its turn to the next call of this process, also to one that
comes later but before that turn; otherwise it passes unused. To give it back would let others pass at the time of the last one in the line.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from .key import Key, shared_key
from .limiter import NEVER, Algorithm, Place, Result, Rule
from .shared import Shared

PLACE_S = 0.02
"""How often to try again while all places are held: a process that leaves one tells no other."""
AHEAD_S = 3600.0
"""How far ahead a reservation may be. A call that may wait for longer asks again."""
TIMER_MAX_S = 86400.0
RESERVING = (Algorithm.FUNNEL, Algorithm.WARMUP, Algorithm.GCRA)


class RateLimited(Exception):
    """The limit denies the call. `retry_after_s`: the time after which it fits; None: never."""

    def __init__(self, rule: str, retry_after_s: float | None) -> None:
        super().__init__(rule, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"limit {self.args[0]}: " + (
            "never fits" if self.retry_after_s is None else f"retry after {self.retry_after_s:.3f} s"
        )


class QueueFull(RateLimited):
    """max_queue calls already wait in this process."""

    def __str__(self) -> str:
        return f"limit {self.args[0]}: too many calls wait"


def seconds(result: Result) -> float | None:
    return None if result.retry_after_ns == NEVER else result.retry_after_ns / 1e9


class _Waiter:
    """A call that waits. `wake` can be called in any thread. `gone`: it never comes again, since its loop was closed."""

    def __init__(
        self, cost: int, max_wait_s: float, wake: Callable[[], None], gone: Callable[[], bool] = lambda: False
    ) -> None:
        self.cost = cost
        self.deadline = time.monotonic() + max_wait_s
        self.wake = wake
        self.gone = gone
        self.place: Place | None = None


class Line:
    """What was reserved for a key here: `paid` tokens, which are there at the time `due`."""

    def __init__(self) -> None:
        self.waiters: deque[_Waiter] = deque()
        self.paid = 0
        self.due = 0.0


_all: weakref.WeakSet[Lines] = weakref.WeakSet()


def _begin_again() -> None:
    """In a forked child: the calls that wait are the parent's."""
    for lines in _all:
        lines._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


class Lines:
    """The lines of a rule, one for each key for which calls wait in this process, at most `max_queue` in all."""

    def __init__(self, shared: Shared, name: str, rule: Rule, max_queue: float = math.inf) -> None:
        self.name = name
        self._shared = shared
        self._rule = rule
        self._max_queue = max_queue
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        # This thread may have the lock when a call that waits is collected, and leaves its line.
        self._lock = threading.RLock()
        self._lines: dict[bytes, Line] = {}
        self._most = 16
        self.queued = 0

    def use(self, operation: str, key: Key, *arguments: Any) -> Any:
        return self._shared.use(operation, self.name, self._rule, key, *arguments)

    def ask(self, line: Line, key: Key, cost: int, deadline: float = math.inf) -> float:
        """The seconds after which to ask again; 0: the tokens are there, and are taken from what was reserved. Raises RateLimited."""
        missing, reserves = cost - line.paid, self._rule.algorithm in RESERVING
        now, paused_s = time.monotonic(), self.use("paused", key)
        if paused_s > 0 and (missing > 0 or line.due < now + paused_s):
            if now + paused_s > deadline:
                raise RateLimited(self.name, paused_s)
            # A turn that comes in the pause passes unused.
            line.paid = 0
            return float(paused_s)
        if missing > 0:
            ahead_s = (AHEAD_S if deadline == math.inf else max(deadline - now, 0.0)) if reserves else 0.0
            more = (min(int(ahead_s * 1e9), NEVER - 1),) if reserves else ()
            result = self.use("reserve" if reserves else "take", key, missing, *more)
            if not result:
                wait_s = seconds(result)
                if wait_s is None or now + wait_s + ahead_s > deadline:
                    raise RateLimited(self.name, wait_s)
                return max(wait_s, 0.001)
            line.paid += missing
            line.due = max(line.due, time.monotonic() + result.wait_ns / 1e9)
        left_s = line.due - time.monotonic()
        if left_s <= 0:
            line.paid -= cost
        return max(left_s, 0.0)

    def _join(self, key: Key, waiter: _Waiter) -> float:
        """As _step(). Raises RateLimited and QueueFull."""
        with self._lock:
            line = self._lines.setdefault(shared_key(key), Line())
            while line.waiters and line.waiters[0].gone():
                self._leave(key, line.waiters[0])
            line = self._lines.setdefault(shared_key(key), line)
            if not line.waiters and line.due <= time.monotonic():
                line.paid = 0
            line.waiters.append(waiter)
            self.queued += 1
            is_full = self.queued > self._max_queue
            if is_full:
                # It passes at once, or not: it reserves no turn that it would not wait for.
                waiter.deadline = 0.0
            try:
                if len(line.waiters) > 1 and self._rule.algorithm in RESERVING and waiter.deadline < math.inf:
                    # The bucket is empty, so this call waits at least for all that wait before it.
                    tokens = sum(other.cost for other in line.waiters) - line.paid
                    at = max(line.due, time.monotonic()) + tokens * self._rule.period_ns / self._rule.refill / 1e9
                    if at > waiter.deadline:
                        raise RateLimited(self.name, at - waiter.deadline)
                return self._step(key, waiter)
            except BaseException as error:
                self._leave(key, waiter)
                if is_full and isinstance(error, RateLimited):
                    raise QueueFull(self.name, None) from None
                raise

    def _step(self, key: Key, waiter: _Waiter) -> float:
        """Returns the seconds until the next try, unless the waiter is woken before, or 0 if it is its turn. Raises RateLimited."""
        with self._lock:
            line, wait_s = self._lines[shared_key(key)], math.inf
            if line.waiters[0] is waiter:
                if self._rule.algorithm == Algorithm.HOLD:
                    place: Place = self.use("enter", key)
                    waiter.place, wait_s = (place, 0.0) if place else (None, PLACE_S)
                else:
                    wait_s = self.ask(line, key, waiter.cost, waiter.deadline)
            if wait_s == 0:
                self._leave(key, waiter)
                return 0.0
            left_s = waiter.deadline - time.monotonic()
            if left_s <= 0:
                raise RateLimited(self.name, 0.0)
            return min(wait_s, left_s, TIMER_MAX_S)

    def _leave(self, key: Key, waiter: _Waiter) -> None:
        """The next one is the first, if this one was, and has what was reserved."""
        with self._lock:
            line = self._lines.get(shared_key(key))
            if line is None or waiter not in line.waiters:
                return
            line.waiters.remove(waiter)
            self.queued -= 1
            while line.waiters and line.waiters[0].gone():
                line.waiters.popleft()
                self.queued -= 1
            if line.waiters:
                line.waiters[0].wake()
            elif line.paid == 0:
                del self._lines[shared_key(key)]
            elif len(self._lines) > self._most:
                now = time.monotonic()
                self._lines = {key: line for key, line in self._lines.items() if line.waiters or line.due > now}
                self._most = 2 * len(self._lines) + 16

    def _end(self, key: Key, waiter: _Waiter) -> None:
        """An exception ended the wait."""
        self._leave(key, waiter)
        if waiter.place is not None:
            self.left(key, waiter.place)

    def left(self, key: Key, place: Place) -> None:
        """Leave a place. The first that waits here has it at once."""
        place.leave()
        with self._lock:
            line = self._lines.get(shared_key(key))
            if line is not None and line.waiters:
                line.waiters[0].wake()

    def wait(self, key: Key, cost: int, max_wait_s: float) -> Place | None:
        """Wait for the tokens, or for a place, and return it."""
        event = threading.Event()
        waiter = _Waiter(cost, max_wait_s, event.set)
        try:
            wait_s = self._join(key, waiter)
            while wait_s > 0:
                event.wait(wait_s)
                event.clear()
                wait_s = self._step(key, waiter)
        except BaseException:
            self._end(key, waiter)
            raise
        return waiter.place

    async def wait_async(self, key: Key, cost: int, max_wait_s: float) -> Place | None:
        """The same in asyncio."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # A loop that was closed runs no call.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

        waiter = _Waiter(cost, max_wait_s, wake, loop.is_closed)
        try:
            wait_s = self._join(key, waiter)
            while wait_s > 0:
                timer = loop.call_later(wait_s, event.set)
                try:
                    await event.wait()
                finally:
                    timer.cancel()
                event.clear()
                wait_s = self._step(key, waiter)
        except BaseException:
            self._end(key, waiter)
            raise
        return waiter.place
