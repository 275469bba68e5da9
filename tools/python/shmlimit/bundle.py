"""The limits of one request, of which some are this host's and some are leased from an engine, all or none.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Sequence
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

    A rule may be removed and set again as another at any time: so the segment is asked which are leases.
    """
    there = [i for i, one in enumerate(requests) if limiter._is_lease(one.rule)]
    if not there or len(requests) > REQUESTS_MAX:
        return limiter.take_all(requests)
    results: dict[int, Result] = {}
    taken: list[Request] = []
    here = [i for i in range(len(requests)) if i not in there]
    if here:
        answer = limiter.take_all([requests[i] for i in here])
        if not answer:
            return All(False, here[answer.failed], answer.results[-1:])
        results.update(zip(here, answer.results))
        taken += [requests[i] for i in here if _was_taken(results[i])]
    try:
        for i in there:
            source = _present(engine, f"{limiter.name}: rule {requests[i].rule}")
            results[i] = source.take(*requests[i])
            if not results[i]:
                _give_back(limiter, taken)
                return All(False, i, [results[i]])
            if _was_leased(source.on_failure, results[i]):
                taken.append(requests[i])
    except Error:
        _give_back(limiter, taken)
        raise
    return All(True, -1, [results[i] for i in range(len(requests))])


def _present(engine: GlobalLimiter | Error | None, subject: str) -> GlobalLimiter:
    if engine is None:
        raise Error(errno.EDESTADDRREQ, "it is a lease, and there is no engine to lease from", subject)
    if isinstance(engine, Error):
        raise Error(engine.errno, f"it is a lease, and of the engine: {engine.strerror}", subject)
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


def _give_back(limiter: Limiter, taken: Iterable[Request]) -> None:
    for one in taken:
        with contextlib.suppress(Error):
            limiter.refund(*one)
