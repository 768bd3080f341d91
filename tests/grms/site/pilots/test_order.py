"""What is made of an agent's words, and of the folders of runs whose pilot is over."""

from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import LrmsRefusedError
from grms.lrms.batch.launcher import Spool
from grms.site.model.events import RunNews, RunState
from grms.site.model.jobs import Exit, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.reservations import Reservation
from grms.site.pilots.agent import lay
from grms.site.pilots.messages import RunTold
from grms.site.pilots.order import check, found_in_folder, has_files, news, order
from grms.v1 import request_pb2


def program(**more: Any) -> bytes:
    """Returns a payload."""
    message = request_pb2.JobRequest()
    message.program.CopyFrom(request_pb2.Program(**{"script": "#!/bin/sh\n", **more}))
    return message.SerializeToString()


def reservation(payload: bytes) -> Reservation:
    """Returns one in which a program was launched."""
    return Reservation(
        7,
        "user:ann",
        "k",
        "pool",
        *(100.0, 200.0, 1, 0.0),
        booked=(100.0, 200.0),
        launch_time=110.0,
        pilot=1,
        run_key="north/1/7",
        request=Request(1, 50.0),
        payload=payload,
    )


@pytest.mark.parametrize(
    ("told", "outcome", "reason"),
    [
        ({"start": 1.0, "end": 2.0, "code": 0}, Outcome.COMPLETED, ""),
        ({"start": 1.0, "end": 2.0, "code": 3}, Outcome.FAILED, ""),
        ({"start": 1.0, "end": 2.0, "signal": 11}, Outcome.FAILED, ""),
        ({"start": 1.0, "signal": 15, "why": "limit"}, Outcome.TIMEOUT, "its time limit was over"),
        ({"start": 1.0, "code": 0, "why": "until"}, Outcome.TIMEOUT, "its reservation was over"),
        ({"start": 1.0, "signal": 15, "why": "killed"}, Outcome.CANCELLED, ""),
        ({"start": 1.0, "signal": 9, "why": "pilot"}, Outcome.NODE_FAIL, "its pilot was ended"),
        ({"why": "folder", "problem": "no room"}, Outcome.FAILED, "no room"),
        ({"why": "pilot", "problem": "it drains"}, None, "it drains"),
        ({"why": "until", "problem": "too late"}, None, "too late"),
    ],
)
def test_an_end_has_an_outcome(told: dict[str, Any], outcome: Outcome | None, reason: str) -> None:
    """None where it certainly has not begun."""
    found = news(RunTold("7", "ended", **told))
    assert found is not None
    assert (found.reservation, found.state, found.outcome) == (7, RunState.ENDED, outcome)
    assert found.reason.startswith(reason)
    assert found.exit == Exit.known(told.get("code"), told.get("signal"))


@pytest.mark.parametrize("name", ["", "x", "-1", "1" * 19, "²"])
def test_a_run_of_another_kind_is_none(name: str) -> None:
    """Numbers of reservations alone are names of runs."""
    assert news(RunTold(name, "running", start=1.0)) is None


def test_an_agent_can_lay_what_it_is_sent(tmp_path: Path) -> None:
    """Without files, the folder is the agent's to make; with them, it is made here."""
    spool = Spool(tmp_path / "runs")
    spool.open()
    found = reservation(program(arguments=["a b"], outputs=["out"]))
    assert not has_files(found.payload)
    sent = order(found, spool, lambda *_: tmp_path)
    assert (sent["run"], sent["processors"], sent["limit"]) == ("7", 1, 50.0)
    assert (sent["begin"], sent["until"]) == (110.0, 200.0)
    lay(sent["folder"], sent["files"])
    place = spool.place("north/1/7")
    assert sent["folder"] == str(place)
    assert {path.name for path in place.iterdir()} == {"values", "outputs.json", "program"}
    assert (place / "program").stat().st_mode & 0o777 == 0o500
    left = spool.left("north/1/7")
    assert left is not None
    assert left.names == ("stdout", "stderr", "out")
    with pytest.raises(FileExistsError):
        lay(sent["folder"], sent["files"])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (program(script=""), "no script"),
        (program(environment={"SLURM_X": "1"}), "is set by the batch system"),
        (program(outputs=["../x"]), "outputs"),
        (b"\xff", "cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_is_sent(payload: bytes, reason: str) -> None:
    """With the reason of ordinary jobs."""
    with pytest.raises(LrmsRefusedError, match=reason):
        check("", Request(1, 50.0), payload)


def test_a_run_that_has_not_begun_never_will(tmp_path: Path) -> None:
    """Whether its folder was made or not: the agent that makes it, or begins in it, finds that it may not."""
    found = reservation(b"")
    place = tmp_path / "run"
    for made in (False, True):
        if made:
            (place / "begun").unlink()
        assert found_in_folder(found, place, "died") == RunNews(
            7, RunState.ENDED, reason="it had not begun: died"
        )
        with pytest.raises(FileExistsError):
            lay(str(place), [])
        with pytest.raises(FileExistsError):
            (place / "begun").open("x")


@pytest.mark.parametrize(
    ("text", "outcome", "times", "code"),
    [
        ("0 1000\n", Outcome.NODE_FAIL, (1000.0, None), None),
        ("", Outcome.NODE_FAIL, (None, None), None),
        ("0 1000\nended 0 1005\n", Outcome.COMPLETED, (1000.0, 1005.0), 0),
        ("0 1000\nended 3 1005\n", Outcome.FAILED, (1000.0, 1005.0), 3),
        ("0 1000\nended 143 1005\n", Outcome.NODE_FAIL, (1000.0, None), None),
        ("0 1000\nended 3", Outcome.NODE_FAIL, (1000.0, None), None),
    ],
)
def test_a_run_that_has_begun_is_told_as_its_folder_says(
    text: str,
    outcome: Outcome,
    times: tuple[float | None, float | None],
    code: int | None,
    tmp_path: Path,
) -> None:
    """Its end if that is there; else it has failed with its pilot."""
    (tmp_path / "begun").write_text(text)
    found = found_in_folder(reservation(b""), tmp_path, "died")
    assert (found.outcome, found.start_time, found.end_time) == (outcome, *times)
    assert found.exit.code == code
    assert "pilot" in found.reason
