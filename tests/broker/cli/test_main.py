import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.cli import main as cli
from broker.cli.search_options import METHODS
from broker.io.plans import read_plan
from broker.io.writing import document_of, write_document
from broker.planner.methods import SEARCHES
from lrms_sim.cli.running import EXIT_ERROR
from tests.broker.io.test_wfformat import RECORDED, diamond
from tests.broker.small import POOL, SMALL, flow
from tests.schemas import printed

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from broker.command import main; main()")
QUICK = ["--evaluations", "60", "--workers", "1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in a folder with a small problem, a pool and a recording."""
    monkeypatch.chdir(tmp_path)
    write_document(tmp_path / "small.json", document_of(POOL, SMALL.workflows, now=0.0))
    write_document(tmp_path / "pool.toml", document_of(POOL))
    (tmp_path / "diamond.json").write_text(json.dumps(diamond()))
    (tmp_path / "ft.txt").write_text("2 2\n0 3 1 2\n1 4 0 1\n")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.run_command(list(arguments))


def test_plan_prints_a_summary_and_writes_what_is_asked_for(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tables go to standard output, where files went to standard error."""
    assert run("plan", "small.json", *QUICK, "--html", "p.html", "--json", "p.json") == 0
    out, error = capfd.readouterr()
    assert "12 tasks of 3 workflows on 3 resources" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("H", "G", "A"))] == [
        "Heuristic",
        "HEFT",
        "GLEAM",
        "ASMA",
    ]
    assert error == "written to p.html\nwritten to p.json\n"
    assert len(read_plan(elsewhere / "p.json")) == 12
    assert "</html>" in (elsewhere / "p.html").read_text()


def test_plan_takes_recordings_and_every_option(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A recorded workflow on a pool, with limits, mapping and a moment."""
    options = ["--due-factor", "3", "--cost-factor=9", "--preference", "cheap", "--cores", "ignore"]
    options += ["--map", "step*=fast,wide", "--reference-mhz", "600", "--time-factor", "60"]
    options += ["--now", "2026-03-02T08:00Z", "--goal", "makespan", "--population", "12"]
    options += ["--method", "blocks"] if "blocks" in METHODS else ["--method", "asma-best"]
    options += ["--title", "A diamond", "--html", "d.html", "--seed", "9"]
    assert run("plan", "diamond.json", "-r", "pool.toml", *QUICK, *options) == 0
    assert "4 tasks of 1 workflow on 3 resources" in capfd.readouterr().out
    page = (elsewhere / "d.html").read_text()
    assert "<h1>A diamond</h1>" in page
    assert "2 Mar 2026 08:00" in page


def test_plan_goes_on_from_an_old_plan(capfd: pytest.CaptureFixture[str]) -> None:
    """What has started by --now stays."""
    assert run("plan", "small.json", *QUICK, "--json", "old.json") == 0
    assert run("plan", "small.json", *QUICK, "--old", "old.json", "--now", "4", "--json", "-") == 0
    text = capfd.readouterr().out
    document = json.loads(text[text.index('{\n "format"') :])
    old = read_plan(Path("old.json"))
    kept = {(each.workflow, each.task): each.start for each in old if each.start < 4}
    assert kept
    found = {(e["workflow"], e["task"]): e["start"] for e in document["placements"]}
    assert {key: found[key] for key in kept} == kept


def test_with_stability_tasks_stay_where_an_old_plan_has_them(elsewhere: Path) -> None:
    """Where moving costs nearly the whole worth of a plan nothing moves; for nothing most tasks do."""
    options = ["--class", "lRsD", "--tasks", "40", "--resources", "8", "--output", "b.json"]
    assert run("generate", "benchmark", *options) == 0
    assert run("plan", "b.json", *QUICK, "--json", "old.json") == 0
    old = {each.key: each.demands for each in read_plan(Path("old.json"))}
    moved, made = {}, {}
    for stability in ("0", "0.99"):
        path = elsewhere / f"{stability}.json"
        arguments = ["--old", "old.json", "--now", "1", "--seed", "2", "--stability", stability]
        assert run("plan", "b.json", *QUICK, *arguments, "--json", str(path)) == 0
        moved[stability] = sum(old[each.key] != each.demands for each in read_plan(path))
        made[stability] = json.loads(path.read_text())["made"].get("stability")
    assert moved["0"] > 10 > moved["0.99"]
    assert made == {"0": None, "0.99": 0.99}


def test_the_same_command_gives_the_same_plan(elsewhere: Path) -> None:
    """With a budget of schedules, on one thread or two."""
    for name, workers in (("a", "1"), ("b", "2")):
        arguments = ["--evaluations", "300", "--workers", workers, "--json", f"{name}.json"]
        assert run("plan", "small.json", *arguments) == 0
    assert read_plan(elsewhere / "a.json") == read_plan(elsewhere / "b.json")


def test_jobshop_finds_the_shortest(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The makespan stands alone on the last line."""
    assert run("jobshop", "ft.txt", *QUICK, "--html", "j.html") == 0
    schedules, makespan = capfd.readouterr().out.splitlines()[-2:]
    assert makespan == "Makespan: 6"
    assert int(schedules.removeprefix("Schedules: ").replace(",", "")) >= 60
    assert "<h1>ft.txt</h1>" in (elsewhere / "j.html").read_text()
    assert run("jobshop", "ft.txt", *QUICK, "--json", "-") == 0
    assert printed("gorba-plan", capfd.readouterr().out)["figures"]["makespan"] == 6.0


def test_jobshop_takes_flexible_ones(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the ending of the name; each operation has one of its machines."""
    (elsewhere / "f.fjs").write_text("2 2\n2 2 1 4 2 2  1 2 3\n1 1 2 7\n")
    assert run("jobshop", "f.fjs", *QUICK, "--json", "f.json", "--html", "f.html") == 0
    assert capfd.readouterr().out.splitlines()[-1] == "Makespan: 10"
    taken = {each.key: (each.resources, each.start, each.end) for each in read_plan(Path("f.json"))}
    assert taken["j1", "o0"] == (("m1",), 0.0, 7.0)
    assert taken["j0", "o0"] == (("m0",), 0.0, 4.0)
    assert "</html>" in (elsewhere / "f.html").read_text()
    (elsewhere / "f.fjs").write_text("2 2\n")
    assert run("jobshop", "f.fjs") == EXIT_ERROR
    assert "Error: f.fjs: line 1: 2 jobs on 2 machines" in capfd.readouterr().err


def test_rcpsp_plans_a_project(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Schedules and the longest chain stand before the makespan; no more are built than allowed."""
    shutil.copy(ROOT / "docs/examples/bridge.sm", "bridge.sm")
    assert run("rcpsp", "bridge.sm", *QUICK, "--html", "b.html") == 0
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "Longest chain of jobs: 23; the plan is 43.5 % above it",
        "Schedules: 57",
        "Makespan: 33",
    ]
    page = (elsewhere / "b.html").read_text()
    assert "<h1>bridge.sm</h1>" in page
    assert "R2" in page
    assert run("rcpsp", "bridge.sm", *QUICK, "--json", "-") == 0
    found = printed("gorba-plan", capfd.readouterr().out)
    assert found["figures"]["makespan"] == 33.0
    assert [(each["method"], each["evaluations"]) for each in found["methods"]] == [("project", 57)]
    text = (elsewhere / "bridge.sm").read_text()
    (elsewhere / "wide.sm").write_text(text.replace("    7    1    1", "   99   99   99"))
    assert run("rcpsp", "wide.sm", "--search-time", "1min") == 0
    out = capfd.readouterr().out
    assert "Longest chain of jobs: 23; no plan is shorter" in out
    assert out.endswith("Makespan: 23\n")


def test_validate_checks_without_planning(capfd: pytest.CaptureFixture[str]) -> None:
    """Files by themselves, and all together."""
    for files, said in (
        (["pool.toml"], "valid: 3 resources"),
        (["diamond.json"], "valid: 1 workflow; without resources that is all to check"),
        (["small.json"], "valid: 12 tasks of 3 workflows on 3 resources"),
        (["diamond.json", "pool.toml"], "valid: 4 tasks of 1 workflow on 3 resources"),
    ):
        assert run("validate", *files) == 0
        assert capfd.readouterr().out == said + "\n"
        assert run("validate", *files, "--json") == 0
        found = printed("gorba-validate", capfd.readouterr().out)
        numbers = {
            word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", said)
        }
        assert {word: found[f"{word}s"] for word in numbers} == numbers
        assert (found["tasks"] is None) is ("task" not in numbers)


ADDED = """
[[tasks]]
name = "first"
work = 5
command = "true"
inputs = ["prepare/numbers", "here.txt"]
outputs = ["x"]
[[tasks]]
name = "many"
work = 5
command = "true"
inputs = ["first/x"]
elements = 3
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"first/x"', '"gone.txt"', "tasks.many: inputs: gone.txt is no file here"),
        ('"first/x"', '"/none/gone.txt"', "tasks.many: inputs: /none/gone.txt is no file here"),
        ('"many"\nwork = 5', '"many"\nwork = 5\nkind = "gpu"', "gpu"),
        ("elements = 3", "elements = 0", "tasks.many.elements: is 0; it must be"),
    ],
)
def test_validate_checks_what_is_added(
    old: str, new: str, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the workflow has already may be anything; kinds are checked where there are resources."""
    Path("here.txt").write_text("given")
    Path("more.toml").write_text(ADDED)
    assert run("validate", "more.toml") == 0
    said = "valid: 2 added tasks; without resources that is all to check\n"
    assert capfd.readouterr().out == said
    assert run("validate", "more.toml", "diamond.json", "pool.toml") == 0
    said = "valid: 4 tasks of 1 workflow and 2 added tasks on 3 resources\n"
    assert capfd.readouterr().out == said
    assert run("validate", "more.toml", "pool.toml", "--json") == 0
    assert printed("gorba-validate", capfd.readouterr().out)["added"] == 2
    Path("more.toml").write_text(ADDED.replace(old, new))
    assert run("validate", "more.toml", "pool.toml") == 2
    assert problem in capfd.readouterr().err
    assert run("validate", "more.toml") == (0 if problem == "gpu" else 2)


def test_validate_begins_when_a_plan_would(capfd: pytest.CaptureFixture[str]) -> None:
    """A resource that was closed for good long ago is no resource, but where a file says when it begins."""
    closed = """
[[resources]]
name = "a"
closures = [{ begin = "2020-01-01T00:00:00Z" }]
[[workflows]]
name = "w"
tasks = [{ name = "t", work = 60 }]
"""
    Path("closed.toml").write_text(closed)
    assert run("validate", "closed.toml") == 2
    assert "1 task can run nowhere" in capfd.readouterr().err
    Path("closed.toml").write_text("now = 0\n" + closed)
    assert run("validate", "closed.toml") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "none.json"], "Error: none.json: cannot be read: No such file or directory\n"),
        (["plan", "diamond.json"], "Error: there is no resource to plan for; name a file of them"),
        (["plan", "pool.toml"], "Error: there is no workflow to plan; name a file of workflows\n"),
        (
            ["plan", "small.json", "--search-time", "3x"],
            "Invalid value for '--search-time': '3x' is no time",
        ),
        (["plan", "small.json", "--method", "magic"], "Invalid value for '--method'"),
        (["plan", "small.json", "--map", "x"], "Invalid value for '--map': 'x' is no mapping"),
        (["plan", "small.json", "--now", "soon"], "Invalid value for '--now': is 'soon'; it must"),
        (["plan", "small.json", "--preference", "2"], "neither fast nor cheap nor from 0 to 1"),
        (["plan", "small.json", "--old", "pool.toml"], "Error: pool.toml: format: is missing\n"),
        (["plan", "small.json", "--stability", "0.2"], "Error: --stability is of --old: without a"),
        (["plan", "small.json", "--dask", "tcp://x:1"], "Error: --dask is of --islands"),
        (["plan", "small.json", "--islands", "2"], "Error: --islands go with --evaluations"),
        (["plan", "small.json", "--stability", "1"], "Invalid value for '--stability': 1.0 is not"),
        (["plan", "small.json", *QUICK, "--html", "no/p.html"], "Error: no/p.html cannot be writ"),
        (["plan", "small.json", "--json", "./small.json"], "Error: small.json: is read here, and"),
        (["plan", "small.json", "-r", "pool.toml", "--html", "pool.toml"], "pool.toml: is read"),
        (["plan", "small.json", "--html", "p", "--json", "p"], "Error: p: two outputs would be"),
        (["jobshop", "ft.txt", "--html", "ft.txt"], "Error: ft.txt: is read here, and would be"),
        (["plan", "ft.txt"], "Error: ft.txt: no TOML: "),
        (["plan"], "Missing argument 'FILES...'"),
        (["jobshop", "pool.toml"], "Error: pool.toml: no job shop: no line says how many jobs"),
        (["rcpsp", "ft.txt"], "Error: ft.txt: no project in PSPLIB's format: there is no section"),
        (["rcpsp", "none.sm"], "Error: none.sm: cannot be read"),
        (["validate", "small.json", "pool.toml"], "Error: resource 'slow' is in small.json and"),
        (["generate", "pool", "--resources", "0"], "Invalid value for '--resources': 0 is not in"),
        (["fly"], "'fly' is no command; there are: plan, jobshop"),
    ],
)
def test_what_a_user_can_put_right_is_said(
    arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line, no traceback, status 2, nothing on standard output."""
    assert run(*arguments) == EXIT_ERROR
    out, error = capfd.readouterr()
    assert said in error
    assert "Traceback" not in error
    assert out == ""


def test_every_option_is_explained() -> None:
    """Help of every command has an example or says what its file is; all methods exist."""
    assert set(METHODS) <= set(SEARCHES)
    for arguments, said in (
        ([], "gorba plan montage.json.gz -r pool.toml --search-time 10s"),
        (["plan"], "Ctrl-C ends the search with the best plan so far, and status 130"),
        (["jobshop"], "FILE is in the standard format"),
        (["rcpsp"], "FILE is in the format of PSPLIB, single mode (.sm)"),
        (["validate"], "Nothing is planned"),
        (["generate"], "pool"),
        (["generate", "pool"], "opening hours"),
    ):
        found = CliRunner().invoke(cli.cli, [*arguments, "--help"])
        assert found.exit_code == 0
        assert said in " ".join(found.output.split())


def environment() -> dict[str, str]:
    """Returns the environment of a process that has the packages of this checkout."""
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "100"}


@pytest.mark.usefixtures("forks")
def test_ctrl_c_ends_with_the_best_plan_so_far(elsewhere: Path) -> None:
    """The search stops, the plan is written, and the status is that of every command after Ctrl-C."""
    arguments = ("plan", "small.json", "--search-time", "1h", "--json", "p.json", "--workers", "1")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*COMMAND, *arguments],
        env=environment() | {"TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    assert process.stdout is not None
    try:
        assert b"fitness" in shown_on(ours, until=b"fitness")
        process.send_signal(signal.SIGINT)
        # What the process still says must be read, or it waits for that.
        shown_on(ours)
        out = process.stdout.read()
        assert process.wait(timeout=300) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(ours)
    assert b"12 tasks of 3 workflows" in out
    assert len(read_plan(elsewhere / "p.json")) == 12


def shown_on(terminal: int, until: bytes | None = None) -> bytes:
    """Returns what comes from a terminal until a word comes, or its other end is closed."""
    shown = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (until is None or until not in shown):
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # Linux says so where nobody writes any more.
                break
    return shown


def test_workflows_with_odd_names_are_planned(capfd: pytest.CaptureFixture[str]) -> None:
    """Markup, spaces and other scripts are names like any other."""
    names = ["[bold]x[/bold]", "<b>", "日本語の名前がとても長い場合の例", "a b/c"]
    document = document_of(POOL, [flow(name, 2) for name in names], now=0.0)
    write_document(Path("odd.toml"), document)
    assert run("plan", "odd.toml", *QUICK, "--html", "o.html") == 0
    assert "[bold]x[/bold]" in capfd.readouterr().out
    assert "<b> " not in Path("o.html").read_text()


@pytest.mark.workflows
def test_recorded_workflows_are_planned_together(
    workflows_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """All ten on the example pool, with HEFT beside."""
    files = [str(workflows_folder / f"{name}.json.gz") for name in RECORDED]
    pool = str(ROOT / "docs" / "examples" / "pool-20.toml")
    arguments = ["-r", pool, "--evaluations", "80", "--method", "gleam", "--json", "all.json"]
    assert run("plan", *files, *arguments) == 0
    assert "1,088 tasks of 10 workflows on 20 resources" in capfd.readouterr().out
    assert len(read_plan(Path("all.json"))) == 1088
