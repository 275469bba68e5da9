"""A limit on any function, and on what a program asks of others.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, TypeVar

from . import rate
from .key import Key
from .limiter import Algorithm, Place, Result, Rule
from .line import AHEAD_S, RESERVING, Lines, RateLimited, seconds
from .shared import Shared, file_of, give_back_name, own_rule_name, rule_name, rule_name_at

Function = TypeVar("Function", bound=Callable[..., Any])
MAX_WAIT_S = 3600.0


def name_at(owner: Any, text: str, frame: FrameType) -> str:
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


class Turn:
    """For a with statement, or an async one: waits for the tokens, or for a place, which it leaves at its end. Any number of threads
    and tasks can be in it at once."""

    def __init__(self, lines: Lines, key: Key, cost: int, max_wait_s: float) -> None:
        self._lines = lines
        self._key = key
        self._cost = cost
        self._max_wait_s = max_wait_s
        # Places of one key are alike, so each that ends leaves any.
        self._places: deque[Place] = deque()

    def _has(self, place: Place | None) -> None:
        if place is not None:
            self._places.append(place)

    def __enter__(self) -> None:
        self._has(self._lines.wait(self._key, self._cost, self._max_wait_s))

    async def __aenter__(self) -> None:
        self._has(await self._lines.wait_async(self._key, self._cost, self._max_wait_s))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._places:
            self._lines.left(self._key, self._places.pop())

    async def __aexit__(self, *error: Any) -> None:
        self.__exit__(*error)


class _Held(Turn):
    """The same for a place that is free now, or RateLimited is raised."""

    def __enter__(self) -> None:
        place: Place = self._lines.use("enter", self._key)
        if not place:
            raise RateLimited(self._lines.name, seconds(place.result))
        self._has(place)

    async def __aenter__(self) -> None:
        self.__enter__()


class limit:  # noqa: N801 # a decorator
    """A limit for all processes of the host: "10/s burst 20", or a Rule.

    As a decorator it raises RateLimited, or, with `wait`, waits until it is the call's turn, up to max_wait_s; None: for as long as it
    takes. `key` is a key or a function of the call's arguments; calls with the same key share the tokens. The rule's name is made of
    the function's and of its module's file, unless `rule` says another, which other programs may share. A limit that decorates nothing
    is one of its own where a module makes it, and one for each function and text where a function does. Releases of a program in
    folders of their own, releases/42 or those beside a link `current`, share it; where each deployment has a new path of another form,
    say `rule`. A program that starts with another limit changes it. `segment` is a name or a Shared; default python-UID. Thread-safe;
    works on in forked children.

    Calls that wait have their turns in order: those of one process as they came, and the first of each process by its reservation. When
    `max_queue` calls wait in this process, one more raises QueueFull.

    "block" denies each call, and "unlimited" none. "2 at once" limits how many calls run at the same time. A generator, also an async
    one, holds its place from the call until it is exhausted, closed or collected.

    ``with limit(...)`` and ``async with limit(...)`` wait for their turn; of "2 at once" they hold a place.
    """

    def __init__(
        self,
        text: str | Rule,
        *,
        key: Key | Callable[..., Key] = "",
        rule: str | None = None,
        cost: int = 1,
        wait: bool = False,
        max_wait_s: float | None = MAX_WAIT_S,
        max_queue: float = math.inf,
        segment: str | Shared | None = None,
    ) -> None:
        self._key = key
        self._is_named = rule is not None
        name = name_at(self, str(text), sys._getframe(1)) if rule is None else rule_name(rule)
        self._cost = cost
        self._wait = wait
        self._max_wait_s = math.inf if max_wait_s is None else max_wait_s
        made = text if isinstance(text, Rule) else rate.parse(text)
        self._holds = made.algorithm == Algorithm.HOLD
        if self._holds and cost != 1:
            raise ValueError(f'"{text}": limits of how many at once have no cost')
        if made.algorithm in RESERVING:
            made = replace(made, max_wait_ns=int((AHEAD_S if max_wait_s is None else max_wait_s) * 1e9))
        shared = segment if isinstance(segment, Shared) else Shared(segment)
        self._lines = Lines(shared, name, made, max_queue)
        self._own = Turn(self._lines, "" if callable(key) else key, cost, self._max_wait_s)

    def name_for(self, function: Callable[..., Any]) -> None:
        """The rule's name is the function's, unless it has one."""
        if not self._is_named:
            self._is_named = True
            give_back_name(self._lines.name)
            module = function.__module__
            self._lines.name = rule_name_at(f"{module}.{function.__qualname__}", file_of(module))

    def __call__(self, function: Function) -> Function:
        if self._wait and inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__}: an asynchronous generator is called without await, so it cannot wait: "
                "use `async with limit.turn():` in it"
            )
        self.name_for(function)

        @functools.wraps(function)
        def held(*args: Any, **kwargs: Any) -> Any:
            with contextlib.ExitStack() as place:
                place.enter_context(self._place(self._key_of(args, kwargs)))
                result = function(*args, **kwargs)
                for is_kind, keep in _LATER.items():
                    if is_kind(result):
                        return keep(place.pop_all(), result)
                return result

        @functools.wraps(function)
        async def held_async(*args: Any, **kwargs: Any) -> Any:
            async with self._place(self._key_of(args, kwargs)):
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

    def _key_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        return self._key(*args, **kwargs) if callable(self._key) else self._key

    def _place(self, key: Key) -> Turn:
        return self.turn(key) if self._wait else self.held(key)

    @property
    def queued(self) -> int:
        """How many calls wait in this process."""
        return self._lines.queued

    def held(self, key: Key = "") -> Turn:
        """Hold a place while a with statement runs, or raise RateLimited."""
        return _Held(self._lines, key, 1, 0.0)

    def turn(self, key: Key = "", cost: int = 1) -> Turn:
        """Wait in a with statement, also an async one, as the limit itself does, for another key or cost."""
        if self._holds and cost != 1:
            raise ValueError(f"limit {self._lines.name}: how many at once has no cost")
        return Turn(self._lines, key, cost, self._max_wait_s)

    def __enter__(self) -> None:
        self._own.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._own.__exit__(kind, value, trace)

    async def __aenter__(self) -> None:
        await self._own.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        self._own.__exit__(*error)

    def _of_tokens(self) -> Lines:
        if self._holds:
            raise ValueError(f"limit {self._lines.name}: says how many at once: use held() or turn()")
        return self._lines

    def peek(self, key: Key = "", cost: int = 1) -> Result:
        """What a take would answer, without taking."""
        result: Result = self._lines.use("peek", key, cost)
        return result

    def take(self, key: Key = "", cost: int = 1) -> Result:
        """Take tokens now, or raise RateLimited."""
        result: Result = self._of_tokens().use("take", key, cost)
        if not result:
            raise RateLimited(self._lines.name, seconds(result))
        return result

    def acquire(self, key: Key = "", cost: int = 1) -> None:
        """Wait until the tokens are there, or raise RateLimited if that takes longer than max_wait_s. A call that is ended by an
        exception, such as Ctrl-C, leaves its turn to the next one."""
        self._of_tokens().wait(key, cost, self._max_wait_s)

    async def acquire_async(self, key: Key = "", cost: int = 1) -> None:
        """As acquire(), in asyncio, where a task can be cancelled while it waits."""
        await self._of_tokens().wait_async(key, cost, self._max_wait_s)

    def pause(self, key: Key, seconds: float) -> bool:
        """As Limiter.pause(): calls that wait for the key do so until the pause is over."""
        return bool(self._lines.use("pause", key, seconds))
