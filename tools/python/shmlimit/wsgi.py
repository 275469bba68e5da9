"""The limits as WSGI middleware.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .forwarded import UNIX, Proxies, Watch
from .gate import Gate, is_address, status_line

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


@is_address
def client(environ: Mapping[str, Any]) -> str:
    """The address that the server heard from. What has none, as on a Unix socket, is one client."""
    return environ.get("REMOTE_ADDR") or UNIX


def client_behind(*proxies: str) -> Callable[[Mapping[str, Any]], str]:
    """Like client(), but where the server heard from one of these proxies, the address that X-Forwarded-For names. A
    proxy is an address, a net, or "unix:" for those that connect through a Unix socket."""
    known = Proxies(proxies)

    @is_address
    def client_of(environ: Mapping[str, Any]) -> str:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR")
        return known.client(environ.get("REMOTE_ADDR") or UNIX, [forwarded] if forwarded else [])

    return client_of


class _Held:
    """The body of a response whose request holds places until the server closes it, and is charged with each part of it. Where it is dropped
    instead, as by a middleware that answers itself, it ends when Python collects it."""

    _leave: Callable[[], None] | None = None

    def __init__(self, body: Iterable[bytes], charge: Callable[[], None] | None, leave: Callable[[], None]) -> None:
        self._body = body
        self._charge = charge
        self._leave = leave

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body) if self._charge is None else self._parts(self._charge)

    def _parts(self, charge: Callable[[], None]) -> Iterator[bytes]:
        for part in self._body:
            charge()
            yield part

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._end()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class Middleware:
    """Refuses what the gate refuses, and tells clients where they stand. A limit of how many at once counts a request until its
    response was sent or the client is gone, which is when the server closes the response. The access log can have what became of
    each request from environ["shmlimit.status"]. What the application puts into environ["shmlimit.used"], tokens by names of rules,
    is charged in limits with an estimate: while the response streams, with each part, and then."""

    def __init__(self, app: WSGIApplication, gate: Gate) -> None:
        self.app = app
        self.gate = gate
        self._enter = gate.enter_fast
        self._watch = Watch("wsgi.client_behind() names proxies", gate.proxy_warning)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._watch.looks and self._watch.due():
            self._watch.look_cgi(environ, environ, self.gate.keys())
        outcome, refusal, fields, _, _, places = self._enter(environ)
        environ["shmlimit.status"] = outcome
        if refusal:
            line = status_line(refusal)
            body = line.encode() + b"\n"
            start_response(line, [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *fields])
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
        if places is not None:
            return self._hold(environ, start_response, fields, places)
        return self._serve(environ, start_response, fields)

    def _hold(
        self, environ: WSGIEnvironment, start_response: StartResponse, fields: list[tuple[str, str]], places: Any
    ) -> Iterable[bytes]:
        used: dict[str, int] = {}
        environ["shmlimit.used"] = used
        try:
            body = self._serve(environ, start_response, fields)
        except BaseException:
            self.gate.end(places, used)
            raise

        def charge() -> None:
            if used:
                self.gate.charge(places, used)

        return _Held(body, charge if self.gate.charges else None, lambda: self.gate.end(places, used))

    def _serve(
        self, environ: WSGIEnvironment, start_response: StartResponse, fields: list[tuple[str, str]]
    ) -> Iterable[bytes]:
        if not fields:
            return self.app(environ, start_response)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None, /
        ) -> Callable[[bytes], object]:
            if exc_info is None:
                return start_response(status, headers + fields)
            return start_response(status, headers + fields, exc_info)

        return self.app(environ, start)
