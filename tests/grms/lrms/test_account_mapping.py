"""Jobs as other accounts: which may be used, what they can do in a job's folder, and that they reach no further."""

import os
import pwd
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from grms.daemon.clock import WallClock
from grms.daemon.job_files import FileProblemError, opened
from grms.lrms.account_mapping import (
    NO_GROUP,
    account_number,
    check_account,
    common_group,
    refusal_of_sudo,
    sudoers_line,
)
from grms.lrms.adapter import LrmsSite
from grms.lrms.base import Ended, LrmsEvent, LrmsJob, LrmsRefusedError, Program, Started
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.checks import FindingLevel
from grms.lrms.job_notes import Marks
from grms.lrms.slurm.slurm_adapter import ADAPTER, SlurmTable
from grms.util.outcomes import Outcome
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.grms.lrms.told import Told, followed

OWN = pwd.getpwuid(os.getuid()).pw_name
SCRIPT = "#!/bin/sh\nid -un\nmkdir d; echo made >d/file\n"
HOSTILE = (
    "rm -f outputs.json values launch\nls ..\ncat ../.accounts/* ../.marks/*\ntrue >../other\n"
)


def test_which_accounts_there_are() -> None:
    """Neither root nor any of the system's, nor digits alone, nor what is an option; who has no name has no group."""
    assert account_number("nobody")[0] >= 1000
    assert account_number("#4711000") == (4711000, NO_GROUP)
    with pytest.raises(LrmsRefusedError, match="no group"):
        common_group("#4711000")
    refused = (
        ("root", "system's"),
        ("#0", "system's"),
        ("#999", "system's"),
        ("hanse-none", "there is no"),
    )
    for name, text in (*refused, ("#4294967295", "there is no")):
        with pytest.raises(LrmsRefusedError, match=text):
            account_number(name)
    for name in ("0", "4711000", "-u", "#", "#01", "a b", "", "x" * 65, "ann\n"):
        with pytest.raises(LrmsRefusedError, match="no name"):
            account_number(name)


def test_what_sudo_refuses() -> None:
    """Its last word counts: before it runs a program, it may warn, and then the program has answered."""
    warning = "sudo: unable to resolve host n1: Name or service not known\n"
    said = f"{warning}sbatch: error: invalid partition specified: x\n"
    assert refusal_of_sudo(said) == refusal_of_sudo("") == refusal_of_sudo("\n") == ""
    assert refusal_of_sudo(f"{warning}sudo: unknown user ann\n") == "sudo: unknown user ann"
    said = (
        "Sorry, user hanse is not allowed to execute '/usr/bin/sbatch --a=it's -b' as ann on n1.\n"
    )
    short = "Sorry, user hanse is not allowed to execute '/usr/bin/sbatch …' as ann on n1."
    assert refusal_of_sudo(said) == short


def test_the_group_is_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon's user is a member of it; an operator is told how."""
    group = account_number("nobody")[1]
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(os, "getgroups", lambda: [group])
    assert common_group("nobody") == group
    finding = check_account("nobody")
    assert finding is not None
    assert finding.level is FindingLevel.DOUBT  # nogroup is not its own
    monkeypatch.setattr(os, "getgroups", list)
    monkeypatch.setattr(os, "getegid", lambda: 4711)
    with pytest.raises(LrmsRefusedError, match="usermod -aG nogroup"):
        common_group("nobody")
    finding = check_account("nobody")
    assert finding is not None
    assert finding.cure.startswith("usermod -aG nogroup #4711")
    finding = check_account("root")
    assert finding is not None
    assert finding.level is FindingLevel.MISSING
    line = sudoers_line(["ann", "bob"], ["/usr/bin/sbatch"])
    assert line == "#4711 ALL = (ann, bob) TIMEOUT=60 NOPASSWD: /usr/bin/sbatch"


