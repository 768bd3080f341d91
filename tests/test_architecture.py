"""Who may import whom, what pure modules may touch, and what a queue discipline can reach.

Every rule is a function from source text to the list of its violations. The tree is held to it,
and a small bad snippet beside it shows that the rule can fail.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_imports import (
    ROOT,
    cython_code,
    imports,
    is_inside,
    nodes,
    reaches,
    read,
)

# --- the data ------------------------------------------------------------------------------------

LAYERS = ("scenarios", "broker", "grms", "lrms_sim")
"""From the top floor to the ground floor; a package imports itself and those below it."""

SERVING = "kit pki telemetry tls handshakes"
LIBRARIES = tuple(f"grms.{name}" for name in SERVING.split())
"""What knows nothing of what a site does, and serves both daemons."""

ONLY_THROUGH = {("broker", "grms"): ("grms.client", "grms.v1", *LIBRARIES)}
"""What the first package may use of the second: of sites the broker is a client, no more."""

PURE = (
    "lrms_sim/_*.p[yx][xd]",
    "lrms_sim/disciplines.py",
    "lrms_sim/fairness.py",
    "lrms_sim/groups.py",
    "lrms_sim/jobs.py",
    "lrms_sim/machine.py",
    "lrms_sim/metrics.py",
    "lrms_sim/occupancy.py",
    "lrms_sim/scaling.py",
    "lrms_sim/schedule.py",
    "lrms_sim/windows.py",
    "lrms_sim/utility/_*.p[yx][xd]",
    "lrms_sim/utility/jobs.py",
    "lrms_sim/utility/log.py",
    "lrms_sim/utility/machine.py",
    "lrms_sim/utility/options.py",
    "lrms_sim/utility/policies.py",
    "grms/policy/*.p[yx]*",
    "grms/utility_exchange.py",
    "grms/federation/*.p[yx]*",
    "grms/conducted/*.py",
    "grms/learning/evolution/*.py",
    "grms/learning/rule_bases/encoding.py",
    "grms/learning/fingerprint.py",
    "grms/learning/rule_bases/visits.py",
    "grms/lrms/batch/ledger.py",
    "grms/lrms/batch/*_text.py",
    "grms/lrms/batch/table.py",
    "grms/site/facts/*.py",
    "grms/site/care/a*.py",
    "grms/site/core/*.py",
    "grms/site/dashboard/ledger.py",
    "grms/site/dashboard/notes.py",
    "grms/site/dashboard/views.py",
    "grms/testing/*.py",
    "grms/kit/backoff.py",
    "grms/lrms/followed.py",
    "grms/lrms/port.py",
    "grms/site/engine/lrms_queue.py",
    "grms/names.py",
    "grms/site/watching/discovery.py",
    "grms/telemetry/outbox.py",
    "grms/telemetry/payloads.py",
    "grms/telemetry/topics.py",
    "broker/model/*.py",
    "broker/core/*.py",
    "broker/dashboard/views.py",
    "broker/pictures/layout.py",
    "broker/files/importing.py",
    "broker/pictures/words.py",
    "broker/planner/*.p[yx]*",
)
"""Modules that decide or compute: time, randomness and files are arguments or not there."""

SHELLS = (
    "grms/policy/files.py",
    "grms/policy/words.py",
    "grms/learning/evolution/randomness.py",
    "grms/testing/draws.py",
    "broker/planner/methods.py",
    "broker/planner/search.py",
)
"""Modules matched by PURE that are there for files, for making generators, or for the clock and
threads of a search."""

IMPURE_MODULES = (
    "asyncio",
    "concurrent",
    "ctypes",
    "grpc",
    "http",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "structlog",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
    "numpy.random",
    "cpython.time",
    "libc.signal",
    "libc.stdio",
    "libc.time",
    "openmp",
    "posix",
)
IMPURE_NAMES = {
    "libc.stdlib": ("rand", "srand", "random", "getenv", "system", "exit", "abort"),
    "numpy": ("random", "fromfile", "load", "loadtxt", "genfromtxt", "save", "savetxt", "memmap"),
}
"""Names of modules that are otherwise harmless."""

IMPURE_CALLS = ("open", "input", "print", "exec", "eval", "__import__")
IMPURE_METHODS = (
    "now",
    "today",
    "utcnow",
    "default_rng",
    "fromfile",
    "tofile",
    "savetxt",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
)

COMES_WITH = {
    "pydantic_core": "pydantic",
    "distributed": "dask",
    "typing_extensions": "pydantic",
    "libc": "cython",
    "cpython": "cython",
    "google": "protobuf",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "prometheus_client": "prometheus-client",
}
"""Modules that a declared dependency brings, or is imported as."""

EXTRAS = {
    "lrms_sim/accounting/table.py": "frames",
    "lrms_sim/frames.py": "frames",
    "grms/learning/executors.py": "cluster",
    "grms/kit/web/pages.py": "dashboard",
    "grms/kit/web/visitors.py": "dashboard",
    "grms/site/dashboard/service.py": "dashboard",
    "broker/dashboard/service.py": "dashboard",
}
"""The modules that may import what an extra of pyproject.toml brings, and which one."""

MACHINE_KERNELS = frozenset({"lrms_sim._machine", "lrms_sim._kernel", "grms.federation._kernel"})
"""Compiled code that runs a batch system's scheduler, and knows what it must not."""

