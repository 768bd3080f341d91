"""Jobs of a site's own users: as whom they run, and that no user reaches another's."""

import asyncio
import os
import pwd
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grms.daemon.clock import WallClock
from grms.lrms.account_mapping import account_number, is_alone, lend
from grms.lrms.adapter import LrmsSite
from grms.lrms.base import (
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    Started,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.home_run import HomeRun
from grms.lrms.slurm.slurm_adapter import ADAPTER, SlurmTable
from grms.util.outcomes import Outcome
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.grms.lrms.told import Told, followed
from tests.waiting import until

OWN = pwd.getpwuid(os.getuid()).pw_name
USER = "nobody"
SECRET = "what-nobody-else-may-know"

SUDO = """#!/bin/sh
echo "$*" >>{log}
name=$3
shift 4
exec setpriv --reuid="$name" --regid="$(id -g "$name")" --clear-groups env -i PATH="$PATH" SLURM_CONF={conf} HOME=/ "$@"
"""

OWNERS = """#!/bin/sh
id -un
pwd
echo "$SLURM_SUBMIT_DIR"
umask
echo "$WORD"
echo made >mine
echo $$ >pid.new
mv pid.new pid
until test -e go; do command -p sleep 0.1; done
"""

ATTACK = """#!/bin/sh
# What another user's job tries: `$1` is the folder of the first job, `$2` its number, `$3` its process.
export SLURM_CONF={conf}
ls "$1"
cat "$1/environ" "$1/values" "$1/program" "$1/stdout"
tr '\\0' '\\n' <"/proc/$3/environ"
echo x >"$1/new"
rm -rf "$1"
kill -KILL "$3"
scancel "$2"
true
"""


class World(Told):
    """A site whose users are several, above a cluster."""

    def __init__(self, folder: Path, cluster: FakeSlurm | SlurmCluster, own_jobs: str) -> None:
        programs = cluster.programs if isinstance(cluster, FakeSlurm) else str(folder / "bin")
        self.table = SlurmTable.model_validate(
            {
                "kind": "slurm",
                "poll_s": 0.2,
                "settle_s": 0.0,
                "spool": str(folder / "spool"),
                "completion_log": cluster.completion_log,
                "programs": programs,
                "configuration": cluster.environment.get("SLURM_CONF"),
                "own_jobs": own_jobs,
            }
        )
        self.site = LrmsSite("north", 8, WallClock(), folder)
        self.events: list[LrmsEvent] = []
        lrms = ADAPTER.made(self.table, self.site)
        assert isinstance(lrms, BatchLrms)
        lrms.listen(self.events.extend)
        self.lrms = lrms


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeSlurm]:
    """A fake Slurm that knows whose a job is."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=8)
    cluster.up()
    cluster.make_sudo()
    yield cluster
    cluster.down()


def job(key: str, user: str, script: str = "#!/bin/sh\nexit 0\n") -> LrmsJob:
    """Returns a local job of one processor."""
    return LrmsJob(key, 1, 60.0, user=user, program=Program(script))


def calls(folder: Path) -> list[str]:
    """Returns the calls of sudo: the account and the program of each."""
    log = folder / "cluster/sudo.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [f"{line.split()[2]} {Path(line.split()[4]).name}" for line in lines]


async def test_a_job_is_its_users(tmp_path: Path, fake: FakeSlurm) -> None:
    """It is submitted, released and cancelled as its user; a job of the daemon's own user needs no sudo."""
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        await world.lrms.submit(job("north/1/1", USER, "#!/bin/sh\nsleep 1000\n"))
        await world.lrms.submit(job("north/1/2", OWN))
        await world.lrms.submit(job("north/1/3", ""))  # a test job of the daemon's
        await world.told("north/1/1", Started)
        assert await world.lrms.cancel("north/1/1")
        assert (await world.ended("north/1/1")).end.outcome is Outcome.CANCELLED
        for key in ("north/1/2", "north/1/3"):
            assert (await world.ended(key)).end.outcome is Outcome.COMPLETED
    assert {each.split()[0] for each in calls(tmp_path)} == {USER}
    assert {each.split()[1] for each in calls(tmp_path)} == {"sbatch", "scontrol", "scancel"}


