"""The limits in front of an application, for the two middlewares: shmlimit_gate(3) for Python.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from . import _c, _c_gate
from ._c_gate import Raw
from .key import Key
from .limiter import Error, _error, _log_line, native


def is_address(key: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of keys: it returns an address as text, of which Limit.prefix is what counts."""
    key.__dict__["shmlimit_is_address"] = True
    return key


@dataclass(frozen=True)
class Limit:
    """One limit on a request, which is a WSGI environ, an ASGI scope, or whatever Gate.ask() is given.

    `key` says whose tokens the request takes; a request for which it returns None is not limited by this one. A key longer
    than 1024 bytes is replaced by its SHA-512. `cost` is a number or a function of the request; one that costs 0 is not
    limited.

    With algorithm "gcra", `key` may return (key, limit): the limit of this request, as text, such as that of a customer's plan.
    None, or what cannot be read, which is logged: `rate_error` decides, or else `rate`, or else what the rule in the segment has.
    """

    rule: str
    key: Callable[[Any], Key | tuple[Key | None, str | None] | None]
    cost: int | Callable[[Any], int] = 1
    rate: str | None = None
    """ "5/minute", "100 per hour", "10/s burst 20", or "20 at once": the segment and the rule are created if they are
    missing."""
    algorithm: str | None = None
    """Of a rule that is created: "funnel", "gcra", "window" or "lease". The default is "lease" if the gate has a backend, otherwise "funnel"."""
    prefix: tuple[int, int] | None = None
    """Keys are addresses, of which this number of bits count, of IPv4 and IPv6. The default is (32, 64) for the functions of this
    package that return addresses."""
    peek: bool = False
    """Refuse what a take would refuse, but take and count nothing: for bans, see shmlimit(1)."""
    protected: bool = False
    """With a rate: on a full table the rule's keys keep their slots against keys of other rules."""
    local: bool = False
    """In a gate with a backend: limit this host alone. Otherwise a rate is shared by all hosts, or refused if it cannot be."""

    rate_error: str | None = None
    """With algorithm "gcra": the limit of a request that brings none, or one that cannot be read."""

    estimate: int | Callable[[Any], int] | None = None
    """In place of `cost`, where that is known afterwards: what a request takes before. See Gate.settle()."""

    charge_max: float | None = None
    """With an `estimate`: seconds that the longest debt of charges takes to be paid, so that no wrong amount refuses a key for longer. The
    default is an hour, or the limit's time to full if that is longer."""

    delay: float | None = None
    """Seconds, up to 3600: a request whose tokens come back within this time waits for them, in order with others of its key, instead of being
    refused. A thread sleeps; in asyncio other tasks run. Not in a gate with a backend, and not for "20 at once"."""

    denials: str | None = None
    """A rule of the algorithm "counter" that counts each denial of this limit for a minute: shmlimit bans --over bans by it."""

    share: float | None = None
    """Of places that all share, such as 4: a key enters while it holds fewer than this many times the places that are free in the limit
    before it in the gate, whose rate is "64 at once" and whose key is the same for all. It needs no `rate`."""

    def creates(self) -> bool:
        """Does it say what the rule is?"""
        return self.rate is not None or self.algorithm == "gcra"

    def _spec(self) -> str:
        prefix = self.prefix or ((32, 64) if hasattr(self.key, "shmlimit_is_address") else None)
        words = [_word("rule", self.rule)]
        words += [f"prefix={prefix[0]},{prefix[1]}"] if prefix else []
        words += [_word("rate", self.rate)] if self.rate else []
        words += [_word("algorithm", self.algorithm)] if self.creates() and self.algorithm else []
        words += [_word("rate_error", self.rate_error)] if self.rate_error else []
        words += [_word("estimate", self.estimate if isinstance(self.estimate, int) else 1)] if self.estimate is not None else []
        words += [f"charge_max={round(self.charge_max * 1000)}ms"] if self.charge_max is not None else []
        words += [f"delay={round(self.delay * 1000)}ms"] if self.delay else []
        words += [_word("denials", self.denials)] if self.denials is not None else []
        words += [f"share={self.share:g}"] if self.share is not None else []
        return " ".join(words + ["peek"] * self.peek + ["protected"] * self.protected + ["local"] * self.local)


