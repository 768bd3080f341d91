"""What Grid Engine's adapter takes for an end: a line of the accounting file, or the master's own word."""

from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import LrmsPhase, LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch.queue_snapshot import JobRow, Question
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.gridengine.gridengine import GridEngine, GridEngineSettings

NAME, NUMBER = "hanse+A+B+1+2", "12"
LINE = (
    "main.q:n1:grid:grid:hanse+A+B+1+2:12:sge:0:1795342787:1795342848:1795342850:0:7:2:0:0:0.0:0:0:0:0:0:"
    "0:0:0.0:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1:0:0.0:0.0:0.0:-u grid:0.0:NONE:0.0:0:0\n"
)
ASKED = Question("B/1/2", NAME, NUMBER, None, None)


class Says(Programs):
    """`qstat`, which says what it is told to."""

    def __init__(self, answer: Answer) -> None:
        super().__init__({})
        self.answer = answer
        self.words: list[str] = []

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Answers."""
        del how
        self.words += [program, *arguments]
        return self.answer


def grid(folder: Path, answer: Answer) -> GridEngine:
    """Returns the adapter's Grid Engine, with an accounting file beside it."""
    settings = GridEngineSettings("A", "grid", str(folder / "accounting"))
    return GridEngine(Says(answer), settings)


async def test_the_master_is_asked_for_the_one_job(tmp_path: Path) -> None:
    """As it prints it: what it does not have, it says so; what else it says is no word about the job."""
    for answer, known in (
        (Answer(1, b"", "Following jobs do not exist: \n12"), False),
        (Answer(0, b"job_number:                 12\n", ""), True),
        (Answer(1, b"", "denied: host is no submit host"), None),
    ):
        programs = Says(answer)
        system = GridEngine(programs, GridEngineSettings("A", "grid", str(tmp_path / "none")))
        assert await system.knows(ASKED) is known
        assert programs.words == ["qstat", "-j", "12"]
    away = Answer(1, b"", "error: commlib error: got select error (Connection refused)")
    with pytest.raises(LrmsUnavailableError):
        await grid(tmp_path, away).knows(ASKED)
    assert not grid(tmp_path, away).forgets


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("denied: host is no submit host", True),
        ("Unable to run job: unknown queue", True),
        ("error: commlib error: got select error (Connection refused)", False),
        ("error: failed receiving gdi request response for mid=1 (can't find connection).", False),
        ("error: unable to send message to qmaster using port 6444 on host", False),
        ("error: communication error for host/qsub/1 running on port 6444", False),
        ("error: can't resolve hostname", False),
    ],
)
async def test_a_master_that_does_not_answer_has_not_refused(
    said: str, refused: bool, tmp_path: Path
) -> None:
    """A job that it may have taken must not count as one that it does not take."""
    row = JobRow(NAME, NUMBER, 1.0, LrmsPhase.HELD, 1)
    with pytest.raises(LrmsRefusedError if refused else LrmsUnavailableError):
        await grid(tmp_path, Answer(1, b"", said)).release(row)


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (Answer(0, b"grid has deleted job 12\n", ""), True),
        (Answer(1, b'denied: job "12" does not exist\n', ""), False),
        (Answer(1, b"job 12 is already in deletion\n", ""), True),
    ],
    ids=["deleted", "gone", "over"],
)
async def test_whether_a_job_was_still_there_is_answered(
    answer: Answer, ended: bool, tmp_path: Path
) -> None:
    """What has no job to delete has deleted none; what is in deletion may be so by the first of two attempts."""
    row = JobRow(NAME, NUMBER, 1.0, LrmsPhase.HELD, 1)
    assert await grid(tmp_path, answer).cancel(row) is ended


async def test_absence_from_the_accounting_file_says_nothing(tmp_path: Path) -> None:
    """Whether it is missing, was rotated, or has no line of the job: it may come later, and then counts."""
    system = grid(tmp_path, Answer(0, b"", ""))
    assert await system.ending(ASKED) is None
    (tmp_path / "accounting").write_text("# a comment\n")
    assert await system.ending(ASKED) is None
    (tmp_path / "accounting").rename(tmp_path / "accounting.0")
    assert await system.ending(ASKED) is None
    (tmp_path / "accounting").write_text(LINE)
    ending = await system.ending(ASKED)
    assert ending is not None
    assert ending.end.exit_code == 7
