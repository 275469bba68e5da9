"""The limits as WSGI middleware.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .forwarded import UNIX, Proxies
from .gate import Gate, address_key

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def client(environ: Mapping[str, Any]) -> str | bytes:
    """The net of the address that the server heard from: of IPv6 the /64."""
    return address_key(environ.get("REMOTE_ADDR", ""))


def client_behind(*proxies: str) -> Callable[[Mapping[str, Any]], str | bytes]:
    """Like client(), but where the server heard from one of these proxies, the net of the address that X-Forwarded-For
    names. A proxy is an address, a net, or "unix:" for those that connect through a Unix socket."""
    known = Proxies(proxies)

    def client_of(environ: Mapping[str, Any]) -> str | bytes:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR")
        return address_key(known.client(environ.get("REMOTE_ADDR") or UNIX, [forwarded] if forwarded else []))

    return client_of


class Middleware:
    """Refuses what the gate refuses, and tells clients where they stand. The access log can have what became of
    each request from environ["shmlimit.status"]."""

    def __init__(self, app: WSGIApplication, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self.gate.ask(environ)
        environ["shmlimit.status"] = answer.status
        if answer.refusal is not None:
            content = [("Content-Type", "text/plain"), ("Content-Length", str(len(answer.body)))]
            start_response(f"{answer.refusal.value} {answer.refusal.phrase}", content + answer.fields)
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]
        if not answer.fields:
            return self.app(environ, start_response)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None, /
        ) -> Callable[[bytes], object]:
            return start_response(status, headers + answer.fields, exc_info)

        return self.app(environ, start)
