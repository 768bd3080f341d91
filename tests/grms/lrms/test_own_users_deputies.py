"""Jobs of users that their own deputies submit: without sudo, as with it."""

import asyncio
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from grms.daemon.rpc.requests import Context, Questions
from grms.lrms.base import (
    Away,
    Ended,
    Hindered,
    LrmsJob,
    LrmsPhase,
    NoDeputyError,
    Program,
    Started,
    UserAwayError,
)
from grms.lrms.batch.deputies import Deputies, DeputyOrder, NotRun
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.site.gateway.user_listener import User, UserSocket
from grms.site.rpc.deputy_service import DeputyService
from grms.util.outcomes import Outcome
from grms.v1 import deputy_pb2_grpc
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.grms.lrms.batch.test_deputies import taken
from tests.grms.lrms.test_own_users import (
    ATTACK,
    OWN,
    SECRET,
    USER,
    World,
    attack,
    job,
    second_user,
)
from tests.grms.lrms.told import followed
from tests.waiting import until

UID = pwd.getpwnam(USER).pw_uid

AS_USER = """
import os, pwd, sys
import google.rpc.error_details_pb2, google.rpc.status_pb2
import grms.cli.deputy_cli, grms.client.deputy, grms.lrms.exit_status
from grms.cli.main import run_command
who = pwd.getpwnam(sys.argv[1])
# All is imported that is needed: where it lies others may not read.
os.setgroups([])
os.setgid(who.pw_gid)
os.setuid(who.pw_uid)
os.chdir("/")
sys.exit(run_command(sys.argv[2:]))
"""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeSlurm]:
    """A fake Slurm that knows whose a job is; there is no sudo."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=8)
    cluster.up()
    yield cluster
    cluster.down()


def deputies_of(world: World) -> Deputies:
    """Returns the place where deputies come."""
    assert world.lrms.deputies is not None
    return world.lrms.deputies


async def ran(order: DeputyOrder, cluster: FakeSlurm, user: str = USER) -> Answer:
    """Runs an order as its user."""
    runner = Programs({"FAKE_ACCOUNT": user}, folder=cluster.programs)
    return await runner.run(order.program, *order.arguments, also=order.environment)


@asynccontextmanager
async def deputised(world: World, cluster: FakeSlurm, user: str = USER) -> AsyncIterator[list[str]]:
    """Has a user's deputy there, and yields the programs that it has run."""
    place, done = deputies_of(world), list[str]()
    uid = pwd.getpwnam(user).pw_uid
    deputy = place.come(uid)

    async def serve() -> None:
        async for order in deputy.orders():
            done.append(order.program)
            place.answered(uid, order.order_id, await ran(order, cluster, user))

    task = asyncio.create_task(serve())
    try:
        yield done
    finally:
        task.cancel()
        await asyncio.wait([task])
        place.leave(deputy)


async def test_a_job_waits_for_its_users_deputy(tmp_path: Path, fake: FakeSlurm) -> None:
    """It is never the daemon's instead; of another user's deputy nothing comes; then it runs, and is ended, as its user."""
    world = World(tmp_path, fake, "by-client")
    assert world.table.needs_sudo == []
    async with followed(world.lrms):
        other = deputies_of(world).come(UID + 1)
        with pytest.raises(NoDeputyError, match="waits for its user's deputy") as error:
            await world.lrms.submit(job("north/1/1", USER))
        assert error.value.passing
        assert not world.lrms.folders.place("north/1/1").exists()
        await world.lrms.submit(job("north/1/2", OWN))  # needs none
        assert (await world.ended("north/1/2")).end.outcome is Outcome.COMPLETED
        assert other._orders.empty()
        async with deputised(world, fake) as done:
            await world.lrms.submit(job("north/1/1", USER, "#!/bin/sh\nsleep 1000\n"))
            await world.told("north/1/1", Started)
            assert await world.lrms.cancel("north/1/1")
            assert (await world.ended("north/1/1")).end.outcome is Outcome.CANCELLED
            assert done == ["sbatch", "scontrol", "scancel"]
    lines = Path(fake.completion_log).read_text().splitlines()
    assert {line.split("UserId=")[1].split("(")[0] for line in lines} == {OWN, USER}


