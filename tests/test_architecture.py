"""What import-linter cannot say of the tree: what Cython imports, what pure modules call, what a discipline can reach.

The contracts of imports between Python modules are in pyproject.toml; `make lint` checks them. Every rule
here is a function from source text to the list of its violations, and snippets show that it can fail.
"""

import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.source_imports import ROOT, cython_code, imports, reaches, read

PROJECT = tomllib.loads(read(Path("pyproject.toml")))
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
LAYERS: tuple[str, ...] = tuple(CONTRACTS[0]["layers"])
(PURE,) = (each for each in CONTRACTS if each.get("id") == "pure")
SHELLS = {each.partition(" -> ")[0] for each in PURE["ignore_imports"]}
"""Modules within pure packages that are there for files, for making generators, or for the clock of a search."""

IMPURE_MODULES = (
    *PURE["forbidden_modules"],
    *("numpy.random", "cpython.time", "libc.signal", "libc.stdio", "libc.time", "openmp", "posix"),
)
IMPURE_CALLS = re.compile(
    # By itself, of numpy, or a method of a date, a path or an array.
    r"(?<![\w.])(?<!def )(?:open|input|print|exec|eval|__import__)\s*\("
    r"|\b(?:np|numpy)\.(?:random\.\w+|load|loadtxt|genfromtxt|save|memmap)\s*\("
    r"|\.(?:now|today|utcnow|default_rng|fromfile|tofile|savetxt|read_text|read_bytes|write_text|write_bytes)\s*\("
    r"|\bfrom numpy import (?:\([^)]*|[^\n]*)\b(?:random|load|loadtxt|genfromtxt|save|memmap)\b"
    r"|\b(?:from|import) numpy\.random\b"
    r"|\bfrom libc\.stdlib cimport [^\n]*\b(?:rand|srand|random|getenv|system|exit|abort)\b"
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
    "jwt": "pyjwt",
    "prometheus_client": "prometheus-client",
}
"""Modules that a declared dependency brings, or is imported as."""

EXTRAS = {
    "lrms_sim/workload/accounting/table.py": "frames",
    "lrms_sim/workload/frames.py": "frames",
    "lrms_sim/util/executors.py": "cluster",
    "grms/daemon/web/pages.py": "dashboard",
    "grms/daemon/web/visitors.py": "dashboard",
    "grms/security/tokens.py": "rest",
    "grms/site/monitoring/dashboard.py": "dashboard",
    "grms/site/rest/api.py": "rest",
    "grms/site/rest/server.py": "rest",
    "broker/gantt/service.py": "dashboard",
}
"""The modules that may import what an extra of pyproject.toml brings, and which one."""

MACHINE_KERNELS = frozenset(
    {
        "lrms_sim.kernel._machine",
        "lrms_sim.kernel._kernel",
        "grms.federation._kernel",
        "grms.federation._replay",
        "grms.federation._own_account",  # the shadow's machine, of jobs that have ended
    }
)
"""Compiled code that runs a batch system's scheduler, and knows what it must not."""

BEYOND_DISCIPLINES_MODULES = ("lrms_sim.kernel._machine", "lrms_sim.kernel._kernel")
BEYOND_DISCIPLINES_NAMES = ("run_time", ".end_time")
"""When a running job really ends is its run time by another name; with a dot: as a member."""

UTILITY_KERNELS = ("lrms_sim.malleable._passes", "lrms_sim.malleable._orders")
"""Compiled code that schedules jobs with utilities."""

BEYOND_UTILITY_MODULES = (
    "lrms_sim.kernel._machine",
    "lrms_sim.malleable._complex",
    "lrms_sim.malleable._core",
    "lrms_sim.malleable._kernel",
)
BEYOND_UTILITY_NAMES = ("run_time", "run_left", "true_end")
"""What the machine alone knows of a job: how long it takes, has left, and when it will end."""

BEYOND_DECISIONS_MODULES = (
    "lrms_sim.kernel._machine",
    "lrms_sim.kernel._kernel",
    "lrms_sim.kernel._queue",
    "lrms_sim.kernel._view",
)
BEYOND_DECISIONS_NAMES = ("run_time", ".end_time")
"""A decision takes numbers, never a machine: it cannot look at one, its own or a partner's."""

# --- the rules -----------------------------------------------------------------------------------


def cython_violations(text: str, path: Path) -> list[str]:
    """Returns what a kernel imports of packages above its own, and what makes it impure.

    Kernels compute: none has to do with input, output, clocks, threads and chance. `snprintf` writes into memory.
    """
    above = LAYERS[: LAYERS.index(path.parts[0])]
    # Of sites the broker is a client, and no client has a kernel.
    if path.parts[0] == "broker":
        above = (*above, "grms")
    return [
        f"{path}:{each.line}: imports {each.module}"
        for each in imports(text, path)
        if reaches(each, (*above, *IMPURE_MODULES)) and each.names != ("snprintf",)
    ] + impure_calls(text, path)


