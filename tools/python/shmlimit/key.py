"""A key as bytes.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import hashlib
from typing import Union

from ._c import KEY_MAX

Key = Union[str, bytes, bytearray, memoryview]


def key_bytes(key: Key) -> bytes:
    """A str is encoded as UTF-8, also one with surrogates, which clients can send in JSON. TypeError: it is no key."""
    if isinstance(key, str):
        try:
            return key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return key.encode("utf-8", "surrogatepass")
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    raise TypeError(f"a key must be str, bytes, bytearray or memoryview, and not {type(key)}")


def shared_key(key: Key) -> bytes:
    """A key as gates make it: one that is too long is replaced by its SHA-512, an empty one by a NUL byte."""
    encoded = key_bytes(key)
    return (encoded or b"\0") if len(encoded) <= KEY_MAX else hashlib.sha512(encoded).digest()