BEYOND_DISCIPLINES_MODULES = ("lrms_sim._machine", "lrms_sim._kernel")
BEYOND_DISCIPLINES_NAMES = ("run_time", ".end_time")
"""When a running job really ends is its run time by another name; with a dot: as a member."""

UTILITY_KERNELS = ("lrms_sim.utility._passes", "lrms_sim.utility._orders")
"""Compiled code that schedules jobs with utilities."""

BEYOND_UTILITY_MODULES = (
    "lrms_sim._machine",
    "lrms_sim.utility._complex",
    "lrms_sim.utility._core",
    "lrms_sim.utility._kernel",
)
BEYOND_UTILITY_NAMES = ("run_time", "run_left", "true_end")
"""What the machine alone knows of a job: how long it takes, has left, and when it will end."""

DECISION_KERNELS = ("grms/policy/*.p[yx][xd]",)
"""Compiled code that takes a site's transfer and location decisions."""

BEYOND_DECISIONS_MODULES = (
    "lrms_sim._machine",
    "lrms_sim._kernel",
    "lrms_sim._queue",
    "lrms_sim._view",
)
BEYOND_DECISIONS_NAMES = ("run_time", ".end_time")
"""A decision takes numbers, never a machine: it cannot look at one, its own or a partner's."""

# --- the rules -----------------------------------------------------------------------------------


def layer_violations(text: str, path: Path) -> list[str]:
    """Returns the imports of a file that go upward, or past the door between two packages."""
    home = path.parts[0]
    below = LAYERS[LAYERS.index(home) :]
    found = []
    for each in imports(text, path):
        target = each.module.partition(".")[0]
        where = f"{path}:{each.line}: imports {each.module}"
        if target in LAYERS and target not in below:
            found.append(f"{where}, which is above {home}")
        if target in {"tests", "benchmarks"}:
            found.append(f"{where}, which is not part of the product")
        door = ONLY_THROUGH.get((home, target))
        if door is not None and not (
            is_inside(each.module, door)
            or (each.names and all(is_inside(f"{each.module}.{n}", door) for n in each.names))
        ):
            found.append(f"{where}; {home} uses of {target} only {', '.join(door)}")
    return found


def purity_violations(text: str, path: Path) -> list[str]:
    """Returns what a pure module has to do with input, output, clocks, threads and chance."""
    found = [
        f"{path}:{each.line}: imports {each.module}"
        for each in imports(text, path)
        if reaches(each, IMPURE_MODULES)
    ]
    for each in imports(text, path):
        bad = [name for name in each.names if name in IMPURE_NAMES.get(each.module, ())]
        found += [f"{path}:{each.line}: imports {name} of {each.module}" for name in bad]
    if path.suffix in {".py", ".pyi"}:
        found += [f"{path}:{line}: calls {name}" for line, name in impure_calls(text)]
    else:
        code = cython_code(text)
        calls = re.compile(rf"(?<![\w.])({'|'.join(IMPURE_CALLS)})\s*\(")
        methods = re.compile(rf"\.({'|'.join(IMPURE_METHODS)})\s*\(")
        for match in (*calls.finditer(code), *methods.finditer(code)):
            line = code.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: calls {match.group(1)}")
    return found


