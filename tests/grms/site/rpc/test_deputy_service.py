"""Users' deputies over gRPC: hostile ones, and those that go in the middle."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.client.calls import Calls
from grms.client.deputy import ACTS, Deputy, programs_here
from grms.client.errors import SiteError
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Questions
from grms.lrms.base import NoDeputyError, UserAwayError
from grms.lrms.batch.deputies import (
    OUTPUT_BYTES_MAX,
    WAITS,
    Deputies,
    DeputyOrder,
    NotKnown,
    NotRun,
    boot_time,
)
from grms.lrms.batch.subprocesses import Answer
from grms.site.gateway.user_listener import User
from grms.site.rpc.deputy_service import DeputyService, read_result, write_order
from grms.v1 import deputy_pb2, deputy_pb2_grpc
from tests.waiting import TIME_OUT_S, meanwhile, until

ME = 4711
"""The number as which who calls is taken for."""


class _Admission:
    # As much of `Admission` as the service needs; who calls is whom the test says.
    read = Questions.read

    def __init__(self) -> None:
        self.uid = ME
        self.counted: list[str] = []
        self.stopping = False
        self.engine = type("Engine", (), {})()
        memory = type("Memory", (), {"open_by_user": {"#4711": 3}})
        self.engine.state = type("State", (), {"memory": memory})

    async def user(self, _context: object) -> User:
        return User(self.uid, f"#{self.uid}")

    def is_operator(self, user: User) -> bool:
        return user.uid == 0

    async def check_stopping(self, context: Any) -> None:
        if self.stopping:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the daemon is being stopped")

    async def invalid(self, context: Any, error: WireError) -> None:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def count(self, reason: str, _context: object = None, _text: str = "") -> None:
        self.counted.append(reason)

    def audit(self, _act: str, _user: User, **_details: object) -> None:
        """Writes nothing."""


class Site:
    """A site's place for deputies, on a socket."""

    def __init__(self, folder: Path, *, own_uid: int = 1, without: bool = False) -> None:
        self.path = folder / "users.sock"
        self.admission = _Admission()
        self.deputies = Deputies(600.0, {"SLURM_CONF": "/conf"}, number_of=int)
        there = None if without else self.deputies
        admission: Any = self.admission
        self._service = DeputyService(admission, there, own_uid=own_uid)
        self.server: aio.Server | None = None

    async def start(self) -> None:
        """Begins to listen."""
        self.server = aio.server()
        deputy_pb2_grpc.add_DeputyServiceServicer_to_server(self._service, self.server)
        self.server.add_insecure_port(f"unix:{self.path}")
        await self.server.start()

    async def stop(self) -> None:
        """Ends without a word."""
        assert self.server is not None
        await self.server.stop(None)

    async def asked(self, program: str, *words: str, uid: int = ME, folder: str = "/") -> Answer:
        """Returns what a user's deputy answers."""
        return await self.deputies.run(str(uid), program, words, also={}, folder=folder, umask=0o27)


@asynccontextmanager
async def site_at(folder: Path, **more: Any) -> AsyncIterator[tuple[Site, Any]]:
    """Yields a site, and a stub of its service."""
    site = Site(folder, **more)
    await site.start()
    calls = Calls(site.path, TIME_OUT_S)
    calls.open()
    try:
        yield site, calls.deputies
    finally:
        await calls.close()
        await site.stop()


async def refused(call: Awaitable[Any]) -> grpc.StatusCode:
    """Returns the status with which a call is refused."""
    with pytest.raises(aio.AioRpcError) as error:
        await call
    code: grpc.StatusCode = error.value.code()
    return code


async def first(call: Any) -> deputy_pb2.DeputyOrder:
    """Returns the next message of a stream."""
    message = await call.read()
    assert isinstance(message, deputy_pb2.DeputyOrder)
    return message


def end(order_id: str, **values: Any) -> deputy_pb2.DeputyAnswer:
    """Returns an answer."""
    return deputy_pb2.DeputyAnswer(order_id=order_id, end=deputy_pb2.DeputyEnd(**values))


