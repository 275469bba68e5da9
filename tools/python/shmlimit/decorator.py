"""A limit on any function, and on what a program asks of others.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, TypeVar

from . import rate
from .key import Key, key_bytes
from .limiter import NEVER, Algorithm, Result
from .shared import Shared, file_of, give_back_name, own_rule_name, rule_name, rule_name_at

Function = TypeVar("Function", bound=Callable[..., Any])
MAX_WAIT_S = 3600.0


class RateLimited(Exception):
    """The limit denies the call. `retry_after_s`: the time after which it fits; None: never."""

    def __init__(self, rule: str, retry_after_s: float | None) -> None:
        super().__init__(rule, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"limit {self.args[0]}: " + (
            "never fits" if self.retry_after_s is None else f"retry after {self.retry_after_s:.3f} s"
        )


class _Turns:
    """Turns that calls of this process have left, by time.monotonic(). Each is that of a call that comes before it, or passes
    unused. To give one back would let others pass at the time of the last one in the line. A child of fork() has none."""

    def __init__(self) -> None:
        self._left: dict[tuple[int, bytes, int], list[float]] = {}
        self._most = 16

    def take(self, key: Key, cost: int) -> float | None:
        call, now = (os.getpid(), key_bytes(key), cost), time.monotonic()
        turns = sorted(turn for turn in self._left.pop(call, ()) if turn > now)
        if turns[1:]:
            self._left.setdefault(call, []).extend(turns[1:])
        return turns[0] if turns else None

    def leave(self, key: Key, cost: int, turn: float) -> None:
        # Another thread may take the list in between: then the turn passes unused.
        self._left.setdefault((os.getpid(), key_bytes(key), cost), []).append(turn)
        if len(self._left) > self._most:
            now = time.monotonic()
            self._left = {call: turns for call, turns in list(self._left.items()) if any(turn > now for turn in turns)}
            self._most = 2 * len(self._left) + 16


def _name_at(owner: Any, text: str, frame: FrameType) -> str:
    """The name of a limit that decorates nothing. A module runs once, so each of its limits has its own; a function may make the
    same limit in each of its calls, so those of one text are one."""
    file, code = file_of(frame.f_globals.get("__name__", "")), frame.f_code
    if code.co_name == "<module>":
        return own_rule_name(owner, text, file)
    return rule_name_at(f"{getattr(code, 'co_qualname', code.co_name)}.{text}", file)


def _generator(place: contextlib.ExitStack, result: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    def items() -> Generator[Any, Any, Any]:
        with place:
            yield
            return (yield from result)

    begun = items()
    next(begun)
    return begun


def _async_generator(place: contextlib.ExitStack, result: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    begun = _items(place, result)
    with contextlib.suppress(StopIteration):
        begun.__anext__().__await__().send(None)
    return begun


async def _items(place: contextlib.ExitStack, result: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    with place:
        yield
        step: Awaitable[Any] = result.__anext__()
        while True:
            try:
                item = await step
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                await result.aclose()
                raise
            except BaseException as error:
                step = result.athrow(error)
            else:
                step = result.asend(sent)


async def _awaited(place: contextlib.ExitStack, result: Awaitable[Any]) -> Any:
    with place:
        return await result


_LATER: dict[Callable[[Any], bool], Callable[[contextlib.ExitStack, Any], Any]] = {
    inspect.isgenerator: _generator,
    inspect.isasyncgen: _async_generator,
    inspect.isawaitable: _awaited,
}
"""What a function can return that does its work later: it holds the place until it is exhausted, closed or collected. Generators that
hold one have begun, up to an item that no caller gets: so Python ends them also if they are never asked for an item."""


def _seconds(result: Result) -> float | None:
    return None if result.retry_after_ns == NEVER else result.retry_after_ns / 1e9


class limit:  # noqa: N801 # a decorator
    """A limit for all processes of the host, as text: "10/s burst 20".

    As a decorator it raises RateLimited, or, with `wait`, waits until the call fits, up to max_wait_s. `key` is a key or a
    function of the call's arguments; calls with the same key share the tokens. The rule's name is made of the function's
    and of its module's file, unless `rule` says another, which other programs may share. A limit that decorates nothing, and is used by
    take(), acquire() or held(), is one of its own where a module makes it, and one for each function and text where a function does. Releases of a program in
    folders of their own, releases/42 or those beside a link `current`, share it; where each deployment has a
    new path of another form, say `rule`. A program that starts with another limit changes it. `segment` is a name or a Shared; default python-UID. Thread-safe; works on in forked children.

    "block" denies each call, and "unlimited" none. "2 at once" limits how many calls run at the same time: a call that is denied raises RateLimited, and there is no `wait`. A
    generator, also an async one, holds its place from the call until it is exhausted, closed or collected.
    """

    def __init__(
        self,
        text: str,
        *,
        key: Key | Callable[..., Key] = "",
        rule: str | None = None,
        cost: int = 1,
        wait: bool = False,
        max_wait_s: float = MAX_WAIT_S,
        segment: str | Shared | None = None,
    ) -> None:
        self._key = key
        self._is_named = rule is not None
        self._rule_name = _name_at(self, text, sys._getframe(1)) if rule is None else rule_name(rule)
        self._cost = cost
        self._wait = wait
        self._rule = rate.parse(text)
        self._holds = self._rule.algorithm == Algorithm.HOLD
        if self._holds and (wait or cost != 1):
            raise ValueError(f'"{text}": limits of how many at once have no wait and no cost')
        if not self._holds:
            self._rule = replace(self._rule, max_wait_ns=int(max_wait_s * 1e9))
        self._turns = _Turns()
        self._shared = segment if isinstance(segment, Shared) else Shared(segment)

    def __call__(self, function: Function) -> Function:
        if not self._is_named:
            self._is_named = True
            give_back_name(self._rule_name)
            module = function.__module__
            self._rule_name = rule_name_at(f"{module}.{function.__qualname__}", file_of(module))

        @functools.wraps(function)
        def held(*args: Any, **kwargs: Any) -> Any:
            with contextlib.ExitStack() as place:
                place.enter_context(self.held(self._key_of(args, kwargs)))
                result = function(*args, **kwargs)
                for is_kind, keep in _LATER.items():
                    if is_kind(result):
                        return keep(place.pop_all(), result)
                return result

        @functools.wraps(function)
        async def held_async(*args: Any, **kwargs: Any) -> Any:
            with self.held(self._key_of(args, kwargs)):
                return await function(*args, **kwargs)

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            (self.acquire if self._wait else self.take)(self._key_of(args, kwargs), self._cost)
            return function(*args, **kwargs)

        @functools.wraps(function)
        async def limited_async(*args: Any, **kwargs: Any) -> Any:
            key = self._key_of(args, kwargs)
            if self._wait:
                await self.acquire_async(key, self._cost)
            else:
                self.take(key, self._cost)
            return await function(*args, **kwargs)

        wrappers: tuple[Any, Any] = (held, held_async) if self._holds else (limited, limited_async)
        wrapper = wrappers[inspect.iscoroutinefunction(function)]
        wrapper.limit = self
        return wrapper  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def held(self, key: Key = "") -> Iterator[None]:
        """Hold a place while a with statement runs, or raise RateLimited."""
        name = self._rule_name
        with self._shared.use("enter", name, self._rule, key) as place:
            if not place:
                raise RateLimited(name, _seconds(place.result))
            yield

    def _key_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        return self._key(*args, **kwargs) if callable(self._key) else self._key

    def _use(self, operation: str, key: Key, *arguments: int) -> Result:
        name = self._rule_name
        if self._holds:
            raise ValueError(f"limit {name}: says how many at once: use held()")
        result: Result = self._shared.use(operation, name, self._rule, key, *arguments)
        if not result:
            raise RateLimited(name, _seconds(result))
        return result

    def take(self, key: Key = "", cost: int = 1) -> Result:
        """Take tokens now, or raise RateLimited."""
        return self._use("take", key, cost)

    @contextlib.contextmanager
    def _turn(self, key: Key, cost: int) -> Iterator[float]:
        """Take tokens that are there now or later. Yields the seconds until they are there."""
        turn = self._turns.take(key, cost)
        if turn is None:
            wait_ns = self._use("reserve", key, cost, self._rule.max_wait_ns).wait_ns
            turn = time.monotonic() + wait_ns / 1e9 if wait_ns > 0 else 0.0
        try:
            yield max(0.0, turn - time.monotonic())
        except BaseException:
            self._turns.leave(key, cost, turn)
            raise

    def acquire(self, key: Key = "", cost: int = 1) -> None:
        """Wait until the tokens are there, first come, first served, or raise RateLimited if that takes longer than
        max_wait_s. If an exception ends the wait, such as Ctrl-C, the next call of this process that comes before the turn
        has it."""
        with self._turn(key, cost) as wait_s:
            if wait_s > 0:
                time.sleep(wait_s)

    async def acquire_async(self, key: Key = "", cost: int = 1) -> None:
        """As acquire(), in asyncio, where a task may be cancelled while it waits."""
        with self._turn(key, cost) as wait_s:
            if wait_s > 0:
                await asyncio.sleep(wait_s)
