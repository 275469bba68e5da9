"""The gate as ctypes sees it: the structures and prototypes of shmlimit_gate.h; and what the extension has for gates, by ctypes.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_size_t
from ctypes import c_uint32, c_uint64, c_void_p
from types import SimpleNamespace
from typing import Any

from . import _c
from .key import key_bytes

SONAME = "libshmlimit-gate.so.1"
FIELDS_MAX = 36
PENDING = 2
"""SHMLIMIT_GATE_PENDING."""
BUFFER = 6784
OUTCOMES = ("unlimited", "passed", "rejected", "rejected-dry-run", "failed", "delayed", "delayed-dry-run")
"""In the order of SHMLIMIT_GATE_UNLIMITED and so on."""

Raw = tuple[str, int, list[tuple[Any, Any]], int, int, Any]
"""The outcome, the status of a refusal or 0, the fields, retry_after_ns, remaining, and what leave() needs or None."""

Report = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Wrong(Structure):
    _fields_ = [("struct_size", c_uint32), ("offset", c_uint32), ("length", c_uint32), ("text", c_char * 180)]


class Key(Structure):
    _fields_ = [
        ("limit", c_uint32),
        ("length", c_uint32),
        ("bytes", c_char_p),
        ("cost", c_uint64),
        ("rate", c_char_p),
        ("rate_length", c_uint32),
        ("reserved32", c_uint32),
        ("parsed", c_void_p),
    ]


class Field(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p), ("name_length", c_uint32), ("value_length", c_uint32)]


class Answer(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("buffer_size", c_uint32),
        ("buffer", c_char_p),
        ("outcome", c_uint32),
        ("status", c_uint32),
        ("error", c_int32),
        ("denied_by", c_uint32),
        ("remaining", c_uint64),
        ("retry_after_ns", c_uint64),
        ("field_count", c_uint32),
        ("reserved32", c_uint32),
        ("fields", Field * FIELDS_MAX),
    ]


class Place(Structure):
    _fields_ = [
        ("key", c_uint32),
        ("rule", c_int32),
        ("place", _c.Place),
    ]


class Bill(Structure):
    _fields_ = [
        ("key", c_uint32),
        ("reserved32", c_uint32),
        ("paid", c_uint64),
    ]


class Held(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("count", c_uint32),
        ("segment", c_uint64),
        ("places", Place * _c.REQUESTS_MAX),
        ("bill_count", c_uint32),
        ("reserved32", c_uint32),
        ("bills", Bill * _c.REQUESTS_MAX),
    ]


STRUCTURES = {
    "gate_wrong": Wrong,
    "gate_key": Key,
    "gate_field": Field,
    "gate_answer": Answer,
    "gate_place": Place,
    "gate_bill": Bill,
    "gate_held": Held,
}

PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "gate_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "gate_close": (None, [c_void_p]),
    "gate_check": (c_int, [c_char_p, POINTER(Wrong)]),
    "gate_report": (None, [c_void_p, Report, c_void_p]),
    "gate_forwarded": (c_int, [c_void_p, POINTER(Key), c_size_t, c_char_p, c_size_t, c_char_p, c_char_p]),
    "gate_attach": (c_int, [c_void_p]),
    "gate_ask": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(Answer)]),
    "gate_enter": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(Answer), POINTER(Held)]),
    "gate_begin": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(Answer), POINTER(Held), POINTER(c_void_p)]),
    "gate_poll": (c_int, [c_void_p, c_void_p, POINTER(Answer), POINTER(Held)]),
    "gate_cancel": (None, [c_void_p, c_void_p, POINTER(Held)]),
    "gate_leave": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(Held)]),
    "gate_charge": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(c_uint64), POINTER(Held)]),
    "gate_settle": (c_int, [c_void_p, POINTER(Key), c_size_t, POINTER(c_uint64), POINTER(Held)]),
}

_loaded: SimpleNamespace | None = None


def load() -> SimpleNamespace:
    """The library, loaded by the first gate. Its functions release the interpreter's lock: one may call report(), which takes
    it, while other threads wait for that one."""
    global _loaded
    if _loaded is None:
        _loaded = _c.load(SONAME, PROTOTYPES, set(PROTOTYPES))
    return _loaded


def _cost(cost: int | Callable[[Any], int], request: Any) -> int:
    tokens = cost if isinstance(cost, int) else cost(request)
    if tokens < 0:
        raise ValueError("a cost must not be negative")
    return min(tokens, _c.UINT64_MAX)


def ask(
    handle: int, limits: tuple[tuple[Any, Any], ...], request: Any, as_bytes: bool, waits: bool, enters: bool | None, /
) -> Any:
    """Ask the gate, as _native.ask() does."""
    keys, n = (Key * len(limits))(), 0
    for i, (key_of, cost) in enumerate(limits):
        key, rate = key_of(request), None
        if isinstance(key, tuple):
            if len(key) != 2:
                raise TypeError("a key with its limit must be (key, limit)")
            key, rate = key
        tokens = 0 if key is None else _cost(cost, request)
        if tokens > 0:
            if rate is not None and not isinstance(rate, str):
                raise TypeError(f"a limit must be str, and not {type(rate)}")
            if rate is not None:
                keys[n].rate = encoded_rate = rate.encode("utf-8", "replace")
                keys[n].rate_length = len(encoded_rate)
            encoded = key_bytes(key) or b"\0"
            keys[n].limit, keys[n].length, keys[n].bytes, keys[n].cost = i, len(encoded), encoded, tokens
            n += 1
    (answer, _buffer), held, pending = _answer(), Held(ctypes.sizeof(Held)), c_void_p()
    if enters is None:
        error = load().gate_begin(handle, keys, n, ctypes.byref(answer), ctypes.byref(held), ctypes.byref(pending))
    elif enters:
        error = load().gate_enter(handle, keys, n, ctypes.byref(answer), ctypes.byref(held))
    else:
        error = load().gate_ask(handle, keys, n, ctypes.byref(answer))
    if error < 0:
        raise OSError(-error, os.strerror(-error))
    if pending:
        return pending.value, answer.retry_after_ns, (keys, n, held)
    return _raw(answer, as_bytes, (keys, n, held) if held.count or held.bill_count else None)


def _answer() -> tuple[Answer, Any]:
    """One with its buffer, which must live as long."""
    buffer = ctypes.create_string_buffer(BUFFER)
    return Answer(ctypes.sizeof(Answer), BUFFER, ctypes.cast(buffer, c_char_p)), buffer


def _raw(answer: Answer, as_bytes: bool, places: Any) -> Raw:
    told: list[tuple[Any, Any]] = [(field.name, field.value) for field in answer.fields[: answer.field_count]]
    fields = [(name.lower(), value) if as_bytes else (name.decode(), value.decode()) for name, value in told]
    return OUTCOMES[answer.outcome], answer.status, fields, answer.retry_after_ns, answer.remaining, places


def leave(handle: int, places: Any, /) -> None:
    """Leave the places that ask() returned, as _native.leave() does."""
    keys, n, held = places
    error = load().gate_leave(handle, keys, n, ctypes.byref(held))
    if error < 0:
        raise OSError(-error, os.strerror(-error))


def _keys(places: Any) -> tuple[Any, int, Held]:
    """Of what ask() or _native.ask() returned: the latter's held bytes are its own, which are shared."""
    if not isinstance(places[0], bytearray):
        keys, n, held = places
        return keys, n, held
    n = len(places) // 3
    keys = (Key * n)()
    for i in range(n):
        limit, encoded, rate = places[1 + 3 * i : 4 + 3 * i]
        keys[i].limit, keys[i].length, keys[i].bytes = limit, len(encoded), encoded
        keys[i].rate, keys[i].rate_length = rate, len(rate)
    return keys, n, Held.from_buffer(places[0])


