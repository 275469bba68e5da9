"""
Commands of gdb that print what a segment holds in words of text: `source tools/debug/shmlimit-gdb.py`.

  shmlimit-tag TAG [VERSION]      flags, rule and, where the rule's version is given, fingerprint of a tag
  shmlimit-word PARAMS WORD       the fields of a state word under a rule's compiled parameters
  shmlimit-slots HANDLE [RULE]    each used slot of the newest table that this handle knows

Each argument is an expression of the program: `shmlimit-tag seen.tag`, `shmlimit-word &view.params seen.word`. They read
memory and call nothing, so they work in a core file too. The numbers are those of lib/segment/layout.h.

SPDX-License-Identifier: BSD-2-Clause
"""
import gdb

TENTATIVE, FROZEN, VERSION = 8, 4, 3
RULE_SHIFT, RULE_MASK, FINGERPRINT_SHIFT = 4, 4095, 16
ALGORITHMS = ("FUNNEL", "WARMUP", "WINDOW", "LEASE", "COUNTER", "HOLD")
LEASE_STATES = ("TOKENS", "DENIED", "ASKED", "damaged")
WORD = (1 << 64) - 1
SLOTS_PER_LINE = 4


def number(text):
    return int(gdb.parse_and_eval(text)) & WORD


def tag_of_version(version):
    return (version & ~VERSION) << (FINGERPRINT_SHIFT - 1) & WORD | version & VERSION


def tag_text(tag, version=None):
    """As tag_pack() made it; the flags have two bits of the version, from which the other bits follow."""
    if tag == 0:
        return "free"
    words = ["tentative"] if tag & TENTATIVE else []
    words += ["frozen"] if tag & FROZEN else []
    if tag & ~FROZEN & WORD == 0:
        return "frozen, empty"
    words.append("rule %d" % (tag >> RULE_SHIFT & RULE_MASK))
    if version is None:
        words.append("version %d modulo 4" % (tag & VERSION))
    else:
        of = version + 1 - (version + 1 - tag & VERSION)
        words.append("version %d" % of)
        words.append("fingerprint %012x" % ((tag ^ tag_of_version(of)) >> FINGERPRINT_SHIFT))
    return ", ".join(words)


def word_text(params, word):
    """The fields where the word has them; ticks and stamps are not moved to a clock."""
    shape = int(params["shape"])
    quota_bits, token_bits, algorithm, extra = shape & 63, shape >> 8 & 63, shape >> 16 & 255, shape >> 32 & 63
    quota, time = word & (1 << quota_bits) - 1, word >> quota_bits
    name = ALGORITHMS[algorithm] if algorithm < len(ALGORITHMS) else "algorithm %d" % algorithm
    if name == "FUNNEL" and quota_bits == 0:
        return "FUNNEL: empty at tick %d" % time
    if name == "FUNNEL":
        return "FUNNEL: quota %d at tick %d, 2^%d ticks a token" % (quota, time, token_bits - quota_bits)
    if name == "WARMUP":
        return "WARMUP: %d units of 2^-%d tokens, next free at tick %d" % (quota, extra, time)
    if name == "WINDOW":
        return "WINDOW: %d cells, %d of the latest admission, at tick %d of 2^%d ns" % (
            quota & (1 << extra) - 1, (quota >> extra) + 1, time, token_bits)
    if name == "LEASE":
        return "LEASE: %s, quota %d, size %d, until %d ns modulo 2^55" % (
            LEASE_STATES[time & 3], quota, time >> 2 & 63, (word & ~((1 << quota_bits + 8) - 1)) >> 9)
    if name == "COUNTER":
        return "COUNTER: %d, until tick %d of 2^%d ns" % (quota, time, token_bits)
    if name == "HOLD":
        return "HOLD: claim %d, reach %d, stamp %d" % (word & 4095, word >> 12 & 131071, word >> 29)
    return "%s: %016x" % (name, word)


class Tag(gdb.Command):
    """shmlimit-tag TAG [VERSION]: the flags, the rule and the fingerprint of a tag"""

    def __init__(self):
        super().__init__("shmlimit-tag", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) not in (1, 2):
            raise gdb.GdbError("usage: shmlimit-tag TAG [VERSION]")
        print(tag_text(number(arguments[0]), number(arguments[1]) if len(arguments) == 2 else None))


class Word(gdb.Command):
    """shmlimit-word PARAMS WORD: the fields of a state word; PARAMS is a struct layout_params *"""

    def __init__(self):
        super().__init__("shmlimit-word", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) != 2:
            raise gdb.GdbError("usage: shmlimit-word PARAMS WORD")
        print(word_text(gdb.parse_and_eval(arguments[0]).dereference(), number(arguments[1])))


class Slots(gdb.Command):
    """shmlimit-slots HANDLE [RULE]: each used slot of the newest table that a struct shmlimit * knows"""

    def __init__(self):
        super().__init__("shmlimit-slots", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        arguments = gdb.string_to_argv(argument)
        if len(arguments) not in (1, 2):
            raise gdb.GdbError("usage: shmlimit-slots HANDLE [RULE]")
        handle = gdb.parse_and_eval(arguments[0]).dereference()
        only = number(arguments[1]) if len(arguments) == 2 else None
        table = handle["tables"][int(handle["state"]) >> 2]
        for i in range(int(table["lines"]) * SLOTS_PER_LINE):
            slot = table["slots"][i]
            tag, rule = int(slot["tag"]), int(slot["tag"]) >> RULE_SHIFT & RULE_MASK
            if tag & ~FROZEN & WORD == 0 or only not in (None, rule) or rule >= int(handle["rule_count"]):
                continue
            version = int(handle["rules"][rule]["published"]) >> 3
            text = "slot %d: %s" % (i, tag_text(tag, version))
            if not tag & TENTATIVE:
                of = version + 1 - (version + 1 - tag & VERSION)
                text += "; " + word_text(handle["rules"][rule]["params"][of % 4], int(slot["word"]))
            print(text)


Tag()
Word()
Slots()