def impure_calls(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and name of every call that reads the world without an import."""
    for node in nodes(text):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id in IMPURE_CALLS:
            yield node.lineno, function.id
        elif isinstance(function, ast.Attribute):
            owner = ast.unparse(function.value)
            numpy_io = owner in {"np", "numpy"} and function.attr in IMPURE_NAMES["numpy"]
            if function.attr in IMPURE_METHODS or numpy_io or owner.endswith("np.random"):
                yield node.lineno, ast.unparse(function)


def reach_violations(
    text: str, path: Path, modules: tuple[str, ...], names: tuple[str, ...]
) -> list[str]:
    """Returns where Cython source takes one of the modules or says one of the names."""
    found = [
        f"{path}:{each.line}: cimports {each.module}"
        for each in imports(text, path)
        if reaches(each, modules)
    ]
    code = cython_code(text)
    for name in names:
        # A header declares a member where other code takes it from something.
        before = r"\." if name.startswith(".") and path.suffix != ".pxd" else r"\b"
        bare = name.removeprefix(".")
        found += [
            f"{path}:{code.count(chr(10), 0, match.start()) + 1}: names {bare}"
            for match in re.finditer(rf"{before}{bare}\b", code)
        ]
    return found


def cimport_closure(modules: tuple[str, ...], root: Path) -> list[Path]:
    """Returns the sources and headers of Cython modules and of all that they cimport."""
    waiting = list(modules)
    seen: dict[Path, None] = {}
    while waiting:
        module = waiting.pop()
        for suffix in (".pyx", ".pxd"):
            path = Path(*module.split(".")).with_suffix(suffix)
            if path not in seen and (root / path).exists():
                seen[path] = None
                for each in imports((root / path).read_text(encoding="utf-8"), path):
                    waiting += [each.module, *(f"{each.module}.{name}" for name in each.names)]
    return list(seen)


def discipline_kernels(root: Path) -> tuple[str, ...]:
    """Returns the Cython modules that stand for a batch system's scheduler: all but machines."""
    scheduler = ("lrms_sim._scheduler",)
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for package in LAYERS
        for path in (root / package).rglob("*.pyx")
        if any(
            reaches(each, scheduler)
            for each in imports(path.read_text(encoding="utf-8"), path.relative_to(root))
        )
    }
    return tuple(sorted(modules - MACHINE_KERNELS))


def undeclared_imports(text: str, path: Path, declared: frozenset[str]) -> list[str]:
    """Returns the imports that neither Python, the project nor a declared dependency provides."""
    known = {*sys.stdlib_module_names, *LAYERS, *declared}
    return [
        f"{path}:{each.line}: imports {each.module}, which pyproject.toml does not list"
        for each in imports(text, path)
        if each.module.partition(".")[0] not in known
    ]


# --- the tree ------------------------------------------------------------------------------------


def sources(*patterns: str) -> list[Path]:
    """Returns the source files of the packages that match, relative to the root."""
    found = {path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path for path in found if path.suffix in {".py", ".pyi", ".pyx", ".pxd", ".pxi"})


PACKAGE_SOURCES = sources(*(f"{package}/**/*" for package in LAYERS))
PURE_SOURCES = [path for path in sources(*PURE) if str(path) not in SHELLS]


def test_imports_go_downward() -> None:
    """No package imports, or cimports, one above it; the broker uses of `grms` what it may."""
    assert {path.parts[0] for path in PACKAGE_SOURCES} == set(LAYERS)
    assert [line for path in PACKAGE_SOURCES for line in layer_violations(read(path), path)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("lrms_sim/machine.py", "import grms"),
        ("lrms_sim/machine.py", "from grms.policy import transfer"),
        ("lrms_sim/machine.py", "def f():\n    from scenarios import spec"),
        ("lrms_sim/machine.py", "import importlib\nimportlib.import_module('grms.policy')"),
        ("lrms_sim/machine.py", "from ..grms import policy"),
        ("lrms_sim/_machine.pyi", "from grms.policy.transfer import RuleBase"),
        ("lrms_sim/_machine.pyx", "from grms.policy._transfer cimport accept"),
        ("lrms_sim/_machine.pyx", "cimport grms.policy._transfer as t"),
        ("lrms_sim/_machine.pyx", "from libc.math cimport exp\nfrom grms.policy import (\n  a,\n)"),
        ("lrms_sim/_machine.pxd", "cimport libc.math, grms.policy"),
        ("grms/policy/_transfer.pyx", "from ...scenarios cimport thing"),
        ("grms/policy/files.py", "import broker"),
        ("broker/planner.py", "from grms.policy import transfer"),
        ("broker/planner.py", "from grms import client, policy"),
        ("broker/engine/journal.py", "from grms.site.engine.journal import Journal"),
        ("scenarios/spec/spec.py", "import tests.oracle"),
    ],
)
def test_an_upward_import_is_caught(path: str, text: str) -> None:
    """Each way of importing upward is a violation."""
    assert len(layer_violations(text, Path(path))) == 1


