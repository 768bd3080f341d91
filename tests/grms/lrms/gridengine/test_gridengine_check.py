"""What is made of Grid Engine's answers about itself, as 8.1.9 has given them."""

from pathlib import Path

import pytest

from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.checks import FindingLevel
from grms.lrms.gridengine.gridengine import GridEngineSettings
from grms.lrms.gridengine.gridengine_check import (
    PROGRAMS,
    GridEngineCheck,
    flush,
    options_taken,
    parallel,
    queue,
    read_fields,
    submit_host,
    version,
)
from tests.grms.lrms.findings import told

GOOD, DOUBT, MISSING = FindingLevel.GOOD, FindingLevel.DOUBT, FindingLevel.MISSING

QUEUE = """qname                 main
hostlist              localhost
pe_list               make smp
slots                 32
calendar              NONE
h_rt                  INFINITY
"""
ENVIRONMENT = "pe_name            smp\nslots              999\nallocation_rule    $pe_slots\n"
CELL = "#global:\nmailer  /usr/bin/mail\nreporting_params  accounting=true reporting=false \\\n  flush_time=00:00:20\n"


def test_versions() -> None:
    """The one that was tried is good; any other is told."""
    told(version("SGE 8.1.9\nusage: qstat [options]\n"), GOOD, "8.1.9")
    told(version("OGS/GE 2011.11p1\n"), DOUBT, "2011.11")
    told(version("something\n"), DOUBT, "something")


def test_rights() -> None:
    """Without a submit host nobody submits."""
    told(submit_host("login localhost\n", ""), GOOD, "login, localhost")
    told(submit_host("", "denied"), MISSING, "denied", "qconf -as")


def test_queues() -> None:
    """One that is there, with the parallel environment of the site."""
    told(queue("main", read_fields(QUEUE), ["main"], "smp"), GOOD, "32 slots, jobs of up to any")
    told(
        queue("main", read_fields(QUEUE), ["main"], "mpi"),
        MISSING,
        "qconf -aattr queue pe_list mpi main",
    )
    told(queue("none", None, ["main", "long"], "smp"), MISSING, "main, long")
    limit = QUEUE.replace("INFINITY", "24:00:00")
    told(queue("main", read_fields(limit), ["main"], "smp"), GOOD, "up to 24:00:00")
    nights = QUEUE.replace("calendar              NONE", "calendar night")
    told(queue("main", read_fields(nights), ["main"], "smp"), DOUBT, "calendar")


def test_parallel_environments() -> None:
    """With slots; one that has none runs nothing."""
    told(parallel("smp", read_fields(ENVIRONMENT)), GOOD, "999 slots, $pe_slots")
    told(parallel("smp", read_fields(ENVIRONMENT.replace("999", "0"))), MISSING, "0 slots")
    told(parallel("mpi", None), MISSING, "no parallel environment 'mpi'", "qconf -spl")


def test_options() -> None:
    """The complaint is Grid Engine's own."""
    told(options_taken("own jobs", ["-l", "h_rt=60"], Answer(0, b"verification: ok\n", "")), GOOD)
    refused = Answer(
        1,
        b"",
        'Unable to run job: Job was rejected because job requests unknown queue "x"\nExiting.',
    )
    told(options_taken("own jobs", ["-q", "x"], refused), MISSING, 'unknown queue "x"', "-q x")


@pytest.mark.parametrize(
    ("params", "records_s", "level", "word"),
    [
        ("accounting=true reporting=false", 30.0, GOOD, "every 15 s"),
        ("accounting=true reporting=false", 10.0, MISSING, "records_s = 31"),
        ("accounting=true flush_time=00:01:00", 30.0, MISSING, "every 60 s"),
        ("flush_time=00:01:00 accounting_flush_time=00:00:05", 30.0, GOOD, "every 5 s"),
        ("accounting=false", 30.0, MISSING, "accounting=true"),
    ],
)
def test_records(params: str, records_s: float, level: FindingLevel, word: str) -> None:
    """A site that waits too short a time would call ended jobs unknown."""
    told(flush({"reporting_params": params}, records_s), level, word)
    told(flush(read_fields(CELL), 30.0), GOOD, "every 20 s")


def programs(folder: Path, qconf: str) -> Programs:
    """Returns programs that answer as Grid Engine's do."""
    for name in PROGRAMS:
        (folder / name).write_text("#!/bin/sh\necho SGE 8.1.9\n")
        (folder / name).chmod(0o755)
    (folder / "qconf").write_text(f"#!/bin/sh\n{qconf}\n")
    return Programs({}, folder=str(folder))


async def test_all_of_it(tmp_path: Path) -> None:
    """In the order in which one needs the other; nothing is left in the folder of the jobs."""
    for name, text in (("queue", QUEUE), ("smp", ENVIRONMENT), ("cell", CELL)):
        (tmp_path / f"{name}.txt").write_text(text)
    qconf = (
        f"case $1 in -sql) echo main;; -ss) echo login;; -sq) cat {tmp_path}/queue.txt;; "
        f"-sp) cat {tmp_path}/smp.txt;; -sconf) cat {tmp_path}/cell.txt;; esac"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "spool").mkdir()
    settings = GridEngineSettings("a", "ann", "")
    run = programs(tmp_path / "bin", qconf)
    check = GridEngineCheck(run, settings, 30.0, tmp_path / "spool")
    found = await check.findings()
    assert [finding.level for finding in found] == [GOOD] * 9
    what = ["version", "submit hosts", "queue", "parallel", "own jobs", "partners' jobs"]
    assert [finding.what for finding in found] == [*what, "preemption", "places", "flush"]
    told(found[-3], GOOD, "run to their ends", "grms lrms preemption")
    told(found[-2], GOOD, "its waiting time counts from then on")
    assert list((tmp_path / "spool").iterdir()) == []
    named = GridEngineCheck(run, settings, 30.0, tmp_path / "spool", named=["main", "acc"])
    more = [one for one in await named.findings() if one.what == "guests.translate"]
    (only,) = more
    told(only, MISSING, "no queue 'acc'", "name some of: main")
    away = programs(tmp_path / "bin", "echo unable to contact qmaster >&2; exit 1")
    found = await GridEngineCheck(away, settings, 30.0, tmp_path / "spool").findings()
    assert [finding.what for finding in found] == ["version", "master"]
    told(found[-1], MISSING, "unable to contact qmaster")
    (tmp_path / "bin/qhold").unlink()
    nothing = Programs({"PATH": ""}, folder=str(tmp_path / "bin"))
    (found_one,) = await GridEngineCheck(nothing, settings, 30.0, tmp_path / "spool").findings()
    told(found_one, MISSING, "no program qhold", "gridengine-client")
