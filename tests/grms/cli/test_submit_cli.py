"""Handing in jobs: of numbers, and those that are written for Slurm."""

import asyncio
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from grms.cli.handing_in import exit_status
from grms.cli.main import run_command
from grms.client import Client, Job, JobState, Outcome, SiteError
from grms.lrms.slurm.sbatch_words import UnknownOptionError
from grms.v1 import job_pb2, request_pb2
from tests.grms.cli.test_site_cli import grms
from tests.grms.site.daemons import document, running, two_sites


@pytest.mark.parametrize(
    ("outcome", "code", "signal", "status"),
    [
        (Outcome.COMPLETED, 0, None, 0),
        (Outcome.COMPLETED, None, None, 0),
        (Outcome.FAILED, 3, None, 3),
        (Outcome.FAILED, 0, 9, 137),
        (Outcome.TIMEOUT, 0, None, 1),
        (Outcome.LOST, None, None, 1),
    ],
)
def test_who_has_waited_has_the_jobs_exit_status(
    outcome: Outcome, code: int | None, signal: int | None, status: int
) -> None:
    """As a shell gives it; 1 where the job has none and did not complete."""
    state = JobState.ENDED
    job = Job("a-1", "", "ann", 1, 1.0, state, "a", 0.0, None, 1.0, outcome, False, "")
    assert exit_status(replace(job, exit_code=code, signal=signal)) == status


async def test_what_a_script_is_given_is_in_the_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, variables by value or from here, and the files that are wanted; all need a script."""
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n")
    monkeypatch.setenv("HERE", "a=b")
    async with running(document(tmp_path), tmp_path) as site:
        words: list[str | Path] = ["submit", "--site", tmp_path / "home.sock", "-p", "1"]
        words += ["-t", "60"]
        monkeypatch.chdir(tmp_path)
        Path("data").mkdir()
        Path("data/in").write_text("given")
        given = ["--env", "HERE", "--env", "X=", "--result", "a/b", "--input", "./data/in"]
        given += ["--input", str(script), "--", "one", "-two"]
        assert await grms(*words, "--script", script, *given) == 0
        (job,) = site.core.engine.state.jobs()
        program = request_pb2.JobRequest.FromString(job.payload).program
        assert program.arguments == ["one", "-two"]
        assert program.environment == {"HERE": "a=b", "X": ""}
        assert program.outputs == ["a/b"]
        assert [file.name for file in program.inputs] == ["data/in", "job.sh"]
        assert [file.size_bytes for file in program.inputs] == [5, 10]
        twice = ("--input", "job.sh")
        cases: tuple[tuple[tuple[str | Path, ...], str], ...] = (
            (("--result", "a"), "go with --script"),
            (("--script", script, "--env", "NOT_SET"), "NOT_SET is not set here"),
            (("--script", script, "--result", "../a"), "no name of a file"),
            (("--input", "data/in"), "go with --script"),
            (("--script", script, "--input", "none"), "there is no file none"),
            (("--script", script, "--input", "data/../job.sh"), "no name of a file"),
            (("--script", script, *twice, *twice), "job.sh comes twice"),
        )
        for more, text in cases:
            assert await grms(*words, *more) == 2
            assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-p", str(2**31)), "processors is 2147483648; 1 to 2147483647 are possible"),
        (("-p", "1", "--key", ""), "key is empty; leave it out"),
        (("-p", "1", "--script", "good.sh", "--run-time", "3"), "run_time_s is for a job without"),
        (("-p", "1", "--script", "bad.sh"), "byte 5 is not UTF-8"),
        (("-p", "1", "--name", "\udcff"), "--name"),
        (("-p", "1", "--checkpoint", "-1h", "--script", "good.sh"), "is no duration"),
        (("-p", "1", "--checkpoint", "soon", "--script", "good.sh"), "is no duration"),
        (
            ("-p", "1", "--checkpoint", "30d", "--checkpoint-file", "s", "--script", "good.sh"),
            "it must be from 1 s to the requested time",
        ),
        (("-p", "1", "--checkpoint", "5s", "--script", "good.sh"), "go together"),
        (("-p", "1", "--checkpoint-file", "s", "--script", "good.sh"), "go together"),
        (
            ("-p", "1", "--checkpoint", "5s", "--checkpoint-file", "../s", "--script", "good.sh"),
            "is no name of a file",
        ),
        (
            ("-p", "1", "--checkpoint", "5s", "--checkpoint-file", "/s", "--script", "good.sh"),
            "is no name of a file",
        ),
        (
            (
                "-p",
                "1",
                "--no-requeue",
                "--checkpoint",
                "5s",
                "--checkpoint-file=s",
                "--script=good.sh",
            ),
            "must not run a second time",
        ),
        (("-p", "1", "--checkpoint", "5s", "--checkpoint-file", "s"), "go with --script"),
        (("-p", "1", "--signal", "now@5"), "signal: 'NOW' is none"),
    ],
)
def test_what_no_site_could_take_is_said_before_it_is_asked(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    expected: str,
) -> None:
    """A wrong value is a wrong use of the command, with its reason and never a traceback."""
    monkeypatch.chdir(tmp_path)
    Path("good.sh").write_text("true", encoding="utf-8")
    Path("bad.sh").write_bytes(b"true\n\xff")
    site = ("--site", str(tmp_path / "home.sock"), "--timeout", "0.2", "-t", "5")
    assert run_command(["submit", *site, *words]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error


async def test_a_script_that_was_not_run_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A simulated batch system ends a job with a script, and does not pretend to have run it."""
    script = tmp_path / "job.sh"
    script.write_text("exit 1", encoding="utf-8")
    async with running(document(tmp_path), tmp_path):
        job = ("-p", "1", "-t", "0.05", "--wait", "--script", script)
        assert await grms("submit", "--site", tmp_path / "home.sock", *job) == 1
        told = capsys.readouterr().err
        assert "ended, not_run on home" in told
        assert "(simulated: its script was not run)" in told


