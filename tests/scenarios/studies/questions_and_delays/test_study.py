"""Which replays are made, that none is made twice, and that an end of the workers is told."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lrms_sim.util.executors import ExecutorError, ThreadExecutor, Workers
from scenarios.studies.questions_and_delays import study
from scenarios.studies.questions_and_delays.options import StudyOptions
from scenarios.studies.questions_and_delays.replays import ALL, HALF_YEAR, TEN_DAYS, Case
from scenarios.studies.questions_and_delays.study import WorkersError, cases, run_study
from tests.scenarios.studies.questions_and_delays.logs import small_logs


def quiet() -> Console:
    """Returns a console that shows nothing to anybody."""
    return Console(file=io.StringIO())


def options(folder: Path) -> StudyOptions:
    """Returns the smallest study, in one thread."""
    return StudyOptions(folder, draws=1, more_draws=1, workers=Workers("threads", 1))


def test_each_replay_is_there_once() -> None:
    """And what is compared with another has that one beside it, in the same draw."""
    every = list(cases(StudyOptions(Path(), draws=2, more_draws=4, half_year_draws=1)))
    assert len({case.key for case in every}) == len(every)
    assert {case.window for case in every} == {TEN_DAYS, HALF_YEAR}
    assert max(case.draw for case in every if case.at_once) == 4
    assert max(case.draw for case in every if not case.at_once) == 2
    for case in every:
        if case.late or case.apart:
            usual = Case(
                case.window, case.discipline, False, ALL, case.draw, case.delay
            )  # its place
            assert usual in every
    # Those that take long come last.
    at_once = [case.at_once for case in every]
    assert at_once == sorted(at_once, reverse=True)


def test_a_short_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done before is not done again, and the figures are the same."""
    some = [Case(TEN_DAYS, "easy", rounds=False, asked=asked, draw=1) for asked in (1, ALL)]
    late = Case(TEN_DAYS, "easy", rounds=False, asked=ALL, draw=1, delay=60.0)
    monkeypatch.setattr(study, "read_logs", small_logs)
    wanted = list(some)
    monkeypatch.setattr(study, "cases", lambda _: iter(wanted))
    first = run_study(options(tmp_path), quiet())
    assert [case for case, _ in first.runs] == some
    wanted.append(late)
    asked: list[Case] = []
    evaluate = ThreadExecutor.evaluate

    def counted(self: ThreadExecutor, task: Any, chosen: Sequence[Case]) -> list[Any]:
        asked.extend(chosen)
        return evaluate(self, task, chosen)

    monkeypatch.setattr(ThreadExecutor, "evaluate", counted)
    second = run_study(options(tmp_path), quiet())
    assert asked == [late]
    assert second.runs[:2] == first.runs
    document = json.loads(second.to_json())
    assert document["options"]["draws"] == 1
    assert document["runs"][2]["case"]["delay"] == 60.0
    assert len(document["runs"][2]["found"]["gain"]) == 9


def test_workers_that_die_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error that a user can do something about; what was done is kept."""

    def dies(*_: object) -> list[Any]:
        raise ExecutorError("dask workers went away")

    monkeypatch.setattr(study, "read_logs", small_logs)
    monkeypatch.setattr(ThreadExecutor, "evaluate", dies)
    with pytest.raises(WorkersError, match="went away"):
        run_study(options(tmp_path), quiet())
