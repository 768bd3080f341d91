"""Which of Slurm's jobs are at a site's disposal, and which of them can go."""

from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.base import LrmsRefusedError
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.checks import FindingLevel
from grms.lrms.native_jobs import NativeJobRow
from grms.lrms.slurm.slurm_native_jobs import (
    NO_JOB,
    SlurmNativeJobs,
    check_rights,
    read_rows,
    read_wanted,
)
from grms.lrms.slurm.slurm_text import read_job
from lrms_sim.workload.requests import Memory, Request

TABLE = """t|1|PD|1000|ann|Resources|main|grid
t|2|PD|1000|ann|JobHeldUser|main|grid
t|3|PD|1000|ann|JobHeldUser|main|grid:held
t|4|PD|1000|ann|JobHeldAdmin|main|grid
t|5|R|1000|ann|None|main|grid
t|6|CA|1000|ann|JobHeldAdmin|main|(null)
t|7|PD|1000|bob|Priority|main|no grid
t|8|PD|1000|bob|Priority|far|x|y
t|9_[0-9]|PD|1000|ann|Priority|main|grid
t|10|PD|1000|eve|Priority|main|a
x|11|PD|1000|ann|Priority|main|grid
t|12|PD|N/A|ann|Priority|main|grid
t|13|PD|1000|4711|Priority|main|grid
t|14|PD|1000|nobody|Priority|main|grid
"""
"""Job 10 has a comment with a line feed, which looks like a row."""


def test_rows() -> None:
    """By the whole comment or the partition; no arrays, nothing that its own user holds, nothing of who has no name now."""
    rows = read_rows(TABLE, token="t", comment="grid", partition="far")
    assert [row.number for row in rows if row.offered] == ["1", "3", "5", "8"]
    by_number = {row.number: row for row in rows}
    assert sorted(by_number) == ["1", "10", "13", "14", "2", "3", "4", "5", "6", "7", "8"]
    assert [row.number for row in rows if row.held_here] == ["4"]
    assert by_number["6"].cancelled
    assert not by_number["6"].held_here
    assert by_number["8"].user == "bob"
    assert by_number["1"].word == "1@1000"
    assert not any(row.offered for row in read_rows(TABLE, token="t", comment="", partition=""))


SHOWN = (
    "JobId=3 JobName=job.sh UserId=root(0) Priority=0 JobState=PENDING Reason=JobHeldAdmin "
    "Dependency=(null) TimeLimit=1-00:03:00 ReqNodeList=(null) ExcNodeList=(null) NodeList= NumNodes=1 "
    "NumCPUs=3 NumTasks=3 CPUs/Task=1 TRES=cpu=3,mem=1000M,node=1 CoreSpec=* MinCPUsNode=1 "
    "MinMemoryNode=0 MinTmpDiskNode=0 Features= OverSubscribe=OK Contiguous=0 Licenses= Network=(null) "
    "Command=/tmp/job.sh WorkDir=/tmp Comment=grid StdErr=/tmp/slurm-3.out Power= \n"
)


def test_what_a_partner_can_be_told_goes() -> None:
    """Processors, time and script; what it asks for besides, where it does."""
    wanted = read_wanted(read_job(SHOWN), "#!/bin/sh\ntrue\n\n\n")
    assert (wanted.processors, wanted.requested_time_s) == (3, 86580.0)
    assert (wanted.name, wanted.script, wanted.reason) == ("job.sh", "#!/bin/sh\ntrue\n", "")
    assert wanted.request == Request(3, wall_time=86580.0, requeue=False)


ASKS = SHOWN.replace("Features=", "Features=fast").replace("MinMemoryNode=0", "MinMemoryCPU=100M")


