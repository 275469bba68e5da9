"""Who a request behind proxies comes from.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from . import _c_gate
from .limiter import _log_line

UNIX = "unix:"
"""The address of a peer that connects through a Unix socket."""

FIELDS = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP")
"""That proxies write."""

CGI_FIELDS = tuple(("HTTP_" + name.upper().replace("-", "_"), name) for name in FIELDS)
"""As WSGI and Django name them, and as they are."""

LOOKS = 10000
"""How many requests a Watch looks at. Then it is one in a hundred: what comes so late is rare."""

_PORT = re.compile(r"\[(?P<v6>[^]]*)\](:\d+)?|(?P<v4>[\d.]+):\d+")


LONGEST = 64
"""More characters than any address and port have."""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Of an entry of X-Forwarded-For: with or without a port; None if it is no address."""
    return _parse(text) if len(text) <= LONGEST else None


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> IPv4Address | IPv6Address | None:
    match = _PORT.fullmatch(text)
    try:
        address = ip_address((match["v6"] or match["v4"]) if match else text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Proxies:
    """The proxies whose X-Forwarded-For is believed: addresses, nets, or "unix:" for all peers on a Unix socket."""

    def __init__(self, proxies: Iterable[str]) -> None:
        names = tuple(proxies)
        self._nets = tuple(ip_network(name) for name in names if name != UNIX)
        self._unix = UNIX in names

    def client(self, peer: str, headers: Iterable[str]) -> str:
        """The address of the client, by the peer's and by all X-Forwarded-For headers.

        Each proxy appends the address that it heard from. So the entries are read from the last one back, and one is
        believed only if what wrote it is a proxy of ours: a client cannot choose its address.
        """
        entries = [entry for header in headers for entry in header.split(",")]
        client = peer
        while entries and self._has(client):
            entry = _address(entries.pop().strip())
            if entry is None:
                break
            client = str(entry)
        return client

    def _has(self, peer: str) -> bool:
        if peer == UNIX:
            return self._unix
        address = _address(peer)
        return address is not None and any(address in net for net in self._nets)


@functools.lru_cache(maxsize=None)
def _gate() -> tuple[ctypes.c_void_p, object]:
    """A gate that needs no segment, and what it reports by, which has to live as long."""
    library, handle = _c_gate.load(), ctypes.c_void_p()
    report = _c_gate.Report(lambda _arg, bad, line: _log_line(bool(bad), line.decode("utf-8", "replace")))
    if library.gate_open(b"segment=any rule=any", ctypes.byref(handle)) == 0:
        library.gate_report(handle, report, None)
    return handle, report


def _is_proxy(peer: str, field: str | None = None, advice: str = "") -> bool:
    """Can this peer, whose address is the key, be a proxy, and was no other reported in this process? With a field it is now."""
    handle, _ = _gate()
    encoded = peer.encode("utf-8", "replace")
    key = _c_gate.Key(0, len(encoded), encoded)
    name = None if field is None else field.encode()
    said: int = _c_gate.load().gate_forwarded(
        handle, ctypes.byref(key), 1, encoded, len(encoded), name, advice.encode()
    )
    return said == 1


class Watch:
    """Says once that behind a proxy all clients are one: where a request has a field that proxies write, and a key is the
    address of the peer, which is private or loopback. `advice` says how proxies are configured."""

    def __init__(self, advice: str, looks: bool | str = True) -> None:
        said = str(looks).lower()
        if said not in ("true", "yes", "false", "no"):
            raise ValueError(f'proxy_warning "{looks}": must be yes or no')
        self.looks = said in ("true", "yes")
        """False: nothing is to be said, or it was."""
        self._advice = advice
        self._seen = 0

    def due(self) -> bool:
        """Is this request to be looked at?"""
        self._seen += 1
        return self.looks and (self._seen <= LOOKS or self._seen % 100 == 0)

    def look(self, request: Any, keys: Iterable[Callable[[Any], Any]], peer: str, field: str, value: str) -> None:
        """Of a request with a field. Where that has the peer's address, the server has put it in the peer's place."""
        if peer in value:
            return
        if not _is_proxy(peer):
            self.looks = _is_proxy("127.0.0.1")
            return
        made = (key(request) for key in keys)
        if peer in (key[0] if isinstance(key, tuple) else key for key in made):
            self.looks = not _is_proxy(peer, field, self._advice)

    def look_cgi(self, request: Any, environ: Mapping[str, Any], keys: Iterable[Callable[[Any], Any]]) -> None:
        """Of a request whose fields are in a WSGI environ, such as Django's META."""
        for name, field in CGI_FIELDS:
            if name in environ:
                return self.look(request, keys, environ.get("REMOTE_ADDR") or UNIX, field, environ[name])