@pytest.mark.parametrize("again", [False, True])
async def test_a_submission_whose_answer_is_lost_is_not_made_again(
    tmp_path: Path, fake: FakeSlurm, again: bool
) -> None:
    """The deputy dies between sbatch and its answer; this process lives on, or begins anew. The job runs once."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        deputy = deputies_of(world).come(UID)
        handing = asyncio.ensure_future(world.lrms.submit(job("north/1/1", USER)))
        order = await taken(deputy)
        assert (await ran(order, fake)).code == 0
        deputies_of(world).leave(deputy)
        with pytest.raises(UserAwayError):
            await handing
        if not again:
            await finished(world, fake)
    if again:
        world = World(tmp_path, fake, "by-client")
        async with followed(world.lrms):
            await finished(world, fake)
    assert fake.ask("squeue", "-h", "-a", "-o", "%i").split() == ["1"]


async def finished(world: World, fake: FakeSlurm) -> None:
    """Looks a job up as a site does whose submission had no answer, and lets it run."""
    record = await world.lrms.look_up("north/1/1")
    assert record is not None
    assert record.phase is LrmsPhase.HELD
    async with deputised(world, fake) as done:
        await world.lrms.submit(job("north/1/1", USER))
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
        assert "sbatch" not in done


async def test_a_submission_that_was_never_made_is_made(tmp_path: Path, fake: FakeSlurm) -> None:
    """The deputy dies before sbatch; should it come late after all, the copy is ended, and never runs."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        deputy = deputies_of(world).come(UID)
        handing = asyncio.ensure_future(world.lrms.submit(job("north/1/1", USER)))
        order = await taken(deputy)
        deputies_of(world).leave(deputy)
        with pytest.raises(UserAwayError):
            await handing
        assert await world.lrms.look_up("north/1/1") is None
        async with deputised(world, fake):
            await world.lrms.submit(job("north/1/1", USER))
            assert (await ran(order, fake)).code == 0  # late
            assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
            await until(lambda: states(fake) == ["CA", "CD"])
    runs = (world.lrms.folders.place("north/1/1") / "begun").read_text().splitlines()
    assert len([line for line in runs if line]) <= 2  # begin and end of one run


def states(fake: FakeSlurm) -> list[str]:
    """Returns the states of all jobs there are."""
    return sorted(fake.ask("squeue", "-h", "-a", "-o", "%t").split())


async def test_a_held_job_says_that_it_waits(tmp_path: Path, fake: FakeSlurm) -> None:
    """One that was submitted, and whose deputy has gone before it was released; a later one goes on."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        async with deputised(world, fake):
            await world.lrms.submit(job("north/1/1", USER), held=True)
        await world.lrms.submit(job("north/1/1", USER))  # it is there, and is to run
        hindered = await world.told("north/1/1", Hindered)
        assert isinstance(hindered, Hindered)
        assert "waits for its user's deputy" in hindered.reason
        marks = world.lrms.folders.marks("north/1/1")
        assert marks is not None
        assert not marks.released  # nobody was asked to
        assert fake.ask("squeue", "-h", "-o", "%t %r").split() == ["PD", "JobHeldUser"]
        async with deputised(world, fake) as done:
            assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
            assert done == ["scontrol"]


async def test_a_cancelled_job_ends_when_its_deputy_comes(tmp_path: Path, fake: FakeSlurm) -> None:
    """It does not run before."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        async with deputised(world, fake):
            await world.lrms.submit(job("north/1/1", USER), held=True)
        with pytest.raises(NoDeputyError):
            await world.lrms.cancel("north/1/1")
        async with deputised(world, fake) as done:
            assert (await world.ended("north/1/1")).end.outcome is Outcome.CANCELLED
            assert set(done) == {"scancel"}  # again, should a poll have begun before the first


