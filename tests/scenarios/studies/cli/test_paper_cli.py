from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from scenarios.cli import main
from scenarios.studies.common.options import Seeds
from scenarios.studies.gorba_rescheduling.options import Sizes
from scenarios.studies.gorba_rescheduling.reference import SIZES


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (3,)), ("1-5", (1, 2, 3, 4, 5)), ("1, 4,7", (1, 4, 7)), ("0-1,9", (0, 1, 9))],
)
def test_seeds_are_written_as_people_do(text: str, seeds: tuple[int, ...]) -> None:
    """Single ones, ranges, lists of both."""
    assert Seeds().convert(text, None, None) == seeds


@pytest.mark.parametrize("text", ["", "x", "5-1", "1,1", "1-200", "1,,2", "-3", "1.5"])
def test_other_texts_are_no_seeds(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says how to write them, before anything runs."""
    with pytest.raises(click.UsageError):
        Seeds().convert(text, None, None)
    assert main.run_command(["paper", "decentralized-grid", f"--seeds={text}"]) == 2
    assert "Error" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "paper decentralized-grid --shipped",
        "paper greedy-criteria",
        "study nobody-loses --part adoption",
        "study questions-and-delays --complete",
        "study kinds-of-nodes --draws 2",
        "study malleability --parts 2",
    ],
)
def test_missing_logs_end_with_the_command_that_gets_them(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2 and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main.run_command(words.split()) == 2
    error = capsys.readouterr().err
    assert "scenario fetch" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("paper decentralized-grid", ("--shipped",)),
        ("study nobody-loses", ("ten minutes", "--complete")),
    ],
)
def test_help_says_what_it_takes(
    words: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Which logs, how long, and how to see something at once."""
    assert main.run_command([*words.split(), "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in ("kth, ctc, sdsc05 and sdsc00", "Ctrl-C", *parts):
        assert part in text


def test_rescheduling_is_studied_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shortest study there is; the page is where the command says."""
    monkeypatch.chdir(tmp_path)
    options = ["--runs", "1", "--evaluations", "10", "--sizes", "20", "--part", "sweep"]
    assert main.run_command(["paper", "gorba-rescheduling", *options, "--workers", "1"]) == 0
    assert capsys.readouterr().out.endswith("Written to out/gorba-rescheduling/study.html\n")
    assert (tmp_path / "out" / "gorba-rescheduling" / "study.json").exists()


def test_loads_are_written_as_people_do() -> None:
    """Lists, in order and each once, or all of the paper's."""
    assert Sizes().convert("400, 200,400", None, None) == (200, 400)
    assert Sizes().convert("all", None, None)[-1] == 7000
    assert Sizes().convert((5,), None, None) == (5,)


@pytest.mark.parametrize("text", ["", "x", "200,", "5", "1-3", "-200"])
def test_other_texts_are_no_loads(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says how to write them."""
    assert main.run_command(["paper", "gorba-rescheduling", f"--sizes={text}"]) == 2
    assert "are no sizes; write 200,400 or all" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "study", "expected"),
    [
        ("decentralized-grid --shipped --seeds 2-3", "decentralized_grid", {"seeds": ()}),
        ("decentralized-grid --more-seeds 9", "decentralized_grid", {"more_seeds": (9,)}),
        (
            "gorba-rescheduling --complete --part sweep --runs 2",
            "gorba_rescheduling",
            {"runs": 50, "seconds": 180.0, "sizes": SIZES, "parts": ("sweep",)},
        ),
        (
            "utility-scheduling --no-logs --sweep 4",
            "utility_scheduling",
            {"logs": False, "sweep": 4, "folder": Path("out/utility-scheduling")},
        ),
        (
            "greedy-criteria --complete --logs kth",
            "queue_strategies",
            {"paper": "greedy-criteria", "generations": 100, "scaled": True, "logs": ("kth",)},
        ),
        (
            "genetic-fuzzy --generations 3",
            "queue_strategies",
            {"generations": 3, "scaled": False, "folder": Path("out/genetic-fuzzy")},
        ),
    ],
)
def test_the_options_reach_the_study(
    words: str, study: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that stand for several others as well."""
    taken: list[Any] = []

    def keep(options: object, *_: object) -> Path:
        taken.append(options)
        return Path("study.html")

    monkeypatch.setattr(import_module(f"scenarios.studies.{study}.command"), "run_command", keep)
    assert main.run_command(["paper", *words.split()]) == 0
    assert {name: getattr(taken[0], name) for name in expected} == expected
