"""A segment that adapters share: created if it is missing, and reopened if it is replaced, with the rules that they need.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
import weakref
from typing import Any

from . import _c
from .key import Key, shared_key
from .limiter import Error, Limiter, Result, Rule

LOOK_EVERY_S = 1.0
"""How often the segment's name is looked at, to see whether it was destroyed and created again: a few system calls."""


_all: weakref.WeakSet[Shared] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child: another thread of the parent may have had one."""
    for shared in _all:
        shared._opening = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def rule_name(text: str) -> str:
    """A name that a rule can have, made of any text."""
    return re.sub(r"[^A-Za-z0-9._:@+-]", "_", text)[-_c.RULE_NAME_MAX :] or "_"


class Shared:
    """The segment `name`; by default python-UID, with the number of the user that the process runs as.

    `mode` (default 0600), `group`, `slots` (default 65536), `rules` (default 1024) and `window_max` are those of a
    segment that is created. A segment is opened only if it belongs to root, to this user or to the user id `owner`.
    Thread-safe; works on in children that are forked later. Methods raise Error.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        mode: int = 0,
        group: str | None = None,
        slots: int = 0,
        rules: int = 1024,
        window_max: int = 0,
        owner: int | None = None,
    ) -> None:
        self._name = name
        self._options: dict[str, Any] = {"mode": mode, "slots": slots, "rules": rules, "window_max": window_max}
        self._group = group
        self._owner = owner
        self._limiter: Limiter | None = None
        self._look_at = 0.0
        self._opening = threading.Lock()
        _all.add(self)

    def limiter(self) -> Limiter:
        """The segment, open."""
        limiter, now = self._limiter, time.monotonic()
        if limiter is not None and now < self._look_at:
            return limiter
        with self._opening:
            if self._limiter is None or self._limiter.gone():
                # A thread may still be deciding on the old handle. It is closed when the last one forgets it.
                self._limiter = self._open()
            self._look_at = now + LOOK_EVERY_S
            return self._limiter

    def exists(self) -> bool:
        """Is there a segment? Creates none."""
        try:
            return self._limiter is not None or Limiter(self._name or "", owner=self._owner) is not None
        except Error:
            return False

    def _open(self) -> Limiter:
        name = self._name or f"python-{os.geteuid()}"
        try:
            return Limiter(name, owner=self._owner)
        except Error as error:
            if error.errno != errno.ENOENT:
                raise
        try:
            return Limiter.create(name, group=self._group_id(), **self._options)
        except Error as error:
            if error.errno != errno.EEXIST:
                raise
            return Limiter(name, owner=self._owner)

    def _group_id(self) -> int | None:
        if self._group is None:
            return None
        import grp  # only Unix has it

        return grp.getgrnam(self._group).gr_gid

    def use(self, operation: str, name: str, rule: Rule, key: Key, *arguments: Any, **named: Any) -> Any:
        """Call a method of Limiter with a rule, which is set if it is missing."""
        encoded, limiter = shared_key(key), self.limiter()
        try:
            return getattr(limiter, operation)(name, encoded, *arguments, **named)
        except Error as error:
            if error.errno != errno.ESRCH:
                raise
        try:
            limiter.rule_set(name, rule)
        except Error as error:
            if error.errno != errno.ENOENT:
                raise
            # The segment was destroyed since its name was looked at.
            self._look_at = 0.0
            limiter = self.limiter()
            limiter.rule_set(name, rule)
        return getattr(limiter, operation)(name, encoded, *arguments, **named)

    def take(self, name: str, rule: Rule, key: Key, cost: int = 1) -> Result:
        result: Result = self.use("take", name, rule, key, cost)
        return result
