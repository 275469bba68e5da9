"""A segment that adapters share: created if it is missing, and reopened if it is replaced, with the rules that they need.

SPDX-License-Identifier: BSD-2-Clause
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import re
import sys
import threading
import time
import weakref
from typing import Any

from . import _c
from .key import Key, shared_key
from .limiter import Algorithm, Count, Error, Limiter, Result, Rule, log

LOOK_EVERY_S = 1.0
"""How often the segment's name is looked at, to see whether it was destroyed and created again: a few system calls."""
COUNTER_TTL_MAX_NS = 366 * 86400 * 10**9
COUNTER_MAX = 2**26 - 1
COUNTER = Rule(COUNTER_MAX, 0, COUNTER_TTL_MAX_NS, algorithm=Algorithm.COUNTER)
"""Counts of any front-end. Its times have a resolution of half a millisecond."""


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


def rule_name_at(text: str, path: str | None) -> str:
    """A name made of the text and of the file that the rule is written in: two programs do not share it by accident. A text
    that is cut stays one of its own."""
    mark = hashlib.sha256(f"{path}\0{text}".encode("utf-8", "surrogateescape")).hexdigest()[:10]
    return f"{rule_name(text)[-_c.RULE_NAME_MAX + 11 :]}@{mark}"


_owners: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""The limits that live and were given no name, by the names that they have."""


def own_rule_name(owner: Any, text: str, path: str | None) -> str:
    """The same, for the limit `owner` alone: the second one that lives with this text and file has ".2" after the text, and so
    on. Processes that make their limits in one order, as modules do, give them the same names."""
    for n in itertools.count(1):
        name = rule_name_at(text if n == 1 else f"{text}.{n}", path)
        if _owners.setdefault(name, owner) is owner:
            break
    return name


def give_back_name(name: str) -> None:
    """The limit has another name, so this one is free."""
    _owners.pop(name, None)


def file_of(module: str) -> str | None:
    """The file of a module, by the path that was imported, which a deployment keeps."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return None if path is None else lasting(os.path.abspath(path))


def _link_to_releases(folder: str) -> str | None:
    """The link that a deployment turns to its newest release, if this folder is a release: /srv/app/current beside
    /srv/app/releases/42, or beside /srv/app/app-42 if it is a link to such a one."""
    parent, name = os.path.split(folder)
    above, kind = os.path.split(parent)
    if kind == "releases":
        return os.path.join(above, "current")
    link = os.path.join(parent, "current")
    if not re.search(r"\d", name) or not os.path.islink(link):
        return None
    beside, newest = os.path.split(os.path.realpath(link))
    return link if beside == os.path.realpath(parent) and re.search(r"\d", newest) else None


def lasting(path: str) -> str:
    """The path of a file, with the link `current` in place of the release's folder: a rule that is named by it is the same one
    after the next deployment."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        link = _link_to_releases(folder)
        if link is not None:
            return link + path[len(folder) :]
        folder = os.path.dirname(folder)
    return path


class Shared:
    """The segment `name`; by default python-UID, with the number of the user that the process runs as.

    `mode` (default 0600), `group`, `slots` (default 65536) and `rules` (default 1024) are those of a segment that is created.
    A segment is opened only if it belongs to root, to this user or to the user id `owner`. Thread-safe; works on
    in children that are forked later. Methods raise Error.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        mode: int = 0,
        group: str | None = None,
        slots: int = 0,
        rules: int = 1024,
        owner: int | None = None,
    ) -> None:
        self._name = name
        self._options: dict[str, Any] = {"mode": mode, "slots": slots, "rules": rules}
        self._group = group
        self._owner = owner
        self._limiter: Limiter | None = None
        self._look_at = 0.0
        self._opening = threading.Lock()
        self._ensured: dict[str, Rule] = {}
        self._refused: dict[str, str] = {}
        _all.add(self)

    @property
    def name(self) -> str:
        return self._name or f"python-{os.geteuid()}"

    def limiter(self) -> Limiter:
        """The segment, open."""
        limiter, now = self._limiter, time.monotonic()
        if limiter is not None and now < self._look_at:
            return limiter
        with self._opening:
            if self._limiter is None or self._limiter.gone():
                # A thread may still be deciding on the old handle. It is closed when the last one forgets it.
                fresh = self._open()
                self._ensured, self._limiter = {}, fresh
            for name in self._refused:
                self._ensured.pop(name, None)
            self._look_at = now + LOOK_EVERY_S
            return self._limiter

    def exists(self) -> bool:
        """Is there a segment? Creates none."""
        try:
            return self._limiter is not None or Limiter(self.name, owner=self._owner) is not None
        except Error:
            return False

    def _open(self) -> Limiter:
        try:
            return Limiter(self.name, owner=self._owner)
        except Error as error:
            if error.errno != errno.ENOENT:
                raise
        try:
            return Limiter.create(self.name, group=self._group_id(), **self._options)
        except Error as error:
            if error.errno != errno.EEXIST:
                raise
            return Limiter(self.name, owner=self._owner)

    def _group_id(self) -> int | None:
        if self._group is None:
            return None
        import grp  # only Unix has it

        return grp.getgrnam(self._group).gr_gid

    def _with_rule(self, name: str, rule: Rule) -> Limiter:
        """The segment, open, with the rule set if it is missing, or if the program before this one brought another."""
        limiter = self.limiter()
        known = self._ensured.get(name)
        return limiter if known is rule or known == rule else self._ensure(limiter, name, rule)

    def use(self, operation: str, name: str, rule: Rule, key: Key, *arguments: Any, **named: Any) -> Any:
        """Call a method of Limiter with a rule, which is set as _with_rule() says."""
        encoded, limiter = shared_key(key), self._with_rule(name, rule)
        try:
            return getattr(limiter, operation)(name, encoded, *arguments, **named)
        except Error as error:
            if error.errno != errno.ESRCH:
                raise
        return getattr(self._ensure(limiter, name, rule), operation)(name, encoded, *arguments, **named)

    def count(self, name: str, rule: Rule, key: Key, n: int, ttl_ns: int, restart: bool = False) -> Count:
        """The same of Limiter.count() with saturate. A call that passes any arguments on would take half as long again."""
        encoded, limiter = shared_key(key), self._with_rule(name, rule)
        try:
            return limiter.count(name, encoded, n, ttl_ns=ttl_ns, saturate=True, restart=restart)
        except Error as error:
            if error.errno != errno.ESRCH:
                raise
        limiter = self._ensure(limiter, name, rule)
        return limiter.count(name, encoded, n, ttl_ns=ttl_ns, saturate=True, restart=restart)

    def _ensure(self, limiter: Limiter, name: str, rule: Rule) -> Limiter:
        try:
            limiter.rule_ensure(name, rule)
            self._refused.pop(name, None)
        except Error as error:
            if error.errno == errno.ENOENT:
                # The segment was destroyed since its name was looked at.
                self._look_at = 0.0
                limiter = self.limiter()
                limiter.rule_ensure(name, rule)
            elif name in limiter.rules():
                # It is tried again each second.
                line = f"segment {self.name}: rule {name}: its new limit is refused, and the old one stays: {error.strerror}"
                if self._refused.get(name) != line:
                    log.error("%s", line)
                self._refused[name] = line
            else:
                raise
        self._ensured[name] = rule
        return limiter

    def take(self, name: str, rule: Rule, key: Key, cost: int = 1) -> Result:
        result: Result = self.use("take", name, rule, key, cost)
        return result