async def test_a_silent_deputy_keeps_nobody_else_waiting(tmp_path: Path, fake: FakeSlurm) -> None:
    """Neither the polls, nor other users' releases and cancels."""
    world = World(tmp_path, fake, "by-client")
    deputies_of(world).timeout_s = 600.0
    async with followed(world.lrms):
        async with deputised(world, fake):
            await world.lrms.submit(job("north/1/1", USER), held=True)
        deputy = deputies_of(world).come(UID)
        await world.lrms.submit(job("north/1/1", USER))
        assert (await taken(deputy)).program == "scontrol"  # the release, never answered
        ending = asyncio.ensure_future(world.lrms.cancel("north/1/1"))
        await world.lrms.submit(job("north/1/2", OWN, "#!/bin/sh\nsleep 1000\n"))
        await world.told("north/1/2", Started)
        assert await world.lrms.cancel("north/1/2")
        assert (await world.ended("north/1/2")).end.outcome is Outcome.CANCELLED
        assert not ending.done()
        deputies_of(world).leave(deputy)
        with pytest.raises((NoDeputyError, UserAwayError)):
            await ending
    assert not any(isinstance(event, Away) for event in world.events)


@pytest.mark.parametrize(
    "said",
    [
        Answer(1, b"", "sbatch: error: Unable to contact slurm controller"),
        Answer(0, b"", ""),
        Answer(0, "١٢".encode(), ""),
        Answer(0, b"9" * 99, ""),
        Answer(1, b"", ""),
    ],
)
async def test_what_a_deputy_says_is_about_its_user_alone(
    tmp_path: Path, fake: FakeSlurm, said: Answer
) -> None:
    """That the controller is away it cannot make the site believe."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        deputy = deputies_of(world).come(UID)
        handing = asyncio.ensure_future(world.lrms.submit(job("north/1/1", USER)))
        order = await taken(deputy)
        assert deputies_of(world).answered(UID, order.order_id, said)
        with pytest.raises(UserAwayError):
            await handing
        await world.lrms.submit(job("north/1/2", OWN))
        assert (await world.ended("north/1/2")).end.outcome is Outcome.COMPLETED
    assert not any(isinstance(event, Away) for event in world.events)


async def test_a_wrong_number_reaches_no_other_job(tmp_path: Path, fake: FakeSlurm) -> None:
    """A deputy that names another's job for its own has it neither released nor ended."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        await world.lrms.submit(job("north/1/2", OWN, "#!/bin/sh\nsleep 1000\n"))
        await world.told("north/1/2", Started)
        deputy = deputies_of(world).come(UID)
        handing = asyncio.ensure_future(world.lrms.submit(job("north/1/1", USER)))
        order = await taken(deputy)
        deputies_of(world).answered(UID, order.order_id, Answer(0, b"1\n", ""))
        await handing
        deputies_of(world).leave(deputy)
        async with deputised(world, fake):
            await world.lrms.cancel("north/1/1")
        assert fake.ask("squeue", "-h", "-a", "-o", "%i %t").split("\n")[0] == "1 R"
        assert await world.lrms.cancel("north/1/2")
    ends = [event for event in world.events if isinstance(event, Ended)]
    assert {event.key for event in ends if event.end.outcome is Outcome.COMPLETED} == set()


async def test_what_it_refuses_waits(tmp_path: Path, fake: FakeSlurm) -> None:
    """Its user reads why."""
    world = World(tmp_path, fake, "by-client")
    async with followed(world.lrms):
        deputy = deputies_of(world).come(UID)
        handing = asyncio.ensure_future(world.lrms.submit(job("north/1/1", USER)))
        order = await taken(deputy)
        deputies_of(world).answered(UID, order.order_id, NotRun("there is no program sbatch"))
        with pytest.raises(NoDeputyError, match="has not run sbatch: there is no program") as error:
            await handing
        assert error.value.passing


# --- real ones -----------------------------------------------------------------------------------


