"""Runs a batch system's programs: no shell, a clean environment, a time-out, few at once.

A program that exceeds the time-out is killed with all its children. It may have had its effect all the same, so
this, like every failure to get an answer, is `LrmsUnavailableError`; the meaning of a program's own error message
is for the caller.
"""

import asyncio
import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol

from grms.lrms.account_mapping import refusal_of_sudo
from grms.lrms.base import LrmsRefusedError, LrmsUnavailableError

PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""Default search path of programs; also the jobs' PATH."""

OUTPUT_BYTES_MAX: Final = 256 << 20
"""A program with more output counts as unanswered: 100,000 jobs make some 10 MB."""

ERROR_CHARACTERS_MAX: Final = 500
"""Most characters kept of an error message."""

_CHUNK_BYTES = 1 << 18

_REAPED_S: Final = 10.0
"""Longest wait of a caller that is given up for the end of a program that was killed: a disk may keep it for long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a program that ended by itself; `code` is negative for a signal.

    With `by_sudo` it has not run: sudo has refused, and said `error`. With `theirs` a process of its user's says so, whose
    word counts for that user alone.
    """

    code: int
    output: bytes
    error: str
    by_sudo: bool = False
    theirs: bool = False


class SilentError(LrmsUnavailableError):
    """A program exceeded its time-out; `said` is its standard error until then."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(reason)
        self.said = said


class AsOthers(Protocol):
    """Runs programs as other accounts, in place of sudo."""

    def waits_for(self, account: str) -> str:
        """Returns why nothing can be run as an account now; empty if it can be tried."""

    async def run(
        self,
        account: str,
        program: str,
        arguments: Sequence[str],
        *,
        also: Mapping[str, str],
        folder: str,
        umask: int,
    ) -> Answer:
        """Runs a program as an account; arguments and errors are those of `Programs.run`."""


class Programs:
    """Runs programs for one batch system.

    Args:
        environment: complete; `PATH` is added if missing.
        folder: of the programs; `None` searches `PATH`.
        timeout_s: of one program, real seconds.
        at_once: concurrent programs; others wait.
        others: runs those of other accounts; `None`: sudo does.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        folder: str | None = None,
        timeout_s: float = 30.0,
        at_once: int = 4,
        others: AsOthers | None = None,
    ) -> None:
        self._environment = {"PATH": PATH, **environment}
        if folder is not None:
            self._environment["PATH"] = f"{folder}:{self._environment['PATH']}"
        self._timeout_s = timeout_s
        self._others = others
        self._slots = asyncio.Semaphore(at_once)

    @property
    def by_others(self) -> bool:
        """Whether what runs as another account is run by a process of that one."""
        return self._others is not None

    def waits_for(self, account: str) -> str:
        """Returns why nothing can be run as an account now, empty for this process's own; empty if it can be tried."""
        return self._others.waits_for(account) if account and self._others is not None else ""

    async def run(
        self,
        program: str,
        *arguments: str,
        also: Mapping[str, str] | None = None,
        dies_with_us: bool = False,
        account: str = "",
        folder: str = "/",
        umask: int = -1,
        typed: bytes = b"",
    ) -> Answer:
        """Runs a program to its end.

        Args:
            program: its name.
            arguments: passed unchanged.
            also: additional variables.
            dies_with_us: kill it when this process ends for any reason, so that a pending
                submission does not arrive after a restart.
            account: as which to run it, through sudo; empty for this process's own. It is then not killed
                with this process or at the time-out, as it belongs to another user.
            folder: its working directory.
            umask: negative for this process's.
            typed: what it finds on its standard input; only of this process's own account.

        Raises:
            NoDeputyError: nobody runs it as that account now.
            LrmsRefusedError: an argument cannot be passed to a program, or there is no sudo.
            LrmsUnavailableError: it is missing, could not be started, was killed by a signal, had too
                much output, or took too long.
        """
        command = [program, *arguments]
        if any("\0" in word for word in command):
            raise LrmsRefusedError(f"{program}: an argument has a NUL character")
        if account and self._others is not None:
            # None of the slots: users are many, and each waits for himself.
            return await self._others.run(
                account,
                program,
                arguments,
                also=also or {},
                folder=folder,
                umask=umask,
            )
        path = self.place(program)
        command[0] = path
        if account:
            command = [self._sudo(account), "-n", "-u", account, "--", *command]
        elif dies_with_us and (setpriv := _which("setpriv", PATH)) is not None:
            command = [setpriv, "--pdeathsig", "KILL", *command]
        said = bytearray()
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_s):
                    environment = {**self._environment, **(also or {})}
                    answer = await self._run(
                        command, environment, said, folder=folder, umask=umask, typed=typed
                    )
            except TimeoutError as error:
                text = f"{program} has not answered within {self._timeout_s:g} s"
                complaint = said.decode("utf-8", "replace").strip()[-ERROR_CHARACTERS_MAX:]
                raise SilentError(text, complaint) from error
            except OSError as error:
                raise LrmsUnavailableError(f"{program} cannot be run: {error}") from error
        if answer.code < 0:
            name = signal.Signals(-answer.code).name
            raise LrmsUnavailableError(f"{program} was ended by {name}")
        if account and answer.code != 0:
            # Of all that was said: it quotes the arguments, which are long.
            refusal = refusal_of_sudo(said.decode("utf-8", "replace"))
            if refusal:
                return replace(answer, error=refusal[-ERROR_CHARACTERS_MAX:], by_sudo=True)
        return answer

    def _sudo(self, account: str) -> str:
        # That it is missing says nothing of the batch system, and an operator can install it.
        try:
            return self.place("sudo")
        except LrmsUnavailableError as error:
            text = f"nothing can be run as {account}: {error.reason}"
            raise LrmsRefusedError(text, passing=True) from error

    def place(self, program: str) -> str:
        """Returns the path of a program; `LrmsUnavailableError` if it is missing."""
        if program.startswith("/") and os.access(program, os.X_OK):
            return program
        path = self._environment["PATH"]
        found = _which(program, path)
        if found is None:
            raise LrmsUnavailableError(f"there is no program {program} in {path}")
        return found

    async def _run(
        self,
        command: list[str],
        environment: Mapping[str, str],
        said: bytearray,
        *,
        folder: str,
        umask: int,
        typed: bytes,
    ) -> Answer:
        process = await self._started(command, environment, folder, umask, types=bool(typed))
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output = bytearray()
            await asyncio.gather(
                _read(process.stdout, OUTPUT_BYTES_MAX, output),
                _read(process.stderr, _CHUNK_BYTES, said),
                *([] if process.stdin is None else [_type(process.stdin, typed)]),
            )
            code = await process.wait()
        finally:
            if process.returncode is None:
                await _kill(process)
        text = said.decode("utf-8", "replace").strip()
        return Answer(code, bytes(output), text[-ERROR_CHARACTERS_MAX:])

    async def _started(
        self,
        command: list[str],
        environment: Mapping[str, str],
        folder: str,
        umask: int,
        *,
        types: bool,
    ) -> asyncio.subprocess.Process:
        # If cancelled while it starts a program, asyncio would kill that process only and then wait for all holders
        # of its pipes, so that children already started would continue.
        start = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE if types else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=folder,
                umask=umask,
                start_new_session=True,
                limit=_CHUNK_BYTES,
            )
        )
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            until = time.monotonic() + _REAPED_S
            while not start.done() and (left := until - time.monotonic()) > 0:
                with suppress(asyncio.CancelledError):  # given up again
                    await asyncio.wait([start], timeout=left)
            if not start.done():
                start.cancel()  # as the loop ends asyncio may wait for ever for one that it has killed itself
                raise
            if not start.cancelled() and start.exception() is None:
                await _kill(start.result())
            raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    # The group, as a wrapper may have started the program proper.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        _close_pipes(process)
        return  # sudo's: it ends by itself, and nobody reads what it says
    _close_pipes(process)
    await _reaped(process)


