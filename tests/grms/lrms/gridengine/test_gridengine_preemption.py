"""What a Grid Engine does with guests, by its queues as qconf 8.1.9 has printed them."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grms.lrms.base import LrmsJob
from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.checks import FindingLevel
from grms.lrms.exit_status import EVICTED
from grms.lrms.gridengine.gridengine import GridEngine, GridEngineSettings
from grms.lrms.gridengine.gridengine_adapter import GridEngineTable
from grms.lrms.gridengine.gridengine_check import ended_guests
from grms.lrms.gridengine.gridengine_nodes import read_grid_table, read_instances
from grms.lrms.gridengine.gridengine_preemption import (
    find_preemption,
    read_configurations,
    suspend_method,
    threshold,
    waiting_jobs,
)
from grms.lrms.gridengine.gridengine_preemption_lines import cell, site_file
from grms.lrms.gridengine.gridengine_request import Cell, Resource
from grms.lrms.gridengine.gridengine_text import WaitingRow, read_waiting
from grms.lrms.partitions import Partition
from grms.lrms.preemption import EndedBy, Preemption
from lrms_sim.workload.requests import Request

METHOD = suspend_method("/usr/bin/qdel")
MAIN = {"qname": "main", "subordinate_list": "guest=1", "slots": "8"}
GUEST = {"qname": "guest", "suspend_method": METHOD, "user_lists": "hanse_guests"}
HOSTS = {"main": {"a": 8, "b": 8}, "guest": {"a": 8, "b": 8}}
PRINTED = """qname                 main
hostlist              a \\
                      b
subordinate_list      guest=1
qname                 guest
suspend_method        /usr/bin/touch "`/usr/bin/printenv SGE_O_WORKDIR`/begun.evicted"; \\
                      /usr/bin/qdel $job_id || kill -9 -$job_pid
user_lists            hanse_guests
"""
JOB = """    <job_list state="pending">
      <JB_job_number>{number}</JB_job_number>
      <JAT_prio>{prio}</JAT_prio>
      <JB_name>{name}</JB_name>
      <JB_owner>ann</JB_owner>
      <state>{state}</state>
      <slots>2</slots>
{more}    </job_list>
"""
INSTANCE = """    <Queue-List>
      <name>{name}</name>
      <slots_used>{used}</slots_used>
      <slots_total>8</slots_total>
      {more}
      <resource name="slots" type="qc">{free}</resource>
    </Queue-List>
