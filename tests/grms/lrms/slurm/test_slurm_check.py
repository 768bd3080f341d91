"""What is made of Slurm's answers about itself; `tests/grms/site/test_real_batch.py` asks a real one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.slurm.slurm import SlurmSettings
from grms.lrms.slurm.slurm_check import (
    ACCOUNTS_TRIED,
    SlurmCheck,
    clock,
    held,
    hidden,
    images,
    lent,
    options_taken,
    partitions,
    places,
    read_configuration,
    records,
    version,
)
from tests.grms.lrms.findings import told

CONFIGURATION = """Configuration data as of 1795356570
AccountingStorageType   = accounting_storage/none
JobCompLoc              = {log}
JobCompType             = jobcomp/filetxt
MinJobAge               = 300 sec
"""
PARTITION = (
    "PartitionName={} Default={} MaxTime={} PreemptMode=REQUEUE State={} TotalCPUs=4 TRES=cpu=4\n"
)

GOOD, DOUBT, MISSING = FindingLevel.GOOD, FindingLevel.DOUBT, FindingLevel.MISSING


def test_versions() -> None:
    """The one that was tried is good; any other is told."""
    told(version("slurm-wlm 22.05.8\n"), GOOD, "22.05.8")
    told(version("slurm 23.11.4\n"), DOUBT, "23.11.4")
    told(version("something\n"), DOUBT, "something")


def test_clocks() -> None:
    """A few seconds are between a question and its answer."""
    configuration = read_configuration(CONFIGURATION)
    told(clock(configuration, 1795356571.5), GOOD)
    told(clock(configuration, 1795356500.0), MISSING, "70 s ahead")
    told(clock(configuration, 1795356640.0), MISSING, "70 s behind")
    told(clock({"as of": "2026-11-22T14:09:30"}, 0.0), DOUBT, "2026-11-22T14:09:30")


@pytest.mark.parametrize(
    ("wanted", "levels", "words"),
    [
        ((), [GOOD], ["main: 4 processors, jobs of up to 24 h"]),
        (("long", "none"), [GOOD, MISSING], ["any length", "there is no 'none'"]),
        (("down",), [MISSING], ["down is DOWN"]),
    ],
)
def test_partitions(wanted: tuple[str, ...], levels: list[FindingLevel], words: list[str]) -> None:
    """Each that is named, or the default one."""
    rows = [
        {"PartitionName": name, "Default": default, "MaxTime": most, "State": state}
        | {"TotalCPUs": "4"}
        for name, default, most, state in (
            ("main", "YES", "1-00:00:00", "UP"),
            ("long", "NO", "UNLIMITED", "UP"),
            ("down", "NO", "1:00", "DOWN"),
        )
    ]
    for finding, level, word in zip(partitions(rows, wanted), levels, words, strict=True):
        told(finding, level, word)
    told(partitions(rows[1:], ())[0], MISSING, "there are: long, down")


def test_options() -> None:
    """Slurm's own words, where it would not take a job."""
    told(options_taken("own jobs", ["--ntasks=1"], Answer(0, b"", "Job 1 to start")), GOOD)
    refused = Answer(1, b"", "sbatch: error: x\nallocation failure: Invalid partition name\n")
    told(options_taken("own jobs", ["-p"], refused), MISSING, "Invalid partition name; with -p")
    drained = Answer(1, b"", "allocation failure: Requested node configuration is not available\n")
    told(options_taken("own jobs", ["-p"], drained), MISSING, "is not available", "sinfo -R")


def test_jobs_that_are_hidden() -> None:
    """From whoever is no operator; then a full machine looks like one without a queue."""
    for said in ("none", "", "usage,users"):
        assert hidden({"PrivateData": said}) == []
    (finding,) = hidden({"PrivateData": "accounts, jobs,usage"})
    told(finding, DOUBT, "takes the queue for empty", "Operator")
    (finding,) = hidden({"PrivateData": "jobs"}, own=True)
    told(finding, DOUBT, "never released", "Operator")


def test_records(tmp_path: Path) -> None:
    """The file that Slurm writes, and that can be read; else what is not known."""
    log = tmp_path / "log"
    configuration = read_configuration(CONFIGURATION.format(log=log))
    told(records(configuration, str(log)), MISSING, "No such file")
    log.touch()
    told(records(configuration, str(log)), GOOD)
    told(records(configuration, ""), DOUBT, "300 sec", str(log))
    other = configuration | {"JobCompType": "jobcomp/none"}
    told(records(other, ""), DOUBT, "jobcomp/filetxt in slurm.conf")
    told(records(other, str(log)), MISSING, "jobcomp/none")


