"""A process's handle on a segment, and what it answers.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import ctypes
import errno
import functools
import logging
import math
import os
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Union

from . import _c, _c_gate
from ._c import library
from .key import Key, key_bytes

log = logging.getLogger("shmlimit")
with_threads: weakref.WeakSet[Any] = weakref.WeakSet()
"""GlobalLimiters that have a thread, which uses a Limiter."""

NEVER = _c.UINT64_MAX
"""As retry_after_ns: the request will never fit. As max_wait_ns: as long as the rule allows."""


class Error(OSError):
    """An error of the library: `errno`, `strerror` in the library's words, and as `filename` what it is about."""


class OnFull(IntEnum):
    """The answer to a new key whose probe window has no free slot."""

    EVICT = 0
    ALLOW = 1
    DENY = 2


class Clock(IntEnum):
    PRECISE = 0
    COARSE = 1


class Algorithm(IntEnum):
    FUNNEL = 0
    """A token bucket: a burst of capacity, then refill tokens a period."""
    TOKEN_BUCKET = 0
    """Another name of FUNNEL."""
    WARMUP = 1
    """refill tokens a period once it is warm. The capacity is 0, since it follows from the other parameters."""
    WINDOW = 2
    """At most capacity tokens in any stretch of a period; refill is 0 or the capacity."""
    LEASE = 3
    """Tokens that are leased from a funnel on a backend, which has this capacity, refill and period."""
    COUNTER = 4
    """A count that expires: the largest is the capacity; to take() at most capacity tokens in a period, which begins with the
    first. refill is 0 or the capacity."""
    HOLD = 5
    """Places that are held, at most capacity at once, each for at most a period. refill is 0 or the capacity."""
    GCRA = 6
    """As FUNNEL, but each call can bring its own limit; capacity, refill and period_ns, which all can be 0, are for calls that
    bring none."""


class Law(IntEnum):
    """How a limit of places finds its number, see shmlimit.7."""

    VEGAS = 1
    GRADIENT2 = 2
    AIMD = 3


class Mode(IntEnum):
    ENFORCE = 0
    DRY_RUN = 1
    OFF = 2
    """Allow always."""
    BLOCK = 3
    """Deny always."""


@dataclass(frozen=True)
class Rule:
    """A limit: `refill` tokens come back every `period_ns`, and `capacity` is the largest burst. A float is what its shortest
    decimal says: 0.1 tokens every second are 1 every 10 seconds, exactly."""

    capacity: int
    refill: int | float
    period_ns: int
    max_wait_ns: int = 0
    """The longest wait that a reservation may cause; 0 = no reservations."""
    mode: Mode = Mode.ENFORCE
    next_pays: bool = False
    """The next caller waits for a reservation's debt, and not the caller that makes it."""
    algorithm: Algorithm = Algorithm.FUNNEL
    warmup_ns: int = 0
    """WARMUP: the time from cold to warm, and from warm to cold."""
    cold_factor_milli: int = 0
    """WARMUP: the time of a cold token, in thousandths of a warm token's time; 0 = 3000."""
    count_refused: bool = False
    """WINDOW: refused tokens count, too."""
    credit: int = 0
    """LEASE: tokens that a key may spend here before the backend was asked, which is debited afterwards."""
    protected: bool = False
    """On a full table its keys keep their slots against keys of rules that are not protected."""
    cut_off: bool = False
    """HOLD: a place ends after the period, also while its process lives: "20 at once at most 5 minutes each"."""
    zone: str = ""
    """COUNTER: the time zone by whose hour, day, week or month it counts: "10000/day in UTC"; empty: none."""
    law: Law | None = None
    """HOLD: how the number of places is found, between `least` and `capacity`: "auto 8 to 64 at once"."""
    least: int = 0


class Result(NamedTuple):
    """The details of a decision. True if allowed."""

    allowed: bool
    limit: int
    """The rule's capacity, tokens."""
    remaining: int
    """Whole tokens left now."""
    wait_ns: int
    """Allowed: wait this long before going on; 0 except for reservations."""
    retry_after_ns: int
    """Denied: the same request fits after this time, if no other caller takes; or NEVER."""
    reset_after_ns: int
    """Until the funnel is full again."""

    def __bool__(self) -> bool:
        return self.allowed


class Count(NamedTuple):
    """The answer of count(). True unless the count would have gone beyond the bound."""

    allowed: bool
    value: int
    """The count now, after the call."""
    applied: int
    """What the call added."""
    ttl_ns: int
    """How long the count lives from now; 0: there is none."""

    def __bool__(self) -> bool:
        return self.allowed