async def test_a_job_is_for_the_sites_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a trial they are told as well; a name of no site is refused with those that there are."""
    async with two_sites(tmp_path) as (home, _):
        words = ["submit", "--site", str(tmp_path / "home.sock"), "-p", "1", "-t", "60"]
        assert await grms(*words, "--at", "away", "--test-only") == 0
        assert "\noffered to away: its user wants it at away\n" in capsys.readouterr().out
        assert await grms(*words, "--run-time", "0.05", "--at", "away", "--wait") == 0
        assert await grms(*words, "--run-time", "0.05", "--home-only") == 0
        assert [job.sites for job in home.core.engine.state.jobs()] == [("away",), ("home",)]
        capsys.readouterr()
        assert await grms(*words, "--at", "away", "--at", "nowhere") == 2
        assert "'nowhere': no site of that name; jobs are exchanged with away" in (
            capsys.readouterr().err
        )


async def test_an_answer_that_is_lost_leaves_the_outcome_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 75, and the words with which the same job is handed in again; then it is one job."""
    connections: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What the site says never comes back, but for what a connection begins with.
        connections[writer] = asyncio.current_task()
        there, to_site = await asyncio.open_unix_connection(tmp_path / "home.sock")

        async def back() -> None:
            if some := await there.read(65536):
                writer.write(some[:200])
            while await there.read(65536):
                pass

        coming = asyncio.create_task(back(), name="back")
        while some := await reader.read(65536):
            to_site.write(some)
        to_site.close()
        await coming
        writer.close()
        await asyncio.gather(to_site.wait_closed(), writer.wait_closed())

    async with running(document(tmp_path), tmp_path) as site:
        lossy = await asyncio.start_unix_server(swallow, tmp_path / "lossy.sock")
        job = ("-p", "1", "-t", "1", "--run-time", "0.05")
        where = ("--site", tmp_path / "lossy.sock", "--timeout", "2")
        assert await grms("submit", *where, *job) == 75
        out, error = capsys.readouterr()
        assert "home-1" not in out.splitlines()
        first, key = error.splitlines()[0].split()
        assert first == "key"
        assert f"hand it in again with --key {key}, and it is one job" in error
        lossy.close()
        for writer in connections:
            writer.close()
        await asyncio.gather(*filter(None, connections.values()))
        again = ("--site", tmp_path / "home.sock", "--key", key)
        assert await grms("submit", *again, *job) == 0
        out, error = capsys.readouterr()
        assert "home-1" in out.splitlines()
        assert f"key {key}" not in error  # whoever gives one knows it
        assert len(site.core.engine.state.memory.jobs) == 1


