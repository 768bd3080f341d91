"""The checker finds what is wrong in a history, whatever is wrong, and nothing where all is right."""

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.prove import checker
from scenarios.prove.checker import BAD, KINDS, HistoryError, Verdict, judge, main, read
from tests.examples import FEW
from tests.programs import run_program

Events = list[dict[str, Any]]
WORD = "grms-1.1"


def good(job: str = WORD, begin: float = 0.0, attempts: int = 1) -> Events:
    """Returns the events of a job that ran once."""
    calls: Events = [
        {"event": "submitted", "client": "grms", "attempt": number, "time": begin + number}
        for number in range(attempts)
    ]
    calls += [
        {**call, "event": "unanswered", "text": "?", "time": call["time"] + 0.5}
        for call in calls[1:]
    ]
    after = begin + attempts
    rest: Events = [
        {"event": "acknowledged", "time": after, "id": f"north-{job}"},
        {"event": "started", "time": after + 1, "number": "7"},
        {"event": "ended", "time": after + 2, "number": "7"},
        {"event": "told", "time": after + 3, "outcome": "completed"},
    ]
    return [{"job": job, **event} for event in [*calls, *rest]]


@st.composite
def histories(draw: st.DrawFn) -> Events:
    """Draws the history of some jobs, all of which ran once; their events are mixed."""
    names = draw(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=6, unique=True))
    events: Events = []
    for name in names:
        events += good(name, draw(st.floats(0, 100)), draw(st.integers(1, 3)))
    fault = {"event": "fault", "time": 3.0, "until": 5.0, "kind": "hang", "place": "north"}
    closed = {"event": "closed", "time": 1000.0}
    return list(draw(st.permutations([*events, fault, closed])))


def verdicts(events: Events) -> dict[str, Verdict]:
    """Returns what is found of each job, through the text of a file."""
    return {each.job: each for each in judge(read(json.dumps(event) for event in events))}


def kinds(events: Events) -> dict[str, str]:
    """Returns the kind of each."""
    return {job: each.kind for job, each in verdicts(events).items()}


@FEW
@given(histories())
def test_nothing_is_found_where_all_is_right(events: Events) -> None:
    """In any order of lines, with any number of attempts."""
    assert set(kinds(events).values()) == {"once"}


def without(*names: str) -> Callable[[Events], Events]:
    """Returns a change that leaves out all events of some names."""
    return lambda events: [event for event in events if event["event"] not in names]


def more(name: str, **values: object) -> Callable[[Events], Events]:
    """Returns a change that adds a copy of an event with other values."""

    def change(events: Events) -> Events:
        found = next(event for event in events if event["event"] == name)
        return [*events, {**found, **values}]

    return change


def other(name: str, **values: object) -> Callable[[Events], Events]:
    """Returns a change of the values of an event."""
    return lambda events: [event | (values if event["event"] == name else {}) for event in events]


MUTATIONS: dict[str, tuple[Callable[[Events], Events], str]] = {
    "a second start": (more("started", number="8"), "twice"),
    "a second start with an end": (
        lambda events: more("ended", number="8")(more("started", number="8")(events)),
        "twice",
    ),
    "a second start of one that nobody has answered": (
        lambda events: more("started")(without("acknowledged", "told")(events)),
        "twice",
    ),
    "never began": (without("started", "ended", "told"), "lost"),
    "broken off, and nobody was told": (without("ended", "told"), "lost"),
    "ran, without an answer, and was broken off": (
        without("acknowledged", "ended", "told"),
        "lost",
    ),
    "told as completed, and never began": (without("started", "ended"), "false"),
    "told as completed, and broken off": (without("ended"), "false"),
    "told as failed, and came to its end": (other("told", outcome="node_fail"), "false"),
    "told in two ways": (more("told", outcome="failed"), "false"),
    "an end without a start": (without("started"), "false"),
    "two ends": (more("ended"), "false"),
    "ended before it started": (other("ended", time=-1e9), "false"),
    "started before it was submitted": (other("started", time=-1e9), "false"),
    "two numbers of one job": (more("acknowledged", id="another"), "false"),
    "nobody has submitted it": (without("submitted"), "false"),
    "told as failed, and broken off": (
        lambda events: other("told", outcome="node_fail")(without("ended")(events)),
        "failed",
    ),
    "told as failed, and never began": (
        lambda events: other("told", outcome="cancelled")(without("started", "ended")(events)),
        "failed",
    ),
    "refused": (without("acknowledged", "started", "ended", "told"), "refused"),
    "ran without an answer": (without("acknowledged", "told"), "once"),
}


