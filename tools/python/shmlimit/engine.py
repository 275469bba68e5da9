"""Where limits of many hosts are leased from, and what is answered while nobody is there.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

SAY_EVERY_S = 60.0
"""How long the same words about an engine are not said again."""
SAID_MAX = 64
"""Of so many words that is known; there are a few, but for what engines say themselves."""

log = logging.getLogger("shmlimit")

_WORDS = {
    errno.EACCES: "user or password refused",
    errno.EBADMSG: "an answer that makes no sense",
    errno.EBUSY: "does not write now",
    errno.EDOM: "no such database",
    errno.EMEDIUMTYPE: "the key is something else there",
    errno.ENOEXEC: "the script is not kept",
    errno.EPROTO: "too old",
    errno.ERANGE: "the rule cannot be counted exactly there",
    errno.ETIMEDOUT: "no answer by the deadline",
    errno.EXDEV: "the key is on another node of the cluster",
}


def words(number: int) -> str:
    """What an error means that an engine's call returns; the rest is what the system says of connections."""
    return "engine: " + (_WORDS.get(number) or f"no connection ({os.strerror(number)})")


class OnFailure(IntEnum):
    """What is answered when the engine says nothing."""

    DENY = 0
    ALLOW = 1
    LOCAL = 2
    """What a funnel of this host says: a share of the limit."""


@dataclass(frozen=True)
class Engine:
    """A Redis or Valkey server. 0 is the default."""

    url: str = field(repr=False)  # it may have a password in it
    """redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=N], %-encoded"""
    on_failure: OnFailure | None = None
    """None: DENY; in a gate that fails open ALLOW."""
    deadline_ns: int = 0
    """The longest that a call waits: 100 us to 10 s, default 5 ms. The same on all hosts."""
    lease_ns: int = 0
    """How long a lease lasts, and how much is leased: 1 ms to 10 s, default 100 ms. The same on all hosts."""
    open_ns: int = 0
    """How long nobody asks an engine that failed: 1 ms to 1 h, default 200 ms."""
    open_after: int = 0
    """... so many times running, in one process: default 1."""
    local_milli: int = 0
    """LOCAL: this host's share, thousandths of the limit: 1 to 1000, default 1000."""
    prefix: str = "shmlimit:"
    """Of the keys there, without '{'; up to 64 bytes."""


class Said:
    """What was said of an engine lately. Each handle says for itself what is wrong, in the same words as the others.

    WHY NOT a lock: a child that is forked while another thread has it would wait for ever.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._at: dict[str, float] = {}
        self.last = ""

    def __call__(self, _arg: int | None, text: bytes) -> None:
        """As C calls it."""
        line, now = text.decode("utf-8", "replace"), time.monotonic()
        self.last = line
        if now - self._at.get(line, now) >= SAY_EVERY_S:
            self._at.pop(line, None)
        if len(self._at) >= SAID_MAX:
            self._at.clear()
        if self._at.setdefault(line, now) is now:
            self._say(line)
