"""The limits of one request, of which some are this host's and some are leased from an engine, all or none.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ._c import REQUESTS_MAX
from .engine import OnFailure
from .limiter import All, Error, Limiter, Request, Result

if TYPE_CHECKING:
    from .global_limiter import GlobalLimiter


def take_all(limiter: Limiter, engine: GlobalLimiter | Error | None, requests: Sequence[Request]) -> All:
    """As Limiter.take_all(): those of this host first, at once, then those of the engine in their order. Where one
    denies, what was taken before is given back, and its result is the only one. An Error in the engine's place says
    why there is none.
    """
    bundle = Bundle(limiter, engine, requests)
    answer = bundle.take_here()
    return bundle.take_there() if answer is None else answer


class Bundle:
    """Limits that are taken in two steps: first without waiting for anybody, then, if that decides nothing, with the
    engine, which may wait. An Error gives back what was taken.

    A rule may be removed and set again as another at any time: so the segment is asked which are leases.
    """

    def __init__(self, limiter: Limiter, engine: GlobalLimiter | Error | None, requests: Sequence[Request]) -> None:
        self._limiter = limiter
        self._engine = engine
        self._requests = requests
        self._results: dict[int, Result] = {}
        self._taken: list[Request] = []
        self._leases: list[int] = []
        """Those that are not decided yet."""

    def take_here(self) -> All | None:
        """None: take_there() must decide."""
        limiter, requests = self._limiter, self._requests
        self._leases = [i for i, one in enumerate(requests) if limiter._is_lease(one.rule)]
        if not self._leases or len(requests) > REQUESTS_MAX:
            return limiter.take_all(requests)
        here = [i for i in range(len(requests)) if i not in self._leases]
        if here:
            answer = limiter.take_all([requests[i] for i in here])
            if not answer:
                return All(False, here[answer.failed], answer.results[-1:])
            self._results.update(zip(here, answer.results))
            self._taken += [requests[i] for i in here if _was_taken(self._results[i])]
        return self._take_leases(self._take_leased)

    def take_there(self) -> All:
        """The rest, after take_here(): each takes the engine's deadline at the most."""
        answer = self._take_leases(self._take_asked)
        assert answer is not None
        return answer

    def _take_leases(self, take: Callable[[GlobalLimiter, Request], tuple[Result, bool] | None]) -> All | None:
        """`take` returns the result and whether tokens were certainly taken, or None: it cannot decide."""
        try:
            while self._leases:
                i = self._leases[0]
                request = self._requests[i]
                decided = take(_present(self._engine, f"{self._limiter.name}: rule {request.rule}"), request)
                if decided is None:
                    return None
                result, was_taken = decided
                if not result:
                    self._give_back()
                    return All(False, i, [result])
                self._leases.pop(0)
                self._results[i] = result
                if was_taken:
                    self._taken.append(request)
        except Error:
            self._give_back()
            raise
        return All(True, -1, [self._results[i] for i in range(len(self._requests))])

    def _take_leased(self, engine: GlobalLimiter, request: Request) -> tuple[Result, bool] | None:
        result = engine.limiter._take_leased(*request)
        return None if result is None else (result, _was_taken(result))

    def _take_asked(self, engine: GlobalLimiter, request: Request) -> tuple[Result, bool]:
        result = engine.take(*request)
        return result, _was_leased(engine.on_failure, result)

    def _give_back(self) -> None:
        for one in self._taken:
            with contextlib.suppress(Error):
                self._limiter.refund(*one)


def _present(engine: GlobalLimiter | Error | None, subject: str) -> GlobalLimiter:
    if engine is None:
        raise Error(errno.EDESTADDRREQ, "it is a lease, and there is no engine to lease from", subject)
    if isinstance(engine, Error):
        raise Error(engine.errno, f"it is a lease, and of the engine: {engine.strerror}", subject)
    engine._check_open()
    return engine


def _was_taken(result: Result) -> bool:
    """A dry run that would have been denied answers allowed and has taken nothing; nor has a rule that is off."""
    return result.retry_after_ns == 0 and result.remaining < result.limit


def _was_leased(on_failure: OnFailure, result: Result) -> bool:
    """Nor has an answer without the engine, and giving back what was not leased would make tokens. One of ALLOW says
    nothing of a lease, as does one that spent the last token of it; one of LOCAL looks like any other. What is not
    certain is not given back."""
    if on_failure == OnFailure.DENY:
        return _was_taken(result)
    return on_failure == OnFailure.ALLOW and _was_taken(result) and (result.remaining, result.reset_after_ns) != (0, 0)
