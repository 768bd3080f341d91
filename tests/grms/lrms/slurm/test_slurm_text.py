"""What Slurm 22.05 has printed, as recorded, and what people may write into it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import LrmsPhase
from grms.lrms.immediate_start import QueuePlan, Taken
from grms.lrms.node_groups import Promised
from grms.lrms.slurm.slurm_text import (
    PHASES,
    KnownJob,
    ending_of,
    logged_ending,
    read_accounting,
    read_job,
    read_log,
    read_queue,
)
from grms.util.outcomes import Outcome

TOKEN = "0123456789abcdef"
PREFIX = "hanse:A:"


def owned(name: str, shown: str) -> bool:
    """Says whose jobs are the site's: one runs as another account."""
    return shown.partition("(")[0] == ("ann" if name == "hanse:A:lent" else "grid")


RECORDED = """\
5|PD|1|1795342787|1795346387|1795349987|BeginTime|bob||(null)|main|launch
3_0|PD|2|1795342787|N/A|N/A|JobHeldUser|bob||(null)|main|array
3_1|PD|2|1795342787|N/A|N/A|Priority|bob||(null)|main|array
3_2|PD|2|1795342787|N/A|N/A|Resources|bob||(null)|main|array
16|PD|99|1795342847|N/A|N/A|PartitionConfig|bob||(null)|main|wide
18|PD|7|1795342847|N/A|N/A|Dependency|bob||(null)|main|after
19|PD|17|1795342847|N/A|N/A|Priority|bob||(null)|main|wider than the machine
20|PD|4|1795342847|N/A|N/A|ReqNodeNotAvail, UnavailableNodes:n1|bob||(null)|main|later
13|CA|1|1795342847|1795342848|1795342849|None|grid|n1|(null)|main|hanse:A:A/1/1
17|CA|9|1795342847|1795342849|1795342849|JobHeldUser|grid||(null)|main|hanse:A:A/1/2
9|F|2|1795342847|1795342848|1795342850|NonZeroExitCode|grid|n1|(null)|main|hanse:A:A/1/3
15|PD|1|1795342849|1795342970|1795343030|BeginTime|grid||(null)|main|hanse:A:A/1/4
14|S|1|1795342847|1795342848|1795342908|None|grid|n1|(null)|main|hanse:A:A/1/5
21|PD|8|1795342847|N/A|N/A|Resources|grid||(null)|main|hanse:A:A/1/6
22|PD|8|1795342847|N/A|N/A|JobHeldAdmin|grid||(null)|main|hanse:A:A/1/7
23|R|8|1795342847|1795342848|1795342908|None|grid|n[1-2]|(null)|main|hanse:A:A/1/8
24|CD|8|1795342847|1795342848|1795342908|None|grid|n[1-2]|(null)|main|hanse:A:A/1/9
25|TO|8|1795342847|1795342848|1795342933|TimeLimit|grid|n[1-2]|(null)|main|hanse:A:A/1/10
26|XX|8|1795342847|1795342848|N/A|None|grid|n[1-2]|(null)|main|hanse:A:A/1/11
27|R|8|1795342847|1795342848|1795342908|None|mallory|n1|(null)|main|hanse:A:A/1/12
28|R|8|1795342847|1795342848|1795342908|None|grid|n1|(null)|main|hanse:B:A/1/13"""


def table(text: str) -> str:
    return "".join(f"{TOKEN}|{line}\n" for line in text.split("\n"))


def read(text: str) -> tuple[dict[str, LrmsPhase], int]:
    queue = read_queue(text, token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16)
    return {row.name.removeprefix(PREFIX): row.phase for row in queue.rows}, queue.waiting_others


