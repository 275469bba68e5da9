"""One rate limit for all processes of a host: shmlimit(3) for Python.

SPDX-License-Identifier: BSD-2-Clause
"""

from .gate import Gate, Limit
from .limiter import (
    NEVER,
    Algorithm,
    All,
    Clock,
    Counters,
    Error,
    Fields,
    Info,
    Limiter,
    Mode,
    OnFull,
    Request,
    Result,
    Rule,
    Throttled,
    destroy,
    key_ip,
)

__all__ = [
    "NEVER",
    "Algorithm",
    "All",
    "Clock",
    "Counters",
    "Error",
    "Fields",
    "Gate",
    "Info",
    "Limit",
    "Limiter",
    "Mode",
    "OnFull",
    "Request",
    "Result",
    "Rule",
    "Throttled",
    "destroy",
    "key_ip",
]
