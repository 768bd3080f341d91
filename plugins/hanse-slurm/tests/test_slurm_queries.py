"""squeue, sacct, scancel and scontrol about jobs of a site above a simulated machine."""

import asyncio
import json
import pwd
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from grms.client import Client
from grms.client.unary import Connections
from grms.v1 import job_pb2
from hanse_slurm import sacct, scancel, scontrol, squeue
from hanse_slurm.users import own_name
from tests.grms.site.daemons import Running, document, running
from tests.programs import run_program
from tests.waiting import until

PROGRAMS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "squeue": squeue.run_command,
    "sacct": sacct.run_command,
    "scancel": scancel.run_command,
    "scontrol": scontrol.run_command,
}
_LOG_LINE: Final = re.compile(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[.*\n")
LONG: Final = {"processors": 1, "requested_time_s": 5400.0, "run_time_s": 3000.0}


@dataclass
class Scene:
    """A site, its client, and what the programs have printed."""

    site: Running
    client: Client
    capsys: pytest.CaptureFixture[str]

    async def said(self, *words: str, status: int = 0) -> str:
        """Runs a program, and returns what it has printed; errors where its status is not 0."""
        code = await asyncio.to_thread(PROGRAMS[words[0]], words[1:])
        printed = self.capsys.readouterr()
        assert code == status, printed
        # The site's log goes to standard output as well.
        return printed.err if status else _LOG_LINE.sub("", printed.out)

    async def submitted(self, **more: Any) -> str:
        """Submits a job, and returns its number."""
        return (await self.client.submit(**{**LONG, **more})).job_id.rpartition("-")[2]

    async def runs(self, number: str) -> None:
        """Returns when a job runs."""
        await until(lambda: self.state(number) == "RUNNING")

    def state(self, number: str) -> str:
        """Returns the state of a job at the site."""
        return str(self.site.core.engine.state.memory.jobs[int(number)].shown.name)


Made = Callable[..., AbstractAsyncContextManager[Scene]]


@pytest.fixture
def scene(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Made:
    """Returns what makes a scene."""
    monkeypatch.setenv("HANSE_SOCKET", str(tmp_path / "home.sock"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("HANSE_JOB_ID", "SLURM_TIME_FORMAT", "HANSE_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)

    @asynccontextmanager
    async def made(**more: Any) -> AsyncIterator[Scene]:
        async with (
            running(document(tmp_path, **more), tmp_path) as site,
            Client(tmp_path / "home.sock") as client,
        ):
            yield Scene(site, client, capsys)

    return made


async def test_jobs_are_chosen_by_what_options_say(scene: Made) -> None:
    """Names, states, users and sites; several have to hold, and of each one has to."""
    async with scene() as it:
        a = await it.submitted(name="a", processors=2)
        b = await it.submitted(name="b")
        c = await it.submitted(name="c", processors=4)
        await it.runs(a)
        await it.runs(b)

        async def found(*words: str) -> list[str]:
            text = await it.said("squeue", "-h", "-o", "%i", *words)
            return text.split()

        assert await found() == [c, a, b]
        assert await found("-n", "a,c") == [c, a]
        assert await found("--name=a", "--name", "b", "-t", "R", "--me") == [a, b]
        assert await found("-t", "PD") == [c]
        assert await found("-u", own_name(), "-j", f"{a},home-{c}") == [c, a]
        assert await found("-t", "TO,F") == []
        assert await found("-p", "main") == await found("-A", "x") == await found("-q", "y") == []
        assert await found("-M", "home") == await found("-M", "all") == [c, a, b]
        assert await found("-M", "other") == []
        assert await found("-j") == [c, a, b]
        assert (await it.said("squeue", "-M", "home", "-o", "%i", "-n", "a")) == (
            f"CLUSTER: home\nJOBID\n{a}\n"
        )
        assert await found("-S", "-i", "-a", "--local") == [c, b, a]
        assert await found("-S", "-j") == [c, b, a]


async def test_variables_say_what_options_do(scene: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is typed counts more; one that no site knows is refused, and never ends more than it says."""
    async with scene() as it:
        runs = await it.submitted(name="runs", processors=4)
        await it.runs(runs)
        waits = await it.submitted(name="waits", processors=4)
        monkeypatch.setenv("SQUEUE_FORMAT", "%i|%T")
        monkeypatch.setenv("SQUEUE_STATES", "PENDING")
        assert await it.said("squeue") == f"JOBID|STATE\n{waits}|PENDING\n"
        words = ("squeue", "-h", "-t", "R", "-O", "State:|")
        assert await it.said(*words) == "RUNNING|\n"
        monkeypatch.setenv("SQUEUE_STATES", "all")
        monkeypatch.setenv("SQUEUE_SORT", "-i")
        assert await it.said("squeue", "-ho%i") == f"{waits}\n{runs}\n"
        monkeypatch.setenv("SACCT_FORMAT", "jobname")
        assert await it.said("sacct", "-nP") == "runs\nwaits\n"
        names = (await it.said("sacct", "--helpformat")).split()
        assert {"JobID", "State", "ExitCode"} <= set(names)
        every = await it.said("sacct", "-P", "-o", f"{','.join(names)},", "-j", runs)
        assert every.splitlines()[0].split("|") == names
        brief = f"{runs}|RUNNING|0:0\n{waits}|PENDING|0:0\n"
        assert await it.said("sacct", "-nPb") == brief
        monkeypatch.setenv("SCANCEL_STATE", "PENDING")
        monkeypatch.setenv("SCANCEL_BATCH", "F")
        await it.said("scancel", runs, waits)
        await until(lambda: it.state(waits) == "ENDED")
        shown = await it.said("squeue", "-h", "-j", f"{runs},{waits}", "-S", "i")
        assert shown == f"{runs}|RUNNING\n{waits}|CANCELLED\n"
        monkeypatch.setenv("SCANCEL_BATCH", "T")
        assert "SCANCEL_BATCH=T is not known" in await it.said("scancel", runs, status=1)
        monkeypatch.setenv("SQUEUE_LICENSES", "x")
        assert "SQUEUE_LICENSES=x is not known" in await it.said("squeue", status=1)


async def test_operators_see_others_jobs(scene: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all, or of a user by name or number; whoever runs the site is one of them."""
    async with scene() as it:
        number = await it.submitted(name="theirs")
        job = it.site.core.engine.state.memory.jobs[int(number)]
        monkeypatch.setattr(job, "user", "daemon")
        await it.submitted(name="mine")
        for user in ("daemon", str(pwd.getpwnam("daemon").pw_uid)):
            assert await it.said("squeue", "-h", "-o", "%j %u", "-u", user) == "theirs daemon\n"
        words = ("sacct", "-n", "-X", "-P", "-o", "jobname,user")
        assert await it.said(*words) == f"mine|{own_name()}\n"
        assert await it.said(*words, "-a") == f"theirs|daemon\nmine|{own_name()}\n"
        assert "Invalid user: no-such-user" in await it.said(
            "sacct", "-u", "no-such-user", status=1
        )


async def test_what_a_site_refuses_is_an_error(
    scene: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its words, with Slurm's status; a job that is not there is none for scancel."""

    def refuses(code: str) -> None:
        refusal = job_pb2.JobRefusal(code=code, reason="it says so")
        answer = job_pb2.JobAnswer(refusal=refusal)
        said = {
            "GetMany": job_pb2.GetManyResponse(answers=[answer]),
            "CancelMany": job_pb2.CancelManyResponse(answers=[answer]),
        }

        def ask(_: object, method: str, *__: object) -> bytes:
            return said[method.rpartition("/")[2]].SerializeToString()

        monkeypatch.setattr(Connections, "ask", ask)

    async with scene() as it:
        refuses("PERMISSION_DENIED")
        assert "it says so" in await it.said("squeue", "-j", "1", status=1)
        text = await it.said("scancel", "1", status=1)
        assert text == "scancel: error: Kill job error on job id 1: it says so\n"
        assert await it.said("scancel", "-Q", "1", status=1) == ""
        refuses("NOT_FOUND")
        assert "Invalid job id" in await it.said("squeue", "-j", "1", status=1)
        assert await it.said("scancel", "1") == ""
        monkeypatch.setattr(Connections, "ask", lambda *_: b"\xff")
        assert "is no site" in await it.said("squeue", status=1)


async def test_accounts_are_of_a_span_of_time(scene: Made) -> None:
    """Jobs that were open in it, or named; in columns, with bars, or with what is told between them."""
    async with scene() as it:
        short = await it.submitted(run_time_s=0.01, name="a|b")
        await it.client.wait(short)
        long = await it.submitted(name="a long name of it")
        await it.runs(long)

        async def found(*words: str) -> list[str]:
            text = await it.said("sacct", "-n", "-P", "-o", "jobid", *words)
            return text.split()

        assert await found() == [short, long]
        assert await found("-S", "now+1hours") == [long]
        assert await found("-E", "now-1hours") == []
        assert await found("-s", "CD", "-S", "now-1days") == [short]
        assert await found("-j", f"{short},999") == [short]
        # Steps are not a site's: nothing is said of them, and not all is.
        assert await found("-j", f"{short}.0,{long}.batch") == []
        assert await found("-j", f"{short}.0,{long}") == [long]
        assert await found("--name", "nobody") == []
        wide = await it.said("sacct", "-b", "-j", long)
        assert wide == (
            "       JobID      State ExitCode \n"
            "------------ ---------- -------- \n"
            f"{long:>12}    RUNNING      0:0 \n"
        )
        assert await it.said("sacct", "-n", "-o", "jobname%8,jobname%-4,state%3") == (
            "     a|b a|b  CO+ \na long + a l+ RU+ \n"
        )
        text = await it.said("sacct", "-p", "--delimiter=;", "-j", long, "-o", "User,NCPUS")
        assert text == f"User;NCPUS;\n{own_name()};1;\n"
        every = ",".join(field.name for field in sacct._FIELDS.values())
        assert len((await it.said("sacct", "-n", "-P", "-j", long, "-o", every)).split("|")) == len(
            sacct._FIELDS
        )
        assert "Invalid field" in await it.said("sacct", "-o", "nothing", status=1)
        assert "Invalid width" in await it.said("sacct", "-o", "jobid%x", status=1)
        assert "--units is not known" in await it.said("sacct", "--units=K", status=1)


async def test_queues_as_json(scene: Made) -> None:
    """One object for each job, elements too, with Slurm's names."""
    async with scene() as it:
        number = await it.submitted(array="1-3%1", name="some")
        document = json.loads(await it.said("squeue", "--json"))
        assert document["errors"] == []
        assert sorted(job["array_task_id"] for job in document["jobs"]) == [1, 2, 3]
        job = document["jobs"][0]
        assert (job["job_id"], job["array_job_id"]) == (int(number), int(number))
        assert (job["name"], job["time_limit"], job["cpus"]) == ("some", 90, 1)
        assert "--json with a format" in await it.said("squeue", "--json", "-o", "%i", status=1)


async def test_cancelling(scene: Made) -> None:
    """Jobs, elements, and what filters choose; what is over needs none, what runs elsewhere is asked to end."""
    async with scene() as it:
        numbers = [await it.submitted(name=f"n{at}") for at in range(4)]
        array = await it.submitted(array="1-5", name="array")
        assert await it.said("scancel", numbers[0], f"{array}_[2-3]", f"{array}_5") == ""
        for name in (numbers[0], f"{array}_2", f"{array}_3", f"{array}_5"):
            assert (await it.client.wait(name)).outcome == "cancelled"
        assert not (await it.client.get(f"{array}_4")).cancel_requested
        assert await it.said("scancel", "-n", "n1,array", "--signal", "TERM", "-f") == ""
        assert (await it.client.wait(numbers[1])).outcome == "cancelled"
        assert (await it.client.wait(array)).has_ended
        assert await it.said("scancel", numbers[0], "999") == ""
        assert await it.said("scancel", "-t", "R", numbers[2], numbers[3]) == ""
        for number in numbers[2:]:
            assert (await it.client.wait(number)).outcome == "cancelled"
        assert await it.said("scancel", "--me") == ""
        for wrong in (["-s", "USR1", "1"], ["-b", "1"], ["-i", "1"]):
            assert "is not known" in await it.said("scancel", *wrong, status=1)


async def test_jobs_one_by_one(scene: Made) -> None:
    """All of them, one, or elements; other words of scontrol are for Slurm's own, which is not here."""
    async with scene() as it:
        assert await it.said("scontrol", "show", "job") == "No jobs in the system\n"
        number = await it.submitted(name="one")
        array = await it.submitted(array="7-8", name="two")
        await it.runs(number)
        text = await it.said("scontrol", "show", "job")
        assert text.count("UserId=") == 3
        one = await it.said("scontrol", "-o", "show", f"job={number}")
        assert f"JobId={number} JobName=one UserId={own_name()}(" in one
        assert "JobState=RUNNING Reason=None" in one
        assert "TimeLimit=01:30:00" in one
        text = await it.said("scontrol", "sho", "jobid", f"{array}_8", "-d")
        assert f"JobId={array} ArrayJobId={array} ArrayTaskId=8 JobName=two\n" in text
        for words in (["show", "partition"], ["ping"], ["--help"], [], ["show"]):
            assert "none along PATH" in await it.said("scontrol", *words, status=1)
        assert "show step is not known" in await it.said("scontrol", "show", "step", status=1)
        for words in (
            ["show", "j", number],
            ["sho", "jobi", number],
            ["-M", "home", "sh", "jo"],
        ):
            assert "JobName=one" in await it.said("scontrol", *words)
        # Beginnings of words, and words behind the value of an option: Slurm's own would do it to its job of that number.
        for text in (
            *(
                "s job 1",
                "not 1 x",
                "rel 1",
                "su 1",
                "requ 1",
                "-u root hold 1",
                "-M home hold 1",
            ),
            *("u job=1 nice=5", "update nice=5 JobId=1", "update StepId=1.0 timelimit=5"),
        ):
            said = await it.said("scontrol", *text.split(), status=1)
            assert "is not known for the jobs of a site" in said
        for text in ("-u hold ping", "update NodeName=n1 weight=3", "rec"):
            assert "none along PATH" in await it.said("scontrol", *text.split(), status=1)


def test_a_site_that_is_not_there_is_an_error(
    tmp_path: Path, scene: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its socket, once the time of a call is over; and so is a socket that nobody names."""
    del scene
    monkeypatch.setenv("HANSE_TIMEOUT", "0.1")
    for words in (("squeue",), ("sacct",), ("scancel", "1"), ("scontrol", "show", "job")):
        assert PROGRAMS[words[0]](words[1:]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert f"{words[0]}: error: no daemon answers on {tmp_path}/home.sock" in said.err
    for wrong in ("0", "x", "inf", "-1", "nan"):
        monkeypatch.setenv("HANSE_TIMEOUT", wrong)
        assert squeue.run_command([]) == 1
        assert f"HANSE_TIMEOUT={wrong} must be" in capsys.readouterr().err
    monkeypatch.delenv("HANSE_SOCKET")
    assert squeue.run_command([]) == 1
    assert "HANSE_SOCKET is not set" in capsys.readouterr().err


async def test_grpc_is_asked_where_a_plain_call_has_no_answer(
    scene: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the site is away for a moment."""
    async with scene() as it:
        number = await it.submitted()
        monkeypatch.setattr(Connections, "ask", lambda *_: None)
        assert await it.said("squeue", "-h", "-o", "%i", "-j", number) == f"{number}\n"
        assert await it.said("scancel", number) == ""
        assert (await it.client.wait(number)).outcome == "cancelled"


async def test_long_lists_are_read_whole(scene: Made) -> None:
    """Of several pages, in a few seconds of this process."""
    async with scene(limits={"open_jobs": 5000}) as it:
        await it.client.submit_many([LONG] * 2500)
        began = time.process_time()
        said = await it.said("squeue", "-h", "-o", "%i")
        assert [int(word) for word in sorted(said.split(), key=int)] == [*range(1, 2501)]
        names = ",".join(str(number) for number in range(1, 2501))
        assert len((await it.said("sacct", "-n", "-j", names)).splitlines()) == 2500
        assert time.process_time() - began < 60


def test_no_module_is_loaded_that_is_not_needed() -> None:
    """None of them needs click or gRPC to begin with: most of their time is imports."""
    import sys  # noqa: PLC0415  # same

    for name in ("sbatch", "squeue", "scancel", "sacct", "scontrol", "sinfo"):
        code = f"import sys, hanse_slurm.{name}; print(*sys.modules)"
        path = str(Path(squeue.__file__).parents[1])
        code = f"import sys; sys.path.append({path!r}); {code}"
        said = run_program([sys.executable, "-c", code], check=True)
        loaded = set(said.stdout.split())
        assert not loaded & {"click", "grpc", "asyncio", "numpy", "rich", "pydantic"}, name