async def test_answers_are_of_those_who_were_asked(tmp_path: Path) -> None:
    """Another user's answer, an unknown one, one of nonsense and one too many are refused; the order still waits."""
    async with site_at(tmp_path) as (site, stub):
        call = stub.Serve(deputy_pb2.ServeRequest())
        assert (await first(call)).order_id == ""
        asking = asyncio.ensure_future(site.asked("sbatch", "--hold"))
        order = await first(call)
        number = order.order_id
        assert (order.umask, dict(order.environment)) == (0o27, {"SLURM_CONF": "/conf"})
        invalid = [
            deputy_pb2.DeputyAnswer(order_id=number),
            end(number, code=-1),
            end(number, code=256),
            end(number, output=bytes(OUTPUT_BYTES_MAX + 1)),
        ]
        for message in invalid:
            assert await refused(stub.Answer(message)) is grpc.StatusCode.INVALID_ARGUMENT
        site.admission.uid = ME + 1
        assert await refused(stub.Answer(end(number))) is grpc.StatusCode.NOT_FOUND
        site.admission.uid = ME
        assert await refused(stub.Answer(end("x" * 32))) is grpc.StatusCode.NOT_FOUND
        assert not asking.done()
        await stub.Answer(end(number, code=3, output=b"7\n", error="a\x1b[31m\nb" + "x" * 9))
        answer = await asking
        assert (answer.code, answer.output, answer.theirs) == (3, b"7\n", True)
        assert answer.error == "a\\x1b[31m\nbxxxxxxxxx"
        assert await refused(stub.Answer(end(number))) is grpc.StatusCode.NOT_FOUND
        assert site.admission.counted == ["deputy_answer"] * 3


async def test_a_flood_is_slowed_down(tmp_path: Path) -> None:
    """Of answers that nobody asked for, and of deputies that come and go; the daemon says when to come again."""
    async with site_at(tmp_path) as (site, stub):
        codes = [await refused(stub.Answer(end("x"))) for _ in range(40)]
        assert codes[:10] == [grpc.StatusCode.NOT_FOUND] * 10
        assert codes[-1] is grpc.StatusCode.RESOURCE_EXHAUSTED
        many = [stub.Serve(deputy_pb2.ServeRequest()) for _ in range(20)]
        ends: list[grpc.StatusCode | None] = []
        for call in many:
            try:
                assert (await first(call)).order_id == ""
                ends.append(None)
            except aio.AioRpcError as error:
                ends.append(error.code())
        assert ends.count(None) >= 1
        assert ends.count(grpc.StatusCode.RESOURCE_EXHAUSTED) >= 10
        # Of those that came the last one is it.
        assert site.deputies.present() == [(ME, "")]
        site.admission.uid = ME + 1  # another user is none the worse
        assert (await first(stub.Serve(deputy_pb2.ServeRequest()))).order_id == ""
        for call in many:
            call.cancel()


async def test_a_site_without_deputies_takes_none(tmp_path: Path) -> None:
    """Nor does one of its own user; who looks is told."""
    no = grpc.StatusCode.FAILED_PRECONDITION
    async with site_at(tmp_path, without=True) as (_, stub):
        assert await refused(stub.Serve(deputy_pb2.ServeRequest()).read()) is no
        assert await refused(stub.Answer(end("x"))) is no
        assert await stub.Look(deputy_pb2.DeputyLookRequest()) == deputy_pb2.DeputyLook()
    async with site_at(tmp_path, own_uid=ME) as (_, stub):
        assert await refused(stub.Serve(deputy_pb2.ServeRequest()).read()) is no
        assert not (await stub.Look(deputy_pb2.DeputyLookRequest())).wanted


async def test_who_is_there_is_told_to_operators(tmp_path: Path) -> None:
    """A user hears of the own deputy alone."""
    async with site_at(tmp_path) as (site, stub):
        look = await stub.Look(deputy_pb2.DeputyLookRequest())
        assert (look.wanted, look.present, look.jobs_open) == (True, False, 3)
        await first(call := stub.Serve(deputy_pb2.ServeRequest()))
        look = await stub.Look(deputy_pb2.DeputyLookRequest())
        assert (look.present, len(look.deputies)) == (True, 0)
        site.admission.uid = 0
        look = await stub.Look(deputy_pb2.DeputyLookRequest())
        assert [each.user for each in look.deputies] == ["#4711"]
        call.cancel()
        await until(lambda: not site.deputies.is_there(ME))
        assert site.deputies.waits_for(str(ME)) == WAITS


