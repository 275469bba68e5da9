"""What a server that is asked says about when to ask again: Retry-After, and the RateLimit fields.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import datetime
import email.utils
import random
import re
import time
from typing import Any, Protocol

from .key import Key

REFUSALS = (429, 503)


class _Pauses(Protocol):
    def pause(self, rule: str | int, key: Key, seconds: float) -> bool: ...


def _time(date: str | None) -> float | None:
    """Seconds since 1970 of a date of HTTP, in each of its three forms; None: it is none."""
    try:
        at = email.utils.parsedate_to_datetime(date or "")
        return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _seconds(text: str, date: str | None) -> float | None:
    """Of Retry-After: seconds, or a date, which is compared with the server's."""
    if re.fullmatch(r"\d{1,15}(\.\d+)?", text.strip()):
        return float(text)
    until, now = _time(text), _time(date)
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _reset(headers: Any) -> float | None:
    """Of RateLimit and its forerunners: the time after which there is something again, if nothing is left now."""
    found = [0.0]
    for item in str(headers.get("RateLimit") or "").split(","):
        left, reset = (re.search(rf";\s*{name}\s*=\s*(\d{{1,15}})\s*(;|$)", item) for name in "rt")
        if left and reset and int(left[1]) == 0:
            found.append(float(reset[1]))
    # Draft 7 had one quota, of parameters alone: limit=100, remaining=0, reset=50.
    field = str(headers.get("RateLimit") or "")
    left, reset = (re.search(rf"(?:^|[,;])\s*{name}\s*=\s*(\d{{1,15}})\s*(?:[,;]|$)", field) for name in ("remaining", "reset"))
    if left and reset and int(left[1]) == 0:
        found.append(float(reset[1]))
    for prefix in ("RateLimit-", "X-RateLimit-"):
        remaining = str(headers.get(prefix + "Remaining") or "").strip()
        told = str(headers.get(prefix + "Reset") or "").strip()
        if re.fullmatch("0+", remaining) and re.fullmatch(r"\d{1,15}", told):
            # Some say when, and not after how long.
            found.append(max(0.0, float(told) - (time.time() if float(told) > 10**9 else 0)))
    return max(found) or None


def retry_after(response: Any, *, default: float = 1.0) -> float:
    """For how many seconds nothing is to be sent to the server that gave this answer, of requests, httpx, aiohttp or urllib:
    what Retry-After says, in seconds or as a date, where the status is 429 or 503; else what the RateLimit fields say, if
    nothing is left. 429 or 503 without either: `default`. 0.0: go on."""
    status = getattr(response, "status_code", None)
    status = getattr(response, "status", None) if status is None else status
    headers = response.headers
    refused = status in REFUSALS
    told = headers.get("Retry-After") if refused else None
    seconds = _seconds(told, headers.get("Date")) if told else None
    if seconds is None:
        seconds = _reset(headers)
    if seconds is None:
        return default if refused else 0.0
    return seconds


def heed(
    limiter: _Pauses,
    rule: str | int,
    key: Key,
    response: Any,
    *,
    default: float = 1.0,
    most: float = 3600.0,
    jitter: float = 0.1,
) -> float | None:
    """Pause the key in all processes for as long as the response asks for, at most for `most` seconds, so that no wrong field
    stops a program for a year. The pause is longer by a random part of up to `jitter`: hosts that were asked for the same time do
    not begin together. Returns its seconds; 0.0: none was asked for; None: there is no pause, though one was asked for, since the
    segment has no slot for the key, or is off."""
    seconds = min(retry_after(response, default=default), most)
    if seconds <= 0:
        return 0.0
    seconds *= 1 + jitter * random.random()  # noqa: S311
    return seconds if limiter.pause(rule, key, seconds) else None
