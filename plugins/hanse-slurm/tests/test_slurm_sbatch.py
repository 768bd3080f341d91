"""sbatch of a site above a simulated machine, where a program answers as Slurm's own does."""

import asyncio
import socket
from pathlib import Path

import pytest

from grms.v1 import request_pb2
from hanse_slurm.sbatch import run_command
from tests.grms.cli.test_submit_cli import TAKEN, Slurm
from tests.grms.site.daemons import document, running
from tests.waiting import run


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Slurm's programs, and the variables of a site."""
    monkeypatch.setenv("HANSE_SOCKET", str(tmp_path / "home.sock"))
    for name in ("HANSE_JOB_ID", "SLURM_JOB_ID", "HANSE_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TOLD_ID", "HOME_ONLY", "SITES"):
        monkeypatch.delenv(f"HANSE_SLURM_{name}", raising=False)
    return Slurm(tmp_path, monkeypatch)


def test_a_job_is_handed_in_as_slurm_reads_it(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is printed as Slurm prints it, and nothing else; what does not travel is said if that is asked."""
    slurm.says("ntasks : 4", "time : 00:02:00", "mail-type : END")

    async def said(*words: str) -> str:
        assert await asyncio.to_thread(run_command, words) == 0
        printed = capsys.readouterr()
        assert printed.err == "" or "-v" in words
        return printed.err if "-v" in words else printed.out.splitlines()[-1]

    async def scene() -> None:
        async with running(document(slurm.folder), slurm.folder) as site:
            assert await said("-n", "4", "job.sh", "a", "-n") == "Submitted batch job 1"
            assert await said("--parsable", "job.sh") == "2"
            assert await said("--wrap", "true", "-d", "afterok:1:2") == "Submitted batch job 3"
            assert "it goes without --mail-type=END" in await said("-v", "job.sh")
            monkeypatch.setenv("HANSE_SLURM_TOLD_ID", "1")
            monkeypatch.setenv("HANSE_JOB_ID", "home-2")
            monkeypatch.setenv("SLURM_JOB_ID", "77")
            assert await said("--dependency=afterany:77", "job.sh") == "Submitted batch job 5"
            first, _, third, _, fifth = site.core.engine.state.jobs()
            assert (first.request.processors, first.request.requested_time) == (4, 120.0)
            assert [str(each) for each in third.dependencies] == [
                "afterok:home-1",
                "afterok:home-2",
            ]
            assert [str(each) for each in fifth.dependencies] == ["afterany:home-2"]
            payloads = [request_pb2.JobRequest.FromString(each.payload) for each in (first, fifth)]
            assert payloads[0].program.arguments == ["a", "-n"]
            assert [each.program.environment["HANSE_SLURM_TOLD_ID"] for each in payloads] == [
                "",
                "1",
            ]

    run(scene)
    assert slurm.asked[0] == "--test-only --verbose --verbose -n 4 ./job.sh a -n"


def test_what_slurm_alone_could_run_is_refused(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    """With each option and its reason; Slurm is asked for nothing but what it is."""
    slurm.says("ntasks : 4", "time : 00:02:00", "begin : now", "nodelist : n1")
    assert run_command(["job.sh"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "sbatch: error: it is not submitted for --begin=now: a partner is told no moment",
        "sbatch: error: it is not submitted for --nodelist=n1: a partner has other nodes",
        f"sbatch: error: Slurm's own command is {slurm.folder}/sbatch",
    ]
    slurm.says("ntasks : 4", code=1, rest="sbatch: error: Invalid account")
    assert run_command(["job.sh"]) == 1
    assert (
        "it is not submitted: a trial of it has ended with: Invalid account"
        in capsys.readouterr().err
    )
    assert all(line.startswith("--test-only") for line in slurm.asked)


def test_a_controller_that_does_not_answer_is_asked_again(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the time-out of calls lasts; nothing was submitted meanwhile."""
    slurm.says("ntasks : 4", code=1, rest="allocation failure: Transport endpoint is not connected")
    monkeypatch.setattr("hanse_slurm.sbatch._PAUSE_S", 0.01)
    monkeypatch.setenv("HANSE_TIMEOUT", "0.2")
    assert run_command(["job.sh"]) == 1
    assert "Transport endpoint is not connected" in capsys.readouterr().err
    assert len(slurm.asked) > 1
    monkeypatch.setenv("HANSE_TIMEOUT", "60")
    taken_at_the_third_try(slurm, "echo sbatch: error: Zero Bytes were transmitted >&2; exit 1")


def test_a_controller_that_does_not_know_its_nodes_yet_is_asked_again(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Slurm's own sbatch takes a job then; where all nodes are known the first answer counts."""
    monkeypatch.setattr("grms.cli.slurm_jobs.NODES_PAUSE_S", 0.01)
    sinfo = slurm.folder / "sinfo"
    known = sinfo.read_text()
    sinfo.write_text("#!/bin/sh\necho idle\necho unk*\n")
    unfit = "allocation failure: Requested node configuration is not available"
    taken_at_the_third_try(slurm, f"echo {unfit} >&2; exit 1")
    sinfo.write_text(known)
    slurm.says("ntasks : 4", code=1, rest=unfit)
    before = len(slurm.asked)
    assert run_command(["job.sh"]) == 1
    assert len(slurm.asked) == before + 1


def test_nodes_that_are_away_do_not_make_a_job_one_for_partners_alone(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slurm's own sbatch takes it, and it starts when they are back; so it is the site's as any other."""
    unfit = "allocation failure: Requested node configuration is not available"
    slurm.says("ntasks : 4", "time : 00:02:00", code=1, rest=unfit)

    async def scene() -> None:
        async with running(document(slurm.folder), slurm.folder) as site:
            for states in ("idle drain", "mix~ down*", "alloc idle*"):
                (slurm.folder / "sinfo").write_text(f"#!/bin/sh\nprintf '%s\\n' {states}\n")
                assert await asyncio.to_thread(run_command, ["-v", "job.sh"]) == 0
            assert [job.unfit for job in site.core.engine.state.jobs()] == [""] * 3

    run(scene)
    assert "for partners alone" not in capsys.readouterr().err


def taken_at_the_third_try(slurm: Slurm, otherwise: str) -> None:
    """Submits a job, where Slurm answers two trials by the commands `otherwise`."""
    slurm.says("ntasks : 4", "time : 00:02:00")
    own = slurm.folder / "sbatch"
    own.rename(slurm.folder / "answering")
    own.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")" && echo x >>tries\n'
        f'test "$(wc -l <tries)" -ge 3 || {{ {otherwise}; }}\nexec ./answering "$@"\n'
    )
    own.chmod(0o755)

    async def scene() -> None:
        async with running(document(slurm.folder), slurm.folder) as site:
            assert await asyncio.to_thread(run_command, ["job.sh"]) == 0
            assert len(list(site.core.engine.state.jobs())) == 1

    run(scene)
    assert len((slurm.folder / "tries").read_text().splitlines()) == 3


def test_variables_say_where_jobs_may_run(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any site by default; what makes no sense is refused before Slurm is asked."""
    slurm.says("ntasks : 4", "time : 00:02:00")

    async def scene() -> None:
        async with running(document(slurm.folder), slurm.folder) as site:
            for name, value in (("SITES", ""), ("SITES", " home, "), ("HOME_ONLY", "1")):
                monkeypatch.setenv("HANSE_SLURM_SITES", "")
                monkeypatch.setenv(f"HANSE_SLURM_{name}", value)
                assert await asyncio.to_thread(run_command, ["--parsable", "job.sh"]) == 0
            jobs = list(site.core.engine.state.jobs())
            assert [job.sites for job in jobs] == [(), ("home",), ("home",)]

    run(scene)
    asked = len(slurm.asked)
    monkeypatch.setenv("HANSE_SLURM_SITES", " ,")
    assert run_command(["job.sh"]) == 1
    assert "HANSE_SLURM_SITES= , names no site" in capsys.readouterr().err
    monkeypatch.setenv("HANSE_SLURM_SITES", "home")
    assert run_command(["job.sh"]) == 1
    assert "HANSE_SLURM_HOME_ONLY and HANSE_SLURM_SITES cannot both" in capsys.readouterr().err
    monkeypatch.setenv("HANSE_SLURM_HOME_ONLY", "yes")
    assert run_command(["job.sh"]) == 1
    assert "HANSE_SLURM_HOME_ONLY=yes must be 0 or 1" in capsys.readouterr().err
    assert len(slurm.asked) == asked


def test_a_site_that_does_not_answer_may_have_taken_the_job(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the status says so; where nobody listens it has not."""
    slurm.says("ntasks : 4", "time : 00:02:00")
    monkeypatch.setenv("HANSE_TIMEOUT", "0.3")
    assert run_command(["job.sh"]) == 1
    assert "no daemon answers" in capsys.readouterr().err

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(slurm.folder / "home.sock"))
        silent.listen()
        assert run_command(["job.sh"]) == 75
    said = capsys.readouterr()
    assert said.out == ""
    assert "look with squeue before you submit it again" in said.err
    assert "--key" not in said.err


def test_a_trial_says_what_would_become_of_the_job(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slurm's estimate first, then what the site says, on standard error alone."""
    slurm.says("ntasks : 4", "time : 00:02:00")

    async def scene() -> None:
        async with running(document(slurm.folder), slurm.folder) as site:
            assert await asyncio.to_thread(run_command, ["--test-only", "job.sh"]) == 0
            assert list(site.core.engine.state.jobs()) == []

    run(scene)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == TAKEN
    assert lines[1].startswith("sbatch: home: ")


@pytest.mark.parametrize(
    "words", [["--strange", "x", "job.sh"], ["--dependency=after:1", "job.sh"]]
)
def test_words_that_cannot_be_read_are_refused(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Before Slurm is asked."""
    assert run_command(words) == 1
    assert capsys.readouterr().err.startswith("sbatch: error: --")
    assert not (slurm.folder / "asked").exists()