results = st.one_of(
    st.builds(
        lambda code, output, error: end("", code=code, output=output, error=error),
        st.integers(-(2**31), 2**31 - 1),
        st.binary(max_size=40),
        st.text(max_size=2000),
    ),
    st.builds(lambda text: deputy_pb2.DeputyAnswer(refused=text), st.text(max_size=2000)),
    st.builds(lambda text: deputy_pb2.DeputyAnswer(unknown=text), st.text(max_size=2000)),
    st.just(deputy_pb2.DeputyAnswer()),
)


@settings(deadline=None)
@given(message=results)
def test_whatever_is_answered_is_a_result_or_none(message: deputy_pb2.DeputyAnswer) -> None:
    """Nothing in it reaches a terminal or a log as more than text."""
    try:
        result = read_result(message)
    except WireError:
        assert message.WhichOneof("result") is None or not 0 <= message.end.code <= 255
        return
    said = result.error if isinstance(result, Answer) else result.reason
    assert all(line.isprintable() for line in said.split("\n"))


# --- the user's side -----------------------------------------------------------------------------

SBATCH = '#!/bin/sh\necho "$*|$(pwd)|$(umask)|$SLURM_CONF|${HANSE_SECRET-}"\n'


def programs(folder: Path, **texts: str) -> Any:
    """Returns a deputy's programs: scripts."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    for name, text in texts.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    return programs_here({"HANSE_SECRET": "x", "HOME": "/"}, str(place))


@asynccontextmanager
async def served(site: Site, runner: Any, **more: Any) -> AsyncIterator[Deputy]:
    """Yields a deputy that is there."""
    deputy = Deputy(site.path, runner, timeout_s=TIME_OUT_S, **more)
    async with meanwhile(deputy.run()) as task:
        await until(lambda: site.deputies.is_there(ME) or task.done())
        yield deputy


async def test_a_deputy_runs_what_it_is_told(tmp_path: Path) -> None:
    """With folder, umask and the site's variables, and nothing else of its user's environment."""
    change = "#!/bin/sh\necho $*\n"
    runner = programs(
        tmp_path, sbatch=SBATCH, scancel="#!/bin/sh\necho no >&2\nexit 3\n", scontrol=change
    )
    async with site_at(tmp_path) as (site, _), served(site, runner):
        answer = await site.asked("sbatch", "--hold", "a  b", folder=str(tmp_path))
        assert answer.output.decode() == f"--hold a  b|{tmp_path}|0027|/conf|\n"
        answer = await site.asked("scancel", "7")
        assert (answer.code, answer.error) == (3, "no")
        for words in (("JobName=x@y:away", "StartTime=now+365days"), ("StartTime=now",)):
            answer = await site.asked("scontrol", "update", "JobId=7", *words)
            assert answer.output.decode() == f"update JobId=7 {' '.join(words)}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rm", "-rf", "x"), "runs no such program"),
        (("/bin/sh", "-c", "id"), "runs no such program"),
        (("scontrol", "update", "JobId=7"), "runs no such program"),
        (("scontrol", "update", "JobId=7", "Priority=1"), "runs no such program"),
        (("scontrol", "update", "JobId=7", "JobName=x", "Nice=-5"), "runs no such program"),
        (("scontrol", "update", "partitionname=x", "StartTime=now"), "runs no such program"),
        (("scontrol",), "runs no such program"),
        (("scontrol", "release", "7"), "there is no program scontrol"),
    ],
)
async def test_a_deputy_runs_nothing_else(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """It refuses, which is certain, and stays for later orders."""
    runner = programs(tmp_path, sbatch=SBATCH)
    runner._environment["PATH"] = str(tmp_path / "bin")
    async with site_at(tmp_path) as (site, _), served(site, runner):
        with pytest.raises(NoDeputyError, match=said):
            await site.asked(*words)
        with pytest.raises(NoDeputyError, match="cannot be entered"):
            await site.asked("sbatch", folder=str(tmp_path / "absent"))
        site.deputies.environment = {"LD_PRELOAD": "/x.so"}
        with pytest.raises(NoDeputyError, match="sets no variable LD_PRELOAD"):
            await site.asked("sbatch")
        site.deputies.environment = {}
        assert (await site.asked("sbatch")).code == 0
    assert set(ACTS) == {"sbatch", "scontrol", "scancel"}


async def test_an_order_that_comes_too_late_is_not_begun(tmp_path: Path) -> None:
    """As after a sleep of the host: the site has looked up what became of it, and may have ordered it again."""
    runner = programs(tmp_path, sbatch=f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    deputy = Deputy(tmp_path / "none", runner)
    order = DeputyOrder("1", "sbatch", (), {}, "/", -1, boot_time() - 1.0)
    answer = await deputy._result(write_order(order))
    assert answer.refused == "it has come too late"
    assert not (tmp_path / "ran").exists()
    order = DeputyOrder("1", "sbatch", (), {}, "/", -1, boot_time() + 600.0)
    assert (await deputy._result(write_order(order))).HasField("end")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\nkill -KILL $$\n", "was ended by SIGKILL"),
        (f"#!/bin/sh\nhead -c {OUTPUT_BYTES_MAX + 1} /dev/zero\n", "has said more than"),
    ],
)
async def test_what_a_program_has_done_may_be_unknown(tmp_path: Path, text: str, said: str) -> None:
    """Then it is looked up."""
    async with site_at(tmp_path) as (site, _), served(site, programs(tmp_path, sbatch=text)):
        with pytest.raises(UserAwayError, match=said):
            await site.asked("sbatch")


async def test_a_deputy_outlives_its_daemon(tmp_path: Path) -> None:
    """It comes again by itself; the answer to an order of the one before is refused, and harms nobody."""
    gate = tmp_path / "gate"
    text = f'#!/bin/sh\ntest "$1" != wait || until test -e {gate}; do sleep 0.05; done\necho "$1"\n'
    told: list[str] = []
    site = Site(tmp_path)
    await site.start()
    async with served(site, programs(tmp_path, sbatch=text), tell=told.append):
        asking = asyncio.ensure_future(site.asked("sbatch", "wait"))
        await until(lambda: any(not each.answer.done() for each in site.deputies._open.values()))
        await site.stop()
        with pytest.raises(UserAwayError, match="gone"):
            await asking
        again = Site(tmp_path)
        await again.start()
        await until(lambda: again.deputies.is_there(ME))
        gate.touch()
        await until(lambda: any("not taken" in line for line in told))
        assert (await again.asked("sbatch", "2")).output == b"2\n"
        await again.stop()


async def test_an_idle_deputy_goes(tmp_path: Path) -> None:
    """Once no job of its user's is unfinished."""
    told: list[str] = []
    async with site_at(tmp_path) as (site, _):
        deputy = Deputy(site.path, programs(tmp_path), tell=told.append, idle_s=0.05)
        task = asyncio.create_task(deputy.run())
        await until(lambda: site.deputies.is_there(ME))
        assert not (await asyncio.wait([task], timeout=0.3))[0]
        site.admission.engine.state.memory.open_by_user.clear()
        await asyncio.wait_for(task, TIME_OUT_S)
        assert told[-1] == "nothing is left to do"
        await until(lambda: not site.deputies.is_there(ME))


async def test_one_deputy_is_enough(tmp_path: Path) -> None:
    """The earlier one goes; a site that has no deputies says so."""
    runner = programs(tmp_path, sbatch=SBATCH)
    async with site_at(tmp_path) as (site, _):
        deputy = Deputy(site.path, runner)
        task = asyncio.create_task(deputy.run())
        await until(lambda: site.deputies.is_there(ME))
        former = site.deputies._there[ME]
        async with served(site, runner):
            await asyncio.wait_for(task, TIME_OUT_S)
            await until(lambda: site.deputies._there.get(ME) not in {None, former})
            assert (await site.asked("sbatch")).code == 0
    async with site_at(tmp_path, without=True) as (site, _):
        with pytest.raises(SiteError, match="own_jobs"):
            await Deputy(site.path, runner).run()


def test_results_by_their_kind() -> None:
    """What was not run, and what may have been, are not the same."""
    assert read_result(deputy_pb2.DeputyAnswer(refused="a")) == NotRun("a")
    assert read_result(deputy_pb2.DeputyAnswer(unknown="a")) == NotKnown("a")
