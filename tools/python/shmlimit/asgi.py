"""The limits as ASGI middleware.

A decision takes microseconds and waits for nobody, so it is made where the event loop runs. Only a request that an engine
must be asked about goes through a thread.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from .engine import log
from .forwarded import UNIX, Proxies
from .gate import Answer, Gate, address_key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


REPLACED = "unknown peer"
"""The key of all requests whose peer client_behind() cannot know."""


def client(scope: Mapping[str, Any]) -> str | bytes:
    """The net of scope["client"]: of IPv6 the /64. Where the server believes a proxy, that is what the proxy says:
    uvicorn by default believes any process that connects from 127.0.0.1."""
    return address_key((scope.get("client") or ("", 0))[0] or "")


def client_behind(*proxies: str) -> Callable[[Mapping[str, Any]], str | bytes]:
    """The net of the address that the server heard from; where that is one of these proxies, of the address that
    X-Forwarded-For names. A proxy is an address, a net, or "unix:" for those that connect through a Unix socket.

    The server must not replace the peer's address itself (uvicorn --no-proxy-headers). Servers that do so leave a port
    of 0. What such a request comes from cannot be known, so all of them are one client.
    """
    known = Proxies(proxies)
    warned = False

    def client_of(scope: Mapping[str, Any]) -> str | bytes:
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
        return address_key(known.client(peer, headers))

    return client_of


class Middleware:
    """Refuses what the gate refuses, and tells clients where they stand. A WebSocket that is refused is closed before
    it was accepted, which clients see as 403. What became of a request is in scope["shmlimit.status"]."""

    def __init__(self, app: App, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        begun = self.gate.begin(scope)
        answer = begun if isinstance(begun, Answer) else await asyncio.to_thread(begun)
        scope["shmlimit.status"] = answer.status
        if answer.refusal is not None:
            return await _refuse(scope, send, answer.refusal, answer)

        async def add_fields(message: Message) -> None:
            if message["type"] == "http.response.start" and answer.fields:
                message = {**message, "headers": [*message.get("headers", []), *_encoded(answer.fields)]}
            await send(message)

        await self.app(scope, receive, add_fields)


def _encoded(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in fields]


async def _refuse(scope: Scope, send: Send, refusal: HTTPStatus, answer: Answer) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013})
        return
    content = [("Content-Type", "text/plain"), ("Content-Length", str(len(answer.body)))]
    headers = _encoded(content + answer.fields)
    await send({"type": "http.response.start", "status": refusal.value, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