def test_a_lent_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group works in it; what the daemon has put there stays, and others see nothing."""
    monkeypatch.setattr("grms.lrms.batch.launcher.common_group", lambda _name: os.getgid())
    spool = Spool(tmp_path / "spool")
    spool.open()
    program = Program(SCRIPT, outputs=("d/file",))
    own = spool.prepare("home/1/2", program, run=True)
    place = spool.prepare("home/1/1", program, run=True, account="ann")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()}
    written = dict.fromkeys(("stdout", "stderr", "begun", "begun.died"), 0o660)
    read = {"values": 0o440, "outputs.json": 0o440, "launch": 0o550, "program": 0o550}
    assert modes == written | read
    assert stat.S_IMODE(place.stat().st_mode) == 0o3770
    assert "umask 007\n" in (place / "values").read_text()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o711
    again = Spool(tmp_path / "spool")
    again.open()
    for each in (spool, again):
        assert (each.account("home/1/1"), each.account("home/1/2")) == ("ann", "")
    assert stat.S_IMODE((tmp_path / "spool/.accounts").stat().st_mode) == 0o700
    assert again.stale(1e12) == ["home/1/1", "home/1/2"]
    assert again.marks("home/1/1") == again.marks("home/1/2") == Marks(run=True)
    assert stat.S_IMODE((tmp_path / "spool/.marks").stat().st_mode) == 0o700
    for number in (1, 2):
        spool.remove(f"home/1/{number}")
    for name in (".accounts", ".marks"):
        assert list((tmp_path / "spool" / name).iterdir()) == []
    assert spool.account("home/1/1") == ""


def test_a_linked_file_of_the_daemons_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel lets an account link what it cannot read; nor once the rest of its folder has been deleted."""
    monkeypatch.setattr("grms.lrms.batch.launcher.common_group", lambda _name: os.getgid())
    (tmp_path / "journal").write_text("precious")
    spool = Spool(tmp_path / "spool")
    spool.open()
    place = spool.prepare("home/1/1", Program(SCRIPT), run=True, account="ann")
    (place / "stdout").unlink()
    os.link(tmp_path / "journal", place / "stdout")
    (place / "more").write_text("left")
    for _ in range(2):
        with pytest.raises(FileProblemError, match="no file"):
            opened(place, "stdout")
        assert spool.clear("home/1/1", ["stderr"]).files


def test_links_lead_the_daemon_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the account lays into its folder: nothing of the daemon's is written through it, or opened to it."""
    monkeypatch.setattr("grms.lrms.batch.launcher.common_group", lambda _name: os.getgid())
    journal = tmp_path / "journal"
    journal.write_text("precious")
    journal.chmod(0o600)
    spool = Spool(tmp_path / "spool")
    spool.open()
    for number in range(2):
        place = spool.prepare("home/1/1", Program(SCRIPT), run=True, account="ann")
        assert not [path for path in place.iterdir() if path.is_symlink()], number
        (place / "stdout").unlink()
        for name in ("state.new", "stdout", "deep"):
            (place / name).symlink_to(journal)
        spool.wanted("home/1/1")
        spool.released("home/1/1", "17")
        assert Spool(tmp_path / "spool").marks("home/1/1") == Marks(
            run=True, released=True, number="17"
        )
    spool.clear("home/1/1", ["stdout", "state.new", "deep"])
    assert journal.read_text() == "precious"
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == [
        ".accounts",
        ".marks",
        "home+1+1",
    ]


