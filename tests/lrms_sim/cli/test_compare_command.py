"""The command `lrms-sim compare`: what it prints and writes, that it goes on, and what it refuses."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from lrms_sim import JobTable, compare, generate, prepare, read_swf, simulate
from lrms_sim.analysis.comparison import METRICS
from lrms_sim.cli.compare_command import compare as command
from lrms_sim.cli.log_options import EXIT_NOTHING
from lrms_sim.cli.main import run_command
from lrms_sim.cli.running import EXIT_ERROR, EXIT_INTERRUPTED
from lrms_sim.scheduling.criteria import Criterion, CriterionOrder
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, save_strategy
from lrms_sim.workload.swf import write_swf
from tests.schemas import printed

Capture = pytest.CaptureFixture[str]

NAMES = "fcfs,easy,sjf"

MODULE = """
class Mine:
    name = "mine"
    count = 0

    def submitted(self, view, job):
        self.count += 1

    def decide(self, view):
        while view.head is not None and view.head.processors <= view.processors_free:
            view.start(view.head)

    def notes(self):
        return {"submitted": self.count}
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of a synthetic workload; the working folder is its own."""
    monkeypatch.chdir(tmp_path)
    write_swf("some_log.swf", generate(32, jobs=90, load=0.9, seed=3))
    return Path("some_log.swf")


def said(capsys: Capture, *words: object) -> str:
    """Returns what a command that works prints."""
    status = run_command(["compare", *map(str, words)])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out


def refused(capsys: Capture, *words: object, status: int = EXIT_ERROR) -> str:
    """Returns what a command that fails says, without a traceback."""
    assert run_command(["compare", *map(str, words)]) == status
    return capsys.readouterr().err


def test_python_and_the_command_have_the_same_figures(log: Path, capsys: Capture) -> None:
    """To the last digit, in CSV and JSON; tables and figures are there, and lines fit a terminal."""
    words = (log, "--processors", 32, "--disciplines", NAMES, "--baseline", "easy", "--shifts", 3)
    text = said(capsys, *words, "--output", "out/a", "--html", "page.html")
    assert max(map(len, text.splitlines())) <= 80
    jobs = prepare(read_swf(log), 32).jobs
    found = compare({"some_log": (jobs, 32)}, NAMES.split(","), baseline="easy", shifts=3)
    with Path("out/a/differences.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["discipline"], row["metric"]) for row in rows] == [
        (each.discipline, each.metric) for each in found.differences
    ]
    for row, each in zip(rows, found.differences, strict=True):
        for name in ("baseline", "mean", "difference", "low", "high"):
            assert float(row[name]) == getattr(each, name)
        assert (row["verdict"], int(row["wins"])) == (each.verdict, each.wins)
    with Path("out/a/replays.csv").open(encoding="utf-8") as file:
        replays = list(csv.DictReader(file))
    assert [float(row["awrt"]) for row in replays] == found.replay_columns()["awrt"]
    document = printed("lrms-sim-compare", said(capsys, *words, "--output", "out/a", "--json"))
    assert [each["difference"] for each in document["differences"]] == [
        each.difference for each in found.differences
    ]
    folder = Path("out/a")
    assert (folder / "differences.pdf").read_bytes().startswith(b"%PDF")
    drawn = (folder / "differences.svg").read_text(encoding="utf-8")
    assert "difference of AWRT to easy, s  (less is better)" in drawn
    assert "difference of utilization to easy  (more is better)" in drawn
    table = (folder / "differences.tex").read_text(encoding="utf-8")
    assert r"some\_log & AWRT, s & sjf & " in table
    assert table.count(r"\\") == 1 + 4 * 3
    assert "| some_log | AWRT, s | sjf | " in (folder / "differences.md").read_text("utf-8")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Queue disciplines against easy" in page
    assert not re.search(r"(?:src|href)=.https?:", page)
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"differences.{kind}" for kind in ("csv", "md", "pdf", "svg", "tex")),
        "replays.csv",
        "runs.jsonl",
    ]


def test_equal_comparisons_give_equal_files(log: Path, capsys: Capture) -> None:
    """Byte for byte, figures too."""
    for folder in ("a", "b"):
        words = (log, "--processors", 32, "--disciplines", NAMES, "--shifts", 2)
        said(capsys, *words, "--output", folder, "--html", f"{folder}/page.html")
    files = [path for path in Path("a").iterdir() if path.name != "runs.jsonl"]
    assert len(files) == 7
    for path in files:
        assert path.read_bytes() == (Path("b") / path.name).read_bytes(), path


def test_it_goes_on(log: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C says where finished replays are; the same command does the rest, no replay twice."""
    words = (log, "--processors", 32, "--disciplines", NAMES, "--shifts", 4, "--workers", 1)
    calls = 0

    def interrupted(*given: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return simulate(*given, **more)

    monkeypatch.setattr("lrms_sim.analysis.comparison.simulate", interrupted)
    error = refused(capsys, *words, status=EXIT_INTERRUPTED)
    assert "finished replays are in out/compare/runs.jsonl; the same command goes on" in error
    # Replays are kept four at a time with one worker.
    assert len(Path("out/compare/runs.jsonl").read_text().splitlines()) == 4
    calls = 10
    said(capsys, *words)
    assert calls == 10 + 8
    said(capsys, *words, "--metric", "makespan,median-wait-time")
    assert calls == 10 + 8
    said(capsys, *words[:-4], "--shifts", 5)
    assert calls == 10 + 8 + 3


def test_several_logs(log: Path, capsys: Capture) -> None:
    """Each has a table; sizes are given once for all, or once for each; figures are in percent."""
    write_swf("other.swf.gz", generate(16, jobs=60, load=0.9, seed=4))
    words = ("--disciplines", NAMES, "--shifts", 2, "--metric", "awrt")
    text = said(capsys, log, "other.swf.gz", *words, "--processors", 32, "--processors", 16)
    assert re.search(r"some_log, AWRT, s .*; fcfs", text)
    assert re.search(r"other, AWRT, s .*; fcfs", text)
    assert "AWRT against fcfs on 2 logs: easy is " in text
    drawn = Path("out/compare/differences.svg").read_text(encoding="utf-8")
    assert "difference of AWRT to fcfs, % of the mean of fcfs  (less is better)" in drawn
    said(capsys, log, "other.swf.gz", *words, "--processors", 32)
    error = refused(capsys, log, log, *words, "--processors", 32)
    assert "two logs are called 'some_log'" in error
    three = [word for _ in range(3) for word in ("--processors", "32")]
    assert "given 3 times for 2 logs" in refused(capsys, log, "other.swf.gz", *words, *three)


def test_own_disciplines_and_their_notes(
    log: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in Python is named as elsewhere, runs in processes, and what it notes is in a file; so is a change of it."""
    Path("own_queue.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    words = (log, "--processors", 32, "--disciplines", "fcfs,own_queue:Mine", "--shifts", 2)
    text = said(capsys, *words, "--workers", 2)
    assert "0:0 (2 tied)" in text
    lines = Path("out/compare/notes.jsonl").read_text().splitlines()
    assert lines == [
        f'{{"log": "some_log", "discipline": "own_queue:Mine", "shift": {shift}, "notes": {{"submitted": 90}}}}'
        for shift in (1, 2)
    ]
    runs = Path("out/compare/runs.jsonl")
    assert len(runs.read_text().splitlines()) == 4
    Path("own_queue.py").write_text(MODULE + "\n# changed\n")
    said(capsys, *words, "--executor", "threads")
    assert len(runs.read_text().splitlines()) == 6
    said(capsys, log, "--processors", 32, "--disciplines", "fcfs,easy", "--shifts", 2)
    assert not Path("out/compare/notes.jsonl").exists()


def test_learned_strategies(log: Path, capsys: Capture) -> None:
    """A strategy file is called as its file; one that asks what time it is cannot be compared, and says so."""
    smallest = Strategy("easy", "area")
    save_strategy(StrategyFile(smallest), "learned.json")
    words = (log, "--processors", 32, "--shifts", 2, "--metric", "awrt")
    said(capsys, *words, "--disciplines", "easy,learned.json", "--output", "a")
    with Path("a/differences.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["discipline"] == "learned"
    jobs = prepare(read_swf(log), 32).jobs
    other = compare({"log": (jobs, 32)}, ("easy", smallest), shifts=2, metrics=("awrt",))
    assert float(row["difference"]) == other.differences[0].difference
    criterion = Criterion("f1", (1.0,) * 5, (0.0,) * 5, 1.0, 0.5)
    week = CriterionOrder((criterion, criterion, replace(criterion, size=2.0)))
    save_strategy(StrategyFile(Strategy("easy", week)), "week.json")
    error = refused(capsys, *words, "--disciplines", "easy,week.json")
    assert "week.json asks what time it is, which is not compared" in error


def test_one_shift_is_told(log: Path, capsys: Capture) -> None:
    """There is no interval; a warning says what has one, and figures are drawn without."""
    words = ["compare", str(log), "--processors", "32", "--disciplines", NAMES, "--shifts", "1"]
    assert run_command(words) == 0
    out, err = capsys.readouterr()
    assert "warning: one shift has no interval; --shifts 10 has" in err
    assert "paired over one random shift of arrivals" in " ".join(out.split())
    with Path("out/compare/differences.csv").open(encoding="utf-8") as file:
        assert {(row["low"], row["verdict"]) for row in csv.DictReader(file)} == {("", "open")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--disciplines", "fcfs,esay"), "unknown discipline 'esay'"),
        (("--disciplines", "fcfs"), "1 discipline; at least two are needed to compare"),
        (("--disciplines", "fcfs,fcfs"), "--disciplines: 'fcfs' comes twice"),
        (("--disciplines", NAMES, "--metric", "awt"), "'awt' is no metric, did you mean 'awrt'"),
        (("--disciplines", NAMES, "--baseline", "f1"), "'f1' is no discipline compared here"),
        (("--disciplines", "fcfs,none.json"), "none.json: cannot be read"),
        (("--disciplines", NAMES, "--shifts", "0"), "'--shifts'"),
        (("--disciplines", NAMES, "--warm-up", "9999"), "no job of the log 'some_log' counts"),
        (("--disciplines", NAMES, "--output", "some_log.swf"), "some_log.swf"),
        (("--disciplines", NAMES, "--html", "no/page.html"), "there is no folder no"),
        (("--disciplines", NAMES, "--html", "some_log.swf"), "some_log.swf: is read here"),
        (("--disciplines", NAMES, "--html", "out/compare/replays.csv"), "replays.csv: two outputs"),
        ((), "--disciplines"),
    ],
)
def test_mistakes(log: Path, capsys: Capture, words: tuple[str, ...], said: str) -> None:
    """Each is named in a line, before anything is replayed."""
    assert said in refused(capsys, log, "--processors", 32, *words)
    assert not list(Path("out/compare").glob("differences.*"))


PRICES = "time,value\n" + "".join(f"2024-01-01T{hour:02}:00,{hour}\n" for hour in range(24))


def test_electricity(log: Path, capsys: Capture) -> None:
    """Costs are those of the schedule; jobs wait for cheap hours; other prices are another replay."""
    Path("prices.csv").write_text(PRICES, encoding="utf-8")
    words = ("--processors", 32, "--disciplines", "easy,easy-deferred", "--shifts", 1, "--json")
    dear = (*words, "--price", "prices.csv", "--price-zone", "UTC", "--delay", 24, "--power-off")
    names = ("--metric", "electricity-cost,energy,mean-wait-time")
    found = printed("lrms-sim-compare", said(capsys, log, *dear, *names))
    cost, energy, wait = found["differences"]
    assert (cost["metric"], energy["unit"], wait["discipline"]) == (
        "electricity-cost",
        "kWh",
        "easy-deferred",
    )
    assert cost["difference"] < 0 < wait["difference"]
    assert energy["difference"] == pytest.approx(0, abs=1e-6)
    jobs = prepare(read_swf(log), 32).jobs
    assert energy["mean"] == pytest.approx(200 * jobs.resource_consumption.sum() / 3.6e6)
    on = (*words, *dear[len(words) : -1], "--idle-watts", 150, *names)
    _, with_idle, _ = printed("lrms-sim-compare", said(capsys, log, *on))["differences"]
    # All machines are on until the last one is done, however they order the same work.
    assert with_idle["difference"] == pytest.approx(0, abs=1e-6)
    assert with_idle["mean"] > energy["mean"]
    flat = (*words, "--price", 10, "--carbon", 500, "--delay", 24, "--power-off")
    found = printed(
        "lrms-sim-compare", said(capsys, log, *flat, "--metric", "carbon,electricity-cost")
    )
    carbon, cost = found["differences"]
    assert carbon["mean"] == pytest.approx(energy["mean"] / 2)
    assert cost["mean"] == pytest.approx(energy["mean"] / 100)
    assert cost["difference"] == carbon["difference"] == 0
    short = (*words, "--price", "short.csv")
    Path("short.csv").write_text("time,value\n0,1\n60,2\n", encoding="utf-8")
    assert run_command(["compare", str(log), *map(str, short)]) == 0
    assert "prices are not known for all of some_log: they were repeated" in capsys.readouterr().err
    refused_words = ("--processors", 32, "--disciplines")
    for more, text in (
        (
            ("easy,easy-deferred",),
            "easy-deferred lets jobs wait for cheap hours, which need --price",
        ),
        ((NAMES, "--metric", "electricity-cost"), "'electricity-cost' needs a price"),
        ((NAMES, "--price", 1, "--metric", "carbon"), "'carbon' needs a carbon intensity"),
        ((NAMES, "--carbon", 1), "--carbon goes with --price"),
        ((NAMES, "--price", "prices.csv"), "prices.csv:2: time '2024-01-01T00:00' has no offset"),
        ((NAMES, "--price", 1, "--carbon", -1), "-1 is no price and no carbon intensity"),
        ((NAMES, "--price", "none.csv"), "none.csv"),
        ((NAMES, "--price", 1, "--idle-watts", 999), "a node draws"),
    ):
        assert text in refused(capsys, log, *refused_words, *more)


def test_a_log_without_jobs(log: Path, capsys: Capture) -> None:
    """It says so, with the status that other commands have for it."""
    write_swf("empty.swf", JobTable.empty())
    words = ("--processors", 32, "--disciplines", NAMES)
    assert "empty.swf: holds no job" in refused(capsys, "empty.swf", *words, status=EXIT_NOTHING)
    late = (*words, "--window-days", "1000:1001")
    assert "none of 90 jobs is within" in refused(capsys, log, *late, status=EXIT_NOTHING)


def test_the_help_teaches(capsys: Capture) -> None:
    """What it does, what it writes, and examples."""
    text = said(capsys, "--help")
    for words in ("shift by shift", "differences.csv", "same command", "Examples:", "--warm-up"):
        assert words in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 96
    (metric,) = [option for option in command.params if option.name == "metrics"]
    assert isinstance(metric, click.Option)
    assert [name for name in METRICS if f" {name}," not in f"{metric.help}".replace(".", ",")] == []