def settle(handle: int, places: Any, used: Callable[[int], int | None], goes_on: bool = False) -> None:
    """Settle what the request of these places has used of the limits, by their numbers. None: it is not known. Of a request that
    goes on, charge what it has used so far."""
    keys, n, held = _keys(places)
    told = (c_uint64 * n)()
    for i in range(n):
        tokens = used(keys[i].limit)
        if tokens is not None and tokens < 0:
            raise ValueError("what a request used must not be negative")
        told[i] = _c.UINT64_MAX if tokens is None else min(tokens, _c.UINT64_MAX - 1)
    call = load().gate_charge if goes_on else load().gate_settle
    error = call(handle, keys, n, told, ctypes.byref(held))
    if error < 0:
        raise OSError(-error, os.strerror(-error))


class Pending:
    """A request that waits for the host's agent, or for its tokens: what ask() or _native.ask() returned when it had begun."""

    def __init__(self, handle: int, begun: tuple[int, int, Any], as_bytes: bool) -> None:
        self._handle, self._as_bytes = handle, as_bytes
        self._pending: int | None
        self._pending, self._poll_ns, self._places = begun
        self._keys, self._n, self._held = _keys(self._places)

    def poll(self) -> Raw | None:
        """The answer, or None while there is none. BlockingIOError: there is no agent any longer."""
        answer, _buffer = _answer()
        error = load().gate_poll(self._handle, self._pending, ctypes.byref(answer), ctypes.byref(self._held))
        if error == PENDING:
            self._poll_ns = answer.retry_after_ns
            return None
        self._pending = None
        if error < 0:
            raise OSError(-error, os.strerror(-error))
        return _raw(answer, self._as_bytes, self._places if self._held.count or self._held.bill_count else None)

    def cancel(self) -> None:
        """Give back what was taken, and leave the places. Does nothing for a request that was decided."""
        if self._pending is None:
            return
        load().gate_cancel(self._handle, self._pending, ctypes.byref(self._held))
        self._pending = None
        if self._held.count:
            leave(self._handle, (self._keys, self._n, self._held))

    async def wait(self) -> Raw:
        """In asyncio. A task that is cancelled takes nothing."""
        try:
            while True:
                await asyncio.sleep(self._poll_ns / 1e9)
                answer = self.poll()
                if answer is not None:
                    return answer
        finally:
            self.cancel()
