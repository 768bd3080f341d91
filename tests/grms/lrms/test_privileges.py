"""Whether sudo can work, as the kernel says; with real processes under "no new privileges"."""

import subprocess
import sys
from pathlib import Path

import pytest

from grms.lrms.checks import FindingLevel
from grms.lrms.privileges import check_sudo, gains_rights, in_the_way, listener, no_new_privileges
from tests.programs import run_program

DENIED = ("setpriv", "--no-new-privs")
LISTENS = """
import socket, sys
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(sys.argv[1])
    listening.listen()
    print("listens", flush=True)
    sys.stdin.read()
"""


def test_the_flag_is_seen() -> None:
    """Of a process that has it; this one has not, and of one that is gone nothing is known."""
    code = "from grms.lrms.privileges import no_new_privileges; print(no_new_privileges())"
    for before, said in (((), "False"), (DENIED, "True")):
        done = run_program([*before, sys.executable, "-c", code], check=True)
        assert done.stdout.strip() == said
    assert not no_new_privileges(2**22)


def test_the_daemon_that_runs_is_looked_at(tmp_path: Path) -> None:
    """By whoever listens on the users' socket: the operator's shell may gain what the daemon may not."""
    path, needs = tmp_path / "users.sock", ["guests.users", "lrms.watch.programs"]
    assert listener(path) is None
    for before, level in (((), FindingLevel.GOOD), (DENIED, FindingLevel.MISSING)):
        with subprocess.Popen(  # noqa: S603  # same
            [*before, sys.executable, "-c", LISTENS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            daemon = listener(path)
            (found,) = check_sudo(needs, daemon)
            assert (found.what, found.level) == ("sudo", level)
            if level is FindingLevel.MISSING:
                assert f"the daemon, process {process.pid}: guests.users, lrms.watch" in found.text
                assert "sudo.conf" in found.cure
            assert check_sudo([], daemon) == []
            assert process.stdin is not None
            process.stdin.close()
        path.unlink()


def test_this_command_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no daemon runs."""
    monkeypatch.setattr(
        "grms.lrms.privileges.no_new_privileges", lambda process=None: process is None
    )
    (found,) = check_sudo(["partners.account"], None)
    assert (found.level, found.text.startswith("this command: partners.account")) == (
        FindingLevel.MISSING,
        True,
    )
    assert in_the_way([]) == ""


@pytest.mark.parametrize(
    ("name", "text", "mode", "found"),
    [
        ("scontrol", '#!/bin/sh\nexec sudo -n -u slurm /usr/bin/scontrol "$@"\n', 0o755, True),
        ("scontrol", '#!/bin/sh\nexec /usr/bin/scontrol "$@"\n', 0o755, False),
        ("scontrol", "anything", 0o4755, True),
    ],
)
def test_programs_that_gain_rights_are_known(
    tmp_path: Path, name: str, text: str, mode: int, found: bool
) -> None:
    """A script that calls sudo, or a program with the bit; not a link to the usual one."""
    (tmp_path / "squeue").symlink_to("/bin/true")
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(mode)
    assert gains_rights(tmp_path) is found
    assert not gains_rights(tmp_path / "none")
