"""Users over HTTP: slurmrestd's paths and documents, answered by the services of the users' socket.

A token (`grms.security.tokens`) says for which user a request speaks. From there on it is a call of that user as any other:
admission's rates and limits hold, the journal comes before the answer, and the job runs as that user. Nobody is an operator
here, and neither root's nor the daemon's own jobs are taken or shown: these would run with the daemon's rights.
"""

import asyncio
import grp
import os
import pwd
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import grpc
import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grms.daemon.pacing import Seldom
from grms.daemon.user_names import user_name, user_number
from grms.lrms.account_mapping import UID_MIN
from grms.lrms.slurm.job_rows import META, job_document, row_of
from grms.security.tokens import Bearer, TokenCheck, TokenError, TokenFlaw
from grms.site.gateway.admission import Admission
from grms.site.gateway.open_calls import CallBudget, CallShares
from grms.site.gateway.token_caller import CallRefusedError, TokenCaller, TokenUser
from grms.site.rest.openapi import openapi_document
from grms.site.rest.submission import PropertyError, read_submission
from grms.site.rpc.job_service import PAGE_MAX, JobService
from grms.util.job_arrays import ArraySpec
from grms.v1 import job_pb2
from lrms_sim.util.messages import printable

Log = structlog.typing.FilteringBoundLogger

VERSIONS: Final[Mapping[str, Mapping[str, Any]]] = {"v0.0.38": META}
"""Versions of the documents, and what each says of itself."""

ANSWER_S: Final = 120.0
"""For a request from its headers to the last byte of its answer, seconds."""

ACCOUNT_S: Final = 60.0
"""So long a user's numbers are remembered, seconds."""

LOGGED_PER_S: Final = 0.1
"""Rate of logging refused tokens of one flaw; all are counted."""

AT_ONCE: Final = 200
"""Elements of an array that are looked at before others are answered."""

KEY_HEADER: Final = "idempotency-key"
"""A submission that is repeated with the same one is answered with the job of the first."""

ONCE: Final = ("authorization", "x-slurm-user-token", "x-slurm-user-name", KEY_HEADER)
"""Headers of which each comes once at most: of two a proxy may have looked at the other one."""

HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

_JOB: Final = re.compile(r"(?:[A-Za-z0-9.-]{1,200}-)?[0-9]{1,18}(?:_[0-9]{1,10})?", re.ASCII)
_STATUS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
}
_SLURM_ERRORS: Final = {401: 2002, 403: 2002, 404: 2017}
"""Slurm's numbers of errors (slurm/slurm_errno.h): access denied, invalid job id; else -1, an error."""


class _AnswerError(Exception):
    # A request that is answered with an error.

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class _Account(NamedTuple):
    user: TokenUser
    group_id: int
    group_name: str
    until_s: float


class _Call(NamedTuple):
    # A request whose user is known.
    request: Request
    bearer: Bearer
    account: _Account
    meta: Mapping[str, Any]

    def caller(self, *, writes: bool = False) -> TokenCaller:
        """Returns who calls; refuses a token that does not allow it."""
        if not (self.bearer.writes if writes else self.bearer.reads):
            what = "changing" if writes else "looking at"
            header = 'Bearer error="insufficient_scope"'
            raise _AnswerError(403, f"the token is not for {what} jobs", www_authenticate=header)
        return TokenCaller(self.account.user)


