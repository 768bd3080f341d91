"""The tutorial's commands do what the tutorial says, run in a shell in its order."""

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from grms.cli import partners_cli
from grms.daemon.ports import free_port
from tests.programs import run_program

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

PRELUDE = """
set -e
grms() { PYTHON -c 'from grms.command import main; main()' "$@"; }
"""


def blocks(kind: str) -> list[str]:
    """Returns the blocks of one kind in the tutorial."""
    text = TUTORIAL.read_text(encoding="utf-8")
    return [match["text"] for match in BLOCK.finditer(text) if match["kind"] == kind]


def script(folder: Path) -> str:
    """Returns all commands of the tutorial as one script that waits where a reader would look."""
    parts = [PRELUDE.replace("PYTHON", sys.executable)]
    begun = 0
    for block in blocks("sh"):
        # In a script `%1` is not known without job control; process ids say the same.
        known = block.replace("kill -9 %1", "kill -9 $PID1").replace("%2 %3", "$PID2 $PID3")
        for shown in known.splitlines():
            line = shown
            if line.endswith("&"):
                # The shell's own function would leave another process in between.
                begun += 1
                command = line.removeprefix("grms ")
                parts.append(
                    f"{sys.executable} -c 'from grms.command import main; main()' {command}"
                )
                parts.append(f"PID{begun}=$!; echo $! >> {folder}/pids")
                site = command.split()[1].removesuffix(".toml")
                served = f"$(grep -c '\\bserving\\b' {site}.log || true)"
                parts.append(f"echo {site} >> started")
                parts.append(
                    f'until [ "{served}" -ge "$(grep -cx {site} started)" ]; do sleep 0.1; done'
                )
            elif line.startswith("grms partners --socket lubeck"):
                parts.append(f"until {line} | grep -q ' yes '; do sleep 0.1; done; {line}")
            else:
                parts.append(line)
    return "\n".join(parts) + "\n"


@pytest.mark.services
def test_a_strangers_half_hour(tmp_path: Path) -> None:
    """Two sites by hand, a full one, a job that goes to the other, its journal, and a crash."""
    ports = {"7101": str(free_port()), "7102": str(free_port())}
    for block in blocks("toml"):
        name = re.search(r'name = "(\w+)"', block)
        assert name is not None
        text = block
        for port, free in ports.items():
            text = text.replace(f":{port}", f":{free}")
        (tmp_path / f"{name[1]}.toml").write_text(text)
    try:
        done = run_program(
            [
                "/bin/bash",
                "-c",
                script(tmp_path),
            ],
            cwd=tmp_path,
            timeout=120,
        )
    finally:
        begun = tmp_path / "pids"
        for pid in begun.read_text().split() if begun.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "lubeck-1\nlubeck-2\n" in said
    assert "lubeck-2: ended, completed on wismar" in said
    assert re.search(r'"record":1,"kind":"GuestAccepted".*lubeck', said)
    assert re.search(r'"record":4,"kind":"GuestAcknowledged"', said)
    assert "lubeck-1: ended, completed on lubeck 12.0" in said
    deadline = time.monotonic() + 300
    while list(tmp_path.glob("*.sock")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.glob("*.sock"))


def test_what_the_tutorial_shows_is_what_commands_write() -> None:
    """Names and columns in the shown output are those of the commands."""
    shown = "\n".join(blocks(""))
    source = Path(partners_cli.__file__).read_text(encoding="utf-8")
    for word in ("PARTNER", "PROCS", "UP", "OFFERED", "ACCEPTED", "OPEN", "GUESTS", "AWRT/s"):
        assert word in shown
        assert f'"{word}"' in source
