"""What the two middlewares share: the segment is kept open, a request is asked about, a failure is told once.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple

from . import _c_global
from ._c import KEY_MAX, REQUESTS_MAX
from .bundle import Bundle
from .engine import Engine, OnFailure, log
from .global_limiter import GlobalLimiter
from .limiter import All, Error, Fields, Limiter, Request, check_names, key_ip

LOOK_EVERY_S = 1.0
"""How often the segment's name is looked at, to find that it was destroyed and made anew: a system call or two."""


@dataclass(frozen=True)
class Limit:
    """One limit on a request, which is a WSGI environ or an ASGI scope.

    `key` says whose funnel it is; a request for which it returns None is not limited by this one. A key that is
    empty or longer than 1024 bytes is replaced by its SHA-512: nobody escapes by sending one.
    """

    rule: str
    key: Callable[[Mapping[str, Any]], str | bytes | None]
    cost: int | Callable[[Mapping[str, Any]], int] = 1

    def request(self, request: Mapping[str, Any]) -> Request | None:
        key = self.key(request)
        if key is None:
            return None
        cost = self.cost if isinstance(self.cost, int) else self.cost(request)
        return Request(self.rule, _fit(key), cost)


class Answer(NamedTuple):
    """What becomes of a request."""

    status: str
    """For the access log: passed, rejected, rejected-dry-run, unlimited (no limit had a key), failed."""
    refusal: HTTPStatus | None
    """None: the request goes on."""
    fields: list[tuple[str, str]]
    """To be added to the response's."""

    @property
    def body(self) -> bytes:
        return f"{self.refusal.value} {self.refusal.phrase}\n".encode() if self.refusal else b""


def _fit(key: str | bytes) -> bytes:
    encoded = key if isinstance(key, bytes) else key.encode("utf-8", "surrogateescape")
    return encoded if 1 <= len(encoded) <= KEY_MAX else hashlib.sha512(encoded).digest()


def address_key(address: str) -> str | bytes:
    """The net of an address as a key. What is not an address, as on a Unix socket, is one client."""
    try:
        return key_ip(address)
    except Error:
        return address


