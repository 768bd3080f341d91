"""How jobs are shown: in a narrow terminal, in a wide one, and one by one."""

import time
from dataclasses import replace

import pytest

from grms.cli.job_table import WIDE, columns, head, job_details, job_words, lines, state_word
from grms.client.answers import Job, JobPhase, JobState, SentHome
from grms.util.outcomes import Outcome
from lrms_sim.util import messages

NOON = 1_800_000_000.0
JOB = Job(
    job_id="kth-17",
    name="align",
    user="ann",
    processors=16,
    requested_time_s=7200.0,
    state=JobState.DELEGATED,
    executed_on="ctc",
    submit_time_s=NOON,
    start_time_s=NOON + 60,
    end_time_s=None,
    outcome=None,
    cancel_requested=False,
    reason="",
    phase=JobPhase.SUSPENDED,
    since_s=NOON + 120,
    told_time_s=NOON + 180,
    cost=57_600.0,
    account="physics",
)
WAITS = replace(JOB, start_time_s=None, phase=JobPhase.WAITING, cost=None, name="", account="")


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is near the jobs', and this is a place where it shows UTC."""
    monkeypatch.setattr("lrms_sim.util.messages.time.time", lambda: NOON + 300)
    monkeypatch.setattr("lrms_sim.util.messages.time.localtime", time.gmtime)


def test_a_narrow_terminal_has_figures_and_below_them_words() -> None:
    """No line is longer than 79 columns, whatever names there are."""
    assert head(80) == (
        "JOB            PROCS STATE      AT         SUBMITTED    STARTED         PROC-H"
    )
    assert [*lines(80, JOB, users=True)] == [
        "kth-17            16 suspended  ctc        Jan 15 08:00 Jan 15 08:01      16.0",
        "  ann: align",
    ]
    assert [*lines(80, WAITS)] == [
        "kth-17            16 waiting    ctc        Jan 15 08:00 -                    -"
    ]
    long = replace(JOB, reason="it waits for " + "room and " * 20, executed_on="a" * 40)
    assert max(map(len, lines(80, long))) <= 79
    assert "".join(lines(80, long)).count("room") == 20


def test_a_wide_terminal_has_a_line_for_each() -> None:
    """With user, limit and since when."""
    (line,) = lines(WIDE, replace(JOB, reason="it is paused"))
    assert line.split() == [
        *("kth-17", "ann", "16", "2", "h", "suspended", "ctc"),
        *("Jan", "15", "08:00", "Jan", "15", "08:01", "Jan", "15", "08:02", "16.0", "align"),
        *("(it", "is", "paused)"),
    ]
    assert [word for word in head(WIDE).split() if word not in line] == head(WIDE).split()
    assert head(WIDE).index("PROC-H") + len("PROC-H") == line.index("16.0") + len("16.0")


def test_where_nobody_looks_on_there_are_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrower terminal wraps lines itself; COLUMNS says otherwise, as ever."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns() == 80
    for wanted, given in (("40", 80), ("200", 200)):
        monkeypatch.setenv("COLUMNS", wanted)
        assert columns() == given


@pytest.mark.parametrize(
    ("job", "word"),
    [
        (JOB, "suspended"),
        (replace(JOB, phase=None), "delegated"),
        (replace(JOB, state=JobState.SUSPECT), "suspect"),
        (replace(JOB, state=JobState.QUEUED, phase=JobPhase.WAITING), "queued"),
        (replace(JOB, state=JobState.RUNNING, phase=JobPhase.COMPLETING), "completing"),
        (replace(JOB, state=JobState.ENDED, outcome=Outcome.TIMEOUT), "timeout"),
    ],
)
def test_one_word_says_where_a_job_stands(job: Job, word: str) -> None:
    """What its batch system says, as long as that is known; how it ended after that."""
    assert state_word(job) == word
    assert word in job_words(job)


def test_of_one_job_all_is_said() -> None:
    """When what has become of it, and who pays; no line for what is not known."""
    assert job_words(JOB) == "kth-17: delegated, suspended on ctc"
    assert [*job_details(JOB)] == [
        "  asks for    16 processors for 2 h",
        "  submitted   Jan 15 08:00",
        "  started     Jan 15 08:01",
        "  suspended   since Jan 15 08:02, as ctc has last said at Jan 15 08:03",
        "  cost        16.00 hours, paid by account physics of ann",
    ]
    assert [line.split()[0] for line in job_details(WAITS)] == ["asks", "submitted", "waiting"]
    ended = replace(JOB, state=JobState.ENDED, outcome=Outcome.COMPLETED, end_time_s=NOON + 900)
    assert [*job_details(replace(ended, told_time_s=None, account=""))][-2:] == [
        "  ended       Jan 15 08:15",
        "  cost        16.00 hours, paid by ann",
    ]


def test_a_job_that_was_sent_home_says_by_whom_how_often_and_what_was_lost() -> None:
    """In its line the partners; in a list, and of one job, also how long it had run there, and what is kept."""
    sent_home = (
        SentHome("ctc", 2, 90.0, 7200.0),
        SentHome("sdsc", 1, 0.25, problem="sdsc: it has none"),
    )
    job = replace(WAITS, sent_home=sent_home)
    words = "sent home by ctc 2 times, sdsc"
    lost = (
        "by ctc 2 times, 2 h kept, 1 min 30 s lost; "
        "by sdsc, 250 ms lost, not kept: sdsc: it has none"
    )
    assert " ".join(line.strip() for line in [*lines(80, job)][1:]) == f"sent home {lost}"
    assert next(iter(lines(WIDE, job))).endswith(f"(sent home {lost})")
    assert job_words(job) == f"kth-17: delegated, waiting on ctc, {words}"
    ended = replace(job, state=JobState.ENDED, outcome=Outcome.COMPLETED, end_time_s=NOON + 2.0)
    took = "ended, completed on ctc 2.000 s after its submission"
    assert job_words(ended) == f"kth-17: {took}, {words}"
    assert " ".join(line.strip() for line in job_details(job)).endswith(f"sent home   {lost}")


def test_a_job_says_what_place_it_keeps_at_home() -> None:
    """In a list and of one job; what a batch system has said is printed safely."""
    place = "it keeps its place by a marker, job 7 of the batch system\x1b"
    job = replace(WAITS, place=place)
    said = place.replace("\x1b", "\\x1b")
    assert next(iter(lines(WIDE, job))).endswith(f"({said})")
    assert " ".join(line.strip() for line in job_details(job)).endswith(f"place       {said}")


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (NOON, "Jan 15 08:00"),
        (NOON - 86400 * 200, "Jun 29  2026"),
        (NOON + 86400 * 200, "Aug  3  2027"),
        (90.0, "1 min 30 s"),
        (1e12, "11574074 d 2 h"),
        (float("nan"), messages.NOTHING),
    ],
)
def test_moments_are_written_as_people_write_them(moment: float, said: str) -> None:
    """As `ls -l` does; a clock that began with 0 has no days."""
    assert messages.day_and_time(moment) == said