def test_the_table_is_read() -> None:
    """Of this site's jobs the phases, of the others what could start now."""
    phases, waiting = read(table(RECORDED))
    assert phases == {
        "A/1/1": LrmsPhase.ENDED,
        "A/1/2": LrmsPhase.ENDED,
        "A/1/3": LrmsPhase.ENDED,
        "A/1/4": LrmsPhase.WAITING,
        "A/1/5": LrmsPhase.SUSPENDED,
        "A/1/6": LrmsPhase.WAITING,
        "A/1/7": LrmsPhase.HELD,
        "A/1/8": LrmsPhase.RUNNING,
        "A/1/9": LrmsPhase.ENDED,
        "A/1/10": LrmsPhase.ENDED,
        "A/1/11": LrmsPhase.UNKNOWN,
    }
    # Two elements of the array, and what waits for a node; nothing held, later, or too wide.
    assert waiting == 2 + 2 + 4


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("5|PD|1|1795342787|N/A|N/A|Priority|grid||(null)|main|renamed", "A/1/6"),
        ("5|R|1|1795342787|1795342788|1795342798|None|grid|n1|(null)|main|a@b|c", "A/1/6"),
        ("5|PD|1|1795342787|N/A|N/A|Priority|bob||(null)|main|renamed", ""),
        ("5|PD|1|1795342788|N/A|N/A|Priority|grid||(null)|main|renamed", ""),
        ("5|PD|1|N/A|N/A|N/A|Priority|grid||(null)|main|renamed", ""),
        ("6|PD|1|1795342787|N/A|N/A|Priority|grid||(null)|main|renamed", ""),
        ("5|PD|1|1795342787|N/A|N/A|Priority|grid||(null)|main|hanse:A:A/1/6:away", ""),
    ],
)
def test_a_job_that_somebody_has_renamed_is_known_by_its_number_and_submission(
    line: str, key: str
) -> None:
    """Neither another user's, nor one to which a crash has given its number; a marker has a name of the site's."""
    known = {"5": KnownJob("A/1/6", 1795342787.0)}
    queue = read_queue(
        table(line), token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16, known=known
    )
    assert [row.known_as for row in queue.rows if row.known_as] == ([key] if key else [])


def test_what_was_told_to_wait_is_deferred() -> None:
    """For a moment or another job; held ones are not known to be."""
    lines = [
        f"{number}|PD|1|1795342787|N/A|N/A|{reason}|grid||(null)|main|hanse:A:A/1/{number}"
        for number, reason in enumerate(
            ("BeginTime", "Dependency", "DependencyNeverSatisfied", "Priority", "JobHeldUser")
        )
    ]
    queue = read_queue(
        table("\n".join(lines)), token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16
    )
    assert [row.deferred for row in queue.rows] == [True, True, True, False, False]


def test_what_somebody_has_requeued_to_hold_it_is_held() -> None:
    """A failed prolog is nobody's will: such a job waits, and for what it does is told (`hindrance`)."""
    reasons = ("job requeued in held state", "launch failed requeued held")
    lines = [
        f"{number}|PD|1|1795342787|1795342907|N/A|{reason}|grid||(null)|main|hanse:A:A/1/{number}"
        for number, reason in enumerate(reasons)
    ]
    text = table("\n".join(lines))
    queue = read_queue(text, token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16)
    assert [(row.phase, row.can_start, row.deferred) for row in queue.rows] == [
        (LrmsPhase.HELD, False, False),
        (LrmsPhase.WAITING, False, False),
    ]


def test_ends_are_read() -> None:
    """With how long the processors were held, which is not at all where there was no node."""
    queue = read_queue(table(RECORDED), token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16)
    rows = {row.name.removeprefix(PREFIX): row for row in queue.rows}
    ran, never, failed = (rows[f"A/1/{number}"] for number in (1, 2, 3))
    assert ran.end is not None
    assert (ran.start_time, ran.end.outcome, ran.end.run_time) == (
        1795342848.0,
        Outcome.CANCELLED,
        1.0,
    )
    assert never.end is not None
    assert (never.start_time, never.end.end_time, never.end.run_time) == (None, 1795342849.0, 0.0)
    # And not that which it had waited for.
    assert never.end.reason == "it was cancelled before it began"
    assert ran.end.reason == ""
    assert failed.end is not None
    assert not failed.exact
    done, late = rows["A/1/9"].end, rows["A/1/10"].end
    assert done is not None
    assert (done.outcome, done.exit_code) == (Outcome.COMPLETED, 0)
    assert late is not None
    assert (late.outcome, late.exit_code, late.run_time) == (Outcome.TIMEOUT, None, 85.0)
    assert rows["A/1/4"].start_time is None  # when it may start is no start
    assert [number for number in range(1, 12) if rows[f"A/1/{number}"].can_start] == [6]