@pytest.mark.parametrize(
    ("fields", "keep", "level", "words"),
    [
        (
            {"PriorityType": "priority/basic", "MaxJobCount": "10000"},
            True,
            GOOD,
            "count for MaxJobCount=10000",
        ),
        (
            {
                "PriorityType": "priority/basic",
                "MaxJobCount": "7",
                "AccountingStorageEnforce": "associations,limits",
            },
            True,
            GOOD,
            "count for MaxSubmitJobs and MaxJobCount=7",
        ),
        (
            {
                "PriorityType": "priority/multifactor",
                "AccountingStorageType": "accounting_storage/slurmdbd",
            },
            True,
            DOUBT,
            "ACCRUE_ALWAYS",
        ),
        ({"PriorityType": "priority/site"}, True, DOUBT, "PriorityType=priority/site"),
        ({}, False, GOOD, "behind all that wait then, as lrms.keep_places is false"),
    ],
)
def test_what_place_who_is_sent_home_has(
    fields: dict[str, str], keep: bool, level: FindingLevel, words: str
) -> None:
    """By the priorities of the cluster, and what a marker counts for."""
    told(places(fields, keep=keep), level, words)


@pytest.mark.parametrize(
    ("said", "found", "level", "words", "cure"),
    [
        (None, "", GOOD, "container image are refused: there is no oci.conf", ""),
        (None, "/etc/slurm/oci.conf", GOOD, "run in container images, by /etc/slurm/oci.conf", ""),
        (False, "/etc/slurm/oci.conf", GOOD, "refused, as lrms.images is false", ""),
        (True, "", DOUBT, "this host sees no oci.conf", "see that nodes have oci.conf"),
    ],
)
def test_whether_jobs_run_in_images(
    said: bool | None, found: str, level: FindingLevel, words: str, cure: str
) -> None:
    """The site's file goes before what this host sees, which may differ from what nodes have."""
    told(images(said=said, found=found), level, words, cure)


def test_holds() -> None:
    """Shorter than Slurm takes to write down what it has acknowledged."""
    told(held(6.0), GOOD)
    told(held(0.0), DOUBT, "0 s")


def programs(folder: Path, **texts: str) -> Programs:
    """Returns programs that are lines of shell."""
    for name in ("squeue", "sbatch", "scontrol", "scancel"):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{texts.get(name, 'echo slurm-wlm 22.05.8')}\n")
        path.chmod(0o755)
    return Programs({}, folder=str(folder))


async def findings(folder: Path, settings: SlurmSettings, **texts: str) -> dict[str, Finding]:
    """Returns what is found with such programs, by what it is about."""
    check = SlurmCheck(programs(folder, **texts), settings, 6.0, folder)
    return {finding.what: finding for finding in await check.findings()}


async def test_all_is_asked(tmp_path: Path) -> None:
    """And what is left in the folder is nothing."""
    answers = {
        "scontrol": "case $2 in config) printf '"
        + CONFIGURATION.format(log="/none").replace("\n", "\\n")
        + "';; *) printf '"
        + PARTITION.format("main", "YES", "1:00:00", "UP").replace("\n", "\\n")
        + "';; esac",
        "sbatch": "case $* in --version) ;; *--nice=5*) echo no >&2; exit 1;; esac",
    }
    settings = SlurmSettings("north", "me", guest_nice=5)
    found = await findings(tmp_path, settings, **answers)
    assert {what: finding.level for what, finding in found.items()} == {
        "version": GOOD,
        "clock": MISSING,
        "partition": GOOD,
        "own jobs": GOOD,
        "partners' jobs": MISSING,
        "preemption": GOOD,
        "places": DOUBT,
        "images": GOOD,
        "own users": DOUBT,
        "records": DOUBT,
        "hold": GOOD,
    }
    assert not (tmp_path / "check.sh").exists()
    named = SlurmCheck(
        programs(tmp_path, **answers), settings, 6.0, tmp_path, named=["acc", "main", "acc"]
    )
    more = [one for one in await named.findings() if one.what == "guests.translate"]
    (only,) = more
    told(only, MISSING, "no partition 'acc'", "name some of: main")