class _Admission:
    # As much of `Admission` as deputies need; who calls the kernel says.
    read = Questions.read

    def __init__(self, users: UserSocket) -> None:
        self._users = users

    async def user(self, context: Context) -> User:
        user = self._users.user(context.peer())
        assert user is not None
        return user

    async def check_stopping(self, _context: Context) -> None:
        """Never stops."""

    def count(self, *_: object) -> None:
        """Counts nothing."""

    def audit(self, *_: object, **__: object) -> None:
        """Writes nothing."""


@asynccontextmanager
async def listening(deputies: Deputies, path: Path) -> AsyncIterator[None]:
    """Serves deputies on a users' socket."""
    async with UserSocket(path, 100) as users:
        admission: Any = _Admission(users)
        server = aio.server()
        service = DeputyService(admission, deputies, own_uid=os.getuid())
        deputy_pb2_grpc.add_DeputyServiceServicer_to_server(service, server)
        server.add_insecure_port(users.inner_address)
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)


@pytest.mark.services
@pytest.mark.parametrize("guests", [False, True])
async def test_no_user_reaches_anothers_job_by_deputies(guests: bool) -> None:
    """Over a real Slurm, with deputies that are processes of two users: at home, and at a partner."""
    need_slurm()
    if os.getuid() != 0:
        pytest.skip("jobs as another account: this is not root, who alone can be two here")
    other = second_user()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        folder = Path(name)
        cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=8)
        (folder / "bin").mkdir()
        (folder / "home").mkdir(mode=0o700)
        os.chown(folder / "home", UID, -1)
        there: list[subprocess.Popen[bytes]] = []
        try:
            cluster.up()
            cluster.open_to_all()
            folder.chmod(0o755)
            world = World(folder, cluster, "by-client")
            socket = folder / "users.sock"
            async with listening(deputies_of(world), socket):
                words = ["deputy", "--socket", str(socket)]
                for user in (USER, other):
                    code = [sys.executable, "-c", AS_USER, user, *words]
                    there.append(subprocess.Popen(code, stdout=subprocess.DEVNULL))  # noqa: S603  # this program
                await until(lambda: len(deputies_of(world).present()) == 2)
                async with followed(world.lrms):
                    conf = cluster.environment["SLURM_CONF"]
                    work = attack_guest if guests else attack
                    await work(world, folder, other, conf)
            # What was ended is ended by its users' deputies; they wait for the daemon now.
            assert [each.poll() for each in there] == [None, None]
        finally:
            for each in there:
                each.kill()
                each.wait(300)
            cluster.down()


GUEST = """#!/bin/sh
id -un
echo "$WORD"
echo $$ >pid.new
mv pid.new pid
until test -e go; do command -p sleep 0.1; done
"""


async def attack_guest(world: World, folder: Path, other: str, conf: str) -> None:
    """Runs a partner's job as one account, and meanwhile another's as another, that attacks it."""
    del folder
    program = Program(GUEST, environment={"WORD": SECRET})
    first = LrmsJob("south/1/1", 1, 600.0, partner="south", account=USER, program=program)
    await world.lrms.submit(first)
    place = world.lrms.folders.place("south/1/1")
    await until((place / "pid").exists)
    marks = world.lrms.folders.marks("south/1/1")
    assert marks is not None
    words = (str(place), marks.number, (place / "pid").read_text().strip())
    program = Program(ATTACK.replace("{conf}", conf), arguments=words)
    second = replace(first, key="south/1/2", account=other, program=program)
    await world.lrms.submit(second)
    await world.ended("south/1/2")
    seen = world.lrms.folders.place("south/1/2")
    assert (seen / "stdout").read_text() == ""
    said = (seen / "stderr").read_text()
    assert all(
        word in said
        for word in ("ls: cannot open", "Operation not permitted", "Access/permission denied")
    )
    (place / "go").touch()
    assert (await world.ended("south/1/1")).end.outcome is Outcome.COMPLETED
    assert (place / "stdout").read_text().splitlines() == [USER, SECRET]
    log = Path(str(world.table.completion_log)).read_text()
    whose = [line.split("UserId=")[1].split("(")[0] for line in log.splitlines()]
    assert sorted(whose) == sorted((USER, other))
