#!/usr/bin/env python3
"""prove.py LAWS.c BUILD FLAG...: prove laws of the arithmetic for all inputs, by z3.

LAWS.c includes the library's own sources. Each `int law_x(...)` of it must return true for every value of its
arguments that passes its assume()s; each `int false_x(...)` is a law with one thing wrong, and must be refuted. clang
compiles the file to its intermediate representation, with checks for undefined behaviour; this program reads that as
formulas over bit vectors (no loops, no memory: what is inlined and kept in registers), and asks z3 for arguments for
which a law returns false, or a check for undefined behaviour is reached. So what is proved is the C itself, as clang
understands it.

That the reading is right is tested too: each formula is evaluated for random arguments, and each refutation replayed,
and must agree with what gcc makes of the same function.

Prints TAP lines without a plan: see laws.sh.

SPDX-License-Identifier: BSD-2-Clause
"""
import ctypes
import multiprocessing
import os
import random
import re
import subprocess
import sys

import z3

SAMPLES = 60            # random arguments for each law
TRIES = 20000           # for each law that is not proved
TIMEOUT_MS = 600000     # for each question, on a busy host; one takes a minute, the others a moment

VALUE = r'(?:%[-\w.]+|-?\d+|true|false|undef|poison|null)'
COMPARE = {'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'ugt': z3.UGT, 'uge': z3.UGE, 'ult': z3.ULT,
           'ule': z3.ULE, 'sgt': lambda a, b: a > b, 'sge': lambda a, b: a >= b, 'slt': lambda a, b: a < b,
           'sle': lambda a, b: a <= b}
BINARY = {'add': lambda a, b: a + b, 'sub': lambda a, b: a - b, 'mul': lambda a, b: a * b, 'and': lambda a, b: a & b,
          'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b, 'shl': lambda a, b: a << b, 'lshr': z3.LShR,
          'ashr': lambda a, b: a >> b, 'udiv': z3.UDiv, 'urem': z3.URem}
CALLS = {'umin': lambda a, b: z3.If(z3.ULE(a, b), a, b), 'umax': lambda a, b: z3.If(z3.UGE(a, b), a, b),
         'smin': lambda a, b: z3.If(a <= b, a, b), 'smax': lambda a, b: z3.If(a >= b, a, b),
         'usub.sat': lambda a, b: z3.If(z3.UGE(a, b), a - b, z3.BitVecVal(0, a.size())),
         'uadd.sat': lambda a, b: z3.If(z3.ULT(a + b, a), z3.BitVecVal(-1, a.size()), a + b)}


def leading_zeros(a, _poison):
    n = z3.BitVecVal(a.size(), a.size())
    for i in range(a.size()):
        n = z3.If(z3.Extract(i, i, a) == 1, z3.BitVecVal(a.size() - 1 - i, a.size()), n)
    return n