async def test_a_site_that_drains_has_not_taken_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so: nothing is open, and another time will do (status 75)."""
    async with running(document(tmp_path), tmp_path) as site:
        site_words = ("--site", tmp_path / "home.sock", "--timeout", "0.3")
        job = ("-p", "1", "-t", "1", "--run-time", "0.05")
        assert await grms("drain", *site_words[:2]) == 0
        capsys.readouterr()
        assert await grms("submit", *site_words, *job) == 75
        said = capsys.readouterr().err
        assert "this site is draining; try later" in said
        assert "not known" not in said
        assert not site.core.engine.state.memory.jobs


# --- jobs that are written for Slurm -------------------------------------------------------------

SBATCH = """#!/bin/sh
printf '%s\\n' "$*" >>{folder}/asked
case "$*" in
  *--test-only*) cat {folder}/said >&2; exit $(cat {folder}/code) ;;
  *) echo "Submitted batch job 7"; exit 3 ;;
esac
"""
"""Answers a trial as it was recorded, and takes any job."""

OPTIONS = """sbatch: defined options
sbatch: -------------------- --------------------
{options}sbatch: test-only           : set
sbatch: verbose             : 1
sbatch: -------------------- --------------------
sbatch: end of defined options
"""
TAKEN = (
    "sbatch: Job 9 to start at 2026-11-22T17:03:43 using 4 processors on nodes n1 in partition main"
)


class Slurm:
    """Slurm's programs, as far as a submission asks them, in a folder that comes first in PATH."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name, text in (
            ("sbatch", SBATCH.format(folder=folder)),
            ("sinfo", "#!/bin/sh\necho '30:00|infinite'\n"),
            ("job.sh", "#!/bin/sh\n#SBATCH -n 4\n"),
        ):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.chdir(folder)

    def says(self, *options: str, code: int = 0, rest: str = TAKEN) -> None:
        """Sets what a trial is answered."""
        lines = "".join(f"sbatch: {option}\n" for option in options)
        (self.folder / "said").write_text(OPTIONS.format(options=lines) + rest + "\n")
        (self.folder / "code").write_text(str(code))

    @property
    def asked(self) -> list[str]:
        """What sbatch was given, a line each."""
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Slurm's programs."""
    return Slurm(tmp_path, monkeypatch)


async def test_slurm_says_what_a_job_is(slurm: Slurm, capsys: pytest.CaptureFixture[str]) -> None:
    """Processors, limit, name and variables are as sbatch has read them; nothing is submitted there."""

    async def _submitted() -> str:
        words: list[str | Path] = ["submit", "--site", slurm.folder / "home.sock"]
        more = ("job-name : mine", "export : A=b", "mem : 100M", "output : /x", "open-mode : t")
        slurm.says("ntasks : 4", "time : 00:02:00", *more)
        own = ["--env", "C=d", "--result", "out", "--without", "mem"]
        assert await grms(*words, "-n", "4", *own, "job.sh", "one", "-t", "--wait") == 0
        said = capsys.readouterr().err
        slurm.says()
        assert await grms(*words, "job.sh") == 0
        return said

    async with running(document(slurm.folder), slurm.folder) as site:
        said = await _submitted()
        assert "at a partner --open-mode, --output: for grms fetch" in said
        assert "at a partner it goes without --mem=100M" in said
        first, second = site.core.engine.state.jobs()
        assert (first.request.processors, first.request.requested_time) == (4, 120.0)
        assert first.name == "mine"
        program = request_pb2.JobRequest.FromString(first.payload).program
        assert program.arguments == ["one", "-t", "--wait"]
        assert program.environment == {"A": "b", "C": "d"}
        assert program.outputs == ["out"]
        assert (program.merged, program.truncated) == (True, True)
        streams = request_pb2.JobRequest.FromString(first.payload).streams
        assert (streams.output, streams.error, streams.append) == ("/x", "", False)
        # Without a limit it has the partition's, without a name that of its file.
        assert (second.request.requested_time, second.name) == (1800.0, "job.sh")
    assert slurm.asked == [
        "--test-only --verbose --verbose -n 4 ./job.sh one -t --wait",
        "--test-only --verbose --verbose ./job.sh",
    ]