class RestApi:
    """The application (ASGI).

    Attributes:
        tokens: whose tokens are taken; another one is put in force at once.

    Args:
        site: its name.
        jobs: what answers.
        shares: how calls are shared out among users.
        body_bytes: longest body of a request.
    """

    def __init__(
        self,
        site: str,
        tokens: TokenCheck,
        jobs: JobService,
        admission: Admission,
        *,
        shares: CallShares,
        body_bytes: int,
        log: Log,
    ) -> None:
        self.tokens = tokens
        self._site = site
        self._jobs = jobs
        self._admission = admission
        self._budget = CallBudget(shares)
        self._body_bytes = body_bytes
        self._log = log
        self._logged = Seldom(LOGGED_PER_S)
        self._accounts: dict[str, _Account] = {}
        self._document = msgspec.json.encode(openapi_document(tuple(VERSIONS)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            return
        sent = _Sent(send)
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._answer(Request(scope, receive), receive, sent)
        except TimeoutError:
            if not sent.begun:
                await _error(503, "there was no answer in time")(scope, receive, send)

    async def _answer(self, request: Request, receive: Receive, send: "_Sent") -> None:
        name = ""
        response: ASGIApp
        try:
            call, handler = self._admitted(request, await self._bearer(request))
            name = call.account.user.name
            self._budget.note(name, 1, 0)
            if problem := self._budget.problem(name):
                self._admission.count("calls")
                raise _AnswerError(429, f"{name} {problem}", retry_after="1")  # noqa: TRY301  # as any other
            response = await handler(call)
            await response(request.scope, receive, send)
        except TimeoutError:
            raise
        except ClientDisconnect:
            pass  # nobody waits for an answer
        except Exception as error:  # noqa: BLE001  # the last line of defence
            refusal = self._refusal(request, error)
            # An answer that has begun is cut off, which its reader sees.
            if not send.begun:
                await refusal(request.scope, receive, send)
        finally:
            if name:
                self._budget.note(name, -1, 0)

    def _refusal(self, request: Request, error: Exception) -> Response:
        match error:
            case _AnswerError():
                return _error(error.status, str(error), error.headers)
            case TokenError():
                self._admission.count(error.flaw.value)
                more = self._logged.to_tell(error.flaw.value)
                if more is not None:
                    self._log.warning(
                        "token_refused", reason=error.flaw.value, text=str(error), **more
                    )
                headers = {"www-authenticate": 'Bearer error="invalid_token"'}
                return _error(401, f"the token is refused: {error}", headers)
            case PropertyError():
                self._admission.count("invalid")
                return _error(400, str(error))
            case CallRefusedError():
                # As slurmrestd answers who looks for jobs.
                jobs: dict[str, Any] = {"jobs": []} if request.method == "GET" else {}
                wait = error.retry_s
                headers = {} if wait is None else {"retry-after": str(max(1, -int(-wait // 1)))}
                text = f"{error.field}: {error.reason}" if error.field else error.reason
                if error.code is grpc.StatusCode.NOT_FOUND:
                    text = "you have no such job"  # whatever has become of another's
                return _error(_STATUS.get(error.code, 500), text, headers, **jobs)
            case _:
                if (more := self._logged.to_tell(type(error).__name__)) is not None:
                    self._log.error("unexpected_error", method="rest", exc_info=error, **more)
                return _error(500, "the daemon has met an error of its own; its log says more")

    # --- who is it, and what is asked? ------------------------------------------------------------

    async def _bearer(self, request: Request) -> Bearer:
        for name in ONCE:
            if len(request.headers.getlist(name)) > 1:
                raise _AnswerError(400, f"the header {name} comes more than once")
        token = _token(request)
        try:
            return self.tokens.bearer(token, time.time())
        except TokenError as error:
            if error.keys is None:
                raise
            if not await error.keys.renewed():
                if not error.keys:  # whoever asks again later may be let in
                    text = "the keys of its issuer could not be fetched; the daemon's log says why"
                    raise _AnswerError(503, text, retry_after="30") from error
                raise
        return self.tokens.bearer(token, time.time())

    def _admitted(
        self, request: Request, bearer: Bearer
    ) -> tuple[_Call, Callable[[_Call], Awaitable[ASGIApp]]]:
        account = self._account(bearer.user)
        if account.user.uid < UID_MIN and not bearer.is_mapped:
            # A provider's names are not chosen with this host's services in mind.
            text = f"{account.user.name} is an account of the system's, which only rest.issuers.users can name"
            raise TokenError(TokenFlaw.PRIVILEGED, text)
        named = request.headers.get("x-slurm-user-name", account.user.name)
        if named != account.user.name:
            text = f"it does not speak for {printable(named)[:64]}"
            raise TokenError(TokenFlaw.UNMAPPED, text)
        methods, meta = self._route(request.scope["path"])
        handler = methods.get(request.method)
        if handler is None:
            raise _AnswerError(405, "there is no such method here", allow=", ".join(methods))
        if query := request.scope["query_string"]:
            name = printable(query.decode("latin-1").partition("=")[0])[:64]
            raise _AnswerError(400, f"the parameter {name} is not known here")
        return _Call(request, bearer, account, meta), handler

    def _account(self, name: str) -> _Account:
        known, now = self._accounts.get(name), time.monotonic()
        if known is not None and now < known.until_s:
            return known
        try:
            uid = user_number(name)
            group_id = pwd.getpwuid(uid).pw_gid
        except (KeyError, ValueError) as error:  # the latter of what no name can have
            text = f"there is no user {printable(name)[:64]} here"
            raise TokenError(TokenFlaw.UNMAPPED, text) from error
        if uid in {0, os.getuid()}:
            text = f"{name} is root or the daemon's own account, for which no token speaks"
            raise TokenError(TokenFlaw.PRIVILEGED, text)
        try:
            group_name = grp.getgrgid(group_id).gr_name
        except KeyError:
            group_name = str(group_id)
        found = _Account(TokenUser(uid, user_name(uid)), group_id, group_name, now + ACCOUNT_S)
        self._accounts = {n: a for n, a in self._accounts.items() if now < a.until_s}
        self._accounts[name] = found
        return found

    def _route(
        self, path: str
    ) -> tuple[Mapping[str, Callable[[_Call], Awaitable[ASGIApp]]], Mapping[str, Any]]:
        match path.strip("/").split("/"):
            case ["openapi"] | ["openapi.json"] | ["openapi", "v3"]:
                return {"GET": self._openapi}, META
            case ["slurm", version, *rest] if version in VERSIONS:
                meta = VERSIONS[version]
            case ["slurm", version, *_]:
                known = ", ".join(VERSIONS)
                text = f"version {printable(version)[:20]} is not known; there are: {known}"
                raise _AnswerError(404, text)
            case _:
                raise _AnswerError(404, "there is nothing here")
        match rest:
            case ["ping"]:
                return {"GET": self._ping}, meta
            case ["jobs"]:
                return {"GET": self._list}, meta
            case ["job", "submit"]:
                return {"POST": self._submit}, meta
            case ["job", _]:
                return {"GET": self._job, "DELETE": self._cancel}, meta
            case _:
                raise _AnswerError(404, "there is nothing here that a site knows")

    # --- answers ----------------------------------------------------------------------------------

    async def _openapi(self, call: _Call) -> ASGIApp:
        call.caller()
        return Response(self._document, headers=HEADERS, media_type="application/json")

    async def _ping(self, call: _Call) -> ASGIApp:
        call.caller()
        is_up = not self._admission.stopping
        ping = {"hostname": self._site, "ping": "UP" if is_up else "DOWN", "mode": "primary"}
        return _document(call, pings=[{**ping, "status": 0 if is_up else 1}])

    async def _list(self, call: _Call) -> ASGIApp:
        context = call.caller().context
        request = job_pb2.ListRequest(page_size=PAGE_MAX, without_program=True)
        # The first page decides whether there is an answer.
        page = await self._jobs.List(request, context)

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal page
            meta = msgspec.json.encode(call.meta)
            yield b'{"meta":' + meta + b',"errors":[],"jobs":['
            comma = b""
            while True:
                if page.jobs:
                    yield comma + msgspec.json.encode(self._documents(call, page.jobs))[1:-1]
                    comma = b","
                if not page.next_page_token:
                    break
                request.page_token = page.next_page_token
                await asyncio.sleep(0)  # the daemon has other callers
                page = await self._jobs.List(request, context)
            yield b"]}"

        return StreamingResponse(pieces(), headers=HEADERS, media_type="application/json")

    async def _job(self, call: _Call) -> ASGIApp:
        context = call.caller().context
        job = await self._jobs.Get(job_pb2.GetRequest(job_id=_job_id(call.request)), context)
        if not job.HasField("array"):
            return _document(call, jobs=self._documents(call, [job]))
        elements = []
        for count, index in enumerate(ArraySpec.parse(job.array.elements)):
            if count % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)  # an array may have very many
            wanted = job_pb2.GetRequest(job_id=f"{job.job_id}_{index}")
            elements += self._documents(call, [await self._jobs.Get(wanted, context)])
        return _document(call, jobs=elements)

    async def _submit(self, call: _Call) -> ASGIApp:
        context = call.caller(writes=True).context
        kind = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _AnswerError(415, "the body must be application/json")
        body = bytearray()
        try:
            await self._read(call, body)
            try:
                document = msgspec.json.decode(body)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                raise _AnswerError(400, f"the body is no JSON: {error}") from error
            request = read_submission(document, call.request.headers.get(KEY_HEADER))
            job = await self._jobs.Submit(request, context)
        finally:
            self._budget.note(call.account.user.name, 0, -len(body))
        number = int(job.job_id.rpartition("-")[2])
        return _document(call, job_id=number, step_id="BATCH", job_submit_user_msg="")

    async def _cancel(self, call: _Call) -> ASGIApp:
        context, job_id = call.caller(writes=True).context, _job_id(call.request)
        # Of another's job nobody is told that it is there.
        await self._jobs.Get(job_pb2.GetRequest(job_id=job_id), context)
        await self._jobs.Cancel(job_pb2.CancelRequest(job_id=job_id), context)
        return _document(call)

    async def _read(self, call: _Call, body: bytearray) -> None:
        name = call.account.user.name
        async for piece in call.request.stream():
            body += piece
            self._budget.note(name, 0, len(piece))
            if len(body) > self._body_bytes:
                raise _AnswerError(413, f"the body is longer than {self._body_bytes} bytes")
            if self._budget.is_full(name):
                self._admission.count("calls")
                text = f"{name} has sent too much that is not answered yet"
                raise _AnswerError(429, text, retry_after="1")

    def _documents(self, call: _Call, jobs: Iterable[job_pb2.Job]) -> list[dict[str, Any]]:
        account, now_s = call.account, self._admission.engine.clock.now()
        numbers = (account.user.uid, account.group_id, account.group_name)
        return [job_document(row_of(job, now_s), *numbers) for job in jobs]


class _Sent:
    # Knows whether an answer has begun.

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


def _token(request: Request) -> str:
    kind, _, word = request.headers.get("authorization", "").partition(" ")
    slurms = request.headers.get("x-slurm-user-token", "")
    bearer = word.strip() if kind.lower() == "bearer" else ""
    if bearer and slurms and bearer != slurms:
        raise TokenError(TokenFlaw.MALFORMED, "there are two")
    if not (bearer or slurms):
        text = "a token is needed, as Authorization: Bearer or X-SLURM-USER-TOKEN"
        raise _AnswerError(401, text, www_authenticate="Bearer")
    return bearer or slurms


def _job_id(request: Request) -> str:
    word: str = request.scope["path"].rpartition("/")[2]
    if _JOB.fullmatch(word) is None:
        raise _AnswerError(400, f"{printable(word)[:64]} is no job id")
    return word


def _document(call: _Call, **content: Any) -> Response:
    text = msgspec.json.encode({"meta": call.meta, "errors": [], **content})
    return Response(text, headers=HEADERS, media_type="application/json")


def _error(
    status: int, text: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    number = _SLURM_ERRORS.get(status, -1)
    error = {"error": text, "error_number": number, "description": text, "source": "hanse"}
    content = msgspec.json.encode({"meta": META, "errors": [error], **more})
    return Response(
        content, status, headers={**HEADERS, **(headers or {})}, media_type="application/json"
    )
