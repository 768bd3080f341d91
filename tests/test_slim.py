"""The core needs none of the extras, and a command that needs one says which."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lrms_sim.util.process_guard import EXTRAS
from tests.programs import run_program
from tests.small_scenario import small

ROOT = Path(__file__).resolve().parents[1]

SMALL = small(40)

BARE = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRAS)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
"""A Python that has none of the extras."""

WORKS = """
import importlib

for module, words in (
    ("lrms_sim.cli.main", "generate --processors 16 --jobs 50 -o log.swf"),
    ("lrms_sim.cli.main", "run log.swf --discipline easy --json"),
    ("scenarios.cli.main", "validate small.toml"),
    ("scenarios.cli.main", "run small.toml --output run"),
    ("broker.cli.main", "generate benchmark --class lRlD --tasks 8 --output p.json"),
    ("broker.cli.main", "plan p.json --evaluations 20 --html plan.html"),
    ("grms.cli.main", "policy show nothing.json"),
):
    status = importlib.import_module(module).run_command(words.split())
    print(words.split()[0], status, file=sys.stderr)
"""

LACKS = """
from lrms_sim.util.process_guard import run

run("grms.cli.main")
"""

AFTERWARDS = """
import importlib, sys
import lrms_sim.util.errors

known = []

class Noting(Exception):
    def __init__(self, *words):
        known.append(set(sys.modules))
        super().__init__(*words)

lrms_sim.util.errors.HanseError = Noting
status = importlib.import_module(sys.argv[1]).run_command(sys.argv[2:])
print(status, len(known), *sorted(set(sys.modules) - known[0]))
"""
"""Prints a command's status, how many errors there were, and what was imported after the first was known."""

TRAINS = """
import sys
from grms.cli.main import run_command
words = "train small.toml --site a --partner b --generations 1 --rules 1 --parents 1 --offspring 1 --workers 1"
assert run_command(words.split()) == 0
packages = ("broker.", "grms.site.", "grms.client.", "grms.v1.", "grpc", "google.protobuf")
print(*sorted(name for name in sys.modules if name.startswith(packages)))
"""

HELPS = """
import os, sys
try:
    __import__(sys.argv.pop(1)).command.main()
except SystemExit as end:
    print(end.code, file=sys.stderr)
heavy = {"cma", "distributed", "matplotlib", "numpy", "pydantic", "rich", "structlog", "urllib.request"}
print(os.environ.get("OPENBLAS_NUM_THREADS"), *sorted(heavy & sys.modules.keys()), file=sys.stderr)
"""

SUBMITS = """
import sys
from grms.cli.main import run_command
assert run_command(sys.argv[1:]) == 2
heavy = {"asyncio", "google.protobuf", "grpc", "numpy", "pydantic", "rich", "sqlite3", "structlog", "subprocess"}
print(*sorted(heavy & sys.modules.keys()))
"""


def ran(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Returns what a Python has done."""
    path = os.pathsep.join(each for each in sys.path if each)
    return run_program(
        [sys.executable, "-c", code, *words], cwd=folder, env=os.environ | {"PYTHONPATH": path}
    )


def bare(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Returns what a Python without extras has done."""
    return ran(BARE + code, folder, *words)


def test_the_core_needs_no_extra(tmp_path: Path) -> None:
    """Simulation, replays, planning and their mistakes work with what `pip install hanse` brings."""
    (tmp_path / "small.toml").write_text(SMALL)
    done = bare(WORKS, tmp_path)
    statuses = re.findall(r"^(\w+) (\d+)$", done.stderr, re.MULTILINE)
    assert [word for word, status in statuses if status == "0"] == [
        *("generate", "run", "validate", "run", "generate", "plan"),
    ], done.stderr
    assert "no report.html: its figures need pip install 'hanse[report]'" in done.stderr
    assert not (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "plan.html").exists()
    assert statuses[-1] == ("policy", "2")
    assert "nothing.json: cannot be read" in done.stderr


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """With the words that bring it, and no traceback."""
    done = bare(LACKS, tmp_path, "pki", "init", "ca")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"Error: this needs \w+; get it with: pip install 'hanse\[site\]'\n", done.stderr
    )
    done = bare(LACKS, tmp_path, "jobs", "--socket", "users.sock")
    assert done.stderr == "Error: this needs protobuf; get it with: pip install 'hanse[site]'\n"


def test_mistakes_in_files_need_no_extra(tmp_path: Path) -> None:
    """A site's file that is wrong, or a checkpoint that is none, is told without a traceback."""
    for words in (("lrms", "check", "site.toml"), ("dashboard", "site.toml")):
        done = bare(LACKS, tmp_path, *words)
        assert done.stderr == "Error: site.toml: cannot be read: No such file or directory\n"
        assert done.returncode == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("grms.cli.main", "serve"),
        ("grms.cli.main", "lrms check"),
        ("grms.cli.main", "dashboard"),
        ("broker.cli.main", "serve"),
        ("broker.cli.main", "validate"),
        ("scenarios.cli.main", "validate"),
    ],
)
def test_a_mistake_is_told_without_another_import(command: str, words: str, tmp_path: Path) -> None:
    """Nothing is loaded to tell it: not what could fail in another way, nor the daemon that will not run."""
    (tmp_path / "site.toml").write_text('naem = "x"\n')
    done = ran(AFTERWARDS, tmp_path, command, *words.split(), "site.toml")
    assert done.stdout == "2 1\n", done.stderr
    assert "site.toml: naem: 'naem' is no key here" in done.stderr


@pytest.mark.parametrize(
    ("command", "words", "status"),
    [
        ("lrms_sim.command", "disciplines", 0),
        ("grms.command", "train --help", 0),
        ("grms.command", "tune --help", 0),
        ("scenarios.command", "--help", 0),
        ("scenarios.command", "paper decentralized-grid --help", 0),
        ("broker.command", "plan --help", 0),
        ("broker.command", "fly", 2),
    ],
)
def test_help_and_mistakes_load_nothing_heavy(
    command: str, words: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come at once, with the status of the process; what is said of a mistake is on standard error alone.

    The simulator's command has no threads for linear algebra.
    """
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    done = ran(HELPS, tmp_path, command, *words.split())
    *said, ended, heavy = done.stderr.splitlines()
    assert (ended, heavy) == (str(status), "1" if command == "lrms_sim.command" else "None")
    assert bool(said) == bool(status)
    assert bool(done.stdout) == (not status)


def test_a_command_without_a_daemon_loads_little(tmp_path: Path) -> None:
    """What takes long to import is for those that find a socket, or need it for their work."""
    words = ("submit", "-p", "4", "-t", "60", "--socket", "no.sock", "--timeout", "0.1")
    done = ran(SUBMITS, tmp_path, *words)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
    assert done.stderr == "Error: no daemon answers on no.sock; is it running? (UNAVAILABLE)\n"


def test_training_imports_no_daemon(tmp_path: Path) -> None:
    """Neither broker nor site, nor what they speak: a run on a cluster loads it on every node."""
    (tmp_path / "small.toml").write_text(SMALL)
    done = ran(TRAINS, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, ""), done.stderr


def test_every_extra_that_is_named_exists() -> None:
    """`all` brings what the commands need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    (everything,) = extras["all"]
    named = set(re.findall(r"\w+", everything)) - {"hanse"}
    assert set(EXTRAS.values()) - {"frames"} == named