@pytest.mark.parametrize(
    ("partition", "watched", "part", "request_"),
    [
        ("main", "", "Default=YES DefMemPerCPU=100", Request(3, features=("fast",))),
        ("main", "", "Default=YES DefMemPerNode=UNLIMITED", Request(3, features=("fast",))),
        (
            "main",
            "",
            "Default=YES DefMemPerCPU=50",
            Request(3, features=("fast",), memory=Memory(100)),
        ),
        ("far", "far", "Default=NO DefMemPerCPU=100", Request(3, features=("fast",))),
        (
            "far,main",
            "far",
            "DefMemPerCPU=100",
            Request(3, features=("fast",), partition="far,main"),
        ),
        ("long", "", "DefMemPerCPU=100", Request(3, features=("fast",), partition="long")),
    ],
)
async def test_what_slurm_fills_in_is_not_what_a_job_asks_for(
    tmp_path: Path, partition: str, watched: str, part: str, request_: Request
) -> None:
    """The default partition, the one that puts a job at the site's disposal, and the usual memory."""
    shown = ASKS.replace("Power=", f"Partition={partition}").strip()
    rules = (
        "DefMemPerCPU = 100\nJobRequeue = 0\nSelectType = select/cons_tres\n"
        "SelectTypeParameters = CR_CORE_MEMORY"
    )
    script = (
        f"case \"$2\" in job) echo '{shown}';; partition) echo 'PartitionName=x {part}';; "
        f"config) echo '{rules}';; *) echo '#!/bin/sh';; esac"
    )
    system = SlurmNativeJobs(
        slurm(tmp_path, scontrol=script, scancel=""), comment="", partition=watched
    )
    row = NativeJobRow("3", 1000, "ann", True, False, True, True, True)
    wanted = await system.wanted(row)
    assert wanted.request == replace(request_, wall_time=86580.0)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("job.sh WorkDir", "job.sh a b WorkDir", "it has arguments"),
        ("Command=/tmp/job.sh", "Command=(null)", "no script"),
        ("Features=", "Features=fast|slow", "--constraint"),
        ("Dependency=(null)", "Dependency=afterok:1(unfulfilled)", "--dependency: afterok"),
        ("ReqNodeList=(null)", "ReqNodeList=n1", "--nodelist: n1"),
        ("MinTmpDiskNode=0", "MinTmpDiskNode=1G", "--tmp: 1G"),
        ("Power=", "Power= Reservation=r", "--reservation: r"),
        ("TimeLimit=1-00:03:00", "TimeLimit=UNLIMITED", "no time limit"),
    ],
)
def test_what_it_cannot_be_told_keeps_a_job_at_home(old: str, new: str, reason: str) -> None:
    """With what it was."""
    assert old in SHOWN
    assert reason in read_wanted(read_job(SHOWN.replace(old, new)), "#!/bin/sh\n").reason


def test_what_says_nothing_is_refused() -> None:
    """Of another version, or another job."""
    with pytest.raises(LrmsRefusedError, match="cannot be read"):
        read_wanted(read_job("JobId=3 NumCPUs=x"), "")


def test_a_script_that_is_not_handed_out_is_none() -> None:
    """Slurm says so with status 0; a job without a script must not run elsewhere."""
    with pytest.raises(LrmsRefusedError, match="no script"):
        read_wanted(read_job(SHOWN), "\n\n")


def slurm(folder: Path, *, rows: str = "", scontrol: str, scancel: str) -> Programs:
    """Returns Slurm's programs as a few lines of shell; what they are asked is noted."""
    texts = {"squeue": f"cat <<'END'\n{rows}END", "scontrol": scontrol, "scancel": scancel}
    for name, text in texts.items():
        (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{folder}/asked\n{text}\n')
        (folder / name).chmod(0o755)
    return Programs({}, folder=str(folder))


NOT_THERE = "echo 'slurm_update error: Invalid job id specified' >&2; exit 1"
DENIED = "echo 'job script retrieval failed: Invalid user id' >&2"
WRITES = f'case "$*" in *{NO_JOB}*) {NOT_THERE};; *" 5 "*) {{}};; *) echo none >&2; exit 1;; esac'
ROWS = "4_[0-9]|eve\n3|hanse\n4|bob\n5|ann\n"


@pytest.mark.parametrize(
    ("rows", "scontrol", "level", "text"),
    [
        (ROWS, WRITES.format("echo '#!/bin/sh'"), FindingLevel.GOOD, "seen by job 5"),
        (ROWS, WRITES.format(DENIED), FindingLevel.MISSING, "user's job 5: job script"),
        ("3|hanse\n", WRITES.format("exit 0"), FindingLevel.DOUBT, "no job of another user's"),
    ],
)
async def test_rights_are_seen_by_what_changes_nothing(
    tmp_path: Path, rows: str, scontrol: str, level: FindingLevel, text: str
) -> None:
    """By the script of another user's job; one without a script shows nothing, and the next is asked for."""
    programs = slurm(tmp_path, rows=rows, scontrol=scontrol, scancel=NOT_THERE)
    (finding,) = await check_rights(programs, "hanse")
    assert finding.level is level
    assert text in finding.text
    assert bool(finding.cure) == (level is not FindingLevel.GOOD)
    for line in (tmp_path / "asked").read_text().splitlines():
        assert NO_JOB in line or line.startswith(("squeue ", "scontrol write batch_script "))


async def test_each_line_that_sudo_lacks_is_told(tmp_path: Path) -> None:
    """What stands before Slurm's program refuses in words of its own."""
    lacks = "echo 'sudo: a password is required' >&2; exit 1"
    scontrol = f'case "$1" in hold|update) {lacks};; *) {NOT_THERE};; esac'
    found = await check_rights(slurm(tmp_path, scontrol=scontrol, scancel=lacks), "hanse")
    assert [finding.text.partition(":")[0] for finding in found] == [
        "scontrol hold N",
        "scontrol update JobId=N AdminComment=hanse-check",
        "scancel --state=PENDING N",
    ]
    for finding in found:
        assert finding.level is FindingLevel.MISSING
        assert "a password is required" in finding.text
        assert "lrms.watch.programs" in finding.cure
    (tmp_path / "scancel").unlink()
    found = await check_rights(Programs({"PATH": str(tmp_path)}), "hanse")
    assert "there is no program scancel" in found[-1].text