class Law:
    """One function, as formulas: `holds`, what it returns; `assumed`; `undefined`, if anything there is."""

    def __init__(self, tables, name, arguments, lines):
        self.tables = tables                     # of constants: what a name's elements are
        self.name = name
        self.arguments = [z3.BitVec(n, int(w)) for w, n in re.findall(r'i(\d+)[\w ]* %([-\w.]+)', arguments)]
        self.values = {'%' + str(a): a for a in self.arguments}
        self.blocks = {}
        block = 'entry'
        for line in lines:
            label = re.match(r'([-\w.]+):', line)
            if label:
                block = label.group(1)
            else:
                self.blocks.setdefault(block, []).append(re.sub(r', !\w+ !\d+|, !srcloc.*', '', line.strip()))
        self.assumed, self.undefined, self.holds = [], [], []
        self.edges = {}                          # (from, to): when it is taken
        self.reached = {}
        for block in self.order():
            self.reached[block] = z3.simplify(z3.Or([self.edges[e] for e in self.edges if e[1] == block])) \
                if block != 'entry' else z3.BoolVal(True)
            for line in self.blocks[block]:
                self.step(block, line)

    def order(self):
        """Blocks after all those that lead to them; a loop has no such order."""
        done, seen, out = set(), set(), []

        def visit(block):
            if block in done:
                return
            if block in seen:
                raise ValueError(f'{self.name}: a loop at {block}')
            seen.add(block)
            for target in re.findall(r'label %([-\w.]+)', ' '.join(self.blocks[block][-1:])):
                visit(target)
            done.add(block)
            out.append(block)
        self.blocks = {b: self.join(lines) for b, lines in self.blocks.items()}
        visit('entry')
        return out[::-1]

    @staticmethod
    def join(lines):
        """A switch stands on several lines."""
        text = re.sub(r'\[\n(.*?)\n\]', lambda m: '[ ' + m.group(1).replace('\n', ' ') + ' ]', '\n'.join(lines),
                      flags=re.S)
        return [line for line in text.split('\n') if line]

    def value(self, text, width):
        if text in self.values:
            return self.values[text]
        if text.startswith('%'):
            raise ValueError(f'{self.name}: no value {text}')
        number = {'true': 1, 'false': 0}.get(text)
        return z3.BitVecVal(int(text) if number is None else number, width)

    def step(self, block, line):
        match = re.match(r'(%[-\w.]+) = (.*)', line)
        if match:
            self.values[match.group(1)] = self.compute(block, match.group(2))
            return
        here = self.reached[block]
        match = re.match(rf'br i1 ({VALUE}), label %([-\w.]+), label %([-\w.]+)', line)
        if match:
            test = self.value(match.group(1), 1) == 1
            for target, when in ((match.group(2), test), (match.group(3), z3.Not(test))):
                self.edges[block, target] = z3.Or(self.edges.get((block, target), False), z3.And(here, when))
            return
        match = re.match(r'br label %([-\w.]+)', line)
        if match:
            self.edges[block, match.group(1)] = here
            return
        match = re.match(rf'switch i(\d+) ({VALUE}), label %([-\w.]+) \[(.*)\]', line)
        if match:
            width, default = int(match.group(1)), here
            value = self.value(match.group(2), width)
            for number, target in re.findall(r'i\d+ (-?\d+), label %([-\w.]+)', match.group(4)):
                when = value == z3.BitVecVal(int(number), width)
                self.edges[block, target] = z3.Or(self.edges.get((block, target), False), z3.And(here, when))
                default = z3.And(default, z3.Not(when))
            self.edges[block, match.group(3)] = z3.Or(self.edges.get((block, match.group(3)), False), default)
            return
        match = re.match(rf'ret i32 ({VALUE})', line)
        if match:
            self.holds.append((here, self.value(match.group(1), 32) != 0))
            return
        match = re.match(rf'(?:tail )?call void @assume\(i32 [\w ]*?({VALUE})\)', line)
        if match:
            self.assumed.append(z3.Implies(here, self.value(match.group(1), 32) != 0))
            return
        if re.match(r'(tail )?call void @llvm\.(ubsantrap|trap)', line):
            self.undefined.append(here)
            return
        if line == 'unreachable' or re.match(r'(tail )?call void @llvm\.(lifetime|assume|experimental\.noalias)', line):
            return
        raise ValueError(f'{self.name}: cannot read: {line}')

    def compute(self, block, text):
        text = re.sub(r'\b(nsw|nuw|exact|noundef|tail|range\([^)]*\)) ', '', text)
        match = re.match(rf'(\w+) i(\d+) ({VALUE}), ({VALUE})$', text)
        if match and match.group(1) in BINARY:
            width = int(match.group(2))
            return BINARY[match.group(1)](self.value(match.group(3), width), self.value(match.group(4), width))
        match = re.match(rf'icmp (\w+) i(\d+) ({VALUE}), ({VALUE})$', text)
        if match:
            width = int(match.group(2))
            return self.bit(COMPARE[match.group(1)](self.value(match.group(3), width),
                                                    self.value(match.group(4), width)))
        match = re.match(rf'(zext|sext|trunc) i(\d+) ({VALUE}) to i(\d+)$', text)
        if match:
            width, to = int(match.group(2)), int(match.group(4))
            value = self.value(match.group(3), width)
            return z3.Extract(to - 1, 0, value) if to < width else \
                (z3.ZeroExt if match.group(1) == 'zext' else z3.SignExt)(to - width, value)
        match = re.match(rf'select i1 ({VALUE}), i(\d+) ({VALUE}), i\d+ ({VALUE})$', text)
        if match:
            width = int(match.group(2))
            return z3.If(self.value(match.group(1), 1) == 1, self.value(match.group(3), width),
                         self.value(match.group(4), width))
        match = re.match(rf'freeze i(\d+) ({VALUE})$', text)
        if match:
            return self.value(match.group(2), int(match.group(1)))
        match = re.match(r'phi i(\d+) (.*)$', text)
        if match:
            width, result = int(match.group(1)), None
            for value, source in re.findall(rf'\[ ({VALUE}), %([-\w.]+) \]', match.group(2)):
                if (source, block) not in self.edges:
                    continue                     # from a block that nothing reaches
                value = self.value(value, width)
                result = value if result is None else z3.If(self.edges[source, block], value, result)
            return result
        match = re.match(r'call \{ i\d+, i1 \} @llvm\.([su])(add|sub|mul)\.with\.overflow\.i(\d+)\((.*)\)', text)
        if match:
            width = int(match.group(3))
            a, b = (self.value(v, width) for v in re.findall(rf'i\d+ ({VALUE})', match.group(4)))
            more = width if match.group(2) == 'mul' else 1
            extend = z3.SignExt if match.group(1) == 's' else z3.ZeroExt
            exact = BINARY[match.group(2)](extend(more, a), extend(more, b))
            result = z3.Extract(width - 1, 0, exact)
            return result, self.bit(exact != extend(more, result))
        match = re.match(r'extractvalue \{ i\d+, i1 \} (%[-\w.]+), ([01])', text)
        if match:
            return self.values[match.group(1)][int(match.group(2))]
        match = re.match(rf'getelementptr inbounds \[\d+ x i\d+\], .*@(\w+), i64 0, i64 ({VALUE})$', text)
        if match and match.group(1) in self.tables:
            return self.tables[match.group(1)], self.value(match.group(2), 64)
        match = re.match(r'load i(\d+), [^%]*(%[-\w.]+),', text)
        if match and isinstance(self.values.get(match.group(2)), tuple):
            numbers, index = self.values[match.group(2)]
            self.undefined.append(z3.And(self.reached[block], z3.UGE(index, len(numbers))))
            result = z3.BitVecVal(0, int(match.group(1)))
            for i, number in enumerate(numbers):
                result = z3.If(index == i, z3.BitVecVal(number, int(match.group(1))), result)
            return result
        match = re.match(r'call i\d+ @llvm\.([a-z.]+)\.i(\d+)\((.*)\)', text)
        if match:
            operands = [self.value(v, int(w)) for w, v in re.findall(rf'i(\d+) ({VALUE})', match.group(3))]
            if match.group(1) == 'ctlz':
                return leading_zeros(*operands)
            if match.group(1) in CALLS:
                return CALLS[match.group(1)](*operands)
        raise ValueError(f'{self.name}: cannot read: {text}')

    @staticmethod
    def bit(truth):
        return z3.If(truth, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))

    def returns(self):
        return z3.And([z3.Implies(here, truth) for here, truth in self.holds])

    def ask(self, what):
        """Arguments for which it is so, or None where there are none. Those named each_... are tried, 0 to 63."""
        return self.try_each([*self.assumed, what], [a for a in self.arguments if str(a).startswith('each_')])

    def try_each(self, params, each):
        if any(z3.is_false(term) for term in params):
            return None
        if not each:
            return self.solve(params)
        for number in range(64):
            fixed = (each[0], z3.BitVecVal(number, each[0].size()))
            found = self.try_each([z3.simplify(z3.substitute(term, fixed)) for term in params], each[1:])
            if found is not None:
                found[self.arguments.index(each[0])] = number
                return found
        return None

    def solve(self, params):
        solver = z3.Then('simplify', 'propagate-values', 'solve-eqs', 'max-bv-sharing', 'bit-blast', 'sat').solver()
        solver.set('timeout', TIMEOUT_MS)
        solver.add(*params)
        answer = solver.check()
        if answer == z3.unsat:
            return None
        if answer == z3.unknown:
            raise TimeoutError(solver.reason_unknown())
        model = solver.model()
        return [model.eval(a, model_completion=True).as_long() for a in self.arguments]

    def evaluate(self, numbers):
        """(the assumptions hold, the law does, nothing undefined is reached), for these arguments."""
        fixed = [(a, z3.BitVecVal(n, a.size())) for a, n in zip(self.arguments, numbers)]
        return [z3.is_true(z3.simplify(z3.substitute(z3.And(t), *fixed)))
                for t in (self.assumed, [self.returns()], [z3.Not(z3.Or(self.undefined))])]