async def test_without_an_answer_nothing_more_is_asked(tmp_path: Path) -> None:
    """What follows would only say the same again."""
    settings = SlurmSettings("north", "me")
    found = await findings(tmp_path, settings, squeue="echo fatal: none >&2; exit 1")
    assert list(found) == ["programs"]
    told(found["programs"], MISSING, "fatal: none")
    found = await findings(tmp_path, settings, scontrol="test $1 = --version && exit; exit 1")
    assert list(found) == ["version", "controller"]
    empty = tmp_path / "empty"
    empty.mkdir()
    check = SlurmCheck(Programs({"PATH": "/none"}), settings, 6.0, empty)
    (finding,) = await check.findings()
    told(finding, MISSING, "no program squeue")


async def test_other_accounts_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by `sbatch --test-only` through sudo; its line is told where sudo refuses, and a few are enough."""
    bad = Finding("account", MISSING, "root is the system's", "name another")
    monkeypatch.setattr(
        "grms.lrms.slurm.slurm_check.check_account", lambda name: bad if name == "root" else None
    )
    both = (CONFIGURATION.format(log=tmp_path), PARTITION.format("main", "YES", "1:00", "UP"))
    shows = "case $2 in config) cat <<'END'\n{}END\n;; partition) cat <<'END'\n{}END\n;; *) echo x;; esac"
    runs = programs(tmp_path, scontrol=shows.format(*both))
    sudo = tmp_path / "sudo"
    sudo.write_text(
        "#!/bin/sh\n[ $3 = ann ] || { echo 'sudo: a password is required' >&2; exit 1; }\n"
    )
    sudo.chmod(0o755)
    names = ["ann", "bob", "root", *(f"user{number}" for number in range(20))]
    check = SlurmCheck(runs, SlurmSettings("north", "hanse"), 6.0, tmp_path, accounts=names)
    found = [finding for finding in await check.findings() if finding.what.startswith("account")]
    assert found[0] == bad
    told(found[1], MISSING, "bob: sudo: a password is required", "(bob) TIMEOUT=60 NOPASSWD: ")
    assert f"{tmp_path}/sbatch, {tmp_path}/scontrol, {tmp_path}/scancel" in found[1].cure
    assert len(found) == 1 + ACCOUNTS_TRIED - 1 + 1
    told(found[-1], GOOD, "jobs can be handed in as ann; 12 more were not tried")


async def test_own_users_are_tried(tmp_path: Path) -> None:
    """Those that are named, through sudo; without one the line for sudo is told, and what the daemon's account means."""
    both = (CONFIGURATION.format(log=tmp_path), PARTITION.format("main", "YES", "1:00", "UP"))
    shows = "case $2 in config) cat <<'END'\n{}END\n;; partition) cat <<'END'\n{}END\n;; *) echo x;; esac"
    runs = programs(tmp_path, scontrol=shows.format(*both))
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)

    async def said(users: Sequence[str] | None) -> list[Finding]:
        check = SlurmCheck(runs, SlurmSettings("north", "hanse"), 6.0, tmp_path, users=users)
        return [each for each in await check.findings() if each.what == "own users"]

    (finding,) = await said(())
    told(finding, DOUBT, "no user was tried", "ALL = (%users) TIMEOUT=60 NOPASSWD: ")
    (finding,) = await said(None)
    told(finding, DOUBT, "run as hanse: each can", "as-user")
    first, second, third = await said(("nobody", "daemon", "hanse-none"))
    told(first, MISSING, "nobody: sudo: a password is required", "hanse-users: ")
    assert "(nobody) TIMEOUT=60 NOPASSWD: " in first.cure
    told(second, MISSING, "daemon is an account of the system's")
    told(third, MISSING, "there is no local account hanse-none")
    sudo.write_text(
        "#!/bin/sh\ncase $5 in *scancel) echo \"Sorry, user hanse is not allowed to execute '$5' as nobody.\" >&2; exit 1; esac\n"
    )
    (finding,) = await said(("nobody",))
    told(finding, MISSING, "nobody: Sorry, user", "/scancel")
    sudo.write_text("#!/bin/sh\nexit 0\n")
    (finding,) = await said(("nobody",))
    told(finding, GOOD, "jobs can be submitted as nobody")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".lists")]


def test_why_an_account_cannot_hand_jobs_in() -> None:
    """By sudo, or by Slurm, which may know the account otherwise than its own."""
    answer = Answer(1, b"", "allocation failure: Invalid account or account/partition combination")
    told(lent("ann", answer, "LINE"), MISSING, "ann: allocation failure", "partitions")
    told(lent("ann", Answer(1, b"", "sudo: unknown user", by_sudo=True), "LINE"), MISSING, "LINE")