async def test_all_jobs_are_the_daemons_where_the_file_says_so(
    tmp_path: Path, fake: FakeSlurm
) -> None:
    """Then there is no sudo."""
    world = World(tmp_path, fake, "as-daemon")
    assert world.table.needs_sudo == []
    async with followed(world.lrms):
        await world.lrms.submit(job("north/1/1", USER))
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
    assert calls(tmp_path) == []


async def test_nobody_elses_account_is_used(tmp_path: Path, fake: FakeSlurm) -> None:
    """A user of the system's, or what is no name: the job is refused, and never the daemon's."""
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        for number, user in enumerate(("daemon", "#1", "4711", "user:x", "-u")):
            with pytest.raises(LrmsRefusedError, match=r"system's|no name") as error:
                await world.lrms.submit(job(f"north/1/{number}", user))
            assert not error.value.passing
        assert (await world.lrms.snapshot()).jobs == {}
    assert calls(tmp_path) == []


async def test_a_user_whom_the_directory_does_not_know_now_is_waited_for(
    tmp_path: Path, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name service may be away for a while: the job is neither refused nor the daemon's meanwhile."""
    right = pwd.getpwnam

    def away(name: str) -> pwd.struct_passwd:
        raise KeyError(name)

    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        monkeypatch.setattr(pwd, "getpwnam", away)
        with pytest.raises(LrmsRefusedError, match="no local account nobody now") as error:
            await world.lrms.submit(job("north/1/1", USER))
        assert error.value.passing
        assert calls(tmp_path) == []
        monkeypatch.setattr(pwd, "getpwnam", right)
        await world.lrms.submit(job("north/1/1", USER))
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
    assert set(calls(tmp_path)) >= {f"{USER} sbatch"}


@pytest.mark.usefixtures("fake")
async def test_without_sudo_a_job_waits(tmp_path: Path) -> None:
    """It keeps no other waiting, and the daemon's own user needs none."""
    (tmp_path / "cluster/bin/sudo").unlink()
    programs = Programs({"PATH": str(tmp_path / "cluster/bin")})  # without this host's
    with pytest.raises(LrmsRefusedError, match="no program sudo") as error:
        await programs.run("squeue", account=USER)
    assert error.value.passing
    with pytest.raises(LrmsUnavailableError, match="no program squeue-x"):
        await programs.run("squeue-x", account=USER)


async def test_a_refused_release_is_repeated(tmp_path: Path, fake: FakeSlurm) -> None:
    """What sudo, or the directory behind it, says is no answer of the controller, and keeps no other job waiting."""
    sudo = tmp_path / "cluster/bin/sudo"
    right = sudo.read_text()
    said = "sudo: PAM account management error: Authentication service cannot retrieve info"
    sudo.write_text(
        right.replace("exec ", f"case $1 in *scontrol) echo '{said}' >&2; exit 1;; esac; exec ")
    )
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        await world.lrms.submit(job("north/1/1", USER))
        await world.lrms.submit(job("north/1/2", OWN))
        assert (await world.ended("north/1/2")).end.outcome is Outcome.COMPLETED
        system = world.table.system("north", world.lrms.folders.account)
        row = JobRow("hanse:north:north/1/1", "1", None, LrmsPhase.HELD, 1)
        with pytest.raises(LrmsRefusedError, match="PAM account"):
            await system.release(row)
        sudo.write_text(right)
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "said",
    [
        "sudo: a password is required",
        "Sorry, user hanse is not allowed to execute 'sbatch' as nobody.",
        f"Sorry, user hanse is not allowed to execute 'sbatch {'--an-option ' * 80}' as nobody on n1.",
    ],
)
async def test_where_sudo_refuses_a_job_waits(tmp_path: Path, fake: FakeSlurm, said: str) -> None:
    """It is never the daemon's instead, and whoever looks reads what cures it; then it runs."""
    sudo = tmp_path / "cluster/bin/sudo"
    right = sudo.read_text()
    sudo.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        with pytest.raises(LrmsRefusedError, match=r"as nobody: .* --as nobody") as error:
            await world.lrms.submit(job("north/1/1", USER))
        assert error.value.passing
        assert (await world.lrms.snapshot()).jobs == {}
        sudo.write_text(right)
        await world.lrms.submit(job("north/1/1", USER))
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "said",
    [
        "error: Unable to open file /spool/x/launch",
        "error: Batch job submission failed: Invalid user id",
    ],
)
async def test_what_keeps_a_user_out_is_for_the_operator(
    tmp_path: Path, fake: FakeSlurm, said: str
) -> None:
    """A spool that the user cannot pass through, or a controller that does not know the user now: the job waits."""
    sudo = tmp_path / "cluster/bin/sudo"
    sudo.write_text(f'#!/bin/sh\necho "sbatch: {said}" >&2\nexit 1\n')
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        with pytest.raises(LrmsRefusedError, match=said[-15:]) as error:
            await world.lrms.submit(job("north/1/1", USER))
        assert error.value.passing


