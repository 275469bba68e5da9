"""One rate limit for all processes of a host: shmlimit(3) for Python.

SPDX-License-Identifier: BSD-2-Clause
"""

from .decorator import limit
from .gate import Answer, Gate, Limit
from .global_limiter import Backend, BackendInfo, Funnel, GlobalLimiter, OnFailure
from .limiter import (
    NEVER,
    Algorithm,
    All,
    Clock,
    Count,
    Counters,
    Error,
    Fields,
    Info,
    Law,
    Limiter,
    Mode,
    OnFull,
    Place,
    Places,
    Request,
    Result,
    Rule,
    Throttled,
    destroy,
    key_ip,
)
from .line import QueueFull, RateLimited
from .remote import heed, retry_after

__all__ = [
    "NEVER",
    "Algorithm",
    "All",
    "Answer",
    "Clock",
    "Count",
    "Counters",
    "Backend",
    "BackendInfo",
    "Error",
    "Fields",
    "Funnel",
    "Gate",
    "GlobalLimiter",
    "Info",
    "Law",
    "Limit",
    "Limiter",
    "Mode",
    "OnFailure",
    "OnFull",
    "Place",
    "QueueFull",
    "RateLimited",
    "Places",
    "Request",
    "Result",
    "Rule",
    "Throttled",
    "destroy",
    "heed",
    "key_ip",
    "limit",
    "retry_after",
]