def _log_line(bad: bool, line: str) -> None:
    """The logger of gates."""
    (log.error if bad else log.warning)("%s", line)


def _bind() -> ModuleType | None:
    """The extension, if pip could build it, with the functions that it calls."""
    try:
        from . import _native

        gate = _c_gate.load()
    except ImportError:
        return None
    functions = [getattr(library, name) for name in ("rule_find", "decide", "count")]
    names = ("ask", "enter", "begin", "leave", "attach", "report")
    functions += [getattr(gate, f"gate_{name}") for name in names]
    addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    _native.bind(addresses, Result, Count, _c_gate.OUTCOMES, _log_line)
    return _native


def _by_ctypes(*_arguments: object) -> None:
    """Stands for the extension where pip could not build it."""


native = _bind()
_native_take: Callable[..., Result | None] = native.take if native else _by_ctypes
_native_peek: Callable[..., Result | None] = native.peek if native else _by_ctypes
_native_count: Callable[..., Count | None] = native.count if native else _by_ctypes


def _zone(zone: str) -> bytes:
    text = zone.encode()
    if len(text) >= _c.Rule.zone.size or b"\0" in text:
        raise ValueError(f"zone {zone!r}: not a time zone")
    return text


CallLimit = Union[str, Rule, None]
"""A limit that comes with a call: a text, such as "100/minute", or what rate.parse() made of one, under a rule of
Algorithm.GCRA; or such as "20 at once" under a rule of HOLD, whose capacity is the most that counts and whose period is that
of the places. None: the rule's own."""


@functools.lru_cache(maxsize=4096)
def call_limit(limit: str | Rule, max_wait_ns: int | None = None) -> tuple[_c.Limit, int]:
    """What C takes for a limit, and its address. A wait is as long as the Rule's if none is given. ValueError: it is no
    limit that can come with a call."""
    c, wrong = _c.Limit(struct_size=ctypes.sizeof(_c.Limit)), _c.Problem()
    if isinstance(limit, str):
        text = limit.encode("utf-8", "replace")
        if b"\0" in text:
            raise ValueError(f"limit {limit!r}: contains a NUL")
        if library.limit_parse(text, ctypes.byref(c), ctypes.byref(wrong)) != 0:
            raise ValueError(f'limit "{limit}": {wrong.text.decode(errors="replace")}')
    elif isinstance(limit, Rule) and limit.algorithm == Algorithm.HOLD and not (limit.mode or limit.cut_off or limit.law):
        c.flags, c.capacity = _c.LIMIT_PLACES, _unsigned(limit.capacity)
    elif isinstance(limit, Rule):
        if limit.algorithm not in (Algorithm.FUNNEL, Algorithm.GCRA) or limit.mode == Mode.DRY_RUN:
            raise ValueError(f"limit {limit}: a limit that comes with a call is a rate, or a number of places")
        c.flags = {Mode.BLOCK: _c.LIMIT_BLOCK, Mode.OFF: _c.LIMIT_UNLIMITED}.get(limit.mode, 0)
        c.capacity, c.max_wait_ns = _unsigned(limit.capacity), _unsigned(limit.max_wait_ns)
        c.refill, c.period_ns = _rate(limit.refill, limit.period_ns)
    else:
        raise TypeError(f"a limit must be str or Rule, and not {type(limit)}")
    if max_wait_ns is not None:
        c.max_wait_ns = max_wait_ns
    return c, ctypes.addressof(c)


class Request(NamedTuple):
    """One of several limits on a request."""

    rule: str | int
    key: Key
    cost: int = 1
    limit: CallLimit = None
    share: float = 0
    """Of enter_all(): the key enters while it holds fewer places than this many times those that are free in the request before it."""


class All(NamedTuple):
    """The answer to several limits together. True if all allow."""

    allowed: bool
    failed: int
    """Denied: the index of the first that denies; else -1."""
    results: list[Result]
    """One for each request, up to the one that failed, which is the last."""

    def __bool__(self) -> bool:
        return self.allowed


class Fields(NamedTuple):
    """HTTP's header fields of an answer."""

    policy: str
    """RateLimit-Policy"""
    limit: str
    """RateLimit"""
    retry_after: str
    """Retry-After; empty unless denied, and where a retry will never fit."""


