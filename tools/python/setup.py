"""The extension, which is left out where it cannot be built, or where SHMLIMIT_PURE is in the environment.

SPDX-License-Identifier: BSD-2-Clause
"""

import glob
import os
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

LIMITED_API = "0x030A0000"

# METH_FASTCALL is in the limited API since 3.10; 3.9 gets an extension of its own. Without the interpreter's lock the
# extension has not been tested, so such a Python uses ctypes.
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
native = not free_threaded and not os.environ.get("SHMLIMIT_PURE")
limited = sys.version_info >= (3, 10)
extension = Extension(
    "shmlimit._native",
    sorted(glob.glob("native/*.c")),
    depends=glob.glob("native/*.h"),
    define_macros=[("Py_LIMITED_API", LIMITED_API)] if limited else [],
    extra_compile_args=["-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"],
    py_limited_api=limited,
    optional=True,
)


class build_py_and_libraries(build_py):
    """From the package of sources, which has those of the libraries, they are built too: see tools/bundles.mk."""

    def run(self) -> None:
        super().run()
        if os.path.exists("sources/Makefile"):
            subprocess.run(["make", "-s", "-C", "sources", "SHARED=1", "BUNDLE=1", "lib"], check=True)
            folder = os.path.join(self.build_lib, "shmlimit", "lib")
            os.makedirs(folder, exist_ok=True)
            for library in glob.glob("sources/build/*.so.?"):
                shutil.copy(library, folder)


setup(
    cmdclass={"build_py": build_py_and_libraries},
    ext_modules=[extension] if native else [],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if native and limited else {},
)