def read(text):
    tables = {name: [int(n) for n in re.findall(r'i\d+ (-?\d+)', numbers)]
              for name, numbers in re.findall(r'^@(\w+) = [^\n]*constant \[\d+ x i\d+\] \[(.*?)\]', text, re.M)}
    for match in re.finditer(r'^define [^@]*@((?:law|false)_\w+)\((.*?)\)[^\n]*\{\n(.*?)^\}', text, re.M | re.S):
        yield Law(tables, match.group(1), match.group(2), [line for line in match.group(3).split('\n')
                                                   if line and not line.startswith(';')])


class Native:
    """The same functions as gcc compiles them."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.broken = ctypes.c_int.in_dll(self.library, 'assumptions_broken')

    def evaluate(self, law, numbers):
        function = getattr(self.library, law.name)
        function.restype = ctypes.c_int
        function.argtypes = [ctypes.c_uint64 if a.size() == 64 else ctypes.c_uint32 for a in law.arguments]
        self.broken.value = 0
        held = function(*numbers) != 0
        return [self.broken.value == 0, held]


def edge(rng, width):
    """Small, large, near a power of two, or anything."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randrange(70)
    if kind == 1:
        return (1 << width) - 1 - rng.randrange(70) & (1 << width) - 1
    if kind == 2:
        return (1 << rng.randrange(width)) + rng.randrange(-2, 3) & (1 << width) - 1
    return rng.getrandbits(width)


