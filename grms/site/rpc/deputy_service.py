"""Users' deputies over gRPC: orders to them, and what they answer."""

from collections.abc import AsyncIterator
from typing import Final

import grpc

from grms.daemon.messages import WireError
from grms.daemon.pacing import Rate
from grms.daemon.rpc.requests import Context, refuse
from grms.daemon.user_names import user_name
from grms.lrms.batch.deputies import (
    OUTPUT_BYTES_MAX,
    Deputies,
    Deputy,
    DeputyOrder,
    DeputyResult,
    NotKnown,
    NotRun,
)
from grms.lrms.batch.subprocesses import ERROR_CHARACTERS_MAX, Answer
from grms.site.gateway.admission import Admission
from grms.site.gateway.user_listener import User
from grms.v1 import deputy_pb2, deputy_pb2_grpc
from lrms_sim.util.messages import printable

COMES_PER_S: Final = 0.5
"""How often a user's deputy may come."""

STRAY_PER_S: Final = 1.0
"""How often a user may answer what was not asked."""

CODE_MAX: Final = 255
"""Largest exit status of a program that ended by itself."""


class DeputyService(deputy_pb2_grpc.DeputyServiceServicer):
    """Implements `proto/grms/v1/deputy.proto`; `deputies` is `None` if the site has none."""

    def __init__(self, admission: Admission, deputies: Deputies | None, *, own_uid: int) -> None:
        self._admission = admission
        self._deputies = deputies
        self._own_uid = own_uid
        self._comes = Rate(COMES_PER_S)
        self._strays = Rate(STRAY_PER_S)

    async def Serve(  # noqa: N802  # gRPC's name
        self, request: deputy_pb2.ServeRequest, context: Context
    ) -> AsyncIterator[deputy_pb2.DeputyOrder]:
        """Sends a user's deputy its orders."""
        del request
        user, deputies = await self._of_users(context)
        if user.uid == self._own_uid:
            text = f"{user.name} is the daemon's own user, whose jobs need no deputy"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text)
        await self._admission.check_stopping(context)
        await self._check(context, self._comes, user, "deputies_rate")
        deputy = deputies.come(user.uid)
        self._admission.audit("deputy", user)
        try:
            yield deputy_pb2.DeputyOrder()
            async for order in deputy.orders():
                yield write_order(order)
            await self._ended(context, deputy)
        finally:
            deputies.leave(deputy)

    async def _ended(self, context: Context, deputy: Deputy) -> None:
        if deputy.replaced:
            text = "another deputy of the same user has come"
            await refuse(context, grpc.StatusCode.ABORTED, text)
        await self._admission.check_stopping(context)

    async def Answer(  # noqa: N802  # gRPC's name
        self, request: deputy_pb2.DeputyAnswer, context: Context
    ) -> deputy_pb2.DeputyAnswerTaken:
        """Takes what has come of an order."""
        user, deputies = await self._of_users(context)
        result = await self._admission.read(context, read_result, request)
        if not deputies.answered(user.uid, request.order_id, result):
            await self._check(context, self._strays, user, "deputies_rate")
            text = "no such order waits for an answer of yours"
            self._admission.count("deputy_answer", context, text)
            await refuse(context, grpc.StatusCode.NOT_FOUND, text, field="order_id")
        return deputy_pb2.DeputyAnswerTaken()

    async def Look(  # noqa: N802  # gRPC's name
        self, request: deputy_pb2.DeputyLookRequest, context: Context
    ) -> deputy_pb2.DeputyLook:
        """Says whether a deputy is wanted, and there."""
        del request
        user = await self._admission.user(context)
        deputies = self._deputies
        if deputies is None:
            return deputy_pb2.DeputyLook()
        answer = deputy_pb2.DeputyLook(
            wanted=user.uid != self._own_uid,
            present=deputies.is_there(user.uid),
            jobs_open=self._admission.engine.state.memory.open_by_user.get(user.name, 0),
        )
        if self._admission.is_operator(user):
            for uid, problem in deputies.present():
                answer.deputies.add(user=user_name(uid), problem=problem)
        return answer

    async def _of_users(self, context: Context) -> tuple[User, Deputies]:
        user = await self._admission.user(context)
        if self._deputies is None:
            text = "jobs of this site's users do not run by deputies (lrms.own_jobs)"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text)
        return user, self._deputies

    async def _check(self, context: Context, rate: Rate, user: User, reason: str) -> None:
        wait_s = rate.wait_s(user.name)
        if wait_s > 0:
            self._admission.count(reason, context)
            text = f"that comes too often of {user.name}; try again in {wait_s:.3f} s"
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text, retry_s=wait_s)


def write_order(order: DeputyOrder) -> deputy_pb2.DeputyOrder:
    """Returns an order as its deputy gets it."""
    message = deputy_pb2.DeputyOrder(
        order_id=order.order_id,
        program=order.program,
        arguments=order.arguments,
        environment=order.environment,
        folder=order.folder,
        until_s=order.until_s,
    )
    if order.umask >= 0:
        message.umask = order.umask
    return message


def read_result(message: deputy_pb2.DeputyAnswer) -> DeputyResult:
    """Returns a deputy's answer.

    Raises:
        WireError: it means nothing.
    """
    match message.WhichOneof("result"):
        case "end":
            end = message.end
            if not 0 <= end.code <= CODE_MAX:
                raise WireError("end.code", f"{end.code} is no exit status, 0 to {CODE_MAX}")
            if len(end.output) > OUTPUT_BYTES_MAX:
                text = f"it has {len(end.output)} bytes; at most {OUTPUT_BYTES_MAX} are taken"
                raise WireError("end.output", text)
            return Answer(end.code, end.output, _shown(end.error))
        case "refused":
            return NotRun(_shown(message.refused))
        case "unknown":
            return NotKnown(_shown(message.unknown))
        case _:
            raise WireError("result", "there is no result")


def _shown(text: str) -> str:
    # The user's words, for the user and for logs; lines of programs stay lines.
    return "\n".join(map(printable, text.strip()[-ERROR_CHARACTERS_MAX:].splitlines()))
