"""A rate as text.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import re

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
