"""Many questions about jobs in one call, each answered as if it had a call of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NoReturn, TypeVar, cast

import grpc

from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context
from grms.daemon.status_details import DETAILS_KEY, read_details
from grms.site.gateway.admission import Admission
from grms.v1 import job_pb2

Q = TypeVar("Q")

MANY_MAX: Final = 1000
"""Most jobs in one call."""


class _RefusedError(Exception):
    def __init__(self, refusal: job_pb2.JobRefusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class _OneOfMany:
    # The context of one question: what would end its call ends the question.

    def __init__(self, context: Context) -> None:
        self._context = context

    def peer(self) -> str:
        return self._context.peer()

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, bytes]] = (),
    ) -> NoReturn:
        field, retry_s = read_details(dict(trailing_metadata).get(DETAILS_KEY, b""))
        refusal = job_pb2.JobRefusal(code=code.name, reason=details, field=field, retry_s=retry_s)
        raise _RefusedError(refusal)


async def answer_each(
    context: Context,
    admission: Admission,
    questions: Sequence[Q],
    ask: Callable[[Q, Context], Awaitable[job_pb2.Job]],
) -> Iterable[job_pb2.JobAnswer]:
    """Returns what each question is answered, in order; what they ask of the state is handled and written together.

    `ask` gets a question and a context that ends the question alone. Without what the jobs run.
    """
    if len(questions) > MANY_MAX:
        text = f"{len(questions)} jobs; at most {MANY_MAX} are possible in one call"
        await admission.invalid(context, WireError("", text))

    async def answer(question: Q) -> job_pb2.JobAnswer:
        # The only methods of a context that answers to one question use.
        one = cast(Context, _OneOfMany(context))
        try:
            job = await ask(question, one)
        except _RefusedError as error:
            return job_pb2.JobAnswer(refusal=error.refusal)
        job.request.ClearField("program")
        return job_pb2.JobAnswer(job=job)

    return await asyncio.gather(*map(answer, questions))