class Throttled(NamedTuple):
    """redis-cell's reply. True if allowed."""

    denied: int
    limit: int
    remaining: int
    retry_after_s: int
    reset_after_s: int

    def __bool__(self) -> bool:
        return not self.denied


class Info(NamedTuple):
    """A segment's geometry and state."""

    size: int
    slots: int
    rules: int
    rules_used: int
    enabled: int
    mode: int
    uid: int
    gid: int
    created_unix_ns: int
    store_keys: int


class Counters(NamedTuple):
    """Since the rule was defined, or (of all rules) the segment created."""

    allowed: int
    denied: int
    shadow_denied: int
    claims: int
    reclaims: int
    evictions: int
    no_slot: int
    failed_cas: int


def _error(number: int, subject: str) -> Error:
    return Error(number, library.strerror(number).decode(), subject)


def _check(answer: int, subject: str) -> int:
    if answer < 0:
        raise _error(-answer, subject)
    return answer


def _name(name: str) -> bytes:
    """A name for C, which would end it at a NUL."""
    encoded = os.fsencode(name)
    if b"\0" in encoded:
        raise _error(errno.EILSEQ, name)
    return encoded


def _unsigned(number: int, bits: int = 64) -> int:
    """A number for C, where ctypes would wrap it: -1 to 2**64 - 1, and 2**64 + 1 to 1."""
    if not 0 <= number < 1 << bits:
        raise _error(errno.EINVAL, str(number))
    return number


def _rate(refill: int | float, period_ns: int) -> tuple[int, int]:
    """Whole tokens in whole nanoseconds. ValueError: a float that is none."""
    period_ns = _unsigned(period_ns)
    if not isinstance(refill, float):
        return _unsigned(refill), period_ns
    count, period = ctypes.c_uint64(), ctypes.c_uint64()
    answer = library.rate_from_double(refill, period_ns, ctypes.byref(count), ctypes.byref(period))
    if answer == 0:
        return count.value, period.value
    if answer == -errno.ERANGE:
        least = period_ns / 2**60
        raise ValueError(f"refill {refill!r}: the nearest that can be is {least if refill < 1 else 2.0**64 - 2048!r}")
    raise ValueError(f"refill {refill!r}: must be a finite number above 0, of a period above 0")


def _signed(number: int, bits: int = 64) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _error(errno.EINVAL, str(number))
    return number


def _result(allowed: bool, r: _c.Result) -> Result:
    return Result(allowed, r.limit, r.remaining, r.wait_ns, r.retry_after_ns, r.reset_after_ns)


