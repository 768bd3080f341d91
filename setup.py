"""Builds the compiled kernels; everything else is said in pyproject.toml.

HANSE_DEBUG=1 builds them with checks of bounds, divisions and memory (see `make debug`).
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

CHECKED = os.environ.get("HANSE_DEBUG", "") not in {"", "0"}
# The Makefile compiles in place, after pip has installed the rest: once is enough.
WITHOUT_KERNELS = os.environ.get("HANSE_WITHOUT_KERNELS", "") not in {"", "0"}
ROOT = Path(__file__).parent
PACKAGES = ("lrms_sim", "grms", "broker")

# Contracting a*b+c to a fused operation changes the last bit from one processor type to the
# next; schedules are promised to be the same bytes everywhere.
#
# Most of a kernel works on plain pointers, which Cython's own checks do not see: the checked build
# lets the compiler watch them. A process that loads it needs libasan preloaded.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if CHECKED else []
# The checked build is not optimized, which takes a third of the time; its tests are short. With lines, so that a
# finding has its place; variables would take longer. Python may have been built with -g, and hands that on:
# describing what is stripped takes a seventh of the compiler's time.
OPTIMIZATION = ["-O0", "-g1", "-UNDEBUG", "-fno-omit-frame-pointer"] if CHECKED else ["-O3", "-g0"]
# What only a debugger reads would be four fifths of a kernel.
LINK_ARGS = SANITIZERS if CHECKED else ["-Wl,--strip-debug"]
COMPILE_ARGS = ["-ffp-contract=off", *OPTIMIZATION, *SANITIZERS]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": not CHECKED,
    "embedsignature": True,
    "freethreading_compatible": False,
}


def extensions() -> list[Extension]:
    """Returns one extension for each .pyx file of the packages."""
    sources = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.pyx"))
    return [
        Extension(
            ".".join(source.relative_to(ROOT).with_suffix("").parts),
            [str(source.relative_to(ROOT))],
            extra_compile_args=COMPILE_ARGS,
            extra_link_args=LINK_ARGS,
        )
        for source in sources
    ]


# Processes that translate kernels may import this file anew.
if __name__ == "__main__":
    setup(
        options={"build_ext": {"parallel": True}},  # one compiler a core; a plain `pip install` too
        ext_modules=[]
        if WITHOUT_KERNELS
        else cythonize(
            extensions(),
            compiler_directives=DIRECTIVES,
            build_dir="build/cython-checked" if CHECKED else "build/cython",
            # By contents and directives: `.ci/run` makes the same kernels for the checkout and two wheels.
            cache="CYTHON_CACHE_DIR" in os.environ,
            force=False,
            nthreads=os.cpu_count() or 1,
            quiet=True,
        ),
    )