def test_a_downward_import_is_allowed() -> None:
    """Imports of the own package, of those below, and of words in strings are no violations."""
    for path, text in (
        ("scenarios/spec/spec.py", "import grms, lrms_sim\nfrom . import replay"),
        ("broker/planner.py", "from grms import client\nimport grms.client"),
        ("grms/federation/_federation.pyx", "from lrms_sim._machine cimport MachineCore"),
        ("lrms_sim/_machine.pyx", "'''\nimport grms\n'''\n# from grms cimport x\n"),
    ):
        assert layer_violations(text, Path(path)) == []


def test_pure_modules_do_no_io() -> None:
    """What decides or computes reads no clock, no file, no socket and draws no random number."""
    assert [line for path in PURE_SOURCES for line in purity_violations(read(path), path)] == []


@pytest.mark.parametrize("pattern", [*PURE, *SHELLS, *DECISION_KERNELS])
def test_every_pattern_names_something(pattern: str) -> None:
    """A rule about files that are not there would guard nothing."""
    assert sources(pattern)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("lrms_sim/jobs.py", "import time"),
        ("lrms_sim/jobs.py", "from os import path"),
        ("lrms_sim/jobs.py", "import os.path as p"),
        ("lrms_sim/jobs.py", "from numpy import random"),
        ("lrms_sim/jobs.py", "import numpy as np\nnp.random.seed(1)"),
        ("lrms_sim/jobs.py", "import numpy as np\nrng = np.random.default_rng()"),
        ("lrms_sim/jobs.py", "import numpy as np\nnp.load('x.npy')"),
        ("lrms_sim/jobs.py", "from datetime import datetime\ndatetime.now()"),
        ("lrms_sim/jobs.py", "open('x')"),
        ("lrms_sim/jobs.py", "def f(path):\n    return path.read_text()"),
        ("grms/policy/transfer.py", "from concurrent import futures"),
        ("lrms_sim/_machine.pyx", "from libc.stdlib cimport malloc, rand"),
        ("lrms_sim/_machine.pyx", "from libc.time cimport time"),
        ("lrms_sim/_machine.pyx", "from libc cimport time"),
        ("lrms_sim/_machine.pyx", "from posix.unistd cimport read"),
        ("lrms_sim/_machine.pyx", "def f():\n    print(1)"),
        ("lrms_sim/_machine.pyx", "import random"),
    ],
)
def test_an_impure_line_is_caught(path: str, text: str) -> None:
    """Each way to the clock, to files or to chance is a violation."""
    assert purity_violations(text, Path(path))


def test_a_pure_line_is_allowed() -> None:
    """Memory, mathematics, dates and a generator that is an argument are no violations."""
    for path, text in (
        ("lrms_sim/jobs.py", "import numpy as np\ndef f(rng: np.random.Generator): rng.normal()"),
        ("lrms_sim/jobs.py", "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)"),
        ("lrms_sim/_machine.pyx", "from libc.stdlib cimport free, malloc\n# time.time()\n"),
    ):
        assert purity_violations(text, Path(path)) == []


def test_the_true_run_time_is_out_of_a_disciplines_reach() -> None:
    """Neither a discipline nor anything it cimports knows the machine or names a run time."""
    kernels = discipline_kernels(ROOT)
    assert {"lrms_sim._fcfs", "lrms_sim._easy", "lrms_sim._conservative"} <= set(kernels)
    closure = cimport_closure(kernels, ROOT)
    assert {path.suffix for path in closure} == {".pyx", ".pxd"}
    assert Path("lrms_sim/_view.pxd") in closure
    assert [
        line
        for path in closure
        for line in reach_violations(
            read(path), path, BEYOND_DISCIPLINES_MODULES, BEYOND_DISCIPLINES_NAMES
        )
    ] == []


