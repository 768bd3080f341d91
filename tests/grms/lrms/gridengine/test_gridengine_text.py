"""What Grid Engine 8.1.9 has printed, as recorded, and what people may write into it."""

import pytest

from grms.lrms.base import LrmsPhase
from grms.lrms.gridengine.gridengine_text import (
    IN_ERROR,
    phase_of,
    read_accounts,
    read_jobs,
    read_parts,
    read_queues,
    task_count,
)
from grms.lrms.partitions import Partition
from grms.util.outcomes import Outcome

PREFIX = "hanse+S+"

TABLE = """<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running">
      <JB_job_number>9</JB_job_number>
      <JAT_prio>0.25510</JAT_prio>
      <JB_name>hanse+S+A+1f+17</JB_name>
      <JB_owner>grid</JB_owner>
      <state>r</state>
      <JAT_start_time>2026-11-22T10:28:15</JAT_start_time>
      <queue_name>main@localhost</queue_name>
      <slots>2</slots>
      <full_job_name>hanse+S+A+1f+17</full_job_name>
      <requested_pe name="smp">2</requested_pe>
      <binding>NONE</binding>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>3</JB_job_number>
      <JAT_prio>0.75000</JAT_prio>
      <JB_name>wide</JB_name>
      <JB_owner>bob</JB_owner>
      <state>qw</state>
      <JB_submission_time>2026-11-22T10:28:15</JB_submission_time>
      <queue_name></queue_name>
      <slots>99</slots>
    </job_list>
    <job_list state="pending">
      <JB_job_number>4</JB_job_number>
      <JB_name>a<b&c "</JB_name>
      <JB_owner>bob</JB_owner>
      <state>qw</state>
      <JB_submission_time>2026-11-22T10:28:15</JB_submission_time>
      <slots>2</slots>
      <tasks>1-9:2,12</tasks>
    </job_list>
    <job_list state="pending">
      <JB_job_number>5</JB_job_number>
      <JB_name>hanse+S+A+1f+18</JB_name>
      <JB_owner>mallory</JB_owner>
      <state>qw</state>
      <JB_submission_time>2026-11-22T10:28:15</JB_submission_time>
      <slots>1</slots>
    </job_list>
    <job_list state="pending">
      <JB_job_number>1</JB_job_number>
      <JB_name>hanse+S+A+1f+19</JB_name>
      <JB_owner>grid</JB_owner>
      <state>hqw</state>
      <JB_submission_time>2026-11-22T10:28:15</JB_submission_time>
      <slots>2</slots>
    </job_list>
  </job_info>
</job_info>
"""


def test_the_table_is_read() -> None:
    """This site's jobs, and what waits of others: each task of an array, nothing too wide."""
    table = read_jobs(TABLE, account="grid", prefix=PREFIX, processors=16)
    runs, held = table.rows
    assert (runs.name, runs.number, runs.phase) == ("hanse+S+A+1f+17", "9", LrmsPhase.RUNNING)
    assert (runs.start_time, runs.submit_time, runs.processors) == (1795343295.0, None, 2)
    assert (held.phase, held.start_time, held.can_start) == (LrmsPhase.HELD, None, False)
    assert table.waiting_others == 6 * 2 + 1


def test_something_else_is_no_table() -> None:
    """An empty answer is no empty table."""
    for text in ("", "error: commlib error"):
        with pytest.raises(ValueError, match="not a table of jobs"):
            read_jobs(text, account="grid", prefix=PREFIX, processors=16)


@pytest.mark.parametrize(
    ("state", "phase", "why"),
    [
        ("Eqw", LrmsPhase.WAITING, IN_ERROR),
        ("hEqw", LrmsPhase.HELD, ""),
        ("hqw", LrmsPhase.HELD, ""),
    ],
)
def test_what_is_in_error_waits_and_is_held_by_nobody(
    state: str, phase: LrmsPhase, why: str
) -> None:
    """It does not start, and does not compete; somebody's hold comes first."""
    text = TABLE.replace("<state>r</state>", f"<state>{state}</state>", 1)
    row = read_jobs(text, account="grid", prefix=PREFIX, processors=16).rows[0]
    assert (row.phase, row.hindered, row.can_start, row.deferred) == (phase, why, False, False)
    other, before = (
        read_jobs(each, account="ann", prefix=PREFIX, processors=16) for each in (text, TABLE)
    )
    assert other.waiting_others == before.waiting_others


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("qw", LrmsPhase.WAITING),
        ("Rq", LrmsPhase.WAITING),
        ("hqw", LrmsPhase.HELD),
        ("Eqw", LrmsPhase.HELD),
        ("r", LrmsPhase.RUNNING),
        ("t", LrmsPhase.RUNNING),
        ("Rr", LrmsPhase.RUNNING),
        ("dr", LrmsPhase.RUNNING),
        ("hr", LrmsPhase.RUNNING),
        ("s", LrmsPhase.SUSPENDED),
        ("S", LrmsPhase.SUSPENDED),
        ("T", LrmsPhase.SUSPENDED),
        ("x", LrmsPhase.UNKNOWN),
    ],
)
def test_states(state: str, phase: LrmsPhase) -> None:
    """Letters of qstat(1)."""
    assert phase_of(state) is phase


