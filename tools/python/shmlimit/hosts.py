"""What adapters share with other hosts: a segment, as shared.Shared has it, and a backend beside it.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .global_limiter import Backend, GlobalLimiter, OnFailure, check_backend
from .key import Key, shared_key
from .limiter import Algorithm, Error, Limiter, Result, Rule
from .shared import Shared


def _on_failure(word: Any) -> OnFailure:
    try:
        return OnFailure[str(word).upper()]
    except KeyError:
        raise ValueError(f"on_failure={word}: must be deny, allow, local or error") from None


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "backend": str,
    "backend_prefix": str,
    "deadline_ms": float,
    "on_failure": _on_failure,
    "local_share": int,
}
"""Of a URI. `local_share` is the host's part of a limit while the backend does not answer, in thousandths: it means on_failure=local."""


def backend_of(options: dict[str, Any]) -> Backend | None:
    """The backend that these options say. None: none of them is given. Raises ValueError."""
    if not options:
        return None
    if not options.get("backend"):
        raise ValueError(f"{', '.join(options)}: there is no backend")
    share = options.get("local_share", 0)
    on_failure = options.get("on_failure", OnFailure.LOCAL if share else OnFailure.DENY)
    if (share != 0 or on_failure == OnFailure.LOCAL) and not (on_failure == OnFailure.LOCAL and 1 <= share <= 1000):
        raise ValueError(f"local_share={share}: must be 1 to 1000 thousandths, with on_failure=local, which needs it")
    backend = Backend(
        options["backend"],
        on_failure=on_failure,
        local_milli=share,
        deadline_ns=int(options.get("deadline_ms", 0) * 10**6),
        prefix=options.get("backend_prefix", "shmlimit:"),
        agent_thread=True,
    )
    check_backend(backend)
    return backend


class Hosts(Shared):
    """A segment whose rules can be used for all hosts that have the same backend. While the host has no agent, a thread of
    one of its processes is it."""

    def __init__(self, name: str | None, backend: Backend, **options: Any) -> None:
        super().__init__(name, **options)
        self._backend = replace(backend, agent_thread=True)
        self._global: GlobalLimiter | None = None

    def everywhere(self, limiter: Limiter) -> GlobalLimiter:
        """What asks the backend, for the segment as it is open now. A thread may still use that of a segment which is gone."""
        found = self._global
        if found is None or found.limiter is not limiter:
            found = self._global = GlobalLimiter(limiter, self._backend)
        return found

    def use_everywhere(self, operation: str, name: str, rule: Rule, key: Key, *arguments: Any, **named: Any) -> Any:
        """As use(), by a method of GlobalLimiter."""
        limiter, encoded = self.limiter(), shared_key(key)
        if self._ensured.get(name) != rule:
            limiter = self._ensure(limiter, name, rule)
        try:
            return getattr(self.everywhere(limiter), operation)(name, encoded, *arguments, **named)
        except Error as error:
            if error.errno != errno.ESRCH:
                raise
        limiter = self._ensure(limiter, name, rule)
        return getattr(self.everywhere(limiter), operation)(name, encoded, *arguments, **named)

    def take(self, name: str, rule: Rule, key: Key, cost: int = 1) -> Result:
        """Of a token bucket's rule, by a lease of all hosts."""
        result: Result = self.use_everywhere("take", name, _lease(rule), key, cost)
        return result


@functools.lru_cache(maxsize=4096)
def _lease(rule: Rule) -> Rule:
    if rule.algorithm != Algorithm.FUNNEL:
        raise ValueError(f"hosts cannot share a rule of the algorithm {rule.algorithm.name}")
    return replace(rule, algorithm=Algorithm.LEASE)


def shared(options: dict[str, Any]) -> Shared:
    """A Shared, or Hosts where options say a backend. Raises ValueError or TypeError for what it does not know."""
    backend = backend_of({key: OPTIONS[key](value) for key, value in options.items() if key in OPTIONS})
    here = {key: value for key, value in options.items() if key not in OPTIONS}
    return Shared(**here) if backend is None else Hosts(backend=backend, **{"name": None, **here})
