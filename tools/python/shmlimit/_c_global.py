"""The C library for many hosts as ctypes sees it: the structures and prototypes of shmlimit_global.h.

It is loaded when the first GlobalLimiter is made: a process without one has no network code.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int, c_size_t
from ctypes import c_uint32, c_uint64, c_void_p
from types import SimpleNamespace

from . import _c

SONAME = "libshmlimit-global.so.1"
OPTION_AGENT_THREAD = 0x2000000
OPTION_NO_WAIT = 0x4000000

Report = CFUNCTYPE(None, c_void_p, c_char_p)


class Options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("on_failure", c_uint32),
        ("deadline_ns", c_uint64),
        ("lease_ns", c_uint64),
        ("open_ns", c_uint64),
        ("open_after", c_uint32),
        ("local_milli", c_uint32),
        ("prefix", c_char_p),
        ("report", Report),
        ("arg", c_void_p),
        ("flags", c_uint32),
        ("reserved32", c_uint32),
        ("reserved", c_uint64 * 3),
    ]


class Info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved32", c_uint32),
        ("round_trip_ns", c_uint64),
        ("version", c_char * 24),
        ("mode", c_char * 16),
        ("role", c_char * 16),
        ("eviction", c_char * 24),
        ("memory_max", c_uint64),
        ("clients", c_uint64),
        ("clients_max", c_uint64),
    ]


class Funnel(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved32", c_uint32),
        ("remaining", c_uint64),
        ("reset_after_ns", c_uint64),
        ("lease_ns", c_uint64),
    ]


STRUCTURES = {
    "global_options": Options,
    "global_info": Info,
    "global_funnel": Funnel,
}

_key = [c_void_p, c_int, c_char_p, c_size_t]
_result = POINTER(_c.Result)

PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "global_open": (c_int, [c_void_p, c_char_p, POINTER(Options), POINTER(c_void_p)]),
    "global_close": (None, [c_void_p]),
    "global_count": (c_int, [*_key, POINTER(_c.CountRequest), POINTER(_c.Count)]),
    "global_take": (c_int, [*_key, c_uint64, _result]),
    "global_take_many": (c_int, [c_void_p, POINTER(_c.Request), c_size_t, POINTER(c_int), _result]),
    "global_ping": (c_int, [c_void_p, POINTER(Info)]),
    "global_peek": (c_int, [*_key, POINTER(Funnel)]),
    "global_reset": (c_int, [*_key]),
    "global_strerror": (c_char_p, [c_int]),
}


@functools.lru_cache(maxsize=None)
def load() -> SimpleNamespace:
    """The library, loaded once. Any of its functions may wait for the backend, so other Python threads run in that time."""
    return _c.load(SONAME, PROTOTYPES, set(PROTOTYPES))