class Place:
    """A place under a HOLD rule, from Limiter.enter(): true if it was free. A with statement leaves it."""

    def __init__(self, limiter: Limiter, rule: str | int, key: bytes, result: Result, place: _c.Place) -> None:
        self.result = result
        """`remaining` counts free places; denied: the first place ends after `retry_after_ns`."""
        self.dropped = False
        """Set it before the place is left, under a rule such as "auto at once": the work failed by overload."""
        self.untimed = False
        """The same: how long it took says nothing of the load."""
        self._limiter = limiter
        self._rule = rule
        self._key = key
        self._place = place

    def __bool__(self) -> bool:
        return self.result.allowed

    def renew(self) -> bool:
        """Hold it for another period from now. False: it had ended."""
        return self._call(library.renew)

    def leave(self) -> bool:
        """False: it had ended, or was left before."""
        dropped = _c.PLACE_DROPPED if self.dropped else 0
        self._place.flags = dropped | (_c.PLACE_UNTIMED if self.untimed else 0)
        return self._call(library.leave)

    def _call(self, function: Callable[..., int]) -> bool:
        limiter = self._limiter
        answer = function(limiter._handle, limiter._id(self._rule), self._key, len(self._key), ctypes.byref(self._place))
        if answer == -errno.ETIME:
            return False
        _check(answer, f"{limiter.name}: rule {self._rule}")
        return True

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Places:
    """Places under several HOLD rules, from Limiter.enter_all(): true if all were entered. A with statement leaves them."""

    def __init__(self, failed: int, places: list[Place]) -> None:
        self.failed = failed
        """Denied: the index of the request that was; else -1."""
        self.places = places
        """One for each request, up to the one that failed, which is the last."""

    def __bool__(self) -> bool:
        return self.failed < 0

    def leave(self) -> bool:
        """False: one had ended, or was left before."""
        return all([place.leave() for place in reversed(self.places)]) if self else False

    def __enter__(self) -> Places:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Limiter:
    """A handle on the segment `name`.

    Children that are forked later can go on using it. All methods except close() are thread-safe; no call may run
    beside close(). Rules are given by name, which is looked up at each call, or by the id that rule_find() and
    rule_set() return. Keys are 1 to 1024 bytes; a str is encoded as UTF-8. Every method can raise Error, and has then
    changed nothing.
    """

    # Of the class: an object whose constructor was called with wrong arguments is deleted, too.
    _handle: int | None = None
    _globals: dict[int, Callable[[int], None]] | None = None

    def __init__(self, name: str, *, read_only: bool = False, owner: int | None = None) -> None:
        """Open it if it belongs to root, to this process's user or to the user id `owner`: the owner can truncate
        it, which kills every process that has it open."""
        self.name = name
        handle = ctypes.c_void_p()
        flags = _c.TRUSTED | (_c.READ_ONLY if read_only else 0)
        options = _c.Options(struct_size=ctypes.sizeof(_c.Options), owner=0 if owner is None else _unsigned(owner, 32))
        _check(library.open(_name(name), flags, ctypes.byref(options), ctypes.byref(handle)), name)
        self._handle = handle.value

    @staticmethod
    def create(
        name: str,
        *,
        slots: int = 0,
        rules: int = 0,
        store_keys: int = 0,
        mode: int = 0,
        group: int | None = None,
        on_full: OnFull = OnFull.EVICT,
        clock: Clock = Clock.PRECISE,
    ) -> Limiter:
        """Make a segment and open it. 0 is the default: 65536 slots, 64 rules, mode 0600."""
        options = _c.Options(
            struct_size=ctypes.sizeof(_c.Options),
            slots=_unsigned(slots),
            rules=_unsigned(rules, 32),
            store_keys=_unsigned(store_keys, 32),
            mode=_unsigned(mode, 32),
            flags=0 if group is None else _c.OPTION_GROUP,
            gid=0 if group is None else _unsigned(group, 32),
            on_full=on_full,
            clock=clock,
        )
        handle = ctypes.c_void_p()
        _check(library.create(_name(name), ctypes.byref(options), ctypes.byref(handle)), name)
        limiter = Limiter.__new__(Limiter)
        limiter.name, limiter._handle = name, handle.value
        return limiter

    def close(self) -> None:
        """Release the handle. The segment and its funnels stay. GlobalLimiters on it are closed first."""
        for used, close in list((self._globals or {}).items()):
            self._forget_global(used)
            close(used)
        handle, self._handle = self._handle, None
        library.close(handle)

    def _know_global(self, handle: int, close: Callable[[int], None]) -> None:
        """A GlobalLimiter's handle on this one. WHY not a weak set of GlobalLimiters: the collector of cycles empties that, and
        may then delete this object first, while a thread uses it."""
        self._globals = {**(self._globals or {}), handle: close}

    def _forget_global(self, handle: int) -> bool:
        """Is it still open? It belongs to the caller then."""
        known, self._globals = self._globals or {}, {h: c for h, c in (self._globals or {}).items() if h != handle}
        return handle in known

    def info(self) -> Info:
        """The segment's geometry and state."""
        c = _c.Info(struct_size=ctypes.sizeof(_c.Info))
        _check(library.info(self._handle, ctypes.byref(c)), self.name)
        return Info(*(getattr(c, field) for field in Info._fields))

    def gone(self) -> bool:
        """Was the segment destroyed or replaced under its name?"""
        return _check(library.gone(self._handle), self.name) == 1

    def __enter__(self) -> Limiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _id(self, rule: str | int) -> int:
        return self.rule_find(rule) if isinstance(rule, str) else _unsigned(rule, 31)

    def rule_find(self, rule: str) -> int:
        """The id of a rule, which it keeps while it exists."""
        return _check(library.rule_find(self._handle, _name(rule)), f"{self.name}: rule {rule}")

    def rule_set(self, rule: str, params: Rule) -> int:
        """Define a rule or change one, for all processes, with their next decision. Keys keep their tokens."""
        return self._rule_call(library.rule_set, rule, params)

    def rule_ensure(self, rule: str, params: Rule) -> int:
        """Give a program that starts its rule: set if it is missing, or if this call was given another one last. What an
        operator has changed since stays. A rule of another algorithm is replaced, and its keys begin again."""
        return self._rule_call(library.rule_ensure, rule, params)

    def _rule_call(self, function: Callable[..., int], rule: str, params: Rule) -> int:
        refill, period_ns = _rate(params.refill, params.period_ns)
        c = _c.Rule(
            struct_size=ctypes.sizeof(_c.Rule),
            algorithm=params.algorithm,
            mode=params.mode,
            flags=_c.NEXT_PAYS * params.next_pays
            | _c.COUNT_REFUSED * params.count_refused
            | _c.PROTECTED * params.protected
            | _c.CUT_OFF * params.cut_off,
            capacity=_unsigned(params.capacity),
            refill=refill,
            period_ns=period_ns,
            max_wait_ns=_unsigned(params.max_wait_ns),
            warmup_ns=_unsigned(params.warmup_ns),
            cold_factor_milli=_unsigned(params.cold_factor_milli, 32),
            credit=_unsigned(params.credit, 32),
            zone=_zone(params.zone),
            law=params.law or 0,
            least=_unsigned(params.least, 32),
        )
        return _check(function(self._handle, _name(rule), ctypes.byref(c)), f"{self.name}: rule {rule}")

    def rule_get(self, rule: str | int) -> Rule:
        c = _c.Rule(struct_size=ctypes.sizeof(_c.Rule))
        _check(library.rule_get(self._handle, self._id(rule), ctypes.byref(c)), f"{self.name}: rule {rule}")
        return Rule(
            c.capacity,
            c.refill,
            c.period_ns,
            c.max_wait_ns,
            Mode(c.mode),
            bool(c.flags & _c.NEXT_PAYS),
            Algorithm(c.algorithm),
            c.warmup_ns,
            c.cold_factor_milli,
            bool(c.flags & _c.COUNT_REFUSED),
            c.credit,
            bool(c.flags & _c.PROTECTED),
            bool(c.flags & _c.CUT_OFF),
            c.zone.decode(errors="replace"),
            Law(c.law) if c.law else None,
            c.least,
        )

    def fields(self, rule: str, result: Result) -> Fields | None:
        """The HTTP header fields of a decision, with the rule's name as the policy.
        None if the rule is not enforced: in a dry run, off, or blocking."""
        rule_id, subject = self.rule_find(rule), f"{self.name}: rule {rule}"
        c, out = _c.Rule(struct_size=ctypes.sizeof(_c.Rule)), _c.Fields(struct_size=ctypes.sizeof(_c.Fields))
        _check(library.rule_get(self._handle, rule_id, ctypes.byref(c)), subject)
        if c.mode != Mode.ENFORCE:
            return None
        answer, r = 0 if result.allowed else 1, _c.Result(*result[1:])
        _check(library.fields(_name(rule), ctypes.byref(c), answer, ctypes.byref(r), ctypes.byref(out)), subject)
        return Fields(out.policy.decode(), out.limit.decode(), out.retry_after.decode())

    def rules(self) -> list[str]:
        """The names of all rules."""
        name = ctypes.create_string_buffer(_c.RULE_NAME_MAX + 1)
        ids = range(self.info().rules)
        return [name.value.decode() for i in ids if library.rule_name(self._handle, i, name) == 0]

    def rule_remove(self, rule: str) -> None:
        """Forget a rule and all its funnels."""
        _check(library.rule_remove(self._handle, _name(rule)), f"{self.name}: rule {rule}")

    def _decide(self, verb: str, rule: str | int, key: Key, tokens: int, *more: Any) -> Result:
        r = _c.Result()
        key = key_bytes(key)
        answer = getattr(library, verb)(
            self._handle, self._id(rule), key, len(key), _unsigned(tokens), *more, ctypes.byref(r)
        )
        _check(answer, f"{self.name}: rule {rule}")
        return _result(answer == 0, r)

    def _decide_limit(
        self, verb: str, rule: str | int, key: Key, tokens: int, limit: str | Rule, max_wait_ns: int = NEVER
    ) -> Result:
        """Without a wait in the limit, and without another one, it is the rule's."""
        wait: int | None = None if max_wait_ns == NEVER else _unsigned(max_wait_ns)
        if wait is None and verb not in ("take", "peek") and not (isinstance(limit, Rule) and limit.max_wait_ns):
            wait = self.rule_get(rule).max_wait_ns
        r, encoded = _c.Result(), key_bytes(key)
        by = ctypes.pointer(call_limit(limit, wait)[0])
        asked = _c.Request(self._id(rule), 0, encoded, len(encoded), _unsigned(tokens), by, None)
        answer = library.decide(self._handle, _c.VERBS[verb], ctypes.byref(asked), ctypes.byref(r))
        _check(answer, f"{self.name}: rule {rule}")
        return _result(answer == 0, r)

    def take(self, rule: str | int, key: Key, cost: int = 1, *, limit: CallLimit = None) -> Result:
        """Take `cost` tokens if the key's funnel has them. With a limit, under a rule of GCRA, it is this call's: a key that is
        asked with another limit owes at most that one's time to full, see shmlimit_decide(3)."""
        if limit is None:
            r = _native_take(self._handle, rule, key, cost)
            return self._decide("take", rule, key, cost) if r is None else r
        r = _native_take(self._handle, rule, key, cost, call_limit(limit)[1])
        return self._decide_limit("take", rule, key, cost, limit) if r is None else r

    def peek(self, rule: str | int, key: Key, cost: int = 1, *, limit: CallLimit = None) -> Result:
        """What a take would answer, without taking."""
        if limit is None:
            r = _native_peek(self._handle, rule, key, cost)
            return self._decide("peek", rule, key, cost) if r is None else r
        r = _native_peek(self._handle, rule, key, cost, call_limit(limit)[1])
        return self._decide_limit("peek", rule, key, cost, limit) if r is None else r

    def take_some(self, rule: str | int, key: Key, most: int, *, limit: CallLimit = None) -> int:
        """Take as many of `most` tokens as fit, for batches: returns how many were taken, 0 if none fits. Not under rules of
        HOLD and LEASE: Error with EOPNOTSUPP."""
        r, encoded = _c.Result(), key_bytes(key)
        by = None if limit is None else ctypes.pointer(call_limit(limit)[0])
        asked = _c.Request(self._id(rule), 0, encoded, len(encoded), _unsigned(most), by)
        answer = library.decide(self._handle, _c.VERBS["take_some"], ctypes.byref(asked), ctypes.byref(r))
        _check(answer, f"{self.name}: rule {rule}")
        return int(r.granted)

    def count(
        self,
        rule: str | int,
        key: Key,
        n: int = 1,
        *,
        ttl_ns: int = 0,
        bound: int = _c.INT64_MAX,
        saturate: bool = False,
        restart: bool = False,
    ) -> Count:
        """Add `n`, which may be negative, to a count that expires `ttl_ns` after its first addition (0: the rule's period).
        Beyond `bound` or below 0: nothing is added, or, with `saturate`, what fits. With `restart` the time begins again."""
        flags = _c.COUNT_SATURATE * saturate + _c.COUNT_RESTART * restart
        counted = _native_count(self._handle, rule, key, n, ttl_ns, bound, flags)
        if counted is not None:
            return counted
        c, encoded = _c.Count(struct_size=ctypes.sizeof(_c.Count)), key_bytes(key)
        asked = _c.CountRequest(ctypes.sizeof(_c.CountRequest), flags, _signed(n), _signed(bound), _unsigned(ttl_ns))
        answer = library.count(
            self._handle, self._id(rule), encoded, len(encoded), ctypes.byref(asked), ctypes.byref(c)
        )
        _check(answer, f"{self.name}: rule {rule}")
        return Count(answer == 0, c.count, c.applied, c.ttl_ns)

    def enter(self, rule: str | int, key: Key, *, limit: CallLimit = None) -> Place:
        """Enter one of the key's places, if one is free: ``with limiter.enter("jobs", user) as place: if place: ...``. A place
        is held while this process lives, until it is left; a rule that says "at most 5 minutes each" ends it after them. With
        a limit, such as "20 at once", one is free while fewer are held than it says; at most the rule's capacity counts."""
        # One that cannot be bound to this process ends with its period.
        place = _c.Place(struct_size=ctypes.sizeof(_c.Place), flags=_c.PLACE_BIND)
        r, encoded, number = _c.Result(), key_bytes(key), self._id(rule)
        by = None if limit is None else ctypes.pointer(call_limit(limit)[0])
        asked = _c.Request(number, 0, encoded, len(encoded), 1, by, ctypes.pointer(place))
        answer = library.decide(self._handle, _c.VERBS["take"], ctypes.byref(asked), ctypes.byref(r))
        _check(answer, f"{self.name}: rule {rule}")
        return Place(self, rule, encoded, _result(answer == 0, r), place)

    def reserve(
        self, rule: str | int, key: Key, cost: int = 1, max_wait_ns: int = NEVER, *, limit: CallLimit = None
    ) -> Result:
        """Take tokens now or in advance: the caller waits for `wait_ns` before it goes on, as in
        ``await asyncio.sleep(r.wait_ns / 1e9)``. Denied if that would be longer than max_wait_ns or the rule's."""
        if limit is not None:
            return self._decide_limit("reserve", rule, key, cost, limit, max_wait_ns)
        return self._decide("reserve", rule, key, cost, _unsigned(max_wait_ns))

    def acquire(
        self, rule: str | int, key: Key, cost: int = 1, max_wait_ns: int = NEVER, *, limit: CallLimit = None
    ) -> Result:
        """Reserve, then sleep until the tokens are there.

        Not C's acquire, which no signal can interrupt: this sleep ends with Ctrl-C, and lets greenlets run.
        If an exception ends it, the turn passes unused: others may wait behind it. While the key is paused it waits until that
        is over, and reserves then; a turn that comes in a pause passes unused, too.
        """
        begun_ns, waited_ns = time.monotonic_ns(), 0
        while True:
            most_ns = max_wait_ns if max_wait_ns == NEVER else max(0, max_wait_ns - waited_ns)
            r = self.reserve(rule, key, cost, most_ns, limit=limit)
            if r and r.wait_ns == 0:
                return r._replace(wait_ns=waited_ns)
            if r:
                time.sleep(r.wait_ns / 1e9)
            left_ns = self._paused_ns(rule, key)
            if left_ns == 0:
                return r._replace(wait_ns=r.wait_ns + waited_ns) if r else r
            waited_ns = time.monotonic_ns() - begun_ns
            if max_wait_ns == NEVER or left_ns <= max_wait_ns - waited_ns:
                time.sleep(left_ns / 1e9)
                waited_ns = time.monotonic_ns() - begun_ns
            elif not r:
                return r

    def pause(self, rule: str | int, key: Key, seconds: float) -> bool:
        """Let nothing of the key pass for so long, in all processes: what it stands for has answered 429, say. A longer pause
        stays; 0 ends one. acquire() waits until it is over. False: the segment has no slot for it, or is off. See heed()."""
        encoded = key_bytes(key)
        ns = _unsigned(math.ceil(seconds * 1e9))
        answer = library.pause(self._handle, self._id(rule), encoded, len(encoded), ns)
        return _check(answer, f"{self.name}: rule {rule}") == 0

    def paused(self, rule: str | int, key: Key) -> float:
        """For how many seconds the key is paused still; 0.0: it is not."""
        return self._paused_ns(rule, key) / 1e9

    def _paused_ns(self, rule: str | int, key: Key) -> int:
        encoded, left_ns = key_bytes(key), ctypes.c_uint64()
        answer = library.paused(self._handle, self._id(rule), encoded, len(encoded), ctypes.byref(left_ns))
        _check(answer, f"{self.name}: rule {rule}")
        return int(left_ns.value)

    def refund(self, rule: str | int, key: Key, tokens: int = 1, *, limit: CallLimit = None) -> Result:
        """Give tokens back that were taken or reserved and then not used."""
        if limit is not None:
            return self._decide_limit("refund", rule, key, tokens, limit)
        return self._decide("refund", rule, key, tokens)

    def charge(self, rule: str | int, key: Key, tokens: int = 1, *, limit: CallLimit = None) -> Result:
        """Take tokens for something that has already happened, into debt as far as the rule allows."""
        if limit is not None:
            return self._decide_limit("charge", rule, key, tokens, limit)
        return self._decide("charge", rule, key, tokens)

    def take_all(self, requests: Sequence[Request]) -> All:
        """Take from up to 16 limits, all or none. Put the one that denies most first."""
        n = len(requests)
        c, results, failed = (_c.Request * n)(), (_c.Result * n)(), ctypes.c_size_t(n)
        for i, (rule, key, cost, limit, share) in enumerate(requests):
            if share != 0:
                raise ValueError(f"share {share}: is of enter_all()")
            encoded = key_bytes(key)
            c[i].rule, c[i].key, c[i].key_len, c[i].cost = self._id(rule), encoded, len(encoded), _unsigned(cost)
            if limit is not None:
                c[i].limit = ctypes.pointer(call_limit(limit)[0])
        answer = library.take_all(self._handle, c, n, ctypes.byref(failed), results)
        if answer < 0:
            _check(answer, f"{self.name}: rule {requests[failed.value].rule}" if failed.value < n else self.name)
        filled = n if answer == 0 else failed.value + 1
        decided = [_result(i + 1 < filled or answer == 0, results[i]) for i in range(filled)]
        return All(answer == 0, -1 if answer == 0 else failed.value, decided)

    def enter_all(self, requests: Sequence[Request]) -> Places:
        """Enter a place of each of up to 16 limits, all or none, in one step: ``with limiter.enter_all([Request("all", "all"),
        Request("tenants", user, share=4)]) as places: if places: ...``. See enter()."""
        n = len(requests)
        c, results, failed = (_c.Request * n)(), (_c.Result * n)(), ctypes.c_size_t(n)
        places = [_c.Place(struct_size=ctypes.sizeof(_c.Place), flags=_c.PLACE_BIND) for _ in requests]
        keys = [key_bytes(request.key) for request in requests]
        for i, (rule, _, cost, limit, share) in enumerate(requests):
            by = None if limit is None else ctypes.pointer(call_limit(limit)[0])
            thousandths = round(share * _c.SHARE_ONE)
            if share != 0 and not 1 <= thousandths <= 10**6 * _c.SHARE_ONE:
                raise ValueError(f"share {share}: must be 0.001 to 1000000")
            c[i] = _c.Request(self._id(rule), thousandths, keys[i], len(keys[i]), _unsigned(cost), by, ctypes.pointer(places[i]))
        answer = library.take_all(self._handle, c, n, ctypes.byref(failed), results)
        if answer < 0:
            _check(answer, f"{self.name}: rule {requests[failed.value].rule}" if failed.value < n else self.name)
        entered = [
            Place(self, requests[i].rule, keys[i], _result(answer == 0 or i < failed.value, results[i]), places[i])
            for i in range(n if answer == 0 else failed.value + 1)
        ]
        return Places(-1 if answer == 0 else failed.value, entered)

    def throttle(self, key: Key, capacity: int, count: int | float, period_s: int, quantity: int = 1) -> Throttled:
        """redis-cell's CL.THROTTLE, for code that passes the limit with each call. `count` may be a float, such as 0.5."""
        if isinstance(count, float):
            count, period_ns = _rate(count, _unsigned(period_s) * 10**9)
            if period_ns % 10**9 != 0:
                raise ValueError(f"count {count} in {period_ns} ns: must be of whole seconds")
            period_s = period_ns // 10**9
        reply = (ctypes.c_int64 * 5)()
        key = key_bytes(key)
        params = map(_unsigned, (capacity, count, period_s, quantity))
        answer = library.throttle(self._handle, key, len(key), *params, reply)
        _check(answer, self.name)
        return Throttled(*reply)

    def reset(self, rule: str | int | None = None, key: Key | None = None) -> int:
        """Restore all tokens of one key, of every key of a rule, or of all. Returns how many keys had a slot."""
        rule_id = _c.ALL_RULES if rule is None else self._id(rule)
        c_key = None if key is None else key_bytes(key)
        answer = library.reset(self._handle, rule_id, c_key, len(c_key or b""))
        return _check(answer, self.name if rule is None else f"{self.name}: rule {rule}")

    def counters(self, rule: str | int | None = None) -> Counters:
        """The counters of one rule, or of all rules together."""
        c = _c.Counters(struct_size=ctypes.sizeof(_c.Counters))
        rule_id = _c.ALL_RULES if rule is None else self._id(rule)
        _check(library.counters(self._handle, rule_id, ctypes.byref(c)), self.name)
        return Counters(*(getattr(c, field) for field in Counters._fields))


def destroy(name: str) -> None:
    """Remove a segment's name. Processes that have it open can go on using it."""
    _check(library.destroy(_name(name)), name)


def key_ip(address: str, prefix_v4: int = 32, prefix_v6: int = 64, nth: int = 0) -> bytes:
    """The network of an address, as a key: a customer's IPv6 /64 counts as one client. IPv4-mapped addresses are IPv4.

    A port, brackets and a zone do not count. `nth` takes an element of a list such as X-Forwarded-For: 1 is the first,
    which a client can forge; -1 is the last, which the nearest proxy wrote.
    """
    key = ctypes.create_string_buffer(_c.KEY_IP_MAX)
    answer = library.key_ip_text(
        _name(address), _signed(nth, 32), _unsigned(prefix_v4, 32), _unsigned(prefix_v6, 32), key, len(key)
    )
    return key.raw[: _check(answer, address)]

