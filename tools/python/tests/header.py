"""What the Python package believes of shmlimit.h, shmlimit_gate.h and shmlimit_global.h, as lines, for python.sh to compare.

    header.py program       a C program that prints what is so
    header.py prototypes    reads the preprocessed headers, prints what is so
    header.py believed      what the package has

SPDX-License-Identifier: BSD-2-Clause
"""

import ctypes
import re
import sys

from shmlimit import Algorithm, Clock, Mode, OnFailure, OnFull, _c, _c_gate, _c_global

CONSTANTS = {
    "KEY_MAX": _c.KEY_MAX,
    "KEY_IP_MAX": _c.KEY_IP_MAX,
    "FIELD_MAX": _c.FIELD_MAX,
    "REQUESTS_MAX": _c.REQUESTS_MAX,
    "ALL_RULES": _c.ALL_RULES,
    "OPEN_READ_ONLY": _c.READ_ONLY,
    "OPEN_TRUSTED": _c.TRUSTED,
    "OPTION_GROUP": _c.OPTION_GROUP,
    "RULE_NAME_MAX": _c.RULE_NAME_MAX,
    "COUNT_SATURATE": _c.COUNT_SATURATE,
    "COUNT_RESTART": _c.COUNT_RESTART,
    "PLACE_BIND": _c.PLACE_BIND,
    "PLACE_DROPPED": _c.PLACE_DROPPED,
    "PLACE_UNTIMED": _c.PLACE_UNTIMED,
    "GATE_FIELDS_MAX": _c_gate.FIELDS_MAX,
    "GATE_BUFFER": _c_gate.BUFFER,
    **{"GATE_" + outcome.upper().replace("-", "_"): i for i, outcome in enumerate(_c_gate.OUTCOMES)},
    "RULE_NEXT_PAYS": _c.NEXT_PAYS,
    "RULE_COUNT_REFUSED": _c.COUNT_REFUSED,
    "RULE_PROTECTED": _c.PROTECTED,
    "RULE_CUT_OFF": _c.CUT_OFF,
    **{algorithm.name: int(algorithm) for algorithm in Algorithm},
    **{mode.name: int(mode) for mode in Mode},
    **{"FULL_" + on_full.name: int(on_full) for on_full in OnFull},
    **{"CLOCK_" + clock.name: int(clock) for clock in Clock},
    **{"GLOBAL_" + on_failure.name: int(on_failure) for on_failure in OnFailure},
}
STRUCTURES = {**_c.STRUCTURES, **_c_gate.STRUCTURES, **_c_global.STRUCTURES}
PROTOTYPES = {**_c.PROTOTYPES, **_c_gate.PROTOTYPES, **_c_global.PROTOTYPES}
KINDS = {"int": "i4", "unsigned": "u4", "uint32_t": "u4", "uint64_t": "u8", "int64_t": "i8", "size_t": "u8", "double": "f8", "void": "none"}
CODES = {"i": "i4", "I": "u4", "L": "u8", "l": "i8", "d": "f8"}


def fields(structure):
    """Without reserved members: a later header has names for some of them."""
    return [name for name, *_ in structure._fields_ if not name.startswith("reserved")]


def program():
    print("#include <stdio.h>\n#include <shmlimit_gate.h>\n#include <shmlimit_global.h>\nint main(void)\n{")
    print("#define FIELD(s, f) (int)offsetof(struct shmlimit_##s, f), (int)sizeof(((struct shmlimit_##s *)0)->f)")
    for name in CONSTANTS:
        print(f'printf("{name} %d\\n", (int)SHMLIMIT_{name});')
    for name, structure in STRUCTURES.items():
        print(f'printf("{name} %d\\n", (int)sizeof(struct shmlimit_{name}));')
        for field in fields(structure):
            print(f'printf("{name}.{field} %d %d\\n", FIELD({name}, {field}));')
    print("}")


def kind(declared):
    """Of a parameter as C declares it: sign and size, or p for a pointer."""
    return "p" if re.search(r"[*[]", declared) else KINDS[declared.split()[0]]


def prototypes():
    declared = {}
    for result, name, parameters in re.findall(r"([\w\s*]+?)\bshmlimit_(\w+)\(([^;]*)\);", sys.stdin.read()):
        parameters = re.sub(r"\(\*\w+\)\([^)]*\)", "*", parameters)
        declared[name] = " ".join([kind(result.strip()), *map(kind, parameters.split(","))])
    for name in PROTOTYPES:
        print(name, declared.get(name))


def believed_kind(declared):
    if declared is None:
        return "none"
    return CODES.get(getattr(declared, "_type_", None), "p")


def believed():
    for name, value in CONSTANTS.items():
        print(name, value)
    for name, structure in STRUCTURES.items():
        print(name, ctypes.sizeof(structure))
        for field in fields(structure):
            print(f"{name}.{field}", getattr(structure, field).offset, getattr(structure, field).size)
    for name, (result, arguments) in PROTOTYPES.items():
        print(name, *map(believed_kind, [result, *arguments]))


{"program": program, "prototypes": prototypes, "believed": believed}[sys.argv[1]]()
