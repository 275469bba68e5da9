"""The extension, which is left out where it cannot be built, or where SHMLIMIT_PURE is in the environment.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import sys

from setuptools import Extension, setup

LIMITED_API = "0x030A0000"

extension = Extension(
    "shmlimit._native",
    ["shmlimit/_native.c"],
    define_macros=[("Py_LIMITED_API", LIMITED_API)],
    extra_compile_args=["-std=c11", "-Wall", "-Wextra"],
    py_limited_api=True,
    optional=True,
)
native = sys.version_info >= (3, 10) and not os.environ.get("SHMLIMIT_PURE")
setup(
    ext_modules=[extension] if native else [],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if native else {},
)
