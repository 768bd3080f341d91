"""What a history shows: figures, sentences, and drawings, of histories that are written down here."""

import re
from pathlib import Path

import pytest

from scenarios.prove import checker
from scenarios.prove.history import History, events_of
from scenarios.prove.page import number, page_of
from scenarios.prove.picture import _lanes, pair, picture
from scenarios.prove.plan import Plan
from scenarios.prove.proof import Run
from scenarios.prove.result import BAD, KINDS, Proof, judged
from scenarios.util.errors import LiveError


def proof(tmp_path: Path) -> Proof:
    """Returns the judged history of a hang with a job by each command, one lost, one cut short, and one delegated."""
    with History(tmp_path / "history.jsonl") as history:
        for word, client, site in (
            ("sbatch-1.1", "sbatch", "north"),
            ("grms-1.1", "grms", "north"),
            ("sbatch-2.1", "sbatch", "south"),
            ("grms-2.1", "grms", "south"),
        ):
            history.note("submitted", at=1.0, job=word, client=client, site=site, attempt=1)
            history.note("acknowledged", at=9.0, job=word, id=word)
        history.note("told", at=30.0, job="grms-1.1", outcome="completed", site="south", reason="")
        history.note("told", at=30.0, job="grms-2.1", outcome="unknown", site="", reason="?")
        history.note("fault", at=0.0, kind="hang", place="north", until=8.0, number=1)
        history.note("fault", at=1.0, kind="link cut", place="", until=3.0, number=3)
        history.note("fault", at=10.0, kind="state loss", place="south", until=15.0, number=2)
        history.note("closed", at=40.0)
        effects = tmp_path / "effects.jsonl"
        line = '{{"event": "{}", "time": {}, "job": "{}", "site": "north", "node": "n1", "number": "{}"}}'
        effects.write_text(
            "\n".join(
                line.format(*values)
                for values in (
                    ("started", 10.0, "sbatch-1.1", 4),
                    ("ended", 12.0, "sbatch-1.1", 4),
                    ("started", 11.0, "sbatch-1.1", 5),
                    ("started", 20.0, "sbatch-1.1", 4),
                    ("ended", 22.0, "sbatch-1.1", 4),
                    ("started", 16.0, "grms-1.1", 7),
                    ("ended", 17.0, "grms-1.1", 7),
                    ("started", 12.0, "grms-2.1", 8),
                )
            )
        )
        history.add_effects(effects)
        history.add_effects(tmp_path / "missing")
    return judged(Plan(1), Run("two", tmp_path / "history.jsonl", 40.0))


def test_figures_of_a_history(tmp_path: Path) -> None:
    """Runs have their ends, also where a number is given away twice; a job that ended elsewhere was delegated."""
    found = proof(tmp_path)
    assert found.kinds("sbatch") == {"twice": 1, "lost": 1}
    assert found.kinds("grms") == {"once": 1, "failed": 1}
    assert (found.holds, found.delegated, found.starts("sbatch")) == (True, 1, 3)
    (twice, _) = found.of("sbatch")
    assert twice.runs == ((10.0, 12.0), (11.0, None), (20.0, 22.0))
    assert _lanes(twice) == [0, 1, 0]
    assert found.worst is not None
    assert found.worst.number == 1
    assert found.counts == {"hang": 1, "link cut": 1, "state loss": 1}
    assert found.headline == (
        "By sbatch with retries 2 jobs ran 3 times, 1 more than once, 1 lost; "
        "by grms submit --key 2 jobs ran 2 times, none more than once, none lost."
    )


def test_the_page_of_a_history(tmp_path: Path) -> None:
    """It says what ran how often, draws each job and each fault, and has the story of each that did not run once."""
    found = proof(tmp_path)
    text = str(page_of(found))
    assert "One job, submitted while the controller of north hung for 8 seconds: " in text
    assert "by sbatch with retries it ran three times, by grms submit --key one." in text
    for word in ("sbatch-1.1", "sbatch-2.1", "grms-2.1"):
        assert f">{word}<" in text
    drawn = pair(found, None)
    assert drawn.count('class="run"') == 2  # the first run of each that came to its end
    assert drawn.count('class="again"') == 1
    assert drawn.count('class="cut"') == 2
    assert len(re.findall(r'<rect class="(?:hang|loss|link)"', drawn)) == 2 * (1 + 1 + 2)
    assert picture(found, found.worst).startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_a_page_without_hangs(tmp_path: Path) -> None:
    """There is nothing to look at closely, and all jobs ran once: it has no story."""
    with History(tmp_path / "history.jsonl") as history:
        history.note("submitted", at=0.0, job="grms-1.1", client="grms", site="north", attempt=1)
        history.note("closed", at=1.0)
    found = judged(Plan(1), Run("two", tmp_path / "history.jsonl", 1.0))
    assert found.worst is None
    assert "close up" not in str(page_of(found))
    assert "by grms submit --key 1 job ran 0 times" in found.headline


def test_a_job_that_is_bad_stands_above_all(tmp_path: Path) -> None:
    """The page says so at its top."""
    with History(tmp_path / "history.jsonl") as history:
        history.note("submitted", at=0.0, job="grms-1.1", client="grms", site="north", attempt=1)
        history.note("acknowledged", at=1.0, job="grms-1.1", id="north-1")
    found = judged(Plan(1), Run("two", tmp_path / "history.jsonl", 1.0))
    assert (found.holds, found.kinds("grms")) == (False, {"pending": 1})
    assert "contradict what their users were shown" in str(page_of(found))


def test_a_history_that_cannot_be_read(tmp_path: Path) -> None:
    """The checker's own words are passed on; a file that is there is never written over."""
    path = tmp_path / "history.jsonl"
    path.write_text("{\n")
    with pytest.raises(LiveError, match="line 1 is no JSON"):
        judged(Plan(1), Run("two", path, 1.0))
    with pytest.raises(FileExistsError):
        History(path)
    path.write_text('{"a": 1}\n')
    assert list(events_of(path)) == [{"a": 1}]


def test_small_numbers_are_words() -> None:
    """Others have digits."""
    assert [number(count) for count in (0, 9, 12, 13, 1234)] == [
        "no",
        "nine",
        "twelve",
        "13",
        "1,234",
    ]


def test_the_kinds_are_those_of_the_checker() -> None:
    """It shares no code, so that its words are written twice."""
    assert tuple(checker.KINDS) == KINDS
    assert checker.BAD == BAD