def impure_calls(text: str, path: Path) -> list[str]:
    """Returns the calls of Python or Cython source that read the world, whatever is imported."""
    code = cython_code(text)
    return [
        f"{path}:{code.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for match in IMPURE_CALLS.finditer(code)
    ]


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
    scheduler = ("lrms_sim.kernel._scheduler",)
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


# --- the tree ------------------------------------------------------------------------------------


def below(*names: str) -> list[Path]:
    """Returns the Python sources of modules and packages, relative to the root."""
    paths = [Path(*name.split(".")) for name in names]
    return [
        found.relative_to(ROOT)
        for path in paths
        for found in [ROOT / path.with_suffix(".py"), *sorted((ROOT / path).rglob("*.py"))]
        if found.exists()
    ]


KERNELS = sorted(
    path.relative_to(ROOT) for package in LAYERS for path in (ROOT / package).rglob("*.p[yx][xd]")
)
DECISION_KERNELS = [path for path in KERNELS if path.parts[:2] == ("grms", "policy")]


def test_kernels_import_downward_and_are_pure() -> None:
    """No kernel imports or cimports a package above its own, or reads clock, file, socket or chance."""
    assert len(KERNELS) > len(DECISION_KERNELS) > 0
    assert [line for path in KERNELS for line in cython_violations(read(path), path)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("lrms_sim/kernel/_machine.pyx", "from grms.policy._transfer cimport accept"),
        ("lrms_sim/kernel/_machine.pyx", "cimport grms.policy._transfer as t"),
        (
            "lrms_sim/kernel/_machine.pyx",
            "from libc.math cimport exp\nfrom grms.policy import (\n  a,\n)",
        ),
        ("lrms_sim/kernel/_machine.pxd", "cimport libc.math, grms.policy"),
        ("grms/policy/_transfer.pyx", "from ...scenarios cimport thing"),
        ("broker/planner/_plan.pyx", "from grms.policy._transfer cimport accept"),
        ("lrms_sim/kernel/_machine.pyx", "from libc.stdlib cimport malloc, rand"),
        ("lrms_sim/kernel/_machine.pyx", "from libc.time cimport time"),
        ("lrms_sim/kernel/_machine.pyx", "from libc cimport time"),
        ("lrms_sim/kernel/_machine.pyx", "from posix.unistd cimport read"),
        ("lrms_sim/kernel/_machine.pyx", "def f():\n    print(1)"),
        ("lrms_sim/kernel/_machine.pyx", "import random"),
    ],
)
def test_a_bad_line_of_a_kernel_is_caught(path: str, text: str) -> None:
    """Each way upward, to the clock, to files or to chance is a violation."""
    assert len(cython_violations(text, Path(path))) == 1


def test_pure_modules_call_nothing_impure() -> None:
    """The contract names what is pure; what it may not import it may not call by another name."""
    pure = below(*PURE["source_modules"])
    shells = set(below(*SHELLS))
    assert shells < set(pure)
    assert [
        line for path in pure if path not in shells for line in impure_calls(read(path), path)
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from numpy import random",
        "from numpy import (\n    array,\n    random,\n)",
        "from numpy import load\nload('x')",
        "from numpy.random import default_rng\ndefault_rng()",
        "import numpy.random as r\nr.rand()",
        "import numpy as np\nnp.random.seed(1)",
        "import numpy as np\nrng = np.random.default_rng()",
        "import numpy as np\nnp.load('x.npy')",
        "from datetime import datetime\ndatetime.now()",
        "open('x')",
        "def f(path):\n    return path.read_text()",
    ],
)
def test_an_impure_call_is_caught(text: str) -> None:
    """Each way to clock, files or chance that needs no import of its own is a violation."""
    assert impure_calls(text, Path("lrms_sim/workload/jobs.py"))


def test_a_pure_line_is_allowed() -> None:
    """Memory, mathematics, dates, downward imports, words in strings and a generator that is an argument."""
    for path, text in (
        (
            "lrms_sim/workload/jobs.py",
            "import numpy as np\ndef f(rng: np.random.Generator): rng.normal()",
        ),
        (
            "lrms_sim/workload/jobs.py",
            "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
        ),
        ("lrms_sim/kernel/_machine.pyx", "from libc.stdlib cimport free, malloc\n# time.time()\n"),
        ("lrms_sim/kernel/_machine.pyx", "'''\nimport grms\n'''\n# from grms cimport x\n"),
        ("grms/federation/_kernel.pyx", "from lrms_sim.kernel._machine cimport MachineCore"),
    ):
        check = impure_calls if path.endswith(".py") else cython_violations
        assert check(text, Path(path)) == []