def test_what_a_partner_cannot_be_told_stays_with_sbatch(
    slurm: Slurm, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is handed over as it is, with all its options, and why is said; no site is asked."""
    slurm.says("begin : now+1", "reservation : mine", "mem : 1G")
    words = ["submit", "--site", str(slurm.folder / "nobody.sock")]
    assert run_command([*words, "--wait", "--mem=1G", "--begin=now+1", "job.sh", "x"]) == 3
    out, error = capfd.readouterr()
    assert out == "Submitted batch job 7\n"
    assert error.splitlines() == [
        "it stays at home for --begin=now+1: a partner is told no moment",
        "it stays at home for --reservation=mine: it is this cluster's",
    ]
    assert slurm.asked[-1] == "--wait --mem=1G --begin=now+1 ./job.sh x"
    # What only a site does is not left out in silence.
    assert run_command([*words, "--result", "a", "job.sh"]) == 2
    assert "--result: for a job that a site runs" in capfd.readouterr().err
    assert len(slurm.asked) == 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--env", "A=b", "job.sh"], "--env: for a job that a site runs; this one is for sbatch"),
        (["absent.sh"], "there is no script absent.sh"),
        (["--without", "array", "job.sh"], "it would be another job"),
        (["--later", "1", "job.sh"], "write it as --later=VALUE"),
        (["--without", "mem", "-p", "1", "-t", "60"], "goes with a job that is written for"),
        (["-t", "60"], "Missing option '-p / --processors'"),
        (["-p", "1"], "Missing option '-t / --time'"),
    ],
)
def test_what_cannot_be_handed_in_is_said(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    """With its cure, and nobody is asked for more."""
    slurm.says(code=1, rest="allocation failure: Invalid partition name specified")
    site = ["submit", "--site", str(slurm.folder / "nobody.sock")]
    assert run_command([*site, *words]) == 2
    assert text in capfd.readouterr().err


def test_what_a_trial_refuses_sbatch_decides(
    slurm: Slurm, capfd: pytest.CaptureFixture[str]
) -> None:
    """A partition that is down takes jobs all the same; what sbatch refuses too it says in its own words."""
    slurm.says(code=1, rest="allocation failure: Required partition not available (inactive)")
    site = ["submit", "--site", str(slurm.folder / "nobody.sock")]
    assert run_command([*site, "-p", "down", "job.sh"]) == 3
    out, error = capfd.readouterr()
    assert out == "Submitted batch job 7\n"
    assert error.startswith(
        "it stays at home: a trial of it has ended with: allocation failure: Req"
    )
    assert slurm.asked[-1] == "-p down ./job.sh"


def answer(out: str) -> list[str]:
    """Returns the lines of a command beside which daemons write their logs."""
    return [line for line in out.splitlines() if not line.startswith("20")]


async def test_a_trial_is_only_a_trial(slurm: Slurm, capfd: pytest.CaptureFixture[str]) -> None:
    """The site says where it would run it, sbatch when it could start here; nothing is submitted to either."""
    async with running(document(slurm.folder), slurm.folder) as site:
        words = ["submit", "--site", str(slurm.folder / "home.sock")]
        slurm.says("ntasks : 4", "time : 00:02:00")
        assert await grms(*words, "--test-only", "-n", "4", "job.sh") == 0
        out, error = capfd.readouterr()
        assert TAKEN in error.splitlines()
        (line,) = answer(out)
        assert line == (
            "home: 4 of 4 processors are free here, and nothing waits; there is no partner to ask"
        )
        (slurm.folder / "job.sh").write_text("#!/bin/sh\n#SBATCH --test-only\n")
        assert await grms(*words, "--array=1-3", "job.sh") == 0
        assert answer(capfd.readouterr().out) == [line]
        assert not list(site.core.engine.state.jobs())
    assert all("--test-only" in asked for asked in slurm.asked)


def test_a_trial_of_what_stays_with_sbatch_is_sbatchs(
    slurm: Slurm, capfd: pytest.CaptureFixture[str]
) -> None:
    """It says why it is not the site's, and no site is asked."""
    slurm.says("begin : now+1")
    site = ["submit", "--site", str(slurm.folder / "nobody.sock")]
    assert run_command([*site, "--test-only", "--begin=now+1", "job.sh"]) == 0
    error = capfd.readouterr().err
    assert "it stays at home for --begin=now+1" in error
    assert TAKEN in error
    assert slurm.asked[-1] == "--test-only --begin=now+1 ./job.sh"


async def test_a_trial_of_numbers_says_who_would_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Home is full, so the partner is next; it hears nothing, and what it would say nobody knows."""
    async with two_sites(tmp_path) as (home, away), Client(tmp_path / "home.sock") as site:
        words = ["submit", "--site", str(tmp_path / "home.sock"), "--test-only"]
        words += ["-p", "2", "-t", "60", "--run-time", "1"]
        assert await grms(*words, "--key", "k") == 0
        assert answer(capsys.readouterr().out) == [
            "home: 4 of 4 processors are free here, and nothing waits; its policy for away has it run here"
        ]
        long = await site.submit(processors=4, requested_time_s=99, run_time_s=60.0, key="k")
        assert await grms(*words) == 0
        assert answer(capsys.readouterr().out) == [
            "offered to away: 0 of 4 processors are free here, and nothing waits",
            "whether one of them accepts is not known: a partner hears of a job when it is offered",
            "if none accepts: home",
        ]
        assert await grms(*words, "-d", f"afterany:{long.job_id}") == 0
        assert answer(capsys.readouterr().out)[0] == (
            f"held first: waits for afterany:{long.job_id}; what follows is by the load of now"
        )
        with pytest.raises(SiteError, match="belongs to another submission, home-1"):
            await site.preview(processors=2, requested_time_s=99, run_time_s=60.0, key="k")
        same = await site.preview(processors=4, requested_time_s=99, run_time_s=60.0, key="k")
        assert same.known == long.job_id
        assert await grms(*words, "-d", "home-7") == 2
        assert "no job 'home-7'" in capsys.readouterr().err
        assert [job.job_id async for job in site.jobs()] == [long.job_id]
        assert away.core.engine.state.partners["home"].guest_offered == 0
        assert home.core.engine.state.partners["away"].offered == 0


def test_a_script_may_be_wrapped_or_come_by_standard_input(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with sbatch; a job of numbers does not read what stands there."""
    site = ["submit", "--site", str(slurm.folder / "nobody.sock"), "--timeout", "0.1"]
    slurm.says("wrap : echo hi", "begin : now+1")
    assert run_command([*site, "--wrap=echo hi", "-n4"]) == 3
    assert "it stays at home for --begin=now+1: " in capfd.readouterr().err
    assert slurm.asked[-1] == "--wrap=echo hi -n4"
    given = io.TextIOWrapper(io.BytesIO(b"#!/bin/sh\ncat\n"))
    monkeypatch.setattr("sys.stdin", given)
    assert run_command([*site, "-p", "1", "-t", "60"]) == 2  # nobody answers
    assert given.read() == "#!/bin/sh\ncat\n"
    given.seek(0)
    slurm.says("begin : now+1")
    assert run_command([*site, "-p", "main", "-t", "60", "--begin=now+1"]) == 3
    assert slurm.asked[-1] == "-p main -t 60 --begin=now+1"


@pytest.mark.parametrize(
    ("script", "argument", "text"),
    [
        (b"#!/bin/sh\n" + b"# x\n" * 70_000, "", "its script: it has 280010 bytes"),
        (b"#!/bin/sh\n# \xff\n", "", "its script: it, or an argument, is not UTF-8"),
        (b"#!/bin/sh\n", "\udcff", "its script: it, or an argument, is not UTF-8"),
    ],
)
def test_a_script_that_no_site_takes_is_for_sbatch(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], script: bytes, argument: str, text: str
) -> None:
    """It would be refused when the job is known everywhere already."""
    (slurm.folder / "job.sh").write_bytes(script)
    slurm.says("ntasks : 4")
    site = ["submit", "--site", str(slurm.folder / "nobody.sock")]
    assert run_command([*site, "job.sh", argument]) == 3
    assert f"it stays at home for {text}" in capfd.readouterr().err


