"""Limits that many hosts share, through a Redis or Valkey server: shmlimit_global(3).

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import TracebackType
from typing import Any, NamedTuple

from . import _c, _c_global
from .key import Key, key_bytes
from .limiter import (
    Count, Error, Limiter, Request, Result, _check, _error, _result, _signed, _unsigned, call_limit, log, with_threads,
)  # fmt: skip

SAY_EVERY_S = 60.0
"""The same line about a backend is not reported again for this long."""
SAID_MAX = 64
"""Lines that are remembered for that. There are a few, besides those that backends write themselves."""


def words(number: int) -> str:
    """The text of an error of a call to the backend."""
    return "backend: " + str(_c_global.load().global_strerror(number).decode())


class OnFailure(IntEnum):
    """The answer while the backend does not respond."""

    DENY = 0
    ALLOW = 1
    LOCAL = 2
    """The answer of a funnel of this host, with a share of the limit."""
    ERROR = 3
    """Raises Error with errno.EHOSTDOWN: the client has done nothing wrong."""


@dataclass(frozen=True)
class Backend:
    """A Redis or Valkey server. 0 is the default."""

    url: str = field(repr=False)  # it may have a password in it
    """redis://[[user]:password@]host[:port][,host[:port]...][/db], redis+sentinel:// or rediss:// (see shmlimit_global(3)), or unix://[[user]:password@]/path[?db=N], %-encoded"""
    on_failure: OnFailure | None = None
    """None: DENY."""
    deadline_ns: int = 0
    """The longest time that a call waits: 100 us to 10 s, default 50 ms. It must be the same on all hosts."""
    lease_ns: int = 0
    """The duration of a lease, which also sets its size: 1 ms to 10 s, default 100 ms. It must be the same on all hosts."""
    open_ns: int = 0
    """A failing backend is left alone for this long: 1 ms to 1 h, default 200 ms."""
    open_after: int = 0
    """... after this number of failures in a row in one process: default 3."""
    local_milli: int = 0
    """LOCAL: this host's share in thousandths of the limit: 1 to 1000, must be set."""
    prefix: str = "shmlimit:"
    """The prefix of the backend's keys, without '{'; up to 64 bytes."""
    agent_thread: bool = False
    """While the host has no agent, a thread of this process is it: see SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD in shmlimit_global(3)."""
    wait: bool = True
    """False: no call waits; on_failure decides at once what is not leased here, and the agent leases for the next requests."""


class Said:
    """What was reported about a backend lately. Each handle reports its own problems, in the same words as the others.

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
"""Errors of calls to the backend that are about their arguments."""


class BackendInfo(NamedTuple):
    """What a backend reports about itself."""

    round_trip_ns: int
    version: str
    mode: str
    """standalone, cluster, sentinel"""
    role: str
    """master, replica"""


class Funnel(NamedTuple):
    """The state of a funnel on the backend."""

    remaining: int
    """Whole tokens that can still be leased."""
    reset_after_ns: int
    """The time until it is full, if no host leases."""
    lease_ns: int
    """The duration of this rule's leases."""


def _text(text: str) -> bytes:
    """A text for C, which would end it at a NUL."""
    encoded = text.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise Error(errno.EINVAL, "there is a NUL in it", "backend")
    return encoded


def _check_backend(answer: int, subject: str) -> None:
    if answer < 0 and -answer not in _OF_THE_LIBRARY:
        raise Error(-answer, words(-answer), subject)
    _check(answer, subject)


def _options(backend: Backend, report: Callable[[int | None, bytes], None]) -> _c_global.Options:
    return _c_global.Options(
        struct_size=ctypes.sizeof(_c_global.Options),
        on_failure=backend.on_failure or OnFailure.DENY,
        deadline_ns=_unsigned(backend.deadline_ns),
        lease_ns=_unsigned(backend.lease_ns),
        open_ns=_unsigned(backend.open_ns),
        open_after=_unsigned(backend.open_after, 32),
        local_milli=_unsigned(backend.local_milli, 32),
        prefix=_text(backend.prefix),
        report=_c_global.Report(report),
        flags=(_c_global.OPTION_AGENT_THREAD if backend.agent_thread else 0)
        | (0 if backend.wait else _c_global.OPTION_NO_WAIT),
    )


def check_backend(backend: Backend) -> None:
    """Raises ValueError, with what is wrong with its URL or another member. Asks no server."""
    said: list[str] = []
    options = _options(backend, lambda _arg, text: said.append(text.decode("utf-8", "replace")))
    answer = _c_global.load().global_open(None, _text(backend.url), ctypes.byref(options), None)
    if answer != 0:
        raise ValueError(said[-1] if said else "an option of the backend is out of range")