ELSEWHERE = """\
1|R|4|1|2|900|None|bob|n1|(null)|main|one
2|R|4|1|2|900|None|bob|n2|(null)|urgent|two
3|PD|2|1|900|950|Priority|bob||(null)|urgent|three
4|PD|2|1|900|950|Priority|bob||(null)|main,urgent|four
5|PD|1|1|N/A|N/A|Priority|grid||(null)|urgent|hanse:A:A/1/1
6|R|1|1|2|900|None|grid|n2|(null)|urgent|hanse:A:A/1/2
7|PD|1|1|900|950|Priority|grid||(null)|main|hanse:A:A/1/3"""


def test_own_jobs_count_wherever_they_are_and_others_where_the_site_is() -> None:
    """An operator may move a job; what is in no partition of the site's does not press on its part."""
    for partitions, waiting, running, starts in (
        (("main",), 2, 4, ["A/1/3"]),
        (("main", "urgent"), 4, 9, ["A/1/1", "A/1/3"]),
        ((), 4, 9, ["A/1/1", "A/1/3"]),
    ):
        queue = read_queue(
            table(ELSEWHERE),
            token=TOKEN,
            is_owner=owned,
            prefix=PREFIX,
            processors=16,
            partitions=partitions,
        )
        names = [row.name.removeprefix(PREFIX) for row in queue.rows]
        assert names == ["A/1/1", "A/1/2", "A/1/3"]
        assert queue.waiting_others == waiting
        assert sum(taken.processors for taken in queue.running) == running
        assert [row.name[len(PREFIX) :] for row in queue.rows if row.can_start] == starts


PLANNED = """\
1|R|100|1795391863|1795391864|1795393064|None|root|n1|(null)|main|one
3|R|20|1795391870|1795391870|1795392470|None|root|n1|(null)|main|three
2|PD|128|1795391866|1795393064|1795394864|Resources|root||(null)|main|two
4|PD|29|1795391873|1795394820|1795395420|Priority|root||(null)|main|four
7|PD|99|1795391873|N/A|N/A|JobHeldUser|root||(null)|main|held"""


def planned(text: str) -> tuple[Taken, ...] | None:
    queue = read_queue(table(text), token=TOKEN, is_owner=owned, prefix=PREFIX, processors=128)
    return queue.planned


def test_the_plan_of_the_backfill_scheduler_is_read() -> None:
    """Slurm 22.05 started a further job of 8 processors and 17 minutes at once, and one of 25 minutes not."""
    queue = read_queue(table(PLANNED), token=TOKEN, is_owner=owned, prefix=PREFIX, processors=128)
    assert queue.planned is not None
    now = 1795391876.0
    plan = QueuePlan(now, 8, queue.running, queue.planned, step_s=60.0)
    assert plan.starts_now(8, 17 * 60.0, now)
    assert not plan.starts_now(8, 25 * 60.0, now)
    assert not plan.starts_now(9, 60.0, now)


def test_nodes_are_promised_to_who_waits() -> None:
    """By plan; who has none, although nodes that work would do for him, may take any of his partitions."""
    text = """\
1|PD|4|1|500|900|Resources|bob||n[1-2],m7|main,urgent|planned
2|PD|4|1|500|900|Priority|bob||(null)|urgent,main|no nodes
3|PD|4|1|N/A|N/A|Resources|grid||(null)|gpu|hanse:A:A/1/1
4|PD|4|1|N/A|N/A|JobHeldUser|bob||(null)|held|held
5|PD|4|1|N/A|N/A|ReqNodeNotAvail, UnavailableNodes:n3|bob||(null)|away|n3 is down
6|R|4|1|2|900|None|bob|n4|(null)|full|runs"""
    for partitions in ((), ("main",)):
        queue = read_queue(
            table(text),
            token=TOKEN,
            is_owner=owned,
            prefix=PREFIX,
            processors=16,
            partitions=partitions,
        )
        assert queue.promised == (Promised(500.0, 900.0, frozenset(["n1", "n2", "m7"])),)
        assert queue.unplanned == {"urgent", "main"}
        assert queue.own_unplanned == (("hanse:A:A/1/1", frozenset(["gpu"])),)


