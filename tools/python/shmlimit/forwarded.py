"""Who a request behind proxies comes from.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

UNIX = "unix:"
"""The address of a peer that connects through a Unix socket."""

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
