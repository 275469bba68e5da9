"""A dependency for FastAPI: a limit on a route, a router or an application.

    from fastapi import Depends, FastAPI
    from shmlimit.fastapi import RateLimit

    app = FastAPI(dependencies=[Depends(RateLimit("10/s burst 20"))])

SPDX-License-Identifier: BSD-2-Clause
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Optional, Union

from fastapi import HTTPException, Request, Response

from .gate import Answer, Gate, Limit, is_address, status_line
from .key import Key
from .limiter import Algorithm
from .rate import parse
from .shared import file_of, rule_name, rule_name_at


@is_address
def client(request: Request) -> str:
    """The address of the client, as the server says."""
    return request.client.host if request.client else "unix:"


class RateLimit:
    """Refuses with status 429, and adds the RateLimit fields to the answer. `key` is a function of the request; None: it is
    not limited. Limits with the same rule and key share tokens; the rule's name is by default made of the rate and of the file
    that has it. `rate` may be a function of the request, such as its customer's plan: then one rule of the algorithm gcra serves any
    number of limits, and a request whose rate cannot be read has `rate_error`, or is refused with 503. `segment` is by default
    python-UID; options are those of Gate. How many at once ("20 at once") is a matter of asgi.Middleware, which
    knows when a response has ended."""

    def __init__(
        self,
        rate: Union[str, Callable[[Request], Optional[str]]],
        *,
        key: Callable[[Request], Optional[Key]] = client,
        cost: Union[int, Callable[[Request], int]] = 1,
        rule: Optional[str] = None,
        segment: Optional[str] = None,
        rate_error: Optional[str] = None,
        **options: Any,
    ) -> None:
        file = file_of(sys._getframe(1).f_globals.get("__name__", ""))
        if isinstance(rate, str):
            if parse(rate).algorithm == Algorithm.HOLD:
                raise ValueError(f'rate "{rate}": limits how many at once: use shmlimit.asgi.Middleware')
            limit = Limit(rule_name_at(rate, file) if rule is None else rule_name(rule), key, cost, rate=rate)
        else:
            rate_of, name = rate, rule_name_at(rate.__qualname__, file) if rule is None else rule_name(rule)
            both = functools.wraps(key)(lambda request: (key(request), rate_of(request)))
            limit = Limit(name, both, cost, algorithm="gcra", rate_error=rate_error)
        self.gate = Gate(segment or f"python-{os.geteuid()}", [limit], **options)

    # WHY NOT annotations as text: FastAPI cannot resolve those of an object's method.
    async def __call__(self, request: Request, response: Response) -> None:
        answer = Answer(*await self.gate.enter_async(request)) if self.gate.waits else self.gate.ask(request)
        if answer.refusal:
            raise HTTPException(answer.refusal, status_line(answer.refusal)[4:], headers=dict(answer.fields))
        for name, value in answer.fields:
            response.headers.append(name, value)