def test_without_a_planned_start_nobody_knows() -> None:
    """One that waits for room and is not planned may take any; running jobs may have no end."""
    assert planned(PLANNED + "\n9|PD|1|1795391873|N/A|N/A|Priority|root||(null)|main|nine") is None
    assert (
        planned(PLANNED + "\n9|PD|999|1795391873|N/A|N/A|Resources|root||(null)|main|too wide")
        is not None
    )
    assert (
        planned("9|PD|1|1795391873|1795394820|1795394819|Priority|root||(null)|main|ends before")
        is None
    )
    assert planned(
        "9|PD|1|1795391873|1795394820|1795394821|Priority|grid||(null)|main|hanse:A:A/1/2"
    ) == (Taken(1, 1795394820.0, 1795394821.0),)
    endless = table("1|R|5|1795391863|1795391864|N/A|None|root|n1|(null)|main|one")
    queue = read_queue(endless, token=TOKEN, is_owner=owned, prefix=PREFIX, processors=128)
    assert queue.running == (Taken(5, -math.inf, math.inf),)


@given(st.text(alphabet="abc|\n =" + TOKEN, max_size=40))
def test_a_name_cannot_be_rows(name: str) -> None:
    """Whatever somebody calls a job, with line feeds and bars, no row comes of it but its own."""
    forged = f"9|R|1|1795342847|1795342848|1795342908|None|grid|n1|(null)|main|{PREFIX}A/1/99"
    text = table(
        f"5|PD|3|1795342787|N/A|N/A|Priority|mallory||(null)|main|{name}\n{forged}".split("\n")[0]
    )
    text += "\n".join(f"{name}\n{forged}".split("\n")[1:]) + "\n"
    assert read(text) == ({}, 3)


SHOWN = (
    "JobId=1 JobName=hanse:A:A/1/3 UserId=grid(7) GroupId=grid(7) Priority=0 JobState=FAILED "
    "Reason=JobLaunchFailure Dependency=(null) Requeue=1 Restarts=0 ExitCode=7:0 "
    "RunTime=00:00:01 SubmitTime=1795342786 EligibleTime=1795342787 AccrueTime=Unknown "
    "StartTime=1795342787 EndTime=1795342789 NodeList=n1 Command=./launch a JobState=COMPLETED "
    "WorkDir=/tmp Comment=x ExitCode=0:0 \n"
)


def test_one_job_is_read() -> None:
    """Arguments that look like fields come after the fields and change nothing."""
    ending = ending_of(read_job(SHOWN))
    assert ending is not None
    assert ending.start_time == 1795342787.0
    assert (ending.end.outcome, ending.end.exit_code, ending.end.signal, ending.end.run_time) == (
        Outcome.FAILED,
        7,
        None,
        2.0,
    )
    assert read_job(SHOWN)["AccrueTime"] == "Unknown"


@pytest.mark.parametrize(
    ("state", "code", "outcome", "exit_code", "signal"),
    [
        ("COMPLETED", "0:0", Outcome.COMPLETED, 0, None),
        ("FAILED", "0:11", Outcome.FAILED, None, 11),
        ("TIMEOUT", "0:0", Outcome.TIMEOUT, None, None),
        ("NODE_FAIL", "0:0", Outcome.NODE_FAIL, None, None),
        ("OUT_OF_MEMORY", "0:125", Outcome.OUT_OF_MEMORY, None, None),
        ("CANCELLED", "0:15", Outcome.CANCELLED, None, None),
        ("PREEMPTED", "0:0", Outcome.PREEMPTED, None, None),
    ],
)
def test_outcomes(
    state: str, code: str, outcome: Outcome, exit_code: int | None, signal: int | None
) -> None:
    """An exit code or a signal is told where the script has come to one."""
    fields = {"JobState": state, "ExitCode": code, "EndTime": "100", "StartTime": "90"}
    ending = ending_of({**fields, "NodeList": "n1"})
    assert ending is not None
    end = ending.end
    assert (end.outcome, end.exit_code, end.signal) == (outcome, exit_code, signal)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "REQUEUED", ""])
def test_a_requeued_job_has_not_ended(state: str) -> None:
    """The log has a line of each requeue; that is no end."""
    assert ending_of({"JobState": state, "EndTime": "100", "StartTime": "90"}) is None