def test_the_true_run_time_is_out_of_a_utility_policys_reach() -> None:
    """Nor does a pass over jobs with utilities: expected ends follow from requests."""
    closure = cimport_closure(UTILITY_KERNELS, ROOT)
    assert Path("lrms_sim/utility/_view.pxd") in closure
    assert [
        line
        for path in closure
        for line in reach_violations(read(path), path, BEYOND_UTILITY_MODULES, BEYOND_UTILITY_NAMES)
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from lrms_sim.utility._core cimport MalleableCore",
        "cdef f(View* view):\n    return view.run_left[0]",
        "cdef f(Results* results):\n    return results.true_end",
    ],
)
def test_a_utility_policys_reach_for_the_run_time_is_caught(text: str) -> None:
    """Each way to what the machine alone knows is a violation."""
    path = Path("lrms_sim/utility/_passes.pyx")
    assert len(reach_violations(text, path, BEYOND_UTILITY_MODULES, BEYOND_UTILITY_NAMES)) == 1


def test_a_decision_takes_numbers_not_machines() -> None:
    """No policy kernel cimports a machine, its queue or a view of it, or names a true time."""
    assert [
        line
        for path in sources(*DECISION_KERNELS)
        for line in reach_violations(
            read(path), path, BEYOND_DECISIONS_MODULES, BEYOND_DECISIONS_NAMES
        )
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from lrms_sim._machine cimport MachineCore",
        "from lrms_sim cimport _machine",
        "cimport lrms_sim._machine as m",
        "from ._machine cimport MachineCore",
        "cdef f(View* view):\n    return view.run_time[0]",
        "cdef f(Running* running):\n    return running.end_time",
    ],
)
def test_a_reach_for_the_run_time_is_caught(text: str) -> None:
    """Each way for a discipline to the true run time is a violation."""
    path = Path("lrms_sim/_easy.pyx")
    found = reach_violations(text, path, BEYOND_DISCIPLINES_MODULES, BEYOND_DISCIPLINES_NAMES)
    assert len(found) == 1


def test_a_new_discipline_is_found(tmp_path: Path) -> None:
    """Whatever cimports the base of the schedulers is a discipline, wherever it lies."""
    (tmp_path / "grms").mkdir()
    (tmp_path / "grms/_new.pyx").write_text("from lrms_sim._scheduler cimport Scheduler\n")
    (tmp_path / "grms/_other.pyx").write_text("from lrms_sim._view cimport View\n")
    assert discipline_kernels(tmp_path) == ("grms._new",)


def test_a_reach_over_a_header_is_caught(tmp_path: Path) -> None:
    """The rule follows cimports: a header in between that names a run time is found."""
    package = tmp_path / "lrms_sim"
    package.mkdir()
    (package / "_easy.pyx").write_text("from lrms_sim._view cimport View\n")
    (package / "_view.pxd").write_text("from ._secret cimport Jobs\n")
    (package / "_secret.pxd").write_text("cdef struct Jobs:\n    double* run_time\n")
    closure = cimport_closure(("lrms_sim._easy",), tmp_path)
    assert Path("lrms_sim/_secret.pxd") in closure
    text = (package / "_secret.pxd").read_text()
    assert reach_violations(text, Path("lrms_sim/_secret.pxd"), (), BEYOND_DISCIPLINES_NAMES)


PARTS = ("site", "mqtt", "report", "learn")
"""Extras whose packages are imported anywhere; tests/test_slim.py has what works without them."""


@cache
def declared_dependencies(extra: str | None = None) -> frozenset[str]:
    """Returns the modules of the run-time dependencies in pyproject.toml, those of parts and of an extra."""
    project = tomllib.loads(read(Path("pyproject.toml")))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras.get(extra, [])]
    lines += [line for part in PARTS for line in extras[part]]
    declared = {"cython", *(re.split(r"[^\w-]", line)[0] for line in lines)}
    return frozenset(
        declared | {module for module, provider in COMES_WITH.items() if provider in declared}
    )


def test_every_import_at_run_time_is_declared() -> None:
    """A package works where only its declared dependencies are installed."""
    found = [
        line
        for path in PACKAGE_SOURCES
        for line in undeclared_imports(
            read(path), path, declared_dependencies(EXTRAS.get(str(path)))
        )
    ]
    assert found == []


def test_an_undeclared_import_is_caught() -> None:
    """A development tool imported by a package is a violation."""
    text = "import json\nimport numpy as np\nimport hypothesis\n"
    assert undeclared_imports(text, Path("lrms_sim/jobs.py"), frozenset({"numpy"})) == [
        "lrms_sim/jobs.py:3: imports hypothesis, which pyproject.toml does not list"
    ]