async def test_moments_are_the_same_through_sudo(
    tmp_path: Path, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sudo takes away the variable by which Slurm prints seconds, so that it prints local time."""
    line = (
        "JobId=7 JobName=hanse:north:north/1/1 JobState=COMPLETED ExitCode=0:0 NodeList=n1 "
        "StartTime=2026-01-01T12:00:00 EndTime=2026-01-01T12:01:00"
    )
    (tmp_path / "cluster/bin/sudo").write_text(f'#!/bin/sh\necho "{line}"\n')
    world = World(tmp_path, fake, "as-user")
    await world.lrms.open()
    world.lrms.folders.prepare("north/1/1", Program("true"), run=True, account=USER, user=USER)
    question = Question("north/1/1", "hanse:north:north/1/1", "7", None, None)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "XXX-3")
        time.tzset()
        ending = await world.table.system("north", world.lrms.folders.account).knows(question)
    time.tzset()
    assert isinstance(ending, Ending)
    assert ending.end is not None
    assert ending.end.end_time == datetime(2026, 1, 1, 9, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("first", "then"), [("as-user", "as-daemon"), ("as-daemon", "as-user")])
async def test_a_submitted_job_keeps_its_account(
    tmp_path: Path, fake: FakeSlurm, first: str, then: str
) -> None:
    """Whatever the file says after a restart: a copy in the batch system is known by whose it is."""
    world = World(tmp_path, fake, first)
    async with followed(world.lrms):
        await world.lrms.submit(job("north/1/1", USER), held=True)
    account = world.lrms.folders.account("north/1/1")
    assert account == (USER if first == "as-user" else "")
    fake.machine.crash(empty=True)  # the batch system has lost it
    fake.start_controller()
    again = World(tmp_path, fake, then)
    async with followed(again.lrms):
        await again.lrms.submit(job("north/1/1", USER))
        assert (await again.ended("north/1/1")).end.outcome is Outcome.COMPLETED
    assert again.lrms.folders.account("north/1/1") == account


def test_without_access_lists_the_users_group_has_to_be_its_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where users share a group, its members could look into the job; it waits, and says what to do."""

    def no_lists(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", no_lists)
    spool = Spool(tmp_path / "spool")
    spool.open()
    group = account_number(USER)[1]
    assert not is_alone(USER, group)  # nogroup
    with pytest.raises(LrmsRefusedError, match="not its alone") as error:
        spool.prepare("north/1/1", Program("true"), run=True, account=USER, user=USER)
    assert error.value.passing  # an operator can change it, or the directory answers again
    assert not spool.place("north/1/1").exists()
    monkeypatch.setattr("grms.lrms.batch.launcher.own_group", lambda _name: os.getgid())
    place = spool.prepare("north/1/1", Program("true"), run=True, account=USER, user=USER)
    assert place.stat().st_mode & 0o7777 == 0o3770


@pytest.mark.parametrize(
    ("folder", "umask", "said"),
    [("/", 0o077, "umask 077"), ("", 0o077, "umask 077"), ("/", -1, ""), ("", -1, "")],
)
def test_a_users_umask_is_the_users(tmp_path: Path, folder: str, umask: int, said: str) -> None:
    """What a job creates outside its folder is not open to its user's group, which may be everybody's."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    words = () if umask < 0 else (b"SLURM_UMASK=%04o" % umask,)
    home = HomeRun(folder, words)
    for key, given in (("north/1/1", home), ("north/1/2", None)):
        place = spool.prepare(key, Program("true"), run=True, account=USER, user=USER, home=given)
        lines = (place / "values").read_text().splitlines()
        found = [line for line in lines if line.startswith("umask")]
        assert found == ([said] if said and given else [])
        # Without variables of its user's a job has those of sbatch, to which sudo has added its own.
        assert ("unset SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER" in lines) is (given is None)


def test_whose_a_job_is_was_not_decided_before_it_was_submitted(tmp_path: Path) -> None:
    """A note that a crash has left counts no more when the job is prepared as the daemon's."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    spool._notes.runs_as("north+1+1", USER)  # and then the process has died
    again = Spool(tmp_path / "spool")
    again.open()
    again.prepare("north/1/1", Program("true"), run=True)
    for each in (again, Spool(tmp_path / "spool")):
        assert each.account("north/1/1") == ""


async def test_a_user_who_lifts_the_hold_keeps_the_job(
    tmp_path: Path, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can release a job of his own at any moment: one that has started is not given away as well."""
    world = World(tmp_path, fake, "as-user")
    async with followed(world.lrms):
        script = "#!/bin/sh\nuntil test -e go; do sleep 0.1; done\n"
        await world.lrms.submit(job("north/1/1", USER, script), held=True)
        await until(lambda: "north/1/1" in fake.ask("squeue", "-h", "-o", "%j"))
        system = world.lrms._system  # the moment between two calls
        right = system.cancel

        async def cancel(row: JobRow) -> bool:
            await system.release(row)
            place = world.lrms.folders.place("north/1/1")
            await until(lambda: (place / "begun").read_text() != "")
            return await right(row)

        monkeypatch.setattr(system, "cancel", cancel)
        assert not await world.lrms.cancel("north/1/1", only_waiting=True)
        (world.lrms.folders.place("north/1/1") / "go").touch()
        assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED


def test_a_folder_is_lent_to_one_user(tmp_path: Path) -> None:
    """By access lists; nobody else has any right, and the group neither."""
    (tmp_path / "program").write_text("true")
    lend(tmp_path, None, uid=pwd.getpwnam(USER).pw_uid)
    for path in (tmp_path, tmp_path / "program", tmp_path / "stdout"):
        assert path.stat().st_mode & 0o007 == 0
        value = os.getxattr(path, "system.posix_acl_access")
        # Of the owning group (0x04): nothing.
        assert value[20:24] == b"\x04\x00\x00\x00"
    assert (tmp_path / "program").stat().st_mode & 0o770 == 0o550


async def test_rows_are_matched_by_the_users_number(
    tmp_path: Path, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may have a name that is cut off, or is digits; a name that nobody knows now is compared as it is."""
    world = World(tmp_path, fake, "as-user")
    await world.lrms.open()
    keys = ("north/1/1", "north/1/2")
    for key, user in zip(keys, (USER, "#4711000"), strict=True):
        monkeypatch.setattr("grms.lrms.batch.launcher.has_lists", lambda _folder: True)
        world.lrms.folders.prepare(key, Program("true"), run=True, account=user, user=user)
    number = pwd.getpwnam(USER).pw_uid
    system = world.table.system("north", world.lrms.folders.account)
    named, nameless = (system.encode(key) for key in keys)
    assert system._is_owner(named, f"{USER}({number})")
    assert system._is_owner(named, f"{USER[:3]}({number})")
    assert not system._is_owner(named, f"{USER}(4711000)")
    assert system._is_owner(nameless, "4711000(4711000)")
    assert not system._is_owner(nameless, "4711000(1001)")  # the account whose name is digits
    assert system._is_owner(system.encode("north/1/3"), f"x({os.getuid()})")  # this process's own
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    again = world.table.system("north", world.lrms.folders.account)
    assert again._is_owner(named, f"{USER}({number})")
    assert not again._is_owner(named, f"other({number})")
    assert system._is_owner(named, f"{USER[:3]}({number})")  # it was known before


def second_user() -> str:
    """Returns an account besides `USER` and this process's."""
    for each in pwd.getpwall():
        if each.pw_uid >= 1000 and each.pw_name not in {USER, OWN}:
            return each.pw_name
    pytest.skip("there is one account for jobs here, and two users are needed")


@pytest.mark.services
@pytest.mark.parametrize("own_jobs", ["as-user", "as-daemon"])
async def test_no_user_reaches_anothers_job(own_jobs: str) -> None:
    """Neither its variables, script and output nor itself; as the daemon each reaches all, which is why."""
    need_slurm()
    if os.getuid() != 0:
        pytest.skip("jobs as another account: this is not root, who alone can be two here")
    other = second_user()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        folder = Path(name)
        cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=8)
        (folder / "bin").mkdir()
        (folder / "home").mkdir(mode=0o700)
        if own_jobs == "as-user":
            os.chown(folder / "home", pwd.getpwnam(USER).pw_uid, -1)
        with up(cluster):
            cluster.open_to_all()
            sudo, conf = folder / "bin/sudo", cluster.environment["SLURM_CONF"]
            sudo.write_text(SUDO.format(log=folder / "sudo.log", conf=conf))
            for path in (sudo, folder):
                path.chmod(0o755)
            world = World(folder, cluster, own_jobs)
            async with followed(world.lrms):
                await attack(world, folder, other, conf)


async def attack(world: World, folder: Path, other: str, conf: str) -> None:
    """Runs a user's job in the user's folder, and meanwhile another user's that attacks it."""
    own = world.table.own_jobs != "as-daemon"
    home, path = folder / "home", os.environ["PATH"]
    variables = (f"WORD={SECRET}", f"PATH={path}", "SLURM_UMASK=0027")
    asked = HomeRun(str(home), tuple(map(str.encode, variables)), ("--comment=mine",))
    first = LrmsJob(
        "north/1/1", 1, 600.0, user=USER, program=Program(OWNERS, outputs=("mine",)), home=asked
    )
    await world.lrms.submit(first)
    await until((home / "pid").exists)
    place = world.lrms.folders.place("north/1/1")
    marks = world.lrms.folders.marks("north/1/1")
    assert marks is not None
    words = (str(place), marks.number, (home / "pid").read_text().strip())
    program = Program(ATTACK.replace("{conf}", conf), arguments=words)
    await world.lrms.submit(LrmsJob("north/1/2", 1, 600.0, user=other, program=program))
    await world.ended("north/1/2")
    seen = (world.lrms.folders.place("north/1/2") / "stdout").read_text()
    log = Path(str(world.table.completion_log))
    if not own:
        assert SECRET in seen
        assert (await world.ended("north/1/1")).end.outcome is not Outcome.COMPLETED
        assert f"UserId={OWN}(" in log.read_text()
        return
    assert seen == ""
    assert all(
        word in (world.lrms.folders.place("north/1/2") / "stderr").read_text()
        for word in ("ls: cannot open", "Operation not permitted", "Access/permission denied")
    )
    (home / "go").touch()
    assert (await world.ended("north/1/1")).end.outcome is Outcome.COMPLETED
    printed = (home / f"slurm-{marks.number}.out").read_text()
    assert printed.splitlines() == [USER, str(home), str(home), "0027", SECRET]
    assert (home / "mine").stat().st_uid == pwd.getpwnam(USER).pw_uid
    left = await asyncio.to_thread(world.lrms.folders.left, "north/1/1")
    assert left is not None
    assert (left.path / "stdout").read_text() == printed
    assert (left.path / "mine").read_text() == "made\n"
    whose = [line.split("UserId=")[1].split("(")[0] for line in log.read_text().splitlines()]
    assert sorted(whose) == sorted((USER, other))