def agrees(law, native, rng):
    """Formula and machine say the same of random arguments; where they don't, those."""
    for _ in range(SAMPLES):
        numbers = [rng.randrange(8) if str(a).startswith('each_') else edge(rng, a.size()) for a in law.arguments]
        assumed, holds, defined = law.evaluate(numbers)
        if assumed and defined and native.evaluate(law, numbers) != [assumed, holds]:
            return numbers
        if defined and native.evaluate(law, numbers)[0] != assumed:
            return numbers
    return None


def report(good, title, *more):
    return '\n'.join([('ok' if good else 'not ok') + ' - ' + title, *('# ' + line for line in more)])


def sample(law, title, native, rng):
    """Try a law on random arguments."""
    passed = 0
    for _ in range(TRIES):
        numbers = [rng.randrange(8) if str(a).startswith('each_') else edge(rng, a.size()) for a in law.arguments]
        assumed, held = native.evaluate(law, numbers)
        if assumed and not held:
            return report(False, f'tried: {title}', show(law, numbers))
        passed += assumed
    return report(True, f'tried: {title}', f'{passed} of {TRIES} arguments passed what the law assumes')


def show(law, numbers):
    return f'{law.name}(' + ', '.join(f'{a} = {n:#x}' for a, n in zip(law.arguments, numbers)) + ')'


ASKED = []              # law, title, native, seed: children inherit it, for formulas cannot be sent


def judge(which):
    """What there is to say of a law."""
    law, title, native, seed = ASKED[which]
    differs = agrees(law, native, random.Random(f'{seed} {law.name}'))
    if differs is not None:
        return report(False, f'{title}: formula and machine agree', show(law, differs))
    if re.search(os.environ.get('BUT', '^$'), law.name):
        return sample(law, title, native, random.Random(f'{seed} {law.name} tried'))
    try:
        if law.name.startswith('law_'):
            against = law.ask(z3.Or(z3.Not(law.returns()), *law.undefined))
            return report(against is None, title, *([show(law, against)] if against else []))
        against = law.ask(z3.Not(law.returns()))
        replayed = against is not None and native.evaluate(law, against) == [True, False]
        return report(replayed, f'refuted: {title}', *([show(law, against)] if against else []))
    except TimeoutError as error:
        return report(False, title, f'z3: {error}')


def main():
    source, build, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(source, encoding='utf-8') as file:
        text = file.read()
    titles = {name: re.sub(r'\s*\n \*\s*', ' ', title)
              for title, name in re.findall(r'/\*[\s*]+((?:(?!\*/).)*?)\s*\*/\nint (\w+)\(', text, re.S)}
    library = os.path.join(build, os.path.basename(source)[:-2] + '.so')
    common = [*flags, source]
    ir = subprocess.run(['clang', '-O1', '-fno-vectorize', '-fno-slp-vectorize', '-fno-discard-value-names',
                         '-fsanitize=shift,integer-divide-by-zero,signed-integer-overflow', '-fsanitize-trap=all',
                         '-mllvm', '-inline-threshold=1000000', '-S', '-emit-llvm', '-o', '-', *common],
                        check=True, stdout=subprocess.PIPE, text=True).stdout
    subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-DNATIVE', '-o', library, *common], check=True)
    native, seed = Native(library), int(os.environ.get('SEED', random.SystemRandom().getrandbits(32)))
    print(f'# SEED={seed}')
    laws = list(read(ir))
    if 'ONLY' in os.environ:                     # a pattern: those laws alone
        laws = [law for law in laws if re.search(os.environ['ONLY'], law.name)]
        titles = {law.name: titles[law.name] for law in laws}
    if len(laws) != len(titles):
        print(report(False, f'every law of {os.path.basename(source)} has a title',
                     str(set(titles) ^ {law.name for law in laws})))
    ASKED.extend((law, titles.get(law.name, law.name), native, seed) for law in laws)
    with multiprocessing.get_context('fork').Pool(len(os.sched_getaffinity(0))) as pool:
        for judged in pool.imap(judge, range(len(laws))):
            print(judged, flush=True)


main()
