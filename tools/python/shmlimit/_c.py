"""The C library as ctypes sees it: the structures and prototypes of shmlimit.h, and nothing else.

WHY NOT cffi: its fast mode needs a compiler where the package is installed, and its other one is slower
than this. A call costs 0.6 us here, of which the decision is 0.04. What is called for each request, the extension calls.

Names are those of C without their prefix. tests/package.sh holds every line to the header.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint, c_uint32, c_uint64, c_void_p
from types import SimpleNamespace

SONAME = "libshmlimit.so.1"

UINT64_MAX = 2**64 - 1
INT64_MAX = 2**63 - 1
RULE_NAME_MAX = 63
KEY_MAX = 1024
KEY_IP_MAX = 18
FIELD_MAX = 192
REQUESTS_MAX = 16
ALL_RULES = -(2**31)
NEXT_PAYS = 1
COUNT_REFUSED = 2
PROTECTED = 4
CUT_OFF = 16
READ_ONLY = 0x100
TRUSTED = 0x200
OPTION_GROUP = 0x1000000
LIMIT_BLOCK = 0x10000000
LIMIT_UNLIMITED = 0x20000000
LIMIT_PLACES = 0x40000000
COUNT_SATURATE = 0x10000
COUNT_RESTART = 0x20000
PLACE_BIND = 0x80000
PLACE_DROPPED = 0x400000
PLACE_UNTIMED = 0x800000
SHARE_ONE = 1000
VERBS = {"take": 0, "peek": 1, "reserve": 2, "charge": 3, "refund": 4, "take_some": 6}


class Options(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("mode", c_uint32),
        ("slots", c_uint64),
        ("rules", c_uint32),
        ("rules_max", c_uint32),
        ("on_full", c_uint32),
        ("clock", c_uint32),
        ("gid", c_uint32),
        ("owner", c_uint32),
        ("store_keys", c_uint32),
        ("flags", c_uint32),
        ("slots_max", c_uint64),
        ("reserved", c_uint64 * 2),
    ]


class Rule(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("algorithm", c_uint32),
        ("mode", c_uint32),
        ("flags", c_uint32),
        ("capacity", c_uint64),
        ("refill", c_uint64),
        ("period_ns", c_uint64),
        ("max_wait_ns", c_uint64),
        ("warmup_ns", c_uint64),
        ("cold_factor_milli", c_uint32),
        ("credit", c_uint32),
        ("set_unix_ns", c_uint64),
        ("mark", c_uint64),
        ("refused_unix_ns", c_uint64),
        ("law", c_uint32),
        ("least", c_uint32),
        ("zone", c_char * 40),
        ("zone_offsets", c_uint64 * 2),
    ]


class Result(Structure):
    _fields_ = [
        ("limit", c_uint64),
        ("remaining", c_uint64),
        ("wait_ns", c_uint64),
        ("retry_after_ns", c_uint64),
        ("reset_after_ns", c_uint64),
        ("granted", c_uint64),
    ]


class Counters(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved32", c_uint32),
        ("allowed", c_uint64),
        ("denied", c_uint64),
        ("shadow_denied", c_uint64),
        ("claims", c_uint64),
        ("reclaims", c_uint64),
        ("evictions", c_uint64),
        ("no_slot", c_uint64),
        ("failed_cas", c_uint64),
    ]


class Info(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("layout_version", c_uint32),
        ("size", c_uint64),
        ("slots", c_uint64),
        ("rules", c_uint32),
        ("rules_used", c_uint32),
        ("on_full", c_uint32),
        ("clock", c_uint32),
        ("enabled", c_uint32),
        ("mode", c_uint32),
        ("uid", c_uint32),
        ("gid", c_uint32),
        ("created_unix_ns", c_uint64),
        ("rules_max", c_uint32),
        ("store_keys", c_uint32),
        ("old_slots", c_uint64),
        ("slots_max", c_uint64),
        ("undecided_passed", c_uint64),
        ("undecided_refused", c_uint64),
        ("reserved", c_uint64 * 2),
    ]


class Limit(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("capacity", c_uint64),
        ("refill", c_uint64),
        ("period_ns", c_uint64),
        ("max_wait_ns", c_uint64),
    ]


class Place(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("index", c_uint32),
        ("value", c_uint64),
        ("flags", c_uint32),
        ("bind_error", c_int32),
    ]


class Request(Structure):
    _fields_ = [
        ("rule", c_int32),
        ("share", c_uint32),
        ("key", c_char_p),
        ("key_len", c_size_t),
        ("cost", c_uint64),
        ("limit", POINTER(Limit)),
        ("place", POINTER(Place)),
    ]


class CountRequest(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("n", c_int64),
        ("bound", c_int64),
        ("ttl_ns", c_uint64),
    ]


class Count(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved32", c_uint32),
        ("count", c_int64),
        ("applied", c_int64),
        ("ttl_ns", c_uint64),
    ]


class Fields(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved32", c_uint32),
        ("policy", c_char * FIELD_MAX),
        ("limit", c_char * FIELD_MAX),
        ("retry_after", c_char * 16),
    ]


class Problem(Structure):
    _fields_ = [("offset", c_uint64), ("text", c_char * 120)]


STRUCTURES = {
    "options": Options,
    "rule": Rule,
    "result": Result,
    "counters": Counters,
    "info": Info,
    "limit": Limit,
    "request": Request,
    "fields": Fields,
    "count": Count,
    "count_request": CountRequest,
    "place": Place,
    "problem": Problem,
}

_decision = [c_void_p, c_int, c_char_p, c_size_t, c_uint64]
_result = POINTER(Result)

PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "create": (c_int, [c_char_p, POINTER(Options), POINTER(c_void_p)]),
    "open": (c_int, [c_char_p, c_uint32, POINTER(Options), POINTER(c_void_p)]),
    "close": (None, [c_void_p]),
    "destroy": (c_int, [c_char_p]),
    "info": (c_int, [c_void_p, POINTER(Info)]),
    "gone": (c_int, [c_void_p]),
    "rule_set": (c_int, [c_void_p, c_char_p, POINTER(Rule)]),
    "rule_ensure": (c_int, [c_void_p, c_char_p, POINTER(Rule)]),
    "rule_parse": (c_int, [c_char_p, POINTER(Rule), POINTER(Problem)]),
    "rate_from_double": (c_int, [c_double, c_uint64, POINTER(c_uint64), POINTER(c_uint64)]),
    "rule_find": (c_int, [c_void_p, c_char_p]),
    "rule_get": (c_int, [c_void_p, c_int, POINTER(Rule)]),
    "rule_name": (c_int, [c_void_p, c_int, c_char_p]),
    "rule_remove": (c_int, [c_void_p, c_char_p]),
    "take": (c_int, [*_decision, _result]),
    "take_all": (c_int, [c_void_p, POINTER(Request), c_size_t, POINTER(c_size_t), _result]),
    "reserve": (c_int, [*_decision, c_uint64, _result]),
    "charge": (c_int, [*_decision, _result]),
    "peek": (c_int, [*_decision, _result]),
    "decide": (c_int, [c_void_p, c_uint32, POINTER(Request), _result]),
    "limit_parse": (c_int, [c_char_p, POINTER(Limit), POINTER(Problem)]),
    "throttle": (c_int, [c_void_p, c_char_p, c_size_t, *[c_uint64] * 4, POINTER(c_int64)]),
    "count": (c_int, [*_decision[:4], POINTER(CountRequest), POINTER(Count)]),
    "enter": (c_int, [*_decision[:4], POINTER(Place), _result]),
    "renew": (c_int, [*_decision[:4], POINTER(Place)]),
    "leave": (c_int, [*_decision[:4], POINTER(Place)]),
    "refund": (c_int, [*_decision, _result]),
    "pause": (c_int, [*_decision]),
    "paused": (c_int, [*_decision[:4], POINTER(c_uint64)]),
    "reset": (c_int, [c_void_p, c_int, c_char_p, c_size_t]),
    "counters": (c_int, [c_void_p, c_int, POINTER(Counters)]),
    "key_ip_text": (c_int, [c_char_p, c_int, c_uint, c_uint, c_char_p, c_size_t]),
    "fields": (c_int, [c_char_p, POINTER(Rule), c_int, _result, POINTER(Fields)]),
    "strerror": (c_char_p, [c_int]),
}

# Those that make system calls or pass over the table let other Python threads run; the others are shorter than
# handing the interpreter's lock over, and keep it.
_LONG = {"create", "open", "destroy", "rule_set", "rule_ensure", "rule_remove", "pause", "reset"}


def load(soname: str, prototypes: dict[str, tuple[type | None, list[type]]], long: set[str]) -> SimpleNamespace:
    """The functions of a library. ImportError: it cannot be loaded. WHY NOT limits in the memory of each process instead: N
    processes would admit N times the limit."""
    bundled = os.path.join(os.path.dirname(__file__), "lib", soname)  # a wheel has the libraries
    path = bundled if os.path.exists(bundled) else soname
    try:
        keeps_lock, releases_lock = ctypes.PyDLL(path), ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}: install shmlimit's libraries (on Debian: libshmlimit1, libshmlimit-gate1)") from error
    functions = SimpleNamespace()
    for name, (result, arguments) in prototypes.items():
        function = getattr(releases_lock if name in long else keeps_lock, "shmlimit_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(functions, name, function)
    return functions


library = load(SONAME, PROTOTYPES, _LONG)
