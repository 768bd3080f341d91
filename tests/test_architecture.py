"""Who may import whom, what pure modules may touch, and what a queue discipline can reach.

Every rule is a function from source text to the list of its violations. The tree is held to it,
and a small bad snippet beside it shows that the rule can fail.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# --- the data ------------------------------------------------------------------------------------

LAYERS = ("scenarios", "broker", "grms", "lrms_sim")
"""From the top floor to the ground floor; a package imports itself and those below it."""

SERVING = "certificates journal pki_files process_signals service_errors telemetry tls unix_sockets"
LIBRARIES = tuple(f"grms.{name}" for name in SERVING.split())
"""What knows nothing of what a site does, and serves both daemons."""

ONLY_THROUGH = {("broker", "grms"): ("grms.client", "grms.v1", *LIBRARIES)}
"""What the first package may use of the second: of sites the broker is a client, no more."""

PURE = (
    "lrms_sim/_*.p[yx][xd]",
    "lrms_sim/disciplines.py",
    "lrms_sim/groups.py",
    "lrms_sim/jobs.py",
    "lrms_sim/machine.py",
    "lrms_sim/metrics.py",
    "lrms_sim/scaling.py",
    "lrms_sim/schedule.py",
    "lrms_sim/windows.py",
    "grms/policy/*.p[yx]*",
    "grms/federation/*.p[yx]*",
    "grms/learning/catalog.py",
    "grms/learning/cma_strategy.py",
    "grms/learning/encoding.py",
    "grms/learning/fingerprint.py",
    "grms/learning/operators.py",
    "grms/learning/strategies.py",
    "grms/learning/termination.py",
    "grms/learning/visits.py",
    "grms/site/reservations.py",
    "grms/site/wire.py",
    "grms/site/codec.py",
    "grms/site/commands.py",
    "grms/site/compaction.py",
    "grms/site/events.py",
    "grms/site/guests.py",
    "grms/site/home.py",
    "grms/site/jobs.py",
    "grms/site/lifecycle.py",
    "grms/site/memory.py",
    "grms/site/offers.py",
    "grms/site/partners.py",
    "grms/site/records.py",
    "grms/site/settings.py",
    "grms/site/state.py",
    "grms/site/turn.py",
    "grms/testing/*.py",
    "grms/backoff.py",
    "grms/names.py",
    "grms/site/discovery.py",
    "grms/telemetry/outbox.py",
    "grms/telemetry/payloads.py",
    "grms/telemetry/topics.py",
    "broker/commands.py",
    "broker/critical.py",
    "broker/cycle.py",
    "broker/desk.py",
    "broker/events.py",
    "broker/floor.py",
    "broker/gantt/layout.py",
    "broker/heft.py",
    "broker/importing.py",
    "broker/instances.py",
    "broker/lifecycle.py",
    "broker/limits.py",
    "broker/measures.py",
    "broker/memory.py",
    "broker/offers.py",
    "broker/plan.py",
    "broker/pool.py",
    "broker/pools.py",
    "broker/problem.py",
    "broker/records.py",
    "broker/resources.py",
    "broker/settings.py",
    "broker/situation.py",
    "broker/state.py",
    "broker/turn.py",
    "broker/words.py",
    "broker/workflow.py",
    "broker/planner/*.p[yx]*",
)
"""Modules that decide or compute: time, randomness and files are arguments or not there."""

SHELLS = ("grms/policy/files.py", "grms/testing/draws.py", "broker/planner/search.py")
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

EXTRAS = {"grms/learning/executors.py": "cluster"}
"""The modules that may import what an extra of pyproject.toml brings, and which one."""

DISCIPLINE_KERNELS = ("lrms_sim._schedulers",)
"""Compiled code that stands for a batch system's scheduler."""

BEYOND_DISCIPLINES_MODULES = ("lrms_sim._machine",)
BEYOND_DISCIPLINES_NAMES = ("run_time", ".end_time")
"""When a running job really ends is its run time by another name; with a dot: as a member."""

DECISION_KERNELS = ("grms/policy/*.p[yx][xd]",)
"""Compiled code that takes a site's transfer and location decisions."""

BEYOND_DECISIONS_MODULES = ("lrms_sim._machine", "lrms_sim._queue", "lrms_sim._view")
BEYOND_DECISIONS_NAMES = ("run_time", "requested_time", ".end_time")
"""A decision takes numbers, never a machine: it cannot look at one, its own or a partner's."""

# --- reading sources -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported module, with the names taken from it; none for `import module`."""

    module: str
    names: tuple[str, ...]
    line: int


def module_name(path: Path) -> str:
    """Returns the dotted name of a source file given relative to the root."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def resolve(module: str, level: int, importer: Path) -> str:
    """Returns the absolute name of a possibly relative import in the file `importer`."""
    if level == 0:
        return module
    package = list(importer.parts[:-1])
    base = package[: len(package) - (level - 1)]
    return ".".join([*base, module] if module else base)


def python_imports(text: str, importer: Path) -> Iterator[Import]:
    """Yields every import of Python source, those inside functions and `if` blocks as well."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = resolve(node.module or "", node.level, importer)
            yield Import(module, tuple(alias.name for alias in node.names), node.lineno)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"import_module", "importlib.import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield Import(str(node.args[0].value), (), node.lineno)