class GlobalLimiter:
    """Limits that all hosts with the same backend share: the LEASE rules of a segment.

    A token is debited on the backend before it is spent here. Children that are forked later can go on using the object,
    and open connections of their own. All methods except close() are thread-safe. The Limiter must stay open. The first
    call that needs the backend connects to it. A call takes the deadline at most, and other Python threads run in that time.

    `report` is called with one line of text when a problem begins, at most once a minute for the same text; the default
    is the logger `shmlimit`. With Backend.agent_thread that thread calls it too.
    """

    # Of the class: an object whose constructor was called with wrong arguments is deleted, too.
    _handle: int | None = None

    def __init__(self, limiter: Limiter, backend: Backend | str, report: Callable[[str], None] | None = None) -> None:
        self.limiter = limiter
        self.backend = Backend(backend) if isinstance(backend, str) else backend
        self._library = _c_global.load()
        self._said = Said(report or (lambda line: log.error("segment %s: %s", limiter.name, line)))
        self._url = _text(self.backend.url)
        self._options = _options(self.backend, self._said)
        handle = ctypes.c_void_p()
        answer = self._library.global_open(
            self.limiter._handle, self._url, ctypes.byref(self._options), ctypes.byref(handle)
        )
        if answer == -errno.EINVAL and self._said.last:
            raise Error(errno.EINVAL, self._said.last, self.limiter.name)
        _check(answer, self.limiter.name)
        self._handle = handle.value
        self.limiter._know_global(handle.value or 0, self._library.global_close)
        if self.backend.agent_thread:
            with_threads.add(self)

    def _call(self, verb: str, *arguments: Any) -> int:
        if self._handle is None or self.limiter._handle is None:
            raise _error(errno.EINVAL, self.limiter.name)
        answer: int = getattr(self._library, verb)(self._handle, *arguments)
        return answer

    def close(self) -> None:
        """Release the handle, and end its thread. The host keeps its leases until they expire."""
        handle, self._handle = self._handle, None
        if handle is not None and self.limiter._forget_global(handle):
            self._library.global_close(handle)

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

    def take(self, rule: str | int, key: Key, cost: int = 1) -> Result:
        """Take `cost` tokens of the funnel that all hosts share; under a rule of another algorithm, of this host's.

        A backend that does not answer is no error: on_failure then decides.
        """
        r = _c.Result()
        key, rule_id = key_bytes(key), self.limiter._id(rule)
        answer = self._call("global_take", rule_id, key, len(key), _unsigned(cost), ctypes.byref(r))
        return _result(_check(answer, self._about(rule)) == 0, r)

    def count(
        self, rule: str | int, key: Key, n: int = 1, *, ttl_ns: int = 0, bound: int = _c.INT64_MAX, saturate: bool = False
    ) -> Count:
        """Add `n`, 0 or more, to a count that all hosts share, as Limiter.count(). 0 reads what this host knows. Needs an agent,
        or Backend.agent_thread. A backend that does not answer is no error: on_failure then decides."""
        c, encoded = _c.Count(struct_size=ctypes.sizeof(_c.Count)), key_bytes(key)
        flags = _c.COUNT_SATURATE * saturate
        asked = _c.CountRequest(ctypes.sizeof(_c.CountRequest), flags, _signed(n), _signed(bound), _unsigned(ttl_ns))
        rule_id = self.limiter._id(rule)
        answer = self._call("global_count", rule_id, encoded, len(encoded), ctypes.byref(asked), ctypes.byref(c))
        _check(answer, self._about(rule))
        return Count(answer == 0, c.count, c.applied, c.ttl_ns)

    def take_many(self, requests: Sequence[Request]) -> list[Result | Error]:
        """Decide up to 64 independent requests; those that need the backend ask it together. A request whose rule or key
        is wrong gets an Error in the list."""
        n = len(requests)
        c, results, answers = (_c.Request * n)(), (_c.Result * n)(), (ctypes.c_int * n)()
        for i, one in enumerate(requests):
            encoded = key_bytes(one.key)
            c[i].rule, c[i].key, c[i].key_len, c[i].cost = self._id_or_none(one.rule), encoded, len(encoded), _unsigned(one.cost)
            if one.limit is not None:
                c[i].limit = ctypes.pointer(call_limit(one.limit)[0])
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

    def ping(self) -> BackendInfo:
        """Ask the backend what it is, even while the circuit breaker is open. Raises Error if it does not answer or refuses."""
        c = _c_global.Info(struct_size=ctypes.sizeof(_c_global.Info))
        _check_backend(self._call("global_ping", ctypes.byref(c)), self.limiter.name)
        return BackendInfo(c.round_trip_ns, c.version.decode(), c.mode.decode(), c.role.decode())

    def peek(self, rule: str | int, key: Key) -> Funnel:
        """Read the funnel of one key on the backend. Takes nothing."""
        c = _c_global.Funnel(struct_size=ctypes.sizeof(_c_global.Funnel))
        key, rule_id = key_bytes(key), self.limiter._id(rule)
        _check_backend(self._call("global_peek", rule_id, key, len(key), ctypes.byref(c)), self._about(rule))
        return Funnel(c.remaining, c.reset_after_ns, c.lease_ns)

    def reset(self, rule: str | int, key: Key | None = None) -> None:
        """Restore all tokens of one key on the backend, or of every key of the rule, and end this host's leases of them."""
        c_key, rule_id = None if key is None else key_bytes(key), self.limiter._id(rule)
        _check_backend(self._call("global_reset", rule_id, c_key, len(c_key or b"")), self._about(rule))


@atexit.register
def _end_threads() -> None:
    """No thread reports to an interpreter that has ended."""
    for limiter in list(with_threads):
        limiter.close()