class Cluster(Told):
    """A cluster whose programs run as another account through `sudo`."""

    def __init__(self, folder: Path, cluster: FakeSlurm | SlurmCluster, account: str) -> None:
        self.folder, self.cluster, self.account = folder, cluster, account
        place = cluster.environment.get("SLURM_CONF")
        programs = cluster.programs if isinstance(cluster, FakeSlurm) else str(folder / "bin")
        self.table = SlurmTable(
            kind="slurm",
            poll_s=0.2,
            settle_s=0.0,
            spool=str(folder / "spool"),
            completion_log=cluster.completion_log,
            programs=programs,
            configuration=place,
        )
        self.events: list[LrmsEvent] = []
        site = LrmsSite("south", 8, WallClock(), folder, accounts=[account])
        self.site = site
        self.lrms = self.again()

    def again(self) -> BatchLrms:
        """Begins a new life: an adapter that remembers nothing."""
        lrms = ADAPTER.made(self.table, self.site)
        assert isinstance(lrms, BatchLrms)
        lrms.listen(self.events.extend)
        self.lrms = lrms
        return lrms


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A fake Slurm that knows whose a job is, whose accounts are all right."""
    monkeypatch.setattr("grms.lrms.batch.launcher.common_group", lambda _name: os.getgid())
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=8)
    cluster.up()
    cluster.make_sudo()
    yield Cluster(tmp_path, cluster, "ann")
    cluster.down()


def job(key: str, script: str, account: str = "") -> LrmsJob:
    """Returns a job of one processor."""
    return LrmsJob(key, 1, 60.0, program=Program(script), account=account)


async def run_both(world: Cluster, more: str = "") -> None:
    """Runs jobs as another account and as the daemon's, cancels one in a later life, and looks at what is left."""
    lrms = world.lrms
    async with followed(lrms):
        await lrms.submit(job("north/1/1", "#!/bin/sh\nsleep 1000\n", world.account))
        await lrms.submit(job("north/1/2", f"{SCRIPT}{more}exit 3\n", world.account))
        await lrms.submit(job("south/1/3", "#!/bin/sh\nid -un\n"))
        for key, code in (("north/1/2", 3), ("south/1/3", 0)):
            event = await world.told(key, Ended)
            assert isinstance(event, Ended)
            assert event.end.exit_code == code
        await world.told("north/1/1", Started)
    world.events.clear()
    lrms = world.again()
    async with followed(lrms):
        assert await lrms.cancel("north/1/1")
        event = await world.told("north/1/1", Ended)
        assert isinstance(event, Ended)
        assert event.end.outcome is Outcome.CANCELLED
    place = lrms.folders.place("north/1/2")
    assert (place / "d/file").read_text() == "made\n"
    assert (lrms.folders.place("south/1/3") / "stdout").read_text() == f"{OWN}\n"


async def test_jobs_of_a_fake(fake: Cluster) -> None:
    """Each is handed in, released and cancelled as its own account, and as nobody else."""
    await run_both(fake)
    calls = (fake.folder / "cluster/sudo.log").read_text().splitlines()
    assert all(line.startswith("-n -u ann -- ") for line in calls)
    programs = Counter(line.split(" ")[4].rpartition("/")[2] for line in calls)
    assert programs.pop("scancel") >= 1  # a look may find it still there
    assert 1 <= programs.pop("scontrol") <= 2  # releases that are due together share a call
    assert programs == {"sbatch": 2}
    # A job of that name that somebody else has handed in is nobody's.
    cluster = fake.cluster
    assert isinstance(cluster, FakeSlurm)
    again = ADAPTER.made(fake.table, fake.site)
    await again.open()
    table = await again.snapshot()
    assert sorted(table.jobs) == ["north/1/1", "north/1/2", "south/1/3"]
    cluster.machine.answer("sbatch@eve", ["--job-name=hanse:south:north/1/9", "--wrap=true"])
    cluster.machine.answer("sbatch@ann", ["--job-name=hanse:south:south/1/3", "--wrap=true"])
    again = ADAPTER.made(fake.table, fake.site)
    await again.open()
    table = await again.snapshot()
    assert sorted(table.jobs) == ["north/1/1", "north/1/2", "south/1/3"]
    assert table.jobs["south/1/3"].end is not None


@pytest.mark.services
async def test_jobs_of_a_real_one() -> None:
    """Two accounts: one reaches its own folder, and neither another's nor what the daemon keeps."""
    need_slurm()
    if os.getuid() != 0:
        pytest.skip("jobs as another account: this is not root, who alone can be two here")
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # others pass through it
        folder = Path(name)
        cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=8)
        (folder / "bin").mkdir()
        sudo = folder / "bin/sudo"
        words = "--reuid=nobody --regid=nogroup --clear-groups"
        sudo.write_text(f'#!/bin/sh\nshift 4\nexec setpriv {words} env HOME=/ "$@"\n')
        for path in (sudo, folder):
            path.chmod(0o755)
        with up(cluster):
            cluster.open_to_all()
            world = Cluster(folder, cluster, "nobody")
            await run_both(world, HOSTILE)
            place = world.lrms.folders.place("north/1/2")
            assert (place / "stdout").read_text() == "nobody\n"
            refused = (place / "stderr").read_text()
            for text in (
                "'outputs.json'",
                "'values'",
                "'launch'",
                "'..'",
                "../.accounts",
                "../.marks",
                "../other",
            ):
                assert text in refused, refused
            assert (place / "d/file").stat().st_uid == pwd.getpwnam("nobody").pw_uid