_TRIVIA = re.compile(
    r"""[a-zA-Z]{0,2}(\"{3}|'{3})(?:\\.|.)*?\1     # long strings
      | [a-zA-Z]{0,2}"(?:\\.|[^"\\\n])*"
      | [a-zA-Z]{0,2}'(?:\\.|[^'\\\n])*'
      | \#[^\n]*""",
    re.DOTALL | re.VERBOSE,
)


def cython_code(text: str) -> str:
    """Returns Cython source without comments and strings, every line where it was."""
    return _TRIVIA.sub(lambda match: '""' + "\n" * match.group().count("\n"), text)


_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n;]*)", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n;(]+)$", re.MULTILINE)
_ALIAS = re.compile(r"^([\w.*]+)(?:\s+as\s+\w+)?$")


def cython_imports(text: str, importer: Path) -> Iterator[Import]:
    """Yields every import and cimport of Cython source."""
    code = cython_code(text).replace("\\\n", " \n")
    for match in _FROM.finditer(code):
        dots, module, names = match.groups()
        taken = [_ALIAS.match(name.strip()) for name in names.strip("()").split(",")]
        line = code.count("\n", 0, match.start()) + 1
        yield Import(
            resolve(module, len(dots), importer),
            tuple(name.group(1) for name in taken if name),
            line,
        )
    for match in _IMPORT.finditer(code):
        for part in match.group(1).split(","):
            alias = _ALIAS.match(part.strip())
            if alias:
                yield Import(alias.group(1), (), code.count("\n", 0, match.start()) + 1)


def imports(text: str, importer: Path) -> list[Import]:
    """Returns every import of a source file, by its suffix."""
    read = cython_imports if importer.suffix in {".pyx", ".pxd", ".pxi"} else python_imports
    return list(read(text, importer))


def is_inside(module: str, packages: tuple[str, ...]) -> bool:
    """Returns whether a module is one of the packages or within one."""
    return any(module == package or module.startswith(package + ".") for package in packages)


def reaches(found: Import, modules: tuple[str, ...]) -> bool:
    """Returns whether an import takes one of the modules, as `import x.y` or `from x import y`."""
    return is_inside(found.module, modules) or any(
        is_inside(f"{found.module}.{name}", modules) for name in found.names
    )


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
        found += [f"{path}:{line}: calls {name}" for line, name in impure_calls(ast.parse(text))]
    else:
        code = cython_code(text)
        calls = re.compile(rf"(?<![\w.])({'|'.join(IMPURE_CALLS)})\s*\(")
        methods = re.compile(rf"\.({'|'.join(IMPURE_METHODS)})\s*\(")
        for match in (*calls.finditer(code), *methods.finditer(code)):
            line = code.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: calls {match.group(1)}")
    return found


def impure_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields line and name of every call that reads the world without an import."""
    for node in ast.walk(tree):
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


def read(path: Path) -> str:
    """Returns the text of a file given relative to the root."""
    return (ROOT / path).read_text(encoding="utf-8")


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
        ("broker/journal.py", "from grms.site.journal import Journal"),
        ("scenarios/spec.py", "import tests.oracle"),
    ],
)
def test_an_upward_import_is_caught(path: str, text: str) -> None:
    """Each way of importing upward is a violation."""
    assert len(layer_violations(text, Path(path))) == 1


def test_a_downward_import_is_allowed() -> None:
    """Imports of the own package, of those below, and of words in strings are no violations."""
    for path, text in (
        ("scenarios/spec.py", "import grms, lrms_sim\nfrom . import replay"),
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
    closure = cimport_closure(DISCIPLINE_KERNELS, ROOT)
    assert {path.suffix for path in closure} == {".pyx", ".pxd"}
    assert Path("lrms_sim/_view.pxd") in closure
    assert [
        line
        for path in closure
        for line in reach_violations(
            read(path), path, BEYOND_DISCIPLINES_MODULES, BEYOND_DISCIPLINES_NAMES
        )
    ] == []


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
    path = Path("lrms_sim/_schedulers.pyx")
    found = reach_violations(text, path, BEYOND_DISCIPLINES_MODULES, BEYOND_DISCIPLINES_NAMES)
    assert len(found) == 1


def test_a_reach_over_a_header_is_caught(tmp_path: Path) -> None:
    """The rule follows cimports: a header in between that names a run time is found."""
    package = tmp_path / "lrms_sim"
    package.mkdir()
    (package / "_schedulers.pyx").write_text("from lrms_sim._view cimport View\n")
    (package / "_view.pxd").write_text("from ._secret cimport Jobs\n")
    (package / "_secret.pxd").write_text("cdef struct Jobs:\n    double* run_time\n")
    closure = cimport_closure(("lrms_sim._schedulers",), tmp_path)
    assert Path("lrms_sim/_secret.pxd") in closure
    text = (package / "_secret.pxd").read_text()
    assert reach_violations(text, Path("lrms_sim/_secret.pxd"), (), BEYOND_DISCIPLINES_NAMES)


def declared_dependencies(extra: str | None = None) -> frozenset[str]:
    """Returns the modules of the run-time dependencies in pyproject.toml, an extra's included."""
    project = tomllib.loads(read(Path("pyproject.toml")))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"].get(extra, [])]
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