async def _reaped(process: asyncio.subprocess.Process) -> None:
    # A caller that is given up again, or the end of the loop, which gives up everything, does not leave a process behind
    # that has been killed: its transport would be closed on a loop that is none any more.
    given_up: asyncio.CancelledError | None = None
    until = math.inf
    while process.returncode is None and (left := until - time.monotonic()) > 0:
        waits = asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait([waits], timeout=None if left == math.inf else left)
        except asyncio.CancelledError as error:
            given_up, until = error, min(until, time.monotonic() + _REAPED_S)
        finally:
            waits.cancel()
    if given_up is not None:
        raise given_up


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    # Children in a session of their own may hold them for long, and asyncio considers a process ended only when
    # they are closed.
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001  # no other way
    for number in (0, 1, 2):
        pipe = transport.get_pipe_transport(number)
        if pipe is not None:
            pipe.close()


async def _type(stream: asyncio.StreamWriter, text: bytes) -> None:
    with suppress(ConnectionError):  # it has ended before it has read all
        stream.write(text)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader, most: int, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK_BYTES):
        if len(into) + len(chunk) > most:
            raise LrmsUnavailableError(f"a program has said more than {most} bytes")
        into += chunk


def _which(program: str, path: str) -> str | None:
    for folder in path.split(":"):
        candidate = f"{folder}/{program}"
        if os.access(candidate, os.X_OK):
            return candidate
    return None
