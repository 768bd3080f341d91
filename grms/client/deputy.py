"""A user's deputy: runs a batch system's programs as this user, as the user's site orders.

It does what the site could do through sudo, and no more: it runs `sbatch`, `scontrol` and `scancel` alone, found along its
own search path, and of `scontrol` what concerns one job. An order that comes too late is not begun. What has no answer,
as one of both sides has ended, is looked up by the site before it is ordered again.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import grpc
from grpc import aio

from grms.client.calls import Calls
from grms.client.errors import SiteError, SiteUnavailable
from grms.daemon.pacing import PAUSES, TIMEOUT_S, Backoff
from grms.daemon.user_names import user_name
from grms.lrms.base import LrmsError, LrmsRefusedError
from grms.lrms.batch.deputies import OUTPUT_BYTES_MAX, boot_time
from grms.lrms.batch.subprocesses import Programs
from grms.v1 import deputy_pb2

ACTS: Final[Mapping[str, frozenset[str] | None]] = {
    "sbatch": None,
    "scancel": None,
    "scontrol": frozenset(("release", "hold", "show")),
}
"""Programs that are run, with their first words where not all are allowed."""

_CHANGE: Final = re.compile(
    r"update JobId=[0-9]{1,20}(?= )( JobName=\S+)?( StartTime=now(\+365days)?)?"
)
"""The one change of a job that is made: its place in the queue is kept while it is elsewhere."""

VARIABLES: Final = frozenset(("SLURM_CONF", "SLURM_TIME_FORMAT"))
"""Variables that the site may set."""

LOOK_S: Final = 30.0
"""Interval of looks whether an idle deputy is still wanted, seconds; or what it may be idle, if that is less."""


def programs_here(environment: Mapping[str, str], folder: str | None = None) -> Programs:
    """Returns what runs a batch system's programs as this process's user.

    `environment` is this process's; `folder` has the programs, `None` for the usual search path.
    """
    uid = os.getuid()
    own = {"USER": user_name(uid), "LOGNAME": user_name(uid), "HOME": environment.get("HOME", "/")}
    kept = {name: environment[name] for name in VARIABLES & environment.keys()}
    kept.pop("SLURM_TIME_FORMAT", None)  # jobs would inherit it
    return Programs(own | kept, folder=folder)


class Deputy:
    """The deputy of this process's user at one site.

    Args:
        socket: the site's Unix socket.
        programs: runs the batch system's programs.
        tell: is told in words what happens.
        idle_s: how long it stays without orders and without unfinished jobs, seconds; `None`: for ever.
        timeout_s: of an answer with its repeats, seconds.
    """

    def __init__(
        self,
        socket: Path,
        programs: Programs,
        *,
        tell: Callable[[str], None] = lambda _text: None,
        idle_s: float | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._calls = Calls(socket, timeout_s)
        self._programs = programs
        self._tell = tell
        self._idle_s = idle_s
        self._busy = 0
        self._last = time.monotonic()

    async def run(self) -> None:
        """Carries out orders until it is idle, or another deputy of this user comes.

        Orders that are under way then are brought to their end.

        Raises:
            SiteError: the site has no deputies.
        """
        self._calls.open()
        try:
            async with asyncio.TaskGroup() as orders:
                both = [
                    asyncio.ensure_future(work)
                    for work in (self._serve(orders), self._until_idle())
                ]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in both:
                        each.cancel()
                    await asyncio.wait(both)
            for each in both:
                if not each.cancelled():
                    each.result()
        finally:
            await self._calls.close()

    async def _serve(self, orders: asyncio.TaskGroup) -> None:
        backoff = Backoff(PAUSES)
        while True:
            try:
                async for order in self._calls.deputies.Serve(deputy_pb2.ServeRequest()):
                    backoff.reset()
                    self._last = time.monotonic()
                    if order.order_id:
                        orders.create_task(self._carry_out(order), name=order.order_id)
                    else:
                        self._tell(f"serves {user_name(os.getuid())} at {self._calls.socket}")
                await asyncio.sleep(backoff.next_s())
            except aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.ABORTED:
                    self._tell(error.details() or "another deputy has come")
                    return
                # However long the site is away.
                await self._calls.pause_or_raise(error, float("inf"), backoff.next_s())

    async def _until_idle(self) -> None:
        if self._idle_s is None:
            await asyncio.Event().wait()
            return
        while True:
            await asyncio.sleep(min(LOOK_S, self._idle_s))
            if self._busy or time.monotonic() - self._last < self._idle_s:
                continue
            try:
                look = await self._calls.call(
                    self._calls.deputies.Look, deputy_pb2.DeputyLookRequest()
                )
            except SiteError:
                break  # who hands in a job to a site that is back starts another
            if not look.jobs_open:
                break
        self._tell("nothing is left to do")

    async def _carry_out(self, order: deputy_pb2.DeputyOrder) -> None:
        self._busy += 1
        try:
            answer = await self._result(order)
            answer.order_id = order.order_id
            await self._calls.call(self._calls.deputies.Answer, answer)
        except (SiteError, SiteUnavailable) as error:
            # It is too late, or the site has been started anew; it looks for itself.
            self._tell(f"{order.program}: the answer was not taken: {error}")
        finally:
            self._busy -= 1
            self._last = time.monotonic()

    async def _result(self, order: deputy_pb2.DeputyOrder) -> deputy_pb2.DeputyAnswer:
        if why := self._unfit(order):
            self._tell(f"{order.program}: not run: {why}")
            return deputy_pb2.DeputyAnswer(refused=why)
        try:
            async with asyncio.timeout(order.until_s - boot_time()):
                answer = await self._programs.run(
                    order.program,
                    *order.arguments,
                    also=order.environment,
                    dies_with_us=True,
                    folder=order.folder or "/",
                    umask=order.umask if order.HasField("umask") else -1,
                )
        except LrmsRefusedError as error:
            return deputy_pb2.DeputyAnswer(refused=error.reason)
        except TimeoutError:
            return deputy_pb2.DeputyAnswer(unknown=f"{order.program} has not answered in time")
        except LrmsError as error:
            return deputy_pb2.DeputyAnswer(unknown=error.reason)
        if len(answer.output) > OUTPUT_BYTES_MAX:
            text = f"{order.program} has said more than {OUTPUT_BYTES_MAX} bytes"
            return deputy_pb2.DeputyAnswer(unknown=text)
        end = deputy_pb2.DeputyEnd(code=answer.code, output=answer.output, error=answer.error)
        return deputy_pb2.DeputyAnswer(end=end)

    def _unfit(self, order: deputy_pb2.DeputyOrder) -> str:
        # Why an order is not carried out; empty if it is.
        first = next(iter(order.arguments), "")
        acts = ACTS.get(order.program, frozenset())
        if acts is not None and not (first in acts or _CHANGE.fullmatch(" ".join(order.arguments))):
            return "a deputy runs no such program"
        if strange := sorted(set(order.environment) - VARIABLES):
            return f"a deputy sets no variable {strange[0]}"
        if order.umask > 0o777:
            return f"{order.umask:o} is no umask"
        if order.until_s <= boot_time():
            return "it has come too late"
        try:
            self._programs.place(order.program)
        except LrmsError as error:
            return error.reason
        folder = order.folder or "/"
        return "" if os.access(folder, os.X_OK) else f"{folder} cannot be entered"