def test_more_variables_than_a_message_has_are_for_sbatch(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of them is left out in silence."""
    for number in range(3):
        monkeypatch.setenv(f"LONG_{number}", "x" * 100_000)
    slurm.says("ntasks : 4")
    assert run_command(["submit", "--site", str(slurm.folder / "nobody.sock"), "job.sh"]) == 3
    assert (
        "it stays at home for its environment: a site takes 262144 bytes" in capfd.readouterr().err
    )


async def test_how_a_job_was_handed_in_goes_to_its_site_alone(
    slurm: Slurm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder, variables, limits and options; not of a job whose files are not all in that folder."""
    monkeypatch.setenv("SECRET", "x")
    async with running(document(slurm.folder), slurm.folder) as site:
        words: list[str | Path] = ["submit", "--site", slurm.folder / "home.sock"]
        rest = f"sbatch: debug:  propagating RLIMIT_CORE=0\n{TAKEN}"
        slurm.says("job-name : mine", "time : 2:00", "nodes : 1", "export : ALL,A=b", rest=rest)
        given = ["--env", "C=d", "--without", "nodes"]
        assert await grms(*words, *given, "job.sh") == 0
        told = capsys.readouterr().err
        assert "at a partner it goes without --nodes=1" in told
        assert "at a partner it has no variables but those named: --export=ALL,A=b" in told
        slurm.says("time : 2:00", "export : NONE")
        assert await grms(*words, "job.sh") == 0
        slurm.says("time : 2:00")
        assert await grms(*words, "--input", str(slurm.folder / "job.sh"), "job.sh") == 0
        jobs = site.core.engine.state.jobs()
        first, second, third = (request_pb2.JobRequest.FromString(job.payload) for job in jobs)
        assert (first.program.name, first.home.folder) == ("mine", str(slurm.folder))
        assert dict(first.program.environment) == {"A": "b", "C": "d"}
        assert first.home.options == ["--nodes=1"]
        variables = set(first.home.environment)
        assert variables >= {b"SECRET=x", b"A=b", b"C=d", b"SLURM_RLIMIT_CORE=0"}
        assert b"SLURM_EXPORT_ENV=ALL,A=b" in variables
        assert second.home.options == ["--get-user-env"]
        assert set(second.home.environment) == {b"SLURM_EXPORT_ENV=NONE"}
        assert not third.HasField("home")
        listed = await site.jobs.List(job_pb2.ListRequest())
        assert b"SECRET" not in listed.SerializeToString()


def test_a_job_without_any_limit_is_not_guessed_at(
    slurm: Slurm, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its user says how long it may run."""
    (slurm.folder / "sinfo").write_text("#!/bin/sh\necho 'n/a|infinite'\n")
    slurm.says("ntasks : 4")
    assert run_command(["submit", "--site", str(slurm.folder / "nobody.sock"), "job.sh"]) == 2
    assert "say how long it may run with --time" in capfd.readouterr().err


def test_without_slurm_the_other_form_is_named(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that was meant for --script is the likeliest cause."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert run_command(["submit", "--site", str(slurm.folder / "nobody.sock"), "job.sh"]) == 2
    assert "without Slurm say -p, -t and --script" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "is_of_numbers"),
    [
        (("-W", "--key", "-t", "--processors", "2"), True),
        (("--home-only", "--at=a", "--script=job.sh", "-p", "1"), True),
        (("--at", "--processors", "job.sh"), False),  # the name of a site
        (("--wait", "job.sh", "--processors", "2"), False),  # the script's own
        (("-n", "2", "--", "--script"), False),
    ],
)
def test_only_what_may_be_for_slurm_is_split_as_sbatch_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_of_numbers: bool
) -> None:
    """Each command's start counts: one of numbers alone loads nothing of Slurm's."""
    split: list[list[str]] = []

    def fail(given: list[str], _own: object) -> None:
        split.append([*given])  # click takes its own away
        raise UnknownOptionError

    monkeypatch.setattr("grms.lrms.slurm.sbatch_words.split_words", fail)
    site = ("--site", str(tmp_path / "nobody.sock"), "--timeout", "0.01")
    assert run_command(["submit", *site, *words]) != 0
    assert split == ([] if is_of_numbers else [[*site, *words]])


# --- arrays and dependencies ---------------------------------------------------------------------


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    # What the command has printed, without what the daemon beside it has logged.
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("home-")]


async def test_an_array_and_what_waits_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are printed alone; held elements that wait for the same are one line of the list."""
    monkeypatch.setenv("COLUMNS", "200")
    async with running(document(tmp_path), tmp_path):
        site: list[str | Path] = ["--site", tmp_path / "home.sock"]
        words: list[str | Path] = ["submit", *site, "-p", "2", "-t", "60", "--run-time", "50"]
        assert await grms(*words, "--array", "1-9:2,20%2", "--name", "sides") == 0
        assert await grms(*words, "--parsable", "-d", "afterok:home-1,afterany:home-1_3") == 0
        assert _printed(capsys) == ["home-1", "home-7"]
        assert await grms("jobs", *site) == 0
        lines = _printed(capsys)
        assert [line.split()[0] for line in lines] == [
            *("home-1_1", "home-1_3", "home-1_[5-9:2,20]", "home-7")
        ]
        assert lines[2].endswith("sides (waits for room in its array: 2 elements at a time)")
        assert lines[3].endswith("(waits for afterok:home-1, afterany:home-1_3)")
        assert await grms("jobs", *site, "--state", "held", "--json") == 0
        out = capsys.readouterr().out.splitlines()
        held = [json.loads(line) for line in out if line.startswith("{")]
        assert [each["array_index"] for each in held] == [5, 7, 9, 20, None]
        assert held[-1]["dependencies"] == ["afterok:home-1", "afterany:home-1_3"]
        assert await grms("status", "home-1", *site) == 0
        shown = capsys.readouterr().out
        assert "0 of 6 elements completed, 0 not, 2 under way, 4 held" in shown
        assert await grms("cancel", "home-1_[1,20]", *site) == 0
        assert await grms("cancel", "home-1", *site) == 0
        capsys.readouterr()
        assert await grms("watch", "home-7", *site) == 0
        told = capsys.readouterr().out
        assert "ended, cancelled" in told
        assert "its dependency afterok:home-1 cannot be met" in told


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--array", "3-1"), "array '3-1': '3-1' has no elements"),
        (("--array", "1-4%0"), "after % comes how many may run at a time"),
        (("-d", "before:home-1"), "none that a site knows; there are afterok"),
        (("--dependency", "afterok"), "needs a job, as in afterok:a-12"),
    ],
)
def test_what_is_no_array_or_dependency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    """It is said before a site is asked."""
    site = ("--site", str(tmp_path / "home.sock"), "--timeout", "0.2", "-p", "1", "-t", "5")
    assert run_command(["submit", *site, *words]) == 2
    assert text in " ".join(capsys.readouterr().err.split())