class Answer(NamedTuple):
    """What becomes of a request. True if it goes on."""

    status: str
    """For the access log: passed, rejected, rejected-dry-run, unlimited (no limit had a key), failed."""
    refusal: int
    """The HTTP status of the refusal; 0: the request goes on."""
    fields: list[tuple[str, str]]
    """To be added to the response's."""
    retry_after_ns: int
    """Rejected: the same request fits after this long; 2**64 - 1: never."""
    remaining: int
    """Tokens left in the limit that has the fewest; 2**64 - 1: not known."""
    places: Any = None
    """What Gate.leave() and Gate.settle() need, or None if the request holds no places and has paid no estimate."""

    def __bool__(self) -> bool:
        return self.refusal == 0


def status_line(status: int) -> str:
    """As "429 Too Many Requests"."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Refused"


def _word(name: str, value: object) -> str:
    """A word of a spec."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{text}"'


class Gate:
    """Limits in front of an application. Works on in children that are forked later; thread-safe."""

    # Of the class: an object whose constructor was called with wrong arguments is deleted, too.
    _handle = 0

    def __init__(
        self,
        segment: str,
        limits: Sequence[Limit],
        *,
        dry_run: bool = False,
        status: int = HTTPStatus.TOO_MANY_REQUESTS,
        fail_open: bool = False,
        x_fields: bool = False,
        owner: str | None = None,
        mode: int | None = None,
        group: str | None = None,
        slots: int | None = None,
        backend: str | None = None,
        backend_prefix: str | None = None,
        deadline_ms: int | None = None,
        local_share: int | None = None,
        agent_thread: bool | None = None,
        wait: bool = True,
        proxy_warning: bool | str = True,
    ) -> None:
        if not 1 <= len(limits) <= _c.REQUESTS_MAX:
            raise ValueError(f"{len(limits)} limits: must be 1 to {_c.REQUESTS_MAX}")
        creates = any(limit.creates() for limit in limits)
        given = {
            "segment": segment,
            "fail": "open" if fail_open else "closed",
            "owner": owner,
            "create": "yes" if creates else None,
            "mode": None if mode is None else f"{mode:o}",
            "group": group,
            "slots": slots,
            "backend": backend,
            "backend_prefix": backend_prefix,
            "deadline": None if deadline_ms is None else f"{deadline_ms}ms",
            "local_share": local_share,
            "agent": None if agent_thread is None else "thread" if agent_thread else "no",
            "wait": None if wait else 0,
            "status": int(status),
        }
        words = [_word(name, value) for name, value in given.items() if value is not None]
        words += ["x_fields"] * x_fields + ["dry_run"] * dry_run
        self._limits = tuple((limit.key, limit.cost if limit.estimate is None else limit.estimate) for limit in limits)
        self._rules = tuple(limit.rule for limit in limits)
        self.proxy_warning = proxy_warning
        """Middlewares say once that behind a proxy all clients are one; False or "no": they do not."""
        self.waits = backend is not None or any(limit.delay for limit in limits)
        """A request may wait, for the backend or its tokens, so asyncio uses enter_async()."""
        self.charges = any(limit.estimate is not None for limit in limits)
        """What a request costs is known afterwards, so middlewares use charge()."""
        self._library = _c_gate.load()
        self._ask: Callable[[int, tuple[tuple[Any, Any], ...], Any, bool, bool, bool | None], Any]
        self._ask = native.ask if native else _c_gate.ask
        self._leave: Callable[[int, Any], None] = native.leave if native else _c_gate.leave
        self._open("\n".join([" ".join(words), *(limit._spec() for limit in limits)]))
        # A gate that creates does so with the first request: a server that forks may change its user before that.
        if not creates:
            self.attach()

    def _open(self, spec: str) -> None:
        handle, encoded = ctypes.c_void_p(), spec.encode("utf-8", "surrogateescape")
        if b"\0" in encoded:
            raise Error(errno.EINVAL, "there is a NUL in it", spec)
        error = self._library.gate_open(encoded, ctypes.byref(handle))
        if error == -errno.EINVAL:
            wrong = _c_gate.Wrong(ctypes.sizeof(_c_gate.Wrong))
            self._library.gate_check(encoded, ctypes.byref(wrong))
            word = encoded[wrong.offset : wrong.offset + wrong.length].decode("utf-8", "replace")
            raise Error(errno.EINVAL, wrong.text.decode("utf-8", "replace"), word or "gate")
        if error < 0:
            raise _error(-error, "gate")
        self._handle = handle.value or 0
        if native:
            native.watch(self._handle)
        else:
            self._report = _c_gate.Report(lambda _arg, bad, line: _log_line(bool(bad), line.decode("utf-8", "replace")))
            self._library.gate_report(self._handle, self._report, None)

    def __del__(self) -> None:
        if self._handle:
            self._library.gate_close(self._handle)

    def keys(self) -> tuple[Callable[[Any], Any], ...]:
        """Of the limits: what makes a key of a request."""
        return tuple(key for key, _ in self._limits)

    def attach(self) -> bool:
        """Open the segment in this process now, and not with the first request. False: it cannot be opened, which is logged,
        and tried again each second."""
        if not self._handle:
            return False
        error: int = native.attach(self._handle, self.waits) if native else self._library.gate_attach(self._handle)
        return error == 0

    def ask(self, request: Any) -> Answer:
        """Decide about a request. It keeps a place of a rule that says how many at once until the rule's period is over."""
        return Answer(*self._ask(self._handle, self._limits, request, False, self.waits, False))

    def enter(self, request: Any) -> Answer:
        """As ask(), for a request that holds its places only until leave()."""
        return Answer(*self._ask(self._handle, self._limits, request, False, self.waits, True))

    def enter_fast(self, request: Any, as_bytes: bool = False) -> Raw:
        """What enter() answers as a plain tuple; as_bytes: with fields as ASGI has them."""
        answer: Raw = self._ask(self._handle, self._limits, request, as_bytes, self.waits, True)
        return answer

    async def enter_async(self, request: Any, as_bytes: bool = False) -> Raw:
        """As enter_fast(), in asyncio: while the host's agent asks the backend, or a limit with a delay has no tokens yet, other
        tasks run. Without an agent a thread waits for the backend. A task that is cancelled while it waits takes nothing."""
        if not self.waits:
            return self.enter_fast(request, as_bytes)
        try:
            answer = self._ask(self._handle, self._limits, request, as_bytes, True, None)
            if len(answer) == 3:
                answer = await _c_gate.Pending(self._handle, answer, as_bytes).wait()
        except BlockingIOError:
            answer = await asyncio.to_thread(self.enter_fast, request, as_bytes)
        raw: Raw = answer
        return raw

    def charge(self, places: Any, used: Mapping[str, int]) -> None:
        """Charge a request that goes on, such as a stream, for what it has used so far, of rules with an estimate, by their names: each
        time that this is as much as the rule's estimate, or more, beyond what was paid. Nothing is given back. settle() then
        charges the rest. `places` are those of enter(); None is allowed."""
        if places is not None:
            _c_gate.settle(self._handle, places, lambda limit: used.get(self._rules[limit]), goes_on=True)

    def settle(self, places: Any, used: Mapping[str, int]) -> None:
        """Charge what the request of an answer has used in all, of rules with an estimate, by their names; a rule that is left out
        keeps what was paid. More than was paid becomes debt, less is given back, and the same again changes nothing, so a request
        can be settled several times. `places` are those of enter(); None is allowed."""
        if places is not None:
            _c_gate.settle(self._handle, places, lambda limit: used.get(self._rules[limit]))

    def end(self, places: Any, used: Mapping[str, int]) -> None:
        """settle() and leave()."""
        try:
            self.settle(places, used)
        finally:
            self.leave(places)

    def leave(self, places: Any) -> None:
        """Leave the places of an answer, when its request has ended. None is allowed."""
        if places is not None:
            self._leave(self._handle, places)
