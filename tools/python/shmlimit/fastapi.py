"""A dependency for FastAPI: a limit on a route, a router or an application, for requests and WebSockets.

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

from fastapi import HTTPException, Response
from fastapi.requests import HTTPConnection
from starlette.exceptions import WebSocketException

from .asgi import ADVICE, look
from .forwarded import Watch
from .gate import Answer, Gate, Limit, is_address, status_line
from .key import Key
from .limiter import Algorithm
from .rate import parse
from .shared import file_of, own_rule_name, rule_name


TRY_AGAIN_LATER = 1013
"""The code that a WebSocket is closed with."""


@is_address
def client(connection: HTTPConnection) -> str:
    """The address of the client, as the server says."""
    return connection.client.host if connection.client else "unix:"


class RateLimit:
    """Refuses with status 429, and adds the RateLimit fields to the answer. A WebSocket that is refused is closed before it is
    accepted, which clients see as 403; functions get a WebSocket instead of a Request then. `key` is a function of the request; None: it is
    not limited. Each RateLimit is a limit of its own, which all routes that have this object share. Those with the same `rule` are
    one limit; the name is by default made of the rate, of the file that has it, and of a number for the second and later ones with this rate.
    `rate` may be a function of the request, such as its customer's plan: then one rule of the algorithm gcra serves any
    number of limits, and a request whose rate cannot be read has `rate_error`, or is refused with 503. `segment` is by default
    python-UID; options are those of Gate. How many at once ("20 at once") is a matter of asgi.Middleware, which
    knows when a response has ended."""

    def __init__(
        self,
        rate: Union[str, Callable[[Any], Optional[str]]],
        *,
        key: Callable[[Any], Optional[Key]] = client,
        cost: Union[int, Callable[[Any], int]] = 1,
        rule: Optional[str] = None,
        segment: Optional[str] = None,
        rate_error: Optional[str] = None,
        **options: Any,
    ) -> None:
        text = rate if isinstance(rate, str) else rate.__qualname__
        file = file_of(sys._getframe(1).f_globals.get("__name__", ""))
        name = own_rule_name(self, text, file) if rule is None else rule_name(rule)
        if isinstance(rate, str):
            if parse(rate).algorithm == Algorithm.HOLD:
                raise ValueError(f'rate "{rate}": limits how many at once: use shmlimit.asgi.Middleware')
            limit = Limit(name, key, cost, rate=rate)
        else:
            rate_of = rate
            both = functools.wraps(key)(lambda request: (key(request), rate_of(request)))
            limit = Limit(name, both, cost, algorithm="gcra", rate_error=rate_error)
        self.gate = Gate(segment or f"python-{os.geteuid()}", [limit], **options)
        self._watch = Watch(ADVICE, self.gate.proxy_warning)

    # WHY NOT annotations as text: FastAPI cannot resolve those of an object's method.
    async def __call__(self, connection: HTTPConnection, response: Response) -> None:
        if self._watch.looks and self._watch.due():
            look(self._watch, connection.scope, connection, self.gate)
        answer = Answer(*await self.gate.enter_async(connection)) if self.gate.waits else self.gate.ask(connection)
        if answer.refusal and connection.scope["type"] == "websocket":
            raise WebSocketException(TRY_AGAIN_LATER, status_line(answer.refusal)[4:])
        if answer.refusal:
            raise HTTPException(answer.refusal, status_line(answer.refusal)[4:], headers=dict(answer.fields))
        for name, value in answer.fields:
            response.headers.append(name, value)