async def test_an_array_written_for_slurm_is_the_sites(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slurm reads its indices; of jobs of the site it is not asked, and one on its own jobs is for it."""
    async with running(document(slurm.folder), slurm.folder) as site:
        words: list[str | Path] = ["submit", "--site", slurm.folder / "home.sock"]
        slurm.says("ntasks : 1", "array : 1-3%1", "time : 00:02:00")
        assert await grms(*words, "-a", "1-3%1", "job.sh") == 0
        slurm.says("ntasks : 1", "time : 00:02:00", "dependency : singleton")
        after = ("--dependency=afterok:home-1", "--dependency=singleton")
        assert await grms(*words, "-d", "afterany:home-1_2", "-n", "1", "job.sh") == 0
        assert _printed(capsys) == ["home-1", "home-4"]
        assert await grms(*words, *after, "job.sh") == 0
        jobs = list(site.core.engine.state.jobs())
        assert [job.job_id for job in jobs[:3]] == ["home-1_1", "home-1_2", "home-1_3"]
        assert [str(each) for each in jobs[3].dependencies] == [*("afterany:home-1_2", "singleton")]
        program = request_pb2.JobRequest.FromString(jobs[1].program).program
        assert program.environment["HANSE_ARRAY_TASK_ID"] == "2"
        assert program.environment["HANSE_ARRAY_JOB_ID"] == "home-1"
        assert slurm.asked[1:] == [
            "--test-only --verbose --verbose -n 1 ./job.sh",
            "--test-only --verbose --verbose --dependency=singleton ./job.sh",
        ]
        slurm.says("ntasks : 1", "time : 00:02:00", "begin : now+1")
        assert await grms(*words, "-d", "afterok:home-1", "--begin=now+1", "job.sh") == 2
        assert "--dependency: for a job that a site runs" in capsys.readouterr().err
        assert await grms(*words, "-d", "afterok:home-1:7", "job.sh") == 2
        assert "one cannot wait for both" in " ".join(capsys.readouterr().err.split())