def test_the_true_run_time_is_out_of_a_disciplines_reach() -> None:
    """Neither a discipline nor anything it cimports knows the machine or names a run time."""
    kernels = discipline_kernels(ROOT)
    assert {
        "lrms_sim.kernel._fcfs",
        "lrms_sim.kernel._easy",
        "lrms_sim.kernel._conservative",
    } <= set(kernels)
    closure = cimport_closure(kernels, ROOT)
    assert {path.suffix for path in closure} == {".pyx", ".pxd"}
    assert Path("lrms_sim/kernel/_view.pxd") in closure
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
    assert Path("lrms_sim/malleable/_view.pxd") in closure
    assert [
        line
        for path in closure
        for line in reach_violations(read(path), path, BEYOND_UTILITY_MODULES, BEYOND_UTILITY_NAMES)
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from lrms_sim.malleable._core cimport MalleableCore",
        "cdef f(View* view):\n    return view.run_left[0]",
        "cdef f(Results* results):\n    return results.true_end",
    ],
)
def test_a_utility_policys_reach_for_the_run_time_is_caught(text: str) -> None:
    """Each way to what the machine alone knows is a violation."""
    path = Path("lrms_sim/malleable/_passes.pyx")
    assert len(reach_violations(text, path, BEYOND_UTILITY_MODULES, BEYOND_UTILITY_NAMES)) == 1


def test_a_decision_takes_numbers_not_machines() -> None:
    """No policy kernel cimports a machine, its queue or a view of it, or names a true time."""
    assert [
        line
        for path in DECISION_KERNELS
        for line in reach_violations(
            read(path), path, BEYOND_DECISIONS_MODULES, BEYOND_DECISIONS_NAMES
        )
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "from lrms_sim.kernel._machine cimport MachineCore",
        "from lrms_sim.kernel cimport _machine",
        "cimport lrms_sim.kernel._machine as m",
        "from ._machine cimport MachineCore",
        "cdef f(View* view):\n    return view.run_time[0]",
        "cdef f(Running* running):\n    return running.end_time",
    ],
)
def test_a_reach_for_the_run_time_is_caught(text: str) -> None:
    """Each way for a discipline to the true run time is a violation."""
    path = Path("lrms_sim/kernel/_easy.pyx")
    found = reach_violations(text, path, BEYOND_DISCIPLINES_MODULES, BEYOND_DISCIPLINES_NAMES)
    assert len(found) == 1


def test_a_new_discipline_is_found(tmp_path: Path) -> None:
    """Whatever cimports the base of the schedulers is a discipline, wherever it lies."""
    (tmp_path / "grms").mkdir()
    (tmp_path / "grms/_new.pyx").write_text("from lrms_sim.kernel._scheduler cimport Scheduler\n")
    (tmp_path / "grms/_other.pyx").write_text("from lrms_sim.kernel._view cimport View\n")
    assert discipline_kernels(tmp_path) == ("grms._new",)


def test_a_reach_over_a_header_is_caught(tmp_path: Path) -> None:
    """The rule follows cimports: a header in between that names a run time is found."""
    package = tmp_path / "lrms_sim/kernel"
    package.mkdir(parents=True)
    (package / "_easy.pyx").write_text("from lrms_sim.kernel._view cimport View\n")
    (package / "_view.pxd").write_text("from ._secret cimport Jobs\n")
    (package / "_secret.pxd").write_text("cdef struct Jobs:\n    double* run_time\n")
    closure = cimport_closure(("lrms_sim.kernel._easy",), tmp_path)
    assert Path("lrms_sim/kernel/_secret.pxd") in closure
    text = (package / "_secret.pxd").read_text()
    assert reach_violations(text, Path("lrms_sim/kernel/_secret.pxd"), (), BEYOND_DISCIPLINES_NAMES)


PARTS = ("site", "mqtt", "report", "learn")
"""Extras whose packages are imported anywhere; tests/test_slim.py has what works without them."""


@cache
def declared_dependencies(extra: str | None = None) -> frozenset[str]:
    """Returns the modules of the run-time dependencies in pyproject.toml, those of parts and of an extra."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras.get(extra, [])]
    lines += [line for part in PARTS for line in extras[part]]
    declared = {"cython", *(re.split(r"[^\w-]", line)[0] for line in lines)}
    return frozenset(
        declared | {module for module, provider in COMES_WITH.items() if provider in declared}
    )


def test_every_import_at_run_time_is_declared() -> None:
    """A package works where only its declared dependencies are installed."""
    graph = grimp.build_graph(*LAYERS, include_external_packages=True, cache_dir=None)
    provided = {*sys.stdlib_module_names, *LAYERS}
    found = {
        f"{importer} imports {imported}"
        for importer in graph.modules
        if importer.partition(".")[0] in LAYERS
        for imported in graph.find_modules_directly_imported_by(importer)
        if imported.partition(".")[0]
        not in provided | declared_dependencies(EXTRAS.get(f"{importer.replace('.', '/')}.py"))
    }
    found |= {
        f"{path}:{each.line}: imports {each.module}"
        for path in KERNELS
        for each in imports(read(path), path)
        if each.module.partition(".")[0] not in provided | declared_dependencies()
    }
    assert found == set()
    assert "hypothesis" not in declared_dependencies()
    assert "lrms_sim.workload.frames" in graph.find_modules_that_directly_import("pandas")