@pytest.mark.parametrize(
    ("partition", "state", "reason", "outcome"),
    [
        ("guest", "F", "JobLaunchFailure", Outcome.PREEMPTED),
        ("guest", "F", "NonZeroExitCode", Outcome.FAILED),
        ("main", "F", "JobLaunchFailure", Outcome.FAILED),
        ("guest", "PR", "None", Outcome.PREEMPTED),
        ("guest", "CD", "None", Outcome.COMPLETED),
        ("guest", "CA", "None", Outcome.CANCELLED),
    ],
)
def test_guests_that_were_sent_off(
    partition: str, state: str, reason: str, outcome: Outcome
) -> None:
    """Slurm says so, or has forgotten it in a crash and finds the job on no node; the queue says all of the former."""
    row = f"{TOKEN}|9|{state}|2|1|1|9|{reason}|grid|n1|(null)|{partition}|{PREFIX}A/1/2"
    queue = read_queue(
        row,
        token=TOKEN,
        is_owner=owned,
        prefix=PREFIX,
        processors=16,
        preemptible=["guest", "guestp"],
    )
    (found,) = queue.rows
    assert found.end is not None
    assert found.partition == partition
    assert (found.end.outcome, found.end.run_time) == (outcome, 8.0)
    assert found.exact == (outcome is not Outcome.FAILED)
    names = {"F": "FAILED", "PR": "PREEMPTED", "CD": "COMPLETED", "CA": "CANCELLED"}
    fields = {"JobState": names[state], "Reason": reason, "Partition": partition}
    moments = {"StartTime": "1", "EndTime": "9", "NodeList": "n1", "ExitCode": "0:0"}
    ending = ending_of(fields | moments, preemptible=["guest", "guestp"])
    assert ending is not None
    assert ending.end.outcome is outcome


LOGGED = (
    "JobId=12 UserId=grid(7) GroupId=grid(7) Name=hanse:A:A/1/4 JobState=FAILED Partition=main "
    "TimeLimit=1 StartTime=2026-11-22T12:20:48 EndTime=2026-11-22T12:20:49 NodeList=n1 NodeCnt=1 "
    "ProcCnt=1 WorkDir=/tmp/a ReservationName= Tres=cpu=1,mem=16000M,node=1,billing=1 Account= "
    "QOS= WcKey= Cluster=unknown SubmitTime=2026-11-22T12:20:47 EligibleTime=2026-11-22T12:20:47 "
    "DerivedExitCode=0:0 ExitCode=0:11 \n"
)
SUBMITTED = 1795342847.0
"""10:20:47 UTC: the log's host is two hours ahead."""


def logged(*lines: str) -> list[str]:
    found = read_log(lines, is_owner=owned, prefix=PREFIX)
    ending = logged_ending(found, "12", SUBMITTED, 0.0)
    return [] if ending is None else [f"{ending.end.signal} {ending.start_time}"]


def test_the_log_is_read() -> None:
    """Its local times are understood by the moment of submission, which is known."""
    assert logged(LOGGED) == ["11 1795342848.0"]
    (line,) = read_log([LOGGED], is_owner=owned, prefix=PREFIX)
    ending = logged_ending([line], "12", None, -7200.0)
    assert ending is not None
    assert ending.end.end_time == 1795342849.0


def test_a_job_is_its_accounts() -> None:
    """One that somebody else has given the name of a job of the site's is none, in the table and in the log."""
    row = "{}|9|R|2|1|1|N/A|None|{}|n1|(null)|main|{}"
    users = [
        ("ann", "hanse:A:lent"),
        ("grid", "hanse:A:lent"),
        ("ann", "hanse:A:own"),
        ("eve", "hanse:A:own"),
    ]
    lines = "\n".join(row.format(TOKEN, user, name) for user, name in users)
    queue = read_queue(lines, token=TOKEN, is_owner=owned, prefix=PREFIX, processors=16)
    assert [row.name for row in queue.rows] == ["hanse:A:lent"]
    name = LOGGED.partition(" Name=")[2].split(" ")[0]
    user = LOGGED.partition("UserId=")[2].partition("(")[0]
    lent = LOGGED.replace(f" Name={name} ", " Name=hanse:A:lent ")
    assert read_log([lent], is_owner=owned, prefix=PREFIX) == []
    mine = lent.replace(f"UserId={user}(", "UserId=ann(")
    assert [line.name for line in read_log([mine], is_owner=owned, prefix=PREFIX)] == [
        "hanse:A:lent"
    ]


def test_a_number_used_twice_is_two_jobs() -> None:
    """Of another submission nothing is taken, nor of another number."""
    other = LOGGED.replace("SubmitTime=2026-11-22T12:20:47", "SubmitTime=2026-11-22T12:25:00")
    assert logged(other) == []
    assert logged(other, LOGGED) == ["11 1795342848.0"]
    assert logged(LOGGED.replace("JobId=12", "JobId=13")) == []