@pytest.mark.parametrize(("text", "count"), [("3", 1), ("1-3:1", 3), ("1-9:2,12", 6), ("", 1)])
def test_tasks_are_counted(text: str, count: int) -> None:
    """As qstat lists those of an array."""
    assert task_count(text) == count


QUEUES = """<?xml version='1.0'?>
<job_info>
  <cluster_queue_summary>
    <name>main</name>
    <load>1.61719</load>
    <used>5</used>
    <resv>0</resv>
    <available>11</available>
    <total>24</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>8</manual_intervention>
  </cluster_queue_summary>
  <cluster_queue_summary>
    <name>other</name>
    <available>4</available>
    <total>4</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>0</manual_intervention>
  </cluster_queue_summary>
</job_info>
"""


def test_the_machine_is_read() -> None:
    """Of the queues that are used; what is out of order counts to its size only."""
    assert read_queues(QUEUES, ("main",)) == (16, 24, 11)
    assert read_queues(QUEUES, ()) == (20, 28, 15)
    with pytest.raises(ValueError, match="none of the queues nowhere"):
        read_queues(QUEUES, ("nowhere",))


LINE = (
    "main:localhost:grid:grid:hanse+S+A+1f+17:5:sge:0:1795343295:{}:1795343296:{}:{}:1:0.001384"
    ":0.009731:NONE:smp:2\n"
)


@pytest.mark.parametrize(
    ("failed", "status", "outcome", "code", "signal"),
    [
        (0, 0, Outcome.COMPLETED, 0, None),
        (0, 7, Outcome.FAILED, 7, None),
        (0, 137, Outcome.FAILED, 137, None),
        (100, 139, Outcome.FAILED, None, 11),
        (37, 137, Outcome.TIMEOUT, None, None),
        (26, 0, Outcome.FAILED, None, None),
    ],
)
def test_ends(
    failed: int, status: int, outcome: Outcome, code: int | None, signal: int | None
) -> None:
    """As the accounting file has them."""
    text = LINE.format(1795343294, failed, status)
    (line,) = read_accounts([text], account="grid", prefix=PREFIX)
    assert (line.name, line.number) == ("hanse+S+A+1f+17", "5")
    assert line.ending is not None
    end = line.ending.end
    assert (end.outcome, end.exit_code, end.signal, end.run_time) == (outcome, code, signal, 2.0)


def test_what_is_no_end_and_what_is_no_job_of_ours() -> None:
    """A job that runs anew has not ended; others' lines are passed over."""
    (line,) = read_accounts([LINE.format(1, 25, 0)], account="grid", prefix=PREFIX)
    assert line.ending is None
    (line,) = read_accounts([LINE.format(0, 0, 0)], account="grid", prefix=PREFIX)
    assert line.ending is not None
    assert (line.ending.start_time, line.ending.end.run_time) == (None, 0.0)
    assert read_accounts([LINE], account="bob", prefix=PREFIX) == []
    assert read_accounts(["# Version", LINE], account="grid", prefix="hanse+T+") == []


SUMMARY = """<cluster_queue_summary>
    <name>{}</name>
    <total>{}</total>
    <temp_disabled>0</temp_disabled>
    <manual_intervention>{}</manual_intervention>
</cluster_queue_summary>
"""


def test_queues_say_which_jobs_they_take() -> None:
    """A queue that is disabled or suspended as a whole starts none; the longest of a queue's limits counts."""
    summary = "".join(
        SUMMARY.format(*one) for one in (("main", 8, 0), ("off", 4, 4), ("half", 4, 2))
    )
    limits = (
        "qname                 main\nh_rt                  0:5:0\n\n"
        "qname                 off\nh_rt                  INFINITY\n"
        "qname                 half\nh_rt                  600,[n1=1:0:0], \\\n"
        "                      [n2=0:30:0]\ns_rt                  INFINITY\n"
    )
    main, off, half = read_parts(summary, limits, ()).each
    assert main == Partition("main", "open", longest_s=300.0, widest=8)
    assert off == Partition("off", "disabled or suspended", starts=False, widest=4)
    assert (half.starts, half.longest_s) == (True, 3600.0)
    assert read_parts(summary, limits, ("off",)).each == (off,)
    with pytest.raises(ValueError, match="has the limit 'soon'"):
        read_parts(summary, "qname main\nh_rt soon\n", ())
