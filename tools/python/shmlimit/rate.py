"""A rate as text.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes

from . import _c
from ._c import library
from .limiter import Algorithm, Law, Mode, Rule


def parse(rate: str) -> Rule:
    """The rule that a text describes: "5/minute", "10/s burst 20", "1000/hour strict", "20 at once", "block", "unlimited".
    shmlimit(7) has all forms. ValueError: it is none; the message has the nearest."""
    text = rate.encode(errors="replace")
    c, wrong = _c.Rule(struct_size=ctypes.sizeof(_c.Rule)), _c.Problem()
    if b"\0" in text:
        raise ValueError(f'rate "{rate!r}": contains a NUL')
    if library.rule_parse(text, ctypes.byref(c), ctypes.byref(wrong)) != 0:
        raise ValueError(f'rate "{rate}": {wrong.text.decode(errors="replace")}')
    return Rule(
        c.capacity,
        c.refill or c.capacity,
        c.period_ns,
        mode=Mode(c.mode),
        algorithm=Algorithm(c.algorithm),
        cut_off=bool(c.flags & _c.CUT_OFF),
        zone=c.zone.decode(),
        law=Law(c.law) if c.law else None,
        least=c.least,
    )
