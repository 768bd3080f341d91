import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from scenarios.report import output
from scenarios.report.output import check_folder, load_run, save_run
from scenarios.run.replay import Run, run_scenario
from scenarios.spec.files import load_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import OutputError

FILES = {
    "schedule.csv",
    "schedule-alone.csv",
    "result.json",
    "scenario.toml",
    "sites.csv",
    "flows.csv",
    "report.html",
}


@pytest.fixture(scope="module")
def run() -> Run:
    workload = {"model": "lublin", "jobs": 200, "load": 0.8}
    sites = [{"name": name, "processors": size, "workload": workload}
             for name, size in (("a", 16), ("b", 64))]  # fmt: skip
    document = {"name": "test", "title": "Eine Prüfung", "sites": sites}
    return run_scenario(ScenarioSpec.model_validate(document))


def test_a_run_leaves_its_files_and_nothing_else(run: Run, tmp_path: Path) -> None:
    """The folder and its parents are made; nothing is left beside it."""
    folder = tmp_path / "out" / "x"
    steps: list[str] = []
    saved = save_run(folder, run.spec, run.result, step=steps.append)
    assert {path.name for path in folder.iterdir()} == FILES == set(steps)
    assert [path.name for path in folder.parent.iterdir()] == ["x"]
    assert saved.report == folder / "report.html"
    assert json.loads((folder / "result.json").read_text())["name"] == "test"
    assert "Eine Prüfung" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_saved_scenario_is_the_one_that_ran(run: Run, tmp_path: Path) -> None:
    """Run again, it gives the same schedule: every seed is in it."""
    save_run(tmp_path / "one", run.spec, run.result, html=False)
    spec = load_spec(tmp_path / "one" / "scenario.toml")
    assert spec == run.spec
    again = run_scenario(spec)
    save_run(tmp_path / "two", again.spec, again.result, html=False)
    for name in ("schedule.csv", "schedule-alone.csv", "scenario.toml"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_later_run_replaces_an_earlier_one(run: Run, tmp_path: Path) -> None:
    """A report that is not of these figures does not stay; a user's notes do."""
    save_run(tmp_path, run.spec, run.result)
    (tmp_path / "notes.txt").write_text("mine")
    saved = save_run(tmp_path, run.spec, run.result, html=False)
    assert saved.report is None
    names = {path.name for path in tmp_path.iterdir()}
    assert names == FILES - {"report.html"} | {"notes.txt"}


@pytest.mark.parametrize("name", ["scenario.toml", "notes.txt"])
def test_a_folder_with_other_files_is_left_alone(run: Run, tmp_path: Path, name: str) -> None:
    """Above all a scenario file in the folder one is in is not overwritten."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(OutputError, match="not of a run; name a new or empty folder"):
        save_run(tmp_path, run.spec, run.result)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_the_folders_place_is_an_error(run: Run, tmp_path: Path) -> None:
    """As the folder itself and as its parent."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file; name a folder"):
        check_folder(tmp_path / "file")
    with pytest.raises(OutputError, match="cannot be written: "):
        save_run(tmp_path / "file" / "x", run.spec, run.result)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_run_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """Neither a new folder nor a change in an old one, whatever the reason."""
    old = tmp_path / "old"
    save_run(old, run.spec, run.result, html=False)
    before = {path.name: path.stat().st_mtime_ns for path in old.iterdir()}

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(output, "write_html", fail)
    for folder in (old, tmp_path / "new"):
        with pytest.raises((KeyboardInterrupt, OutputError)):
            save_run(folder, run.spec, run.result)
    assert {path.name: path.stat().st_mtime_ns for path in old.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_ctrl_c_waits_until_all_files_are_in(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The few renames at the end are done together or not at all."""
    move_in = output._move_in

    def interrupted(draft: Path, folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        move_in(draft, folder)

    monkeypatch.setattr(output, "_move_in", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        save_run(tmp_path / "x", run.spec, run.result, html=False)
    assert {path.name for path in (tmp_path / "x").iterdir()} == FILES - {"report.html"}
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_saved_run_is_read_back_with_every_figure(run: Run, tmp_path: Path) -> None:
    """Figures computed again from the files are those of the run."""
    save_run(tmp_path, run.spec, run.result, html=False)
    assert load_run(tmp_path).to_dict() == run.result.to_dict()


def damaged(name: str, content: str | None, text: str) -> Any:
    """Returns a case of the test below."""
    return pytest.param(name, content, text, id=text)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        damaged("result.json", None, "result.json cannot be read: No such file.*`scenario report`"),
        damaged("result.json", "{", "result.json: no JSON"),
        damaged("result.json", "[" * 100_000, "result.json: no JSON"),
        damaged("result.json", "[]", "format is None; this version reads 1"),
        damaged("result.json", '{"format": 2}', "format is 2; this version reads 1"),
        damaged("result.json", '{"format": 1}', "result.json: name: "),
        damaged("schedule.csv", None, "schedule.csv: cannot be read: No such file"),
        damaged("schedule.csv", "", "schedule.csv: the file is empty"),
        damaged("schedule.csv", "job_id\n1\n", "schedule.csv: column"),
    ],
)
def test_a_damaged_run_says_which_file_and_why(
    run: Run, tmp_path: Path, name: str, content: str | None, text: str
) -> None:
    """Never a crash, whatever happened to the folder since."""
    save_run(tmp_path, run.spec, run.result, html=False)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(OutputError, match=text):
        load_run(tmp_path)


def test_schedules_that_do_not_belong_together_are_refused(run: Run, tmp_path: Path) -> None:
    """A file of another run in the folder is found out."""
    save_run(tmp_path, run.spec, run.result, html=False)
    lines = (tmp_path / "schedule-alone.csv").read_text().splitlines(keepends=True)
    (tmp_path / "schedule-alone.csv").write_text("".join(lines[:-1]))
    with pytest.raises(OutputError, match="399; run the scenario again"):
        load_run(tmp_path)


def test_binary_rubbish_is_no_result(run: Run, tmp_path: Path) -> None:
    """Bytes that are no text are told as such."""
    save_run(tmp_path, run.spec, run.result, html=False)
    (tmp_path / "result.json").write_bytes(b"\xff\xfe")
    with pytest.raises(OutputError, match="byte 0 is not UTF-8"):
        load_run(tmp_path)


def test_a_huge_result_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the limit is read."""
    save_run(tmp_path, run.spec, run.result, html=False)
    monkeypatch.setattr(output, "RESULT_BYTES_MAX", 10)
    with pytest.raises(OutputError, match="is larger than 10 bytes"):
        load_run(tmp_path)
