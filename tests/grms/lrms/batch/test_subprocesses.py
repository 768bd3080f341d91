"""Programs of a batch system: clean, bounded, and killed with all that they started."""

import asyncio
import contextlib
import gc
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch import subprocesses as module
from grms.lrms.batch.subprocesses import Programs
from tests.waiting import run, until


def script(folder: Path, text: str) -> str:
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(folder)


async def test_what_a_program_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments as they are, and of the environment what it was given and nothing else."""
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("SECRET", "x")
    folder = script(tmp_path, 'printf "%s|" "$@"; /usr/bin/env; echo no >&2; exit 3')
    programs = Programs({"GIVEN": "1"}, folder=folder)
    answer = await programs.run("tool", "a b", "$(id)", "", also={"MORE": "2"})
    assert answer.code == 3
    assert answer.error == "no"
    text = answer.output.decode()
    assert text.startswith("a b|$(id)||")
    names = {line.split("=")[0] for line in text.split("|")[-1].splitlines()}
    assert names <= {"GIVEN", "MORE", "PATH", "PWD", "_", "SHLVL", "OLDPWD"}


async def test_one_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    """With what it has started; the answer is that there was none."""
    folder = script(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/child; wait")
    programs = Programs({}, folder=folder, timeout_s=0.5)
    with pytest.raises(LrmsUnavailableError, match=r"tool has not answered within 0\.5 s"):
        await programs.run("tool")
    child = int((tmp_path / "child").read_text())
    await until(lambda: not runs(child))


def test_what_a_killed_program_leaves_open_is_closed(tmp_path: Path) -> None:
    """What it has started in a session of its own has its output still, and is not waited for."""
    folder = script(
        tmp_path,
        f"setsid sleep 600 & echo $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/child; exec sleep 600",
    )

    async def scene() -> None:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(Programs({}, folder=folder).run("tool"))
            await until((tmp_path / "child").exists)
            child = int((tmp_path / "child").read_text())
            await until(lambda: os.getsid(child) == child)
            call.cancel()
        assert runs(child)
        os.kill(child, signal.SIGKILL)

    run(scene)
    # What is left of a pipe would be closed here, on a loop that is none any more: a warning.
    gc.collect()


@pytest.mark.parametrize("way", ["awaited", "left"])
@pytest.mark.parametrize("steps", range(1, 6))
def test_a_program_that_is_killed_is_reaped(tmp_path: Path, way: str, steps: int) -> None:
    """Also where its caller is given up again while it is killed, or where the loop ends then and all is given up."""
    folder = script(tmp_path, "exec sleep 600")

    async def scene() -> None:
        call = asyncio.create_task(Programs({}, folder=folder).run("tool"))
        # If the loop ends while it is started, asyncio itself (3.11) waits long for it.
        await until(lambda: any("_read" in repr(each) for each in asyncio.all_tasks()))
        call.cancel()
        for _ in range(steps):
            await asyncio.sleep(0)
        if way == "awaited":
            call.cancel()
            await asyncio.wait([call])
            assert call.cancelled()

    run(scene)
    # A process that is not known to have ended is warned of here.
    gc.collect()


async def test_a_call_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    """Whoever waits no longer has the program killed."""
    folder = script(
        tmp_path, f"echo $$ >{tmp_path}/own.new; mv {tmp_path}/own.new {tmp_path}/own; sleep 1000"
    )
    async with asyncio.TaskGroup() as group:
        call = group.create_task(Programs({}, folder=folder).run("tool"))
        await until((tmp_path / "own").exists)
        call.cancel()
    await until(lambda: not runs(int((tmp_path / "own").read_text())))


async def test_a_call_that_is_given_up_while_it_starts_leaves_no_process(tmp_path: Path) -> None:
    """Nor what the program has started itself, at whatever step the call is given up."""
    word = f"1000.{os.getpid()}"
    programs = Programs({}, folder=script(tmp_path, f"sleep {word} & sleep {word}"))
    for steps in range(12):
        call = asyncio.ensure_future(programs.run("tool"))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await until(lambda: not sleeping(word))


def sleeping(word: str) -> list[Path]:
    """Returns the processes that sleep so long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{word}\0".encode():
                found.append(path)
    return found


def runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_the_event_loop_goes_on(tmp_path: Path) -> None:
    """While a program runs everything else does."""
    folder = script(tmp_path, f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done")
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        call = group.create_task(Programs({}, folder=folder).run("tool"))
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
    assert call.result().code == 0


async def test_no_more_than_so_many_at_once(tmp_path: Path) -> None:
    """The others wait for their turn."""
    folder = script(tmp_path, f"mkdir {tmp_path}/in || exit 9; sleep 0.05; rmdir {tmp_path}/in")
    programs = Programs({}, folder=folder, at_once=1)
    answers = await asyncio.gather(*(programs.run("tool") for _ in range(4)))
    assert [answer.code for answer in answers] == [0] * 4


async def test_a_missing_program_is_no_answer(tmp_path: Path) -> None:
    """With its name and where it was looked for."""
    with pytest.raises(LrmsUnavailableError, match=r"no program nowhere in .*/usr/bin"):
        await Programs({}, folder=str(tmp_path)).run("nowhere")


async def test_a_program_that_is_none(tmp_path: Path) -> None:
    """It cannot be started; that is no answer either."""
    (tmp_path / "tool").write_bytes(b"\x7fELF, but no more")
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(LrmsUnavailableError, match="cannot be run"):
        await Programs({}, folder=str(tmp_path)).run("tool")


async def test_one_ended_by_a_signal_has_not_answered(tmp_path: Path) -> None:
    """Its status is no answer of the batch system."""
    programs = Programs({}, folder=script(tmp_path, "kill -9 $$"))
    with pytest.raises(LrmsUnavailableError, match="ended by SIGKILL"):
        await programs.run("tool")


async def test_too_much_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not stop talking does not fill the memory."""
    monkeypatch.setattr(module, "OUTPUT_BYTES_MAX", 100_000)
    programs = Programs({}, folder=script(tmp_path, "while :; do echo 0123456789; done"))
    with pytest.raises(LrmsUnavailableError, match="more than 100000 bytes"):
        await programs.run("tool")


async def test_an_argument_with_nul_is_refused() -> None:
    """The kernel would end it there."""
    with pytest.raises(LrmsRefusedError, match="NUL"):
        await Programs({}).run("true", "a\0b")


@pytest.mark.skipif(not os.access("/usr/bin/setpriv", os.X_OK), reason="there is no setpriv")
async def test_a_submission_dies_with_its_daemon(tmp_path: Path) -> None:
    """The program has this process's death as a reason for its own."""
    folder = script(tmp_path, "exec /usr/bin/setpriv --dump")
    answer = await Programs({}, folder=folder).run("tool", dies_with_us=True)
    assert b"Parent death signal: KILL" in answer.output


async def test_a_program_as_another_account(tmp_path: Path) -> None:
    """Through sudo, which asks nobody; the program is named by its path, and no word of it is an option of sudo's."""
    folder = script(tmp_path, "exit 0")
    (tmp_path / "sudo").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    answer = await Programs({}, folder=folder).run(
        "tool", "-u", "root", account="ann", dies_with_us=True
    )
    assert answer.output.decode() == f"-n|-u|ann|--|{folder}/tool|-u|root|"


async def test_another_accounts_program_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be ended from here: after the time-out nobody waits for it, and it ends by itself."""
    folder = script(tmp_path, f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    denied, started, start = [], list[asyncio.subprocess.Process](), asyncio.create_subprocess_exec

    def refuse(process: int, number: int) -> None:
        denied.append((process, number))
        raise PermissionError

    async def note(*words: Any, **how: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **how))
        return started[-1]

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refuse)
        patch.setattr(asyncio, "create_subprocess_exec", note)
        with pytest.raises(LrmsUnavailableError, match="has not answered"):
            await Programs({}, folder=folder, timeout_s=0.2).run("tool")
    (tmp_path / "go").touch()
    ((child, _),) = denied
    # When it is gone, asyncio has still to hear of it: the loop must not end before.
    assert await started[0].wait() == 0
    assert not runs(child)
