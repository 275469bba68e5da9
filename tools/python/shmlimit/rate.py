"""A rate as text, and limits without the library: in the memory of one process.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from ._c import UINT64_MAX
from .limiter import Algorithm, Rule

_RATE = re.compile(
    r"[ \t]*(\d+)([KMG]?)(?:r/|[ \t]*/[ \t]*|[ \t]*(?i:per)[ \t]+)(?:(\d+)([KMG]?)[ \t]*)?([A-Za-z]+)"
    r"(?:[ \t]+(?i:burst)[ =][ \t]*(\d+)([KMG]?))?[ \t]*",
    re.ASCII,
)
_SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86400),
    **dict.fromkeys(("month", "months"), 30 * 86400),
    **dict.fromkeys(("y", "year", "years"), 365 * 86400),
}
_AT_ONCE = re.compile(r"[ \t]*(\d+)([KMG]?)[ \t]*(?i:at once)(?:[ \t]+(?i:for)[ \t]+(?:(\d+)[ \t]*)?([A-Za-z]+))?[ \t]*", re.ASCII)
KEYS_MAX = 10_000


def parse(rate: str) -> Rule:
    """The funnel that a rate describes: "5/minute", "100 per hour", "10/s burst 20". As shmlimit_gate(3) reads rates."""
    if match := _AT_ONCE.fullmatch(rate):
        return _parse_places(rate, match)
    match = _RATE.fullmatch(rate)
    unit = _UNITS.get(match[5].lower(), 0) if match else 0
    if match is None or unit == 0:
        raise ValueError(f'rate "{rate}": must be as "5/minute", "100 per hour" or "10/s burst 20"')
    count, periods, burst = (
        int(number) * _SUFFIXES[suffix] if number else 0
        for number, suffix in (match.group(1, 2), match.group(3, 4), match.group(6, 7))
    )
    if count == 0 or match[3] and periods == 0 or match[6] and burst == 0:
        raise ValueError(f'rate "{rate}": must have no 0')
    return Rule(burst or count, count, (periods or 1) * unit * 10**9)


def _parse_places(rate: str, match: re.Match[str]) -> Rule:
    places = int(match[1]) * _SUFFIXES[match[2]]
    period_s = int(match[3] or 1) * _UNITS.get(match[4].lower(), 0) if match[4] else 60
    if places == 0 or period_s == 0:
        raise ValueError(f'rate "{rate}": must be as "20 at once" or "20 at once for 10 minutes"')
    return Rule(places, places, period_s * 10**9, algorithm=Algorithm.HOLD)


class Memory:
    """What a gate answers where there is no library: its limits that have a rate, in this process alone."""

    def __init__(self, rates: list[str | None], statuses: list[int]) -> None:
        self._rules = [parse(rate) if rate else None for rate in rates]
        self._statuses = statuses
        self._lock = threading.Lock()
        self._full_at: dict[tuple[int, Any], int] = {}
        self._ends: dict[tuple[int, Any], list[int]] = {}

    def ask(
        self, _handle: int, limits: tuple[tuple[Any, Any], ...], request: Any, _as_bytes: bool, _waits: bool, _enters: bool | None, /
    ) -> Any:
        """As _c_gate.ask(), without fields."""
        wanted = []
        for i, (key_of, cost) in enumerate(limits):
            key = key_of(request)
            if key is not None and self._rules[i] is not None:
                wanted.append((i, key, cost if isinstance(cost, int) else cost(request)))
        with self._lock:
            now, taken = time.monotonic_ns(), {}
            places: list[tuple[tuple[int, Any], int]] = []
            for i, key, cost in wanted:
                rule = self._rules[i]
                assert rule is not None
                if rule.algorithm == Algorithm.HOLD:
                    ends = self._ends[i, key] = [end for end in self._ends.get((i, key), ()) if end > now]
                    if len(ends) >= rule.capacity:
                        return "rejected", self._statuses[i], [], min(ends) - now, 0, None
                    places.append(((i, key), now + rule.period_ns))
                    continue
                full_at = max(self._full_at.get((i, key), 0), now) + cost * rule.period_ns // rule.count
                late = full_at - now - rule.capacity * rule.period_ns // rule.count
                if late > 0:
                    return "rejected", self._statuses[i], [], UINT64_MAX if cost > rule.capacity else late, 0, None
                taken[i, key] = full_at
            if len(self._full_at) > KEYS_MAX:
                self._full_at = {key: at for key, at in self._full_at.items() if at > now}
            self._full_at.update(taken)
            for where, end in places:
                self._ends[where].append(end)
        return "passed" if wanted else "unlimited", 0, [], 0, UINT64_MAX, places or None

    def leave(self, _handle: int, places: list[tuple[tuple[int, Any], int]], /) -> None:
        """As _c_gate.leave()."""
        with self._lock:
            for where, end in places:
                ends = self._ends.get(where, [])
                if end in ends:
                    ends.remove(end)
                if not ends:
                    self._ends.pop(where, None)
