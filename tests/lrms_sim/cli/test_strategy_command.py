import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lrms_sim.cli import main
from lrms_sim.cli.running import EXIT_ERROR
from lrms_sim.scheduling.criteria import Criterion, CriterionOrder
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, save_strategy
from lrms_sim.workload.schedule import MachineInfo
from lrms_sim.workload.schedule_files import read_csv

Run = Callable[..., tuple[int, str, str]]

HEADER = "; UnixStartTime: 835660800\n; TimeZone: -18000\n; TimeZoneString: US/Eastern\n"
# 835660800 is a Tuesday, 20 h in New York. Two jobs of each of two users come while one runs.
RECORDS = [
    (1, 0, 100, 4, 1),
    (2, 1, 10, 4, 2),
    (3, 2, 1, 4, 3),
    (4, 3, 10, 4, 2),
]


def log(header: str = HEADER, user: bool = True) -> str:
    """Returns a small log."""
    lines = [f"{header}; MaxProcs: 4\n"]
    for number, submit, run_time, width, who in RECORDS:
        owner = who if user else -1
        lines.append(
            f"{number} {submit} -1 {run_time} {width} -1 -1 {width} {run_time} -1 1 {owner} "
            "-1 -1 -1 -1 -1 -1\n"
        )
    return "".join(lines)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns the command, run in a folder with a log and strategies."""
    monkeypatch.chdir(tmp_path)
    Path("log.swf").write_text(log(), encoding="utf-8")
    Path("nobody.swf").write_text(log(user=False), encoding="utf-8")
    Path("nowhere.swf").write_text(log("; UnixStartTime: 0\n"), encoding="utf-8")
    Path("never.swf").write_text(log("; TimeZone: 0\n"), encoding="utf-8")
    ones, none = (1.0,) * 5, (0.0,) * 5
    # Short jobs first on weekdays by day, arrival at other times.
    arrival = Criterion("f2", ones, none, 1.0)
    short = Criterion("f2", ones, none, 0.0, -1.0)
    by_day = Strategy("fcfs", CriterionOrder((arrival, short, arrival)), label="short by day")
    save_strategy(StrategyFile(by_day), "by-day.json")
    save_strategy(StrategyFile(StrategyTable((12,) * 192)), "table.json")

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main.run_command(list(arguments))
        out, err = capsys.readouterr()
        return status, out, err

    return command


def starts(run: Run, *arguments: str) -> list[float]:
    """Returns the starts of the jobs by their numbers."""
    status, _, err = run("run", *arguments, "--schedule", "out.csv")
    assert (status, err) == (0, "")
    start_time: list[float] = read_csv("out.csv", [MachineInfo("log", 4)]).start_time.tolist()
    return start_time


def test_a_strategy_file_runs(run: Run) -> None:
    """The report has the name in the file, and says which policy it was in JSON too."""
    status, out, _ = run("run", "log.swf", "--strategy", "table.json", "--json")
    assert status == 0
    assert json.loads(out)["discipline"] == "table"


def test_the_situation_is_that_of_the_sites_local_time(run: Run) -> None:
    """At 20 h in New York jobs run by arrival; by a zone in which it is day the shortest is first."""
    night = starts(run, "log.swf", "--strategy", "by-day.json")
    day = starts(run, "log.swf", "--strategy", "by-day.json", "--time-zone", "Asia/Tokyo")
    assert night == [0.0, 100.0, 110.0, 111.0]
    assert day == [0.0, 101.0, 100.0, 111.0]
    assert starts(run, "log.swf", "--strategy", "by-day.json", "--time-zone", "32400") == day


def test_a_time_zone_that_changes_nothing_is_said_to(run: Run) -> None:
    """Most disciplines do not ask what time it is."""
    plain = run("run", "log.swf", "--discipline", "easy")
    status, out, err = run("run", "log.swf", "--discipline", "easy", "--time-zone", "Asia/Tokyo")
    assert (status, out) == plain[:2]
    assert err == "warning: --time-zone changes nothing: easy does not ask what time it is\n"


def test_a_window_moves_the_clock_and_not_the_time_of_day(run: Run) -> None:
    """What becomes second 0 changes nothing of what time it was."""
    arguments = ("log.swf", "--strategy", "by-day.json", "--time-zone", "Asia/Tokyo")
    shifted = starts(run, *arguments, "--shift", "first_job", "--window-days", "0:1")
    assert shifted == starts(run, *arguments)


def test_an_order_of_groups_can_be_given(run: Run) -> None:
    """Users 1, 2 and 3 are of groups 1, 1 and 4 here; the last one may be served first."""
    assert starts(run, "log.swf", "--discipline", "fcfs-group") == [0.0, 100.0, 120.0, 110.0]
    later = starts(run, "log.swf", "--discipline", "fcfs-group", "--group-order", "5,4,3,2,1")
    assert later == [0.0, 101.0, 100.0, 111.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("log.swf", "--strategy", "x.json"), "x.json: cannot be read"),
        (("log.swf", "--strategy", "table.json", "--discipline", "easy"), "exclude each other"),
        (("log.swf", "--strategy", "table.json", "--group-order", "1"), "exclude each other"),
        (("log.swf", "--discipline", "easy", "--group-order", "1,2,3,4,5"), "goes with a discipline"),
        (("log.swf", "--discipline", "easy-group", "--group-order", "1,2"), "each of 1 to 5"),
        (("log.swf", "--discipline", "easy-group", "--group-order", "a,b"), "the five groups"),
        (("nobody.swf", "--discipline", "easy-group"), "does not say which user"),
        (("nobody.swf", "--strategy", "table.json"), "does not say which user"),
        (("nowhere.swf", "--strategy", "by-day.json"), "names no time zone.*--time-zone names one"),
        # A time zone would not help, so none is asked for.
        (("never.swf", "--strategy", "by-day.json"), "UnixStartTime: .*, the Unix time of its second 0$"),
        (("never.swf", "--strategy", "by-day.json", "--time-zone", "UTC"), "of its second 0$"),
        (("log.swf", "--strategy", "by-day.json", "--time-zone", "Atlantis"), "'Atlantis' is not"),
        (("log.swf", "--strategy", "by-day.json", "--time-zone", "1e9"), "offset is 1000000000.0"),
        (("log.swf", "--time-zone", "Atlantis"), "'Atlantis' is not"),
        (("log.swf", "--strategy", "table.json", "--time-zone", "Atlantis"), "'Atlantis' is not"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_without_a_traceback(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    """One line says what is wrong and what to do."""
    status, out, err = run("run", *arguments)
    assert (status, out) == (EXIT_ERROR, "")
    assert err.startswith("Error: ")
    assert len(err.splitlines()) == 1
    with pytest.raises(ValueError, match=said):
        raise ValueError(err)


def test_a_strategy_file_is_shown(run: Run) -> None:
    """The command prints what is in a file, and names one that cannot be used."""
    status, out, _ = run("strategy", "show", "by-day.json")
    assert status == 0
    assert out.startswith("short by day")
    status, _, err = run("strategy", "show", "log.swf")
    assert status == EXIT_ERROR
    assert err.startswith("Error: log.swf:1:1: no JSON")
