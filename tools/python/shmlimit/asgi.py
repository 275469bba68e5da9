"""The limits as ASGI middleware.

A decision takes less than a microsecond and waits for nothing, so it is made where the event loop runs. Of a gate with
a backend, a request that needs the host's agent awaits its answer; without an agent, a thread waits for the backend. A
request that a limit delays awaits its tokens.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from .forwarded import FIELDS, UNIX, Proxies, Watch
from .gate import Gate, is_address, status_line
from .limiter import log

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


ADVICE = "asgi.client_behind() or the server's own option, such as --forwarded-allow-ips, names proxies"

REPLACED = "unknown peer"
"""The key of all requests whose peer client_behind() cannot know."""


@is_address
def client(scope: Mapping[str, Any]) -> str:
    """The address in scope["client"]. Where the server believes a proxy, that is what the proxy says: uvicorn by default
    believes any process that connects from 127.0.0.1. What has none, as on a Unix socket, is one client."""
    return (scope.get("client") or (UNIX,))[0] or UNIX


def client_behind(*proxies: str) -> Callable[[Mapping[str, Any]], str]:
    """The address that the server heard from; where that is one of these proxies, the address that X-Forwarded-For names. A proxy is an address, a net, or "unix:" for those that connect through a Unix socket.

    The server must not replace the peer's address itself (uvicorn --no-proxy-headers). Servers that do so leave a port
    of 0. What such a request comes from cannot be known, so all of them are one client.
    """
    known = Proxies(proxies)
    warned = False

    @is_address
    def client_of(scope: Mapping[str, Any]) -> str:
        nonlocal warned
        peer, port = scope.get("client") or (UNIX, None)
        if port == 0:
            if not warned:
                warned = True
                log.error(
                    "the server replaces the addresses of peers by those of X-Forwarded-For, so all such requests are one "
                    "client: start it with --no-proxy-headers, or use asgi.client"
                )
            return REPLACED
        headers = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return known.client(peer, headers)

    return client_of


_FIELDS = {name.lower().encode(): name for name in FIELDS}


def look(watch: Watch, scope: Mapping[str, Any], request: Any, gate: Gate) -> None:
    """Of a request, which is what the gate's keys are made of."""
    for name, value in scope.get("headers", ()):
        if name in _FIELDS:
            return watch.look(request, gate.keys(), client(scope), _FIELDS[name], value.decode("latin-1"))


class Middleware:
    """Refuses what the gate refuses, and tells clients where they stand. A limit of how many at once counts a request, or a
    WebSocket, until the application is done with it. A WebSocket that is refused is closed before
    it was accepted, which clients see as 403. What became of a request is in scope["shmlimit.status"]. What the application puts into
    scope["shmlimit.used"], tokens by names of rules, is charged in limits with an estimate: while it streams, with each message, and when it is done."""

    def __init__(self, app: App, gate: Gate) -> None:
        self.app = app
        self.gate = gate
        self._enter = gate.enter_fast
        self._watch = Watch(ADVICE, gate.proxy_warning)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        if self._watch.looks and self._watch.due():
            look(self._watch, scope, scope, self.gate)
        answer = await self.gate.enter_async(scope, True) if self.gate.waits else self._enter(scope, True)
        outcome, refusal, fields, _, _, places = answer
        scope["shmlimit.status"] = outcome
        if refusal:
            return await _refuse(scope, send, refusal, fields)
        if places is None:
            return await self._serve(scope, receive, send, fields)
        used: dict[str, int] = {}
        scope["shmlimit.used"] = used

        async def charge(message: Message) -> None:
            if used:
                self.gate.charge(places, used)
            await send(message)

        try:
            await self._serve(scope, receive, charge if self.gate.charges else send, fields)
        finally:
            self.gate.end(places, used)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, fields: list[tuple[bytes, bytes]]) -> None:
        if not fields:
            return await self.app(scope, receive, send)

        async def add_fields(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *fields]}
            await send(message)

        await self.app(scope, receive, add_fields)


async def _refuse(scope: Scope, send: Send, refusal: int, fields: list[tuple[bytes, bytes]]) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013})
        return
    body = status_line(refusal).encode() + b"\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode()), *fields]
    await send({"type": "http.response.start", "status": refusal, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