class Gate:
    """Limits in front of an application. Works on in children that are forked later; thread-safe."""

    def __init__(
        self,
        segment: str,
        limits: Sequence[Limit],
        *,
        dry_run: bool = False,
        status: int = HTTPStatus.TOO_MANY_REQUESTS,
        fail_open: bool = False,
        engine: Engine | str | None = None,
        owner: int | None = None,
    ) -> None:
        if not 1 <= len(limits) <= REQUESTS_MAX:
            raise ValueError(f"{len(limits)} limits: must be 1 to {REQUESTS_MAX}")
        for limit in limits:
            check_names(segment, limit.rule)
        self.failures = 0
        """Requests of this process that the limiter could not decide."""
        self._segment = segment
        self._owner = owner
        self._limits = tuple(limits)
        self._dry_run = dry_run
        self._refusal = HTTPStatus(status)
        self._fail_open = fail_open or dry_run
        self._engine = self._of_engine(engine)
        self._lock = threading.Lock()
        self._failing: dict[str, tuple[int | None, int]] = {}
        """Of the segment and of its rules: what is wrong with them, and how many requests failed since."""
        self._view: tuple[Limiter, GlobalLimiter | Error | None] | Error
        self._open()
        self._look_at = time.monotonic() + LOOK_EVERY_S

    def ask(self, request: Mapping[str, Any]) -> Answer:
        answer = self.begin(request)
        return answer if isinstance(answer, Answer) else answer()

    def begin(self, request: Mapping[str, Any]) -> Answer | Callable[[], Answer]:
        """Decide without waiting for anybody, if that can be done; else return what decides by asking the engine. It
        must be called once, in any thread, and waits for the engine's deadline at the most."""
        wanted = [one for limit in self._limits if (one := limit.request(request)) is not None]
        if not wanted:
            return Answer("unlimited", None, [])
        try:
            view = self._attached()
            if isinstance(view, Error):
                return self._failed(view)
            limiter, source = view
            bundle = Bundle(limiter, source, wanted)
            answer = bundle.take_here()
            if answer is None:
                return functools.partial(self._finish, limiter, wanted, bundle)
            return self._answer(limiter, wanted, answer)
        except Error as error:
            return self._failed(error)

    def _finish(self, limiter: Limiter, wanted: Sequence[Request], bundle: Bundle) -> Answer:
        try:
            return self._answer(limiter, wanted, bundle.take_there())
        except Error as error:
            return self._failed(error)

    def _answer(self, limiter: Limiter, wanted: Sequence[Request], answer: All) -> Answer:
        if self._failing:
            self._over(wanted)
        if not answer and self._dry_run:
            return Answer("rejected-dry-run", None, [])
        # What was taken before the one that denied was given back: clients need not be told of that.
        told = [*zip(wanted, answer.results)] if answer else [(wanted[answer.failed], answer.results[-1])]
        fields = _fields([limiter.fields(str(one.rule), result) for one, result in told])
        if not answer:
            return Answer("rejected", self._refusal, fields)
        rehearsed = any(result.retry_after_ns > 0 for result in answer.results)
        return Answer("rejected-dry-run" if rehearsed else "passed", None, [] if self._dry_run else fields)

    def _of_engine(self, engine: Engine | str | None) -> Engine | None:
        if engine is None:
            return None
        _c_global.load()
        engine = Engine(engine) if isinstance(engine, str) else engine
        if engine.on_failure is not None:
            return engine
        return replace(engine, on_failure=OnFailure.ALLOW if self._fail_open else OnFailure.DENY)

    def _attached(self) -> tuple[Limiter, GlobalLimiter | Error | None] | Error:
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            if isinstance(self._view, Error) or self._view[0].gone():
                self._open()
        return self._view

    def _open(self) -> None:
        # A thread may still be deciding on the old handle. It is closed when the last one forgets it.
        try:
            limiter = Limiter(self._segment, owner=self._owner)
            self._view = limiter, self._open_engine(limiter)
        except Error as error:
            self._view = error.with_traceback(None)

    def _open_engine(self, limiter: Limiter) -> GlobalLimiter | Error | None:
        """That there is none is a matter of those rules that need it."""
        try:
            return GlobalLimiter(limiter, self._engine) if self._engine is not None else None
        except Error as error:
            return error.with_traceback(None)

    def _failed(self, error: Error) -> Answer:
        """Logged once, and not once a request: a client that makes the limiter fail must not fill the disk too."""
        subject, words = str(error.filename), error.strerror
        if not subject.startswith(self._segment):
            subject, words = self._segment, f"{subject}: {words}"
        with self._lock:
            self.failures += 1
            before, count = self._failing.get(subject, (None, 0))
            self._failing[subject] = error.errno, count + 1
        if before != error.errno:
            what = "pass without a limit" if self._fail_open else "are refused"
            log.error("segment %s: %s: requests that need it %s", subject, words, what)
        return Answer("failed", None if self._fail_open else HTTPStatus.SERVICE_UNAVAILABLE, [])

    def _over(self, decided: Sequence[Request]) -> None:
        """What these requests need is in order."""
        subjects = [self._segment, *(f"{self._segment}: rule {one.rule}" for one in decided)]
        with self._lock:
            over = [(one, self._failing.pop(one)[1]) for one in subjects if one in self._failing]
        what = "passed without a limit" if self._fail_open else "were refused"
        for subject, count in over:
            log.warning("segment %s: in order again; requests that %s: %d", subject, what, count)


def _fields(parts: list[Fields | None]) -> list[tuple[str, str]]:
    """A member for each limit of which there is something to tell."""
    told = [part for part in parts if part is not None]
    if not told:
        return []
    joined = [
        ("RateLimit-Policy", ", ".join(part.policy for part in told)),
        ("RateLimit", ", ".join(part.limit for part in told)),
    ]
    if told[-1].retry_after:
        joined.append(("Retry-After", told[-1].retry_after))
    return joined