"""


def found(
    main: Mapping[str, str] = MAIN,
    guest: Mapping[str, str] = GUEST,
    hosts: Mapping[str, Mapping[str, int]] = HOSTS,
    name: str = "guest",
    **more: Mapping[str, str],
) -> Any:
    """Returns what happens to guests."""
    return find_preemption({"main": main, "guest": guest, **more}, hosts, ("main",), name)


def test_what_is_printed_is_read() -> None:
    """Lines that go on are one, and the method is the one that this site prints."""
    queues = read_configurations(PRINTED)
    assert queues["main"] == {"qname": "main", "hostlist": "a b", "subordinate_list": "guest=1"}
    assert queues["guest"] == {**GUEST}
    assert read_configurations("nothing") == {}
    assert found(queues["main"], queues["guest"]).preemption == Preemption(EndedBy.BATCH_SYSTEM)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": ""}, "names no queue of guests"),
        ({"name": "none"}, "there is no queue none"),
        ({"guest": {**GUEST, "suspend_method": "NONE"}}, "stopped, and keep their memory"),
        ({"guest": {**GUEST, "suspend_method": "SIGKILL"}}, "another one than grms lrms preemp"),
        ({"guest": {**GUEST, "suspend_method": f"{METHOD} #"}}, "another one than"),
        ({"main": {**MAIN, "subordinate_list": "NONE"}}, "of main has no guest"),
        ({"main": {**MAIN, "subordinate_list": "slots=8(guest:1:sr)"}}, "of main has no guest"),
        ({"main": {**MAIN, "subordinate_list": "NONE,[a=guest=1]"}}, "of main has no guest"),
        ({"main": {**MAIN, "subordinate_list": "guests=1"}}, "of main has no guest"),
        ({"main": {**MAIN, "subordinate_list": "guest"}}, "on a 7 slots of main and 8 of guest"),
        ({"main": {**MAIN, "subordinate_list": "guest=2"}}, "on a 1 slots of main and 8 of guest"),
        ({"hosts": {"main": {"a": 8}, "guest": {"c": 8}}}, "no queue of lrms.queues has hosts"),
    ],
)
def test_why_grid_engine_ends_none(changes: dict[str, Any], why: str) -> None:
    """Each reason is told, and the daemon ends some instead."""
    by = found(**changes)
    assert by.preemption.ended_by is EndedBy.DAEMON
    assert why in by.preemption.why
    (finding,) = ended_guests(by, "guest", ())
    assert finding.level is FindingLevel.DOUBT
    assert "the daemon deletes some" in finding.text
    assert "grms lrms preemption" in finding.cure


def test_guests_of_a_part_of_a_host() -> None:
    """They may stay beside own jobs as long as there are slots for all."""
    hosts = {"main": {"a": 8}, "guest": {"a": 3}}
    for number, by in (("6", EndedBy.BATCH_SYSTEM), ("7", EndedBy.DAEMON)):
        main = {**MAIN, "subordinate_list": f"other=1, guest={number}"}
        assert found(main, hosts=hosts).preemption.ended_by is by
    assert threshold({"subordinate_list": "guest"}, "guest", 8) == 8


def test_what_else_the_check_says() -> None:
    """Queues that the site's file does not name, who may use that of guests, and what hosts share besides slots."""
    hosts = {**HOSTS, "long": {"a": 8}, "far": {"c": 8}}
    by = found(hosts=hosts, guest={**GUEST, "user_lists": "NONE"}, long={}, far={})
    assert (by.unserved, by.open) == (("long",), True)
    good, *doubts = ended_guests(by, "guest", ["h_vmem"])
    assert good.level is FindingLevel.GOOD
    assert [each.level for each in doubts] == [FindingLevel.DOUBT] * 3
    for each, word in zip(doubts, ("guest=1 long", "user_lists", "h_vmem"), strict=True):
        assert word in f"{each.text} {each.cure}"
    assert [each.level for each in ended_guests(found(), "guest", ())] == [FindingLevel.GOOD]


def test_what_an_operator_runs() -> None:
    """The commands that are still to be run, and the table of the site's file."""
    bare = {"main": {"qname": "main"}, "long": {"qname": "long"}}
    (lines,) = cell(bare, ("main", "long"), "guest", METHOD, "hanse")
    assert lines.lines[0] == "qconf -au hanse hanse_guests"
    made = lines.lines[1]
    assert METHOD in made
    assert lines.lines[2:] == (
        "qconf -Aq guest.queue",
        "qconf -aattr queue subordinate_list guest=1 main",
        "qconf -aattr queue subordinate_list guest=1 long",
    )
    queues = {"main": MAIN, "guest": {**GUEST, "suspend_method": "NONE"}}
    (lines,) = cell(queues, ("main",), "guest", METHOD, "hanse")
    assert lines.lines[-1] == "qconf -Mq guest.queue"
    assert cell({"main": MAIN, "guest": GUEST}, ("main",), "guest", METHOD, "hanse") == []
    assert '# in [lrms]: queues = ["main", "long"]' in site_file(("main", "long"), "guest").lines


def test_the_method_in_a_shell(tmp_path: Path) -> None:
    """It marks the job's folder, whatever its name, and deletes the job; where that fails the processes are killed."""
    folder = tmp_path / "a job's folder"
    folder.mkdir()
    for code in (0, 1):
        qdel = tmp_path / f"qdel{code}"
        qdel.write_text(f"#!/bin/sh\necho $1 >>{tmp_path}/deleted\nexit {code}\n")
        qdel.chmod(0o755)
        victim = subprocess.Popen(["/bin/sleep", "300"], start_new_session=True)
        method = suspend_method(str(qdel)).replace("$job_id", "12")
        subprocess.run(  # noqa: S603  # what Grid Engine would run
            ["/bin/sh", "-c", method.replace("$job_pid", str(victim.pid))],
            env={"SGE_O_WORKDIR": str(folder)},
            check=True,
        )
        if code == 0:
            assert victim.poll() is None
            victim.kill()
        assert victim.wait(60) == -9
        (folder / EVICTED).unlink()
    assert (tmp_path / "deleted").read_text() == "12\n12\n"