def test_a_requeue_in_the_log_is_passed_over() -> None:
    """The line after it counts."""
    assert logged(LOGGED.replace("JobState=FAILED", "JobState=PENDING"), LOGGED)


@pytest.mark.parametrize(
    "change",
    [
        ("UserId=grid(7)", "UserId=mallory(9)"),
        ("Name=hanse:A:A/1/4 ", "Name=x Name=hanse:A:A/1/4 "),
        ("JobState=FAILED", "JobState=COMPLETED JobState=FAILED"),
        (" ExitCode=0:11", ""),
    ],
)
def test_what_others_write_into_the_log_is_no_line(change: tuple[str, str]) -> None:
    """A line of somebody else, or a name that pretends to go on, is not taken."""
    assert logged(LOGGED.replace(*change)) == []


def test_of_lines_that_disagree_none_is_believed() -> None:
    """A name can contain a whole line; then the log does not say how the job ended."""
    assert logged(LOGGED, LOGGED.replace("ExitCode=0:11", "ExitCode=0:0")) == []


def test_accounting_is_read() -> None:
    """The last end of that name and submission."""
    text = (
        "12|FAILED|3:0|1795342847|1795342848|1795342850|n1|hanse:A:A/1/4\n"
        "12|COMPLETED|0:0|1795300000|1795342848|1795342850|n1|hanse:A:A/1/4\n"
        "13|COMPLETED|0:0|1795342847|1795342848|1795342850|n1|x|y\n"
    )
    ending = read_accounting(text, "hanse:A:A/1/4", "7", SUBMITTED)
    assert ending is not None
    assert ending.end.exit_code == 3
    by = "12|CANCELLED by 1000|0:0|1795342847|Unknown|1795342850|None assigned|hanse:A:A/1/4\n"
    ended = read_accounting(by, "hanse:A:A/1/4", "7", SUBMITTED)
    assert ended is not None
    assert (ended.start_time, ended.end.reason) == (None, "cancelled by 1000")
    assert read_accounting(text, "hanse:A:A/1/5", "7", None) is None
    element = "12|FAILED|3:0|1795342847|1795342848|1795342850|n1|hanse:A:A/1/2*\n"
    assert read_accounting(element, "hanse:A:A/1/2004", "12_4", SUBMITTED) == ending
    assert read_accounting(element, "hanse:A:A/1/2004", "12_5", SUBMITTED) is None


def test_every_state_has_its_phase() -> None:
    """What squeue can print of an ended job has an outcome, and of the others none."""
    ended = {state for state, phase in PHASES.items() if phase is LrmsPhase.ENDED}
    line = "9|{}|1|1795342847|1795342848|1795342849|None|grid|n1|(null)|main|hanse:A:A/1/1"
    for state in PHASES:
        queue = read_queue(
            table(line.format(state)),
            token=TOKEN,
            is_owner=owned,
            prefix=PREFIX,
            processors=4,
        )
        (row,) = queue.rows
        assert (row.end is not None) == (state in ended)
        assert row.end is None or row.end.outcome is not Outcome.UNKNOWN


def test_a_line_without_fields_has_none() -> None:
    """As when Slurm prints something else, or nothing."""
    assert read_job("") == read_job("slurm_load_jobs error\n") == {}


def test_a_preemption_in_the_log() -> None:
    """It is written as it begins; a failure of the same run is how a crash has left it, another end is not."""
    preempted = LOGGED.replace("FAILED", "PREEMPTED").replace("ExitCode=0:11", "ExitCode=0:0")

    def outcome(*lines: str) -> Outcome | None:
        found = read_log(lines, is_owner=owned, prefix=PREFIX)
        ending = logged_ending(found, "12", SUBMITTED, 0.0)
        return None if ending is None else ending.end.outcome

    assert outcome(preempted) is Outcome.PREEMPTED
    assert outcome(preempted, LOGGED) is Outcome.PREEMPTED
    assert outcome(preempted, LOGGED.replace("FAILED", "NODE_FAIL")) is Outcome.PREEMPTED
    assert outcome(preempted, LOGGED.replace("FAILED", "COMPLETED")) is None
    much_later = LOGGED.replace("EndTime=2026-11-22T12:20:49", "EndTime=2026-11-22T12:40:49")
    assert outcome(preempted, much_later) is None  # it has run on
    later = LOGGED.replace("StartTime=2026-11-22T12:20:48", "StartTime=2026-11-22T12:20:49")
    assert outcome(preempted, later) is None
