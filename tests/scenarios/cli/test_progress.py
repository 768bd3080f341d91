import json

import pytest

from scenarios.cli.progress import bars, event_log


def test_without_a_terminal_there_are_no_bars(capfd: pytest.CaptureFixture[str]) -> None:
    """Files and pipes get no control sequences."""
    with bars() as shown:
        shown.update("a stage", 1, 2)
        shown.step("another")
    assert shown.progress is None
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_each_stage_has_a_bar(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Bars go to standard error and follow what they are told."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with bars(download=True) as shown:
        shown.update("a stage", 1, 4)
        shown.update("a stage", 2, 4)
        shown.step("a step")
        shown.step("another")
        assert shown.progress is not None
        tasks = {task.description: (task.completed, task.total) for task in shown.progress.tasks}
    assert tasks == {"a stage": (2, 4), "another": (0, None)}
    out, error = capfd.readouterr()
    assert out == ""
    assert "a stage" in error


def test_bars_that_are_not_wanted_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log lines and bars do not mix."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with bars(wanted=False) as shown:
        assert shown.progress is None


def test_warnings_are_plain_words_unless_events_are_wanted(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Other events are silent."""
    notify = event_log(verbose=False, log_format="json")
    notify("workload_loaded", site="a", jobs=3)
    notify("warning", site="a", text="look here")
    assert capfd.readouterr() == ("", "warning: look here\n")


def test_events_are_lines_with_keys_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    """For people in the order given, on standard error."""
    event_log(verbose=True, log_format="console")("workload_loaded", site="KTH", jobs=3)
    out, error = capsys.readouterr()
    assert out == ""
    assert "workload_loaded" in error
    assert "site=KTH jobs=3" in error


def test_events_for_programs_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object for each line."""
    notify = event_log(verbose=True, log_format="json")
    notify("warning", text="x")
    notify("saved", folder="f")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["event"], first["level"], first["text"]) == ("warning", "warning", "x")
    assert (second["event"], second["level"], second["folder"]) == ("saved", "info", "f")