def test_jobs_that_wait() -> None:
    """The most urgent first, with their limits and queues; a name is taken for none of them."""
    limit = '      <hard_request name="h_rt" resource_contribution="0.0">60</hard_request>\n'
    asks = "      <hard_req_queue>main@a</hard_req_queue>\n"
    spoof = limit.strip()
    text = "".join(
        JOB.format(number=number, prio=prio, name=name, state=state, more=more)
        for number, prio, name, state, more in (
            (1, "0.25", "late", "qw", ""),
            (2, "0.50", spoof, "qw", asks),
            (3, "0.50", "soon", "qw", limit),
            (4, "0.90", "held", "hqw", limit),
            (5, "0.90", "other", "qw", asks.replace("main", "long")),
        )
    )
    rows = read_waiting(text)
    assert [(row.number, row.limit_s, row.queues) for row in rows] == [
        ("5", None, ("long",)),
        ("2", None, ("main",)),
        ("3", 60.0, ()),
        ("1", None, ()),
    ]
    places = frozenset(["main@a", "main@b"])
    jobs = waiting_jobs(rows, HOSTS, ("main",))
    assert [job.number for job in jobs] == ["2", "3", "1"]
    assert jobs[1] == WaitingJob("3", 2, 1, 60.0, None, places, frozenset(["main"]))
    assert waiting_jobs([WaitingRow("a", "1", 1, None, ())], {}, ("main",)) == []


def test_where_guests_have_room() -> None:
    """On a host whose slots nobody uses, of whichever queue; an own job has room beside guests."""

    def instance(name: str, used: int, more: str = "") -> str:
        return INSTANCE.format(name=name, used=used, free=8 - used, more=more)

    text = (
        instance("main@a", 0)
        + instance("guest@a", 3)
        + instance("main@b", 1)
        + instance("guest@b", 0, "<state>S</state>")
    )
    text = f"<job_info>{text}</job_info>"
    assert read_instances(text) == HOSTS
    parts = tuple(Partition(name, "open", widest=16) for name in ("main", "guest"))
    known = Cell({"slots": Resource("INT", "<=", "YES")}, "smp", "$pe_slots")

    def starts(slots: int, queue: str = "", *, waits: bool = False) -> bool:
        table = read_grid_table(
            text, parts, known, {}, waiting=False, own=("main",), guests="guest", guests_wait=waits
        )
        return table.starts_now(Request(slots, partition=queue), 0.0)

    assert starts(8)
    assert starts(5, "guest")
    assert not starts(6, "guest")
    assert not starts(1, "guest", waits=True)
    assert starts(8, waits=True)


def test_where_guests_are_submitted() -> None:
    """To their queue if Grid Engine ends them there; else they are as own jobs."""
    system = GridEngine(
        Programs({}), GridEngineSettings("A", "hanse", "", ("main",), guests="guest")
    )
    job = LrmsJob("H/1/1", 2, 60.0, partner="H", preemptible=True)
    assert system.placed(job) == job
    system._preemption = found()  # as by a look
    request = system.placed(job).request
    assert request is not None
    assert (request.partition, request.processors) == ("guest", 2)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"preemption": {}}, "needs lrms.queues"),
        ({"preemption": {"queue": "main"}, "queues": ["main"]}, "cannot be one of lrms.queues"),
        ({"preemption": {"queue": "-x"}, "queues": ["main"]}, "is no name"),
        ({"preemption": {"wait_s": -1}, "queues": ["main"]}, "greater than or equal to 0"),
    ],
)
def test_tables_that_are_wrong(keys: dict[str, Any], why: str) -> None:
    """Own jobs are kept out of the queue of guests."""
    with pytest.raises(ValidationError, match=why):
        GridEngineTable.model_validate({"kind": "gridengine", **keys})
