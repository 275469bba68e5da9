"""One rate limit for all processes of a host: shmlimit(3) for Python.

SPDX-License-Identifier: BSD-2-Clause
"""

from .engine import Engine, OnFailure
from .gate import Gate, Limit
from .global_limiter import EngineInfo, Funnel, GlobalLimiter
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
    "Engine",
    "EngineInfo",
    "Error",
    "Fields",
    "Funnel",
    "Gate",
    "GlobalLimiter",
    "Info",
    "Limit",
    "Limiter",
    "Mode",
    "OnFailure",
    "OnFull",
    "Request",
    "Result",
    "Rule",
    "Throttled",
    "destroy",
    "key_ip",
]
