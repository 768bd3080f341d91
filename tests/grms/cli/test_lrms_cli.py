"""The commands around a site's batch system."""

from pathlib import Path
from typing import Any

import pytest

from grms.cli.main import run_command
from grms.lrms.adapter import Adapter
from grms.lrms.checks import Finding, doubt, good, missing
from grms.lrms.preemption import FileLines
from grms.lrms.simulated.simulated import ADAPTER
from grms.lrms.slurm.slurm_adapter import ADAPTER as SLURM
from grms.v1 import deputy_pb2
from lrms_sim.util.files import to_toml
from tests.grms.site.daemons import document
from tests.schemas import printed


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets Slurm be the one batch system, of which only the user is looked at."""

    async def look(_settings: Any, _site: Any, _run_s: float | None) -> list[Finding]:
        return [good("user", "me")]

    other = Adapter(SLURM.settings, SLURM.make, look)
    monkeypatch.setattr("grms.lrms.batch_systems.KINDS", {"slurm": lambda: other})


def test_a_simulated_one_is_always_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to look at."""
    path = tmp_path / "site.toml"
    path.write_text(to_toml(document(tmp_path)))
    assert run_command(["lrms", "check", str(path)]) == 0
    assert "nothing to look at" in capsys.readouterr().out
    assert run_command(["lrms", "check", str(path), "--json"]) == 0
    assert printed("grms-lrms-check", capsys.readouterr().out)["findings"] == []


@pytest.mark.usefixtures("slurm")
def test_what_needs_sudo_is_told_where_it_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the site's file, and the cure; status 1."""
    monkeypatch.setattr("grms.lrms.privileges.no_new_privileges", lambda _=None: True)
    users = tmp_path / "users.map"
    users.write_text("ann@away  ann\n")
    path = tmp_path / "site.toml"
    lrms = {"kind": "slurm", "spool": str(tmp_path)}
    path.write_text(to_toml(document(tmp_path, lrms=lrms)))
    assert run_command(["lrms", "check", str(path)]) == 1
    assert "this command: lrms.own_jobs: sudo refuses" in capsys.readouterr().out
    lrms["own_jobs"] = "as-daemon"
    path.write_text(to_toml(document(tmp_path, lrms=lrms)))
    assert run_command(["lrms", "check", str(path)]) == 0
    assert "sudo" not in capsys.readouterr().out
    path.write_text(to_toml(document(tmp_path, lrms=lrms, guests={"users": str(users)})))
    assert run_command(["lrms", "check", str(path)]) == 1
    words = " ".join(capsys.readouterr().out.split())
    assert "NO sudo this command: guests.users: sudo refuses" in words
    assert "hanse-grms@.service.d/sudo.conf" in words


@pytest.mark.usefixtures("slurm")
def test_partners_jobs_as_the_daemon_are_told_where_users_have_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As such a job reaches all users' jobs, and whoever the daemon may become."""
    path = tmp_path / "site.toml"
    partner: dict[str, object] = {"name": "north", "address": "127.0.0.1:7001"}
    lrms = {"kind": "slurm", "spool": str(tmp_path)}

    def words(**more: Any) -> str:
        path.write_text(to_toml(document(tmp_path, lrms=lrms, **more) | {"partners": [partner]}))
        assert run_command(["lrms", "check", str(path)]) == 0
        return " ".join(capsys.readouterr().out.split())

    said = words()
    assert "note partners' jobs those of north run as" in said
    assert "partners.account" in said
    users = tmp_path / "users.map"
    users.write_text("ann@north  ann\n")
    assert "those of north" in words(guests={"users": str(users)})
    refused = {"users": str(users), "unknown_users": "refuse"}
    assert "partners' jobs" not in words(guests=refused)
    partner["account"] = "grid-north"
    assert "partners' jobs" not in words()
    del partner["account"]
    lrms["own_jobs"] = "as-daemon"
    assert "partners' jobs" not in words()


