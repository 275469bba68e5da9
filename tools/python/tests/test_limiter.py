"""The laws of shmlimit.Limiter. The C library's own are tested in C: here stands what lies between.

SPDX-License-Identifier: BSD-2-Clause
"""

import contextlib
import dataclasses
import errno
import gc
import importlib
import os
import pickle
import signal
import sys
import time
import unittest

from crew import children, together

import shmlimit
from shmlimit import Algorithm, Error, Law, Limiter, Mode, Request, Rule
from shmlimit.rate import parse

SEGMENT = os.environ["SEGMENT"]
DAY_NS = 86400 * 10**9
SLOW = Rule(capacity=5, refill=1, period_ns=DAY_NS, max_wait_ns=9 * DAY_NS)


class LimiterLaws(unittest.TestCase):
    def setUp(self):
        self.limiter = Limiter.create(SEGMENT, slots=64, store_keys=22)
        self.rule = self.limiter.rule_set("r", SLOW)

    def tearDown(self):
        self.limiter.close()
        shmlimit.destroy(SEGMENT)

    def raises(self, number, call, *arguments, **named):
        with self.assertRaises(Error) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.errno, number)
        return caught.exception

    def take(self, times):
        return sum(bool(self.limiter.take("r", "k")) for _ in range(times))

    def left(self, key="k"):
        return self.limiter.peek("r", key).remaining

    def test_take(self):
        """a result is true if allowed, and false if denied"""
        results = [self.limiter.take("r", "k") for _ in range(6)]
        self.assertEqual([bool(r) for r in results], [True] * 5 + [False])
        self.assertEqual([r.remaining for r in results], [4, 3, 2, 1, 0, 0])
        self.assertTrue(0 < results[5].retry_after_ns <= DAY_NS)
        self.assertEqual(results[5].limit, 5)

    def test_float_rates(self):
        """a rate that is a float is what its shortest decimal says, in a rule, with a call and in throttle()"""
        with open(os.path.join(os.path.dirname(__file__), "../../../tests/float_rates.txt"), encoding="ascii") as table:
            cases = [line.split() for line in table if line[0] != "#"]
        self.assertGreater(len(cases), 10)
        for rate, per_s, refill, *period_s in cases + [["nan", "1", "refused"], ["inf", "1", "refused"], ["0", "1", "refused"]]:
            given = Rule(capacity=15, refill=float(rate), period_ns=int(per_s) * 10**9)
            if refill == "refused":
                for call in (lambda: self.limiter.rule_set("f", given), lambda: shmlimit.limiter.call_limit(given),
                             lambda: self.limiter.throttle(rate, 15, float(rate), int(per_s))):
                    with self.assertRaisesRegex(ValueError, "refill .*(nearest that can be|must be a finite)"):
                        call()
                continue
            self.limiter.rule_set("f", given)
            got = self.limiter.rule_get("f")
            self.assertEqual((got.refill, got.period_ns), (int(refill), int(period_s[0]) * 10**9))
            limit = shmlimit.limiter.call_limit(given)[0]
            self.assertEqual((limit.refill, limit.period_ns), (got.refill, got.period_ns))
            self.assertEqual(self.limiter.throttle(rate, 15, float(rate), int(per_s)),
                             self.limiter.throttle("whole " + rate, 15, int(refill), int(period_s[0])))

    def test_wrong_ids(self):
        """a number that is no rule's id is an error of each call, and resets nothing"""
        self.take(3)
        one, calls = self.limiter, {
            "take": lambda i: one.take(i, "k"),
            "take_some": lambda i: one.take_some(i, "k", 1),
            "peek": lambda i: one.peek(i, "k"),
            "reserve": lambda i: one.reserve(i, "k"),
            "charge": lambda i: one.charge(i, "k"),
            "refund": lambda i: one.refund(i, "k"),
            "count": lambda i: one.count(i, "k"),
            "enter": lambda i: one.enter(i, "k"),
            "take_all": lambda i: one.take_all([Request(i, "k")]),
            "reset of a key": lambda i: one.reset(i, "k"),
            "reset of a rule": lambda i: one.reset(i),
            "counters": lambda i: one.counters(i),
            "rule_get": lambda i: one.rule_get(i),
        }
        for name, call in calls.items():
            for wrong in (-1, -2, -3, self.rule + 1, 64, 4096, 2**31 - 1, 2**31, -2**31, 2**32, 2**64):
                with self.assertRaises(Error, msg=f"{name} of {wrong}"):
                    call(wrong)
        self.assertEqual(self.left(), 2)

    def test_rule_id(self):
        """a rule's id and its name are one rule"""
        self.limiter.take(self.rule, "k")
        self.assertEqual(self.limiter.rule_find("r"), self.rule)
        self.assertEqual(self.left(), 4)

    def test_renamed(self):
        """a name is looked up at each call: a rule that was removed and set again is found"""
        self.limiter.rule_remove("r")
        self.raises(errno.ESRCH, self.limiter.take, "r", "k")
        self.limiter.rule_set("other", SLOW)
        self.limiter.rule_set("r", Rule(7, 1, DAY_NS))
        self.assertEqual(self.left(), 7)

    def test_keys(self):
        """a key is bytes with NUL and all; a str is its UTF-8, whatever surrogates are in it; anything else is a TypeError"""
        self.limiter.take("r", b"a\0b")
        self.limiter.take("r", "\u00e9")
        self.assertEqual([self.left(b"a"), self.left(b"a\0b"), self.left("\u00e9".encode())], [5, 4, 4])
        for key, same in (bytearray(b"x"), b"x"), (memoryview(b"yz")[:1], b"y"), ("\udcff", b"\xff"), ("\ud800", b"\xed\xa0\x80"):
            self.limiter.take("r", key)
            self.assertEqual([self.left(key), self.left(same)], [4, 4], key)
        for key in None, 7, ["k"], {"k": 1}, 1.5:
            for call in self.limiter.take, self.limiter.peek, self.limiter.charge, self.limiter.count, self.limiter.enter:
                self.assertRaisesRegex(TypeError, "^a key must be str, bytes, bytearray or memoryview, and not <class", call, "r", key)

    def test_numbers(self):
        """a number that C cannot hold is refused, and not wrapped"""
        for cost in -1, 2**64, 2**64 + 1:
            self.raises(errno.EINVAL, self.limiter.take, "r", "k", cost)
            self.raises(errno.EINVAL, self.limiter.take_all, [Request("r", "k", cost)])
        for rule in -1, 2**32 + self.rule:
            self.raises(errno.EINVAL, self.limiter.take, rule, "k")
            self.raises(errno.EINVAL, self.limiter.reset, rule)
        self.raises(errno.EINVAL, Limiter.create, SEGMENT + ".wide", rules=2**32 + 64)
        self.raises(errno.EINVAL, shmlimit.key_ip, "10.0.0.7", 2**32 + 32)
        self.assertEqual(self.left(), 5)
        self.assertFalse(self.limiter.take("r", "k", 2**64 - 1))

    def test_names(self):
        """a name with a NUL is refused, and not cut"""
        self.raises(errno.EILSEQ, Limiter, SEGMENT + "\0x")
        self.raises(errno.EILSEQ, self.limiter.take, "r\0x", "k")

    def test_errors(self):
        """an error has its number, the library's words, and what it is about; it survives pickling"""
        error = self.raises(errno.ESRCH, self.limiter.take, "none", "k")
        self.assertEqual(str(error), f"[Errno 3] no such rule: '{SEGMENT}: rule none'")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again)), (Error, str(error)))
        self.raises(errno.EMSGSIZE, self.limiter.take, "r", "")
        self.raises(errno.EEXIST, Limiter.create, SEGMENT)
        self.raises(errno.ENOENT, Limiter, SEGMENT + ".none")

    def test_debt(self):
        """what is reserved or charged is owed, what is refunded is not"""
        self.assertEqual(self.limiter.take("r", "k", 5).remaining, 0)
        self.assertTrue(0 < self.limiter.reserve("r", "k").wait_ns <= DAY_NS)
        self.assertTrue(DAY_NS < self.limiter.charge("r", "k").reset_after_ns)
        self.assertFalse(self.limiter.reserve("r", "k", 1, DAY_NS))
        self.assertEqual(self.limiter.refund("r", "k", 3).remaining, 1)

    def test_acquire(self):
        """acquire returns when the tokens are there"""
        self.limiter.rule_set("quick", Rule(1, 1, 20 * 10**6, 10**9))
        results = [self.limiter.acquire("quick", "k") for _ in range(4)]
        self.assertTrue(all(results))
        self.assertEqual(results[0].wait_ns, 0)
        self.assertTrue(results[3].wait_ns > 0)

    def test_interrupted(self):
        """an acquire that is interrupted leaves its turn unused"""

        def interrupt(number, frame):
            raise KeyboardInterrupt

        self.limiter.take("r", "k", 5)
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            self.assertRaises(KeyboardInterrupt, self.limiter.acquire, "r", "k", 2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(self.limiter.refund("r", "k", 2).remaining, 0, "the debt of its turn")
        self.assertEqual(self.limiter.refund("r", "k", 1).remaining, 1)

    def test_take_all(self):
        """several limits take all or none, and say which one denied"""
        self.limiter.rule_set("small", Rule(1, 1, DAY_NS))
        both = [Request("r", "both", 2), Request("small", "both")]
        first, second = self.limiter.take_all(both), self.limiter.take_all(both)
        self.assertEqual([bool(first), first.failed, [r.remaining for r in first.results]], [True, -1, [3, 0]])
        self.assertEqual([bool(second), second.failed, [r.allowed for r in second.results]], [False, 1, [True, False]])
        self.assertEqual(self.left("both"), 3)

    def test_take_all_errors(self):
        """an error among several limits names the rule; none or too many are an error"""
        error = self.raises(errno.EMSGSIZE, self.limiter.take_all, [Request("r", "k"), Request("r", "")])
        self.assertEqual(error.filename, f"{SEGMENT}: rule r")
        self.raises(errno.EINVAL, self.limiter.take_all, [])
        self.raises(errno.EINVAL, self.limiter.take_all, [Request("r", "k")] * 17)
        self.assertEqual(self.left(), 5)

    def test_take_some(self):
        """of many tokens as many are taken as fit, by a limit of the call too, and under no rule that cannot say it"""
        self.assertEqual([self.limiter.take_some(rule, "k", 3) for rule in ("r", self.rule, "r")], [3, 2, 0])
        self.assertEqual([self.limiter.take_some("r", "other", n) for n in (0, 2**64 - 1)], [0, 5])
        self.limiter.rule_set("plans", Rule(0, 0, 0, algorithm=Algorithm.GCRA))
        self.assertEqual([self.limiter.take_some("plans", "k", 5, limit=limit) for limit in ("7/day", parse("7/day"))], [5, 2])
        self.limiter.rule_set("places", Rule(3, 0, DAY_NS, algorithm=Algorithm.HOLD))
        self.raises(errno.EOPNOTSUPP, self.limiter.take_some, "places", "k", 1)
        self.raises(errno.EMSGSIZE, self.limiter.take_some, "r", "", 1)
        self.raises(errno.EINVAL, self.limiter.take_some, "r", "k", -1)

    def test_call_limit(self):
        """a call may bring its limit, as text or read before, under a rule for it"""
        plans, take = self.limiter.rule_set("plans", Rule(0, 0, 0, algorithm=Algorithm.GCRA)), self.limiter.take
        self.assertEqual(self.limiter.rule_get("plans").algorithm, Algorithm.GCRA)
        for limit in "3/day", parse("3/day"):
            results = [take(rule, limit, limit=limit) if isinstance(limit, str) else take(rule, "o", limit=limit) for rule in ("plans", plans) * 2]
            self.assertEqual([(r.allowed, r.limit, r.remaining) for r in results], [(True, 3, 2), (True, 3, 1), (True, 3, 0), (False, 3, 0)])
        self.assertEqual([self.limiter.peek("plans", "o", limit=f"{n}/day burst 9").remaining for n in (3, 9)], [0, 0])
        self.assertEqual([take("plans", "b", limit=limit).allowed for limit in ("block", "unlimited", parse("0/s"), parse("off"))], [False, True, False, True])
        self.assertEqual(self.limiter.charge("plans", "c", 2, limit="5/day").remaining, 3)
        self.assertEqual(self.limiter.refund("plans", "c", limit="5/day").remaining, 4)
        self.assertTrue(self.limiter.acquire("plans", "c", 4, limit="5/day"))
        wait = self.limiter.reserve("plans", "c", max_wait_ns=DAY_NS, limit="5/day").wait_ns
        self.assertTrue(DAY_NS * 0.19 < wait <= DAY_NS // 5, wait)
        self.assertFalse(self.limiter.reserve("plans", "c", limit="5/day"))
        self.assertTrue(self.limiter.reserve("plans", "c", limit=Rule(5, 5, DAY_NS, max_wait_ns=DAY_NS)))
        self.limiter.rule_set("plans", Rule(0, 0, 0, DAY_NS, algorithm=Algorithm.GCRA))
        self.assertTrue(self.limiter.reserve("plans", "c", limit="5/day"))
        both = self.limiter.take_all([Request("plans", "all", limit="2/day"), Request("r", "all", 2)])
        self.assertEqual([r.remaining for r in both.results], [1, 3])

    def test_call_limit_errors(self):
        """a limit that cannot be read is an error that names it, and one for another rule is refused"""
        self.limiter.rule_set("plans", Rule(0, 0, 0, algorithm=Algorithm.GCRA))
        for call in self.limiter.take, self.limiter.peek, self.limiter.charge, self.limiter.reserve:
            for limit in "5/fortnight", "20 at once for 5m", "5/s\0", "1/y burst 3", Rule(5, 5, 1, algorithm=Algorithm.WINDOW):
                self.assertRaisesRegex(ValueError, "^limit ", call, "plans", "k", limit=limit)
            self.assertRaisesRegex(TypeError, "^a limit must be str or Rule, and not <class 'int'>", call, "plans", "k", limit=5)
            self.raises(errno.EOPNOTSUPP, call, "r", "k", limit="5/s")
            self.raises(errno.EDOM, call, "plans", "k")
            self.raises(errno.EDOM, call, "plans", "k", limit=Rule(0, 0, 0))
        self.assertEqual(self.limiter.peek("plans", "k", limit="5/s").remaining, 5)

    def test_customers(self):
        """10,000 customers with limits of their own are exact over four processes, under one rule"""
        self.limiter.close()
        shmlimit.destroy(SEGMENT)
        self.limiter = Limiter.create(SEGMENT, slots=32768)
        self.limiter.rule_set("plans", Rule(0, 0, 0, algorithm=Algorithm.GCRA))
        read, write = os.pipe()
        children = []
        for _ in range(4):
            children.append(os.fork())
            if children[-1] == 0:
                with contextlib.suppress(BaseException):
                    allowed = bytes(
                        sum(self.limiter.take("plans", str(n), limit=f"{n % 9 + 1}/day burst {n % 11 + 1}").allowed for _ in range(4)) for n in range(10000)
                    )
                    with os.fdopen(write, "wb") as out:
                        out.write(allowed)
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as all_of_them:
            found = all_of_them.read()
        for child in children:
            os.waitpid(child, 0)
        self.assertEqual(len(found), 40000)
        self.assertEqual([sum(found[n::10000]) for n in range(10000)], [min(n % 11 + 1, 16) for n in range(10000)])

    def test_throttle(self):
        """throttle replies as redis-cell does"""
        self.assertEqual(tuple(self.limiter.throttle("k", 2, 1, 60)), (0, 2, 1, -1, 60))
        self.assertTrue(self.limiter.throttle("k", 2, 1, 60))
        self.assertFalse(self.limiter.throttle("k", 2, 1, 60))

    def test_reset(self):
        """a reset is of a key, of a rule, or of all"""
        self.limiter.rule_set("s", SLOW)
        for reset, left in (("r", "a"), [5, 4, 4]), (("r",), [5, 5, 4]), ((), [5, 5, 5]):
            for rule, key in ("r", "a"), ("r", "b"), ("s", "a"):
                self.limiter.take(rule, key)
            self.limiter.reset(*reset)
            self.assertEqual([self.left("a"), self.left("b"), self.limiter.peek("s", "a").remaining], left)
            self.limiter.reset()

    def test_rules(self):
        """a rule is read as it was set"""
        for rule in SLOW, Rule(3, 7, 10**9, 10**6, Mode.DRY_RUN, next_pays=True), Rule(1, 1, 1, mode=Mode.OFF):
            self.limiter.rule_set("x", rule)
            self.assertEqual(self.limiter.rule_get("x"), rule)
        warm = Rule(8, 2, 10**9, algorithm=Algorithm.WARMUP, warmup_ns=4 * 10**9, cold_factor_milli=3000)
        window = Rule(3, 3, 10**9, algorithm=Algorithm.WINDOW, count_refused=True)
        lease = Rule(30, 1, 10**9, algorithm=Algorithm.LEASE, credit=5)
        self.assertIs(Algorithm.TOKEN_BUCKET, Algorithm.FUNNEL)
        ban = Rule(1, 1, 10**9, algorithm=Algorithm.COUNTER, protected=True)
        for name, rule in ("warm", warm), ("window", window), ("lease", lease), ("ban", ban):
            self.limiter.rule_set(name, rule)
            self.assertEqual(self.limiter.rule_get(name), rule)
        self.raises(errno.EDOM, self.limiter.rule_set, "x", Rule(0, 1, 1))

    def test_counters(self):
        """counters are of a rule, or of all"""
        self.limiter.rule_set("s", SLOW)
        self.limiter.take("r", "k", 6)
        self.limiter.take("s", "k")
        of_r, of_all = self.limiter.counters("r"), self.limiter.counters()
        self.assertEqual([of_r.allowed, of_r.denied, of_all.allowed, of_all.denied], [0, 1, 1, 1])

    def test_info(self):
        """a segment says how large it is, and whose"""
        info = self.limiter.info()
        self.assertEqual((info.slots, info.rules_used, info.enabled, info.mode), (64, 1, 1, 0o600))
        self.assertEqual(info.store_keys, 22)
        self.assertEqual((info.uid, info.gid), (os.geteuid(), os.getegid()))

    def test_read_only(self):
        """a handle for reading peeks, and takes nothing"""
        with Limiter(SEGMENT, read_only=True) as reader:
            self.assertEqual(reader.peek("r", "k").remaining, 5)
            self.raises(errno.EROFS, reader.take, "r", "k")

    def test_closed(self):
        """a handle that was closed is an error, and closing it again is none"""
        with Limiter(SEGMENT) as limiter:
            pass
        limiter.close()
        self.raises(errno.EINVAL, limiter.take, 0, "k")

    def test_gone(self):
        """a handle knows when its segment was destroyed, and when another has its name"""
        self.assertFalse(self.limiter.gone())
        shmlimit.destroy(SEGMENT)
        self.assertTrue(self.limiter.gone())
        Limiter.create(SEGMENT, slots=64).close()
        self.assertTrue(self.limiter.gone())

    def test_fork(self):
        """a handle opened before the fork is the children's too: together they get the capacity"""
        self.limiter.rule_set("r", Rule(100, 1, DAY_NS))
        self.assertEqual(children(4, lambda: self.take(50)), 100)

    def test_threads(self):
        """threads on one handle get the capacity together"""
        self.limiter.rule_set("r", Rule(1000, 1, DAY_NS))
        self.assertEqual(sum(together(*[lambda: self.take(400)] * 4)), 1000)

    def test_count(self):
        """a count goes up to its bound and down to 0, and begins again when its time is over"""
        self.limiter.rule_set("c", Rule(10, 0, DAY_NS, algorithm=Algorithm.COUNTER))
        self.assertEqual(self.limiter.count("c", "k")[:3], (True, 1, 1))
        denied = self.limiter.count("c", "k", 5, bound=5)
        self.assertEqual((bool(denied), denied.value, denied.applied), (False, 1, 0))
        self.assertEqual(self.limiter.count("c", "k", 99, saturate=True)[:3], (True, 10, 9))
        self.assertEqual(self.limiter.count("c", "k", -4)[:3], (True, 6, -4))
        # It ends at the next tick of the rule, half a millisecond long.
        self.assertTrue(0 < self.limiter.count("c", "k", 0).ttl_ns <= DAY_NS + 1_000_000)
        self.assertTrue(self.limiter.count("c", "k", 0, restart=True))
        self.assertEqual(self.limiter.count("c", "soon", ttl_ns=1).value, 1)
        while self.limiter.count("c", "soon", 0).value:
            pass
        self.assertEqual(self.limiter.rules(), ["r", "c"])
        self.raises(errno.EOPNOTSUPP, self.limiter.count, "r", "k")
        self.raises(errno.ESRCH, self.limiter.count, "none", "k")

    def test_enter_by_a_limit(self):
        self.limiter.rule_set("h", Rule(3, 0, 10**11, algorithm=Algorithm.HOLD))
        first, second = (self.limiter.enter("h", "bound", limit="2 at once") for _ in range(2))
        third = self.limiter.enter("h", "bound", limit="2 at once")
        self.assertEqual((bool(first), bool(second), bool(third), third.result.limit), (True, True, False, 2))
        self.assertFalse(self.limiter.enter("h", "bound", limit="1 at once"), "a lower bound")
        self.assertFalse(self.limiter.peek("h", "bound", limit="2 at once"))
        higher = self.limiter.enter("h", "bound", limit=parse("9 at once"))
        self.assertEqual((bool(higher), higher.result.limit, higher.result.remaining), (True, 3, 0), "the rule's is the most")
        self.assertTrue(first.leave() and second.leave() and higher.leave())
        for wrong in ("2 at once for 5m", parse("2 at once at most 5 minutes each"), "auto at once", parse("auto at once")):
            with self.assertRaises(ValueError, msg="how long is the rule's"):
                self.limiter.enter("h", "bound", limit=wrong)
        with self.assertRaises(Error, msg="a rate is no number of places"):
            self.limiter.enter("h", "bound", limit="5/minute")

    def test_dropped(self):
        """a place that is left says whether its work was dropped, and whether its time counts"""
        rule = parse("auto 1 to 20 at once by aimd")
        self.limiter.rule_set("auto", rule)
        self.assertEqual((rule.law, rule.least, self.limiter.rule_get("auto")), (Law.AIMD, 1, rule))

        def work(seconds, **how):
            """How many places there are, after work for so long, or until they are fewer than 20."""
            end = time.monotonic() + seconds
            while (number := self.limiter.peek("auto", "k").limit) == 20 and time.monotonic() < end:
                with self.limiter.enter("auto", "k") as place:
                    for name, value in how.items():
                        setattr(place, name, value)
            return number

        self.assertEqual((work(0.7), work(0.7, dropped=True, untimed=True)), (20, 20))
        self.assertLess(work(60, dropped=True), 20)

    def test_enter_all(self):
        """enter_all: places of several limits, all or none; by a share of those that are free"""
        for rule in "total", "tenants":
            self.limiter.rule_set(rule, Rule(4, 0, DAY_NS, algorithm=Algorithm.HOLD))

        def enter(user, share=1):
            return self.limiter.enter_all([Request("total", "all"), Request("tenants", user, share=share)])

        first, second, third = (enter("a") for _ in range(3))
        self.assertEqual((bool(first), bool(second), bool(third), third.failed), (True, True, False, 1))
        self.assertEqual([place.result.remaining for place in second.places], [2, 1])
        self.assertEqual((len(third.places), third.places[1].result.limit, third.leave()), (2, 2, False))
        self.assertEqual(self.limiter.peek("total", "all").remaining, 2, "a denial leaves all places")
        with enter("b") as other, enter("c", 100) as larger, enter("d", 100) as none:
            self.assertEqual((bool(other), bool(larger), none.failed), (True, True, 0))
        self.assertEqual((first.leave(), first.leave(), second.leave()), (True, False, True))
        self.assertEqual((self.limiter.peek("total", "all").remaining, self.limiter.peek("tenants", "a").remaining), (4, 4))
        for wrong in 0.0001, -1, 1000001:
            with self.assertRaises(ValueError):
                enter("a", wrong)
        with self.assertRaises(ValueError):
            self.limiter.take_all([Request("total", "all", share=1)])
        with self.assertRaises(Error) as raised:
            self.limiter.enter_all([Request("tenants", "a", share=1)])
        self.assertEqual(raised.exception.errno, errno.EINVAL)

    def test_enter(self):
        """as many places as there are can be held at once, and one that is left can be entered again, also after an exception"""
        self.limiter.rule_set("h", Rule(2, 0, DAY_NS, algorithm=Algorithm.HOLD))
        first = self.limiter.enter("h", "k")
        with self.assertRaises(KeyError), self.limiter.enter("h", "k") as second:
            self.assertEqual((bool(second), second.result.remaining, bool(self.limiter.enter("h", "k"))), (True, 0, False))
            self.assertTrue(second.renew())
            raise KeyError
        self.assertEqual([second.leave(), second.renew(), first.leave()], [False, False, True])
        self.assertEqual(self.limiter.peek("h", "k").remaining, 2)
        self.raises(errno.EOPNOTSUPP, self.limiter.enter, "r", "k")
        with self.limiter.enter("h", "full"), self.limiter.enter("h", "full"), self.limiter.enter("h", "full") as third:
            self.assertFalse(third)

    def test_calendar(self):
        """a limit by the calendar keeps its time zone on its way from a text to a rule and back, and ends at midnight"""
        rule = parse("3/day in UTC")
        self.limiter.rule_set("calendar", rule)
        self.assertEqual(self.limiter.rule_get("calendar").zone, "UTC")
        self.assertTrue(self.limiter.take("calendar", "k", 3))
        self.assertLessEqual(self.limiter.take("calendar", "k").retry_after_ns, 86400 * 10**9)
        with self.assertRaises(ValueError):
            self.limiter.rule_set("calendar", dataclasses.replace(rule, zone="x" * 40))
        self.limiter.rule_remove("calendar")

    def test_wrong_arguments(self):
        """of each class, an object whose constructor was called with wrong arguments is deleted without a complaint"""
        modules = [importlib.import_module(f"shmlimit.{name}") for name in ("limiter", "gate", "global_limiter")]
        classes = {c for module in modules for c in vars(module).values() if hasattr(c, "__del__")}
        complaints = []
        hook, sys.unraisablehook = sys.unraisablehook, complaints.append
        try:
            for made in classes:
                for arguments in ((), (None,), ("no-such", 1, 2, 3, 4), ("no-such", object())):
                    with contextlib.suppress(Exception):
                        made(*arguments)
                made.__new__(made)
            gc.collect()
        finally:
            sys.unraisablehook = hook
        self.assertEqual({c.__name__ for c in classes}, {"Limiter", "Gate", "GlobalLimiter"})
        self.assertEqual([str(c.exc_value) for c in complaints], [])

    def test_key_ip(self):
        """the addresses of one net are one key, also IPv4 in IPv6's clothes"""
        self.assertEqual(shmlimit.key_ip("::ffff:10.0.0.7"), shmlimit.key_ip("10.0.0.7"))
        self.assertEqual(shmlimit.key_ip("2001:db8::1"), shmlimit.key_ip("2001:db8::ffff"))
        self.assertNotEqual(shmlimit.key_ip("2001:db8::1"), shmlimit.key_ip("2001:db8:0:1::1"))
        self.assertEqual(shmlimit.key_ip("10.0.0.7", 24), shmlimit.key_ip("10.0.0.9", 24))
        for text in ("10.0.0.7:50001", " 10.0.0.7\r\n", "[::ffff:10.0.0.7]:443"):
            self.assertEqual(shmlimit.key_ip(text), shmlimit.key_ip("10.0.0.7"), text)
        self.assertEqual(shmlimit.key_ip("10.0.0.7, 10.0.0.8", nth=1), shmlimit.key_ip("10.0.0.7"))
        self.assertEqual(shmlimit.key_ip("10.0.0.7, 10.0.0.8", nth=-1), shmlimit.key_ip("10.0.0.8"))
        for text, nth in (("localhost", 0), ("10.0.0.7, 10.0.0.8", 0), ("10.0.0.7", 2), ("10.0.0.7", 2**32 + 1)):
            self.raises(errno.EINVAL, shmlimit.key_ip, text, 32, 64, nth)
