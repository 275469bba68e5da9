"""Limits that many hosts share, through an engine: shmlimit_global(3).

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import TracebackType
from typing import Any, NamedTuple

from . import _c, _c_global
from .limiter import Error, Limiter, Request, Result, _check, _error, _key, _result, _unsigned, log

SAY_EVERY_S = 60.0
"""How long the same line about an engine is not reported again."""
SAID_MAX = 64
"""Lines that are remembered for that; there are a few, except for those that engines write themselves."""

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
    """None: DENY."""
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

_OF_THE_LIBRARY = {errno.EINVAL, errno.EMSGSIZE, errno.EOPNOTSUPP, errno.EROFS, errno.ESRCH}
"""Errors of engine calls that are about their arguments."""


class EngineInfo(NamedTuple):
    """What an engine says of itself."""

    round_trip_ns: int
    version: str
    mode: str
    """standalone, cluster, sentinel"""
    role: str
    """master, replica"""


class Funnel(NamedTuple):
    """A funnel as the engine has it."""

    remaining: int
    """Whole tokens that may still be leased."""
    reset_after_ns: int
    """Until it is full, if nobody leases."""
    lease_ns: int
    """How long leases of this rule last."""


def _text(text: str) -> bytes:
    """A text for C, which would end it at a NUL."""
    encoded = text.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise Error(errno.EINVAL, "there is a NUL in it", "engine")
    return encoded


def _check_engine(answer: int, subject: str) -> None:
    if answer < 0 and -answer not in _OF_THE_LIBRARY:
        raise Error(-answer, words(-answer), subject)
    _check(answer, subject)


class GlobalLimiter:
    """The limits of a segment whose rules are leases, over all hosts that use the same engine.

    A token is debited in the engine before it is spent here. Works on in children that are forked later, which connect
    anew. Thread-safe, but for close(), as a Limiter is, which must stay open meanwhile: each thread that is in a call
    has a connection of its own. Nobody is connected to before the first call that asks. A call takes the engine's
    deadline at the most, while other Python threads run.

    `report` is told what is wrong, in one line, when it begins to be so, and at most once a minute; by default the
    logger `shmlimit` is.
    """

    def __init__(self, limiter: Limiter, engine: Engine | str, report: Callable[[str], None] | None = None) -> None:
        self._idle: list[int] = []
        self._closed = False
        self.limiter = limiter
        self.engine = Engine(engine) if isinstance(engine, str) else engine
        self._library = _c_global.load()
        self._said = Said(report or (lambda line: log.error("segment %s: %s", limiter.name, line)))
        self._url = _text(self.engine.url)
        self._options = _c_global.Options(
            struct_size=ctypes.sizeof(_c_global.Options),
            on_failure=self.engine.on_failure or OnFailure.DENY,
            deadline_ns=_unsigned(self.engine.deadline_ns),
            lease_ns=_unsigned(self.engine.lease_ns),
            open_ns=_unsigned(self.engine.open_ns),
            open_after=_unsigned(self.engine.open_after, 32),
            local_milli=_unsigned(self.engine.local_milli, 32),
            prefix=_text(self.engine.prefix),
            report=_c_global.Report(self._said),
        )
        self._idle.append(self._open())

    def _open(self) -> int:
        handle = ctypes.c_void_p()
        answer = self._library.global_open(
            self.limiter._handle, self._url, ctypes.byref(self._options), ctypes.byref(handle)
        )
        if answer == -errno.EINVAL and self._said.last:
            raise Error(errno.EINVAL, self._said.last, self.limiter.name)
        _check(answer, self.limiter.name)
        assert handle.value is not None
        return handle.value

    def _check_open(self) -> None:
        if self._closed or self.limiter._handle is None:
            raise _error(errno.EINVAL, self.limiter.name)

    def _call(self, verb: str, *arguments: Any) -> int:
        """Call with a handle that nobody else has meanwhile. A list's pop and append are one step each."""
        self._check_open()
        try:
            handle = self._idle.pop()
        except IndexError:
            handle = self._open()
        try:
            answer: int = getattr(self._library, verb)(handle, *arguments)
        finally:
            self._idle.append(handle)
        return answer

    def close(self) -> None:
        """Give the handles back. Leases stay with the host until they end."""
        self._closed = True
        while self._idle:
            self._library.global_close(self._idle.pop())

    def __enter__(self) -> GlobalLimiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _about(self, rule: str | int) -> str:
        return f"{self.limiter.name}: rule {rule}"

    def take(self, rule: str | int, key: str | bytes, cost: int = 1) -> Result:
        """Take `cost` tokens of the funnel that all hosts share; of a rule that is none of those, of this host's.

        An engine that says nothing is no error: the answer is then on_failure's.
        """
        r = _c.Result()
        key, rule_id = _key(key), self.limiter._id(rule)
        answer = self._call("global_take", rule_id, key, len(key), _unsigned(cost), ctypes.byref(r))
        return _result(_check(answer, self._about(rule)) == 0, r)

    def take_many(self, requests: Sequence[Request]) -> list[Result | Error]:
        """Take for up to 64 requests, each by itself; those that need the engine ask it together. Where one's rule or
        key is wrong, there stands the error."""
        n = len(requests)
        c, results, answers = (_c.Request * n)(), (_c.Result * n)(), (ctypes.c_int * n)()
        for i, (rule, key, cost) in enumerate(requests):
            c[i].rule, c[i].key, c[i].cost = self._id_or_none(rule), _key(key), _unsigned(cost)
            c[i].key_len = len(_key(key))
        _check(self._call("global_take_many", c, n, answers, results), self.limiter.name)
        return [
            _result(answer == 0, result) if answer >= 0 else _error(-answer, self._about(one.rule))
            for one, answer, result in zip(requests, answers, results)
        ]

    def _id_or_none(self, rule: str | int) -> int:
        try:
            return self.limiter._id(rule)
        except Error:
            return -1

    def ping(self) -> EngineInfo:
        """Ask the engine what it is, whatever the breaker says. Error: it says nothing, or refuses."""
        c = _c_global.Info(struct_size=ctypes.sizeof(_c_global.Info))
        _check_engine(self._call("global_ping", ctypes.byref(c)), self.limiter.name)
        return EngineInfo(c.round_trip_ns, c.version.decode(), c.mode.decode(), c.role.decode())

    def peek(self, rule: str | int, key: str | bytes) -> Funnel:
        """What the engine has of one key. Takes nothing."""
        c = _c_global.Funnel(struct_size=ctypes.sizeof(_c_global.Funnel))
        key, rule_id = _key(key), self.limiter._id(rule)
        _check_engine(self._call("global_peek", rule_id, key, len(key), ctypes.byref(c)), self._about(rule))
        return Funnel(c.remaining, c.reset_after_ns, c.lease_ns)

    def reset(self, rule: str | int, key: str | bytes | None = None) -> None:
        """Fill up what the engine has of one key, or of every key of the rule, and forget this host's lease of it."""
        c_key, rule_id = None if key is None else _key(key), self.limiter._id(rule)
        _check_engine(self._call("global_reset", rule_id, c_key, len(c_key or b"")), self._about(rule))