@pytest.mark.usefixtures("slurm")
def test_whose_deputies_are_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those asked for, of partners' accounts, and of all; nothing needs sudo, and without the daemon nobody knows."""
    monkeypatch.setattr("grms.lrms.privileges.no_new_privileges", lambda _=None: True)
    users = tmp_path / "users.map"
    users.write_text("ann@away  grid\n")
    path = tmp_path / "site.toml"
    lrms = {"kind": "slurm", "spool": str(tmp_path), "own_jobs": "by-client"}
    path.write_text(to_toml(document(tmp_path, lrms=lrms, guests={"users": str(users)})))

    def words(status: int, *more: str) -> str:
        assert run_command(["lrms", "check", str(path), *more]) == status
        return " ".join(capsys.readouterr().out.split())

    said = words(0, "--as", "bob")
    assert "note deputies no daemon answers on" in said
    assert "sudo" not in said
    seen = deputy_pb2.DeputyLook()
    seen.deputies.add(user="ann")
    seen.deputies.add(user="grid", problem="it sleeps")
    monkeypatch.setattr("grms.client.unary.ask", lambda *_: seen.SerializeToString())
    said = words(0, "--as", "ann")
    assert "ok deputies that of ann is there" in said
    assert "note deputies grid: it sleeps" in said
    assert "ok deputies 2 are there: ann, grid" in said
    said = words(1, "--as", "bob")
    assert "NO deputies that of bob is not there, and the jobs wait" in said
    assert "as bob: grms deputy --socket" in said


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([good("user", "me"), doubt("hold", "0 s", "more")], 0),
        ([good("user", "me"), missing("clock", "it is 70 s ahead, " * 9, "set it, " * 20)], 1),
    ],
)
def test_what_was_found_is_printed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    found: list[Finding],
    status: int,
) -> None:
    """A line each, its cure below; the status says whether something is missing."""
    asked = []

    async def look(_settings: Any, site: Any, run_s: float | None) -> list[Finding]:
        asked.append((site.name, site.processors, run_s))
        return found

    other = Adapter(ADAPTER.settings, ADAPTER.make, look)
    monkeypatch.setattr("grms.lrms.batch_systems.KINDS", {"simulated": lambda: other})
    path = tmp_path / "site.toml"
    path.write_text(to_toml(document(tmp_path)))
    assert run_command(["lrms", "check", str(path)]) == status
    shown = capsys.readouterr().out
    assert "no job was run" in shown
    assert max(map(len, shown.splitlines())) < 80
    words = " ".join(shown.split())
    for finding in found:
        assert " ".join(f"{finding.level.value} {finding.what} {finding.text}".split()) in words
        assert " ".join(finding.cure.split()) in words
    assert run_command(["lrms", "check", str(path), "--json"]) == status
    told = printed("grms-lrms-check", capsys.readouterr().out)
    assert [each["what"] for each in told["findings"]] == [each.what for each in found]
    assert [each["level"] for each in told["findings"]] == [each.level.value for each in found]
    assert asked.pop(1) == asked[0]
    run_command(["lrms", "check", str(path), "--run", "--timeout", "7"])
    assert "no job was run" not in capsys.readouterr().out
    assert asked == [("home", 4, None), ("home", 4, 7.0)]


def test_lines_for_preemption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each behind its file, with what makes it count; a batch system that ends no guests has none."""
    path = tmp_path / "site.toml"
    path.write_text(to_toml(document(tmp_path)))
    assert run_command(["lrms", "preemption", str(path)]) == 0
    assert "it ends no guests for own jobs" in capsys.readouterr().out
    assert run_command(["lrms", "preemption", str(path), "--json"]) == 0
    assert printed("grms-lrms-preemption", capsys.readouterr().out)["files"] == []

    async def lines(_settings: Any, site: Any) -> list[FileLines]:
        return [
            FileLines("slurm.conf", f"for {site.name}", ("A=1", "B=2")),
            FileLines("slurm.conf", "more", ("C=3",), "scontrol reconfigure"),
        ]

    other = Adapter(SLURM.settings, SLURM.make, None, lines)
    monkeypatch.setattr("grms.lrms.batch_systems.KINDS", {"slurm": lambda: other})
    path.write_text(to_toml(document(tmp_path, lrms={"kind": "slurm", "spool": str(tmp_path)})))
    assert run_command(["lrms", "preemption", str(path)]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("# slurm.conf: for ")
    assert first.endswith("\nA=1\nB=2")
    assert second == "# slurm.conf: more\nC=3\n# then: scontrol reconfigure\n"
    assert run_command(["lrms", "preemption", str(path), "--json"]) == 0
    files = printed("grms-lrms-preemption", capsys.readouterr().out)["files"]
    assert [each["then"] for each in files] == ["", "scontrol reconfigure"]