@FEW
@given(histories(), st.integers(0, 1000))
def test_each_mutation_of_a_history_is_found(events: Events, seed: int) -> None:
    """Of the job that was changed, whichever, and of no other."""
    jobs = sorted({event["job"] for event in events if "job" in event})
    changed = jobs[seed % len(jobs)]
    own = [event for event in events if event.get("job") == changed]
    rest = [event for event in events if event.get("job") != changed]
    for name, (change, kind) in MUTATIONS.items():
        found = verdicts([*rest, *change(own)])
        assert (found[changed].kind, name) == (kind, name)
        assert {each.kind for job, each in found.items() if job != changed} <= {"once"}
        assert (found[changed].why == "") == (kind == "once")


def test_every_kind_of_end_is_among_the_mutations() -> None:
    """None is there that no history comes to; `pending` is of those that were cut off."""
    assert {kind for _, kind in MUTATIONS.values()} == set(KINDS) - {"pending"}


@FEW
@given(histories(), st.integers(0, 40))
def test_a_history_that_was_cut_off_has_pending_jobs_and_no_lost_ones(
    events: Events, kept: int
) -> None:
    """What has not been waited for is not lost."""
    begun = sorted(without("closed")(events), key=lambda event: float(event["time"]))[:kept]
    assert set(kinds(begun).values()) <= {"once", "pending"}
    started = {event["job"] for event in begun if event["event"] == "ended"}
    assert {job for job, kind in kinds(begun).items() if kind == "once"} == started


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"event": "submit', "line 1 is no JSON"),
        ('{"event": "begun", "time": 1, "job": "a"}', "line 1: there is no event 'begun'"),
        ('{"event": "started", "job": "a"}', "line 1 lacks 'time'"),
        ('{"event": "started", "time": NaN, "job": "a"}', "line 1: nan is no time"),
        ('{"event": "started", "time": "1", "job": "a"}', "line 1: '1' is no time"),
        ('{"event": "started", "time": 1}', "line 1 lacks 'job'"),
        ('{"event": "started", "time": 1, "job": 7}', "line 1: 7 is no job's name"),
        ('{"event": "told", "time": 1, "job": "a"}', "line 1 lacks 'outcome'"),
        (
            '{"event": "submitted", "time": 1, "job": "a", "client": null}',
            "line 1: None is no client",
        ),
        ("[]", "line 1 lacks"),
    ],
)
def test_what_is_no_history_is_refused(line: str, words: str) -> None:
    """A line that is not understood is never left out."""
    with pytest.raises(HistoryError, match=words.replace("(", r"\(")):
        read([line])


def test_it_needs_nothing_but_python(tmp_path: Path) -> None:
    """It imports the standard library alone, and runs as a file without this package, with its own statuses."""
    source = Path(checker.__file__)
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        for name in (
            [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert modules <= sys.stdlib_module_names
    history = tmp_path / "history.jsonl"
    history.write_text("\n".join(json.dumps(event) for event in more("started")(good())))
    done = run_program([sys.executable, "-I", "-S", str(source), str(history)])
    assert done.returncode == 1
    assert "grms: 1 job ran 2 times: 1 twice, 0 lost, 0 pending, 0 false" in done.stdout
    assert "grms-1.1 started 2 times" in done.stdout
    assert done.stdout.count("started") == 3
    assert "2.0 s  started       number 7" in done.stdout


def test_statuses_and_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one client alone; as JSON; and of what cannot be read."""
    history = tmp_path / "history.jsonl"
    lost = [
        event | {"client": "sbatch"}
        for event in without("started", "ended", "told")(good("sbatch-1"))
    ]
    events = [*good(), *lost, {"event": "closed", "time": 99.0}]
    history.write_text("\n".join(json.dumps(event) for event in events) + "\n")
    assert main(["--client", "grms", str(history)]) == 0
    assert "sbatch" not in capsys.readouterr().out
    assert main(["--json", str(history)]) == 1
    assert [each["kind"] for each in json.loads(capsys.readouterr().out)] == ["once", "lost"]
    assert main([str(tmp_path / "none")]) == 2
    capsys.readouterr()
    assert main(["--client", "grmz", str(history)]) == 2
    assert "there is no job of client grmz" in capsys.readouterr().err
    history.write_text("")
    assert main(["--json", str(history)]) == 2
    assert "there is no job" in capsys.readouterr().err
    history.write_text("{\n")
    assert main([str(history)]) == 2
    assert "line 1 is no JSON" in capsys.readouterr().err
    assert set(BAD) < set(KINDS)
