"""Users over HTTP: slurmrestd's documents, tokens, limits, and what is refused."""

import asyncio
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jsonschema
import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from grpc import aio
from starlette.responses import StreamingResponse

from grms.daemon import loop
from grms.daemon.web import handshake_limit, visitors
from grms.security import issuer_keys
from grms.security.tokens import KeysError
from grms.site.config.load import ConfigError, load_config
from grms.site.rest import api, server
from grms.v1 import job_pb2, operator_pb2
from lrms_sim.util.files import to_toml
from tests.grms.daemon.test_journal import Disk
from tests.grms.security.test_issuer_keys import KEYS, key_document, plainly, served
from tests.grms.site.daemons import document, running
from tests.grms.site.rest.callers import (
    AT,
    AUDIENCE,
    JOB,
    NAME,
    SCRIPT,
    SECRET,
    Caller,
    Said,
    table,
    token,
)
from tests.grms.site.rest.record_slurmrestd import shape_of
from tests.waiting import run, until

RECORDED = json.loads(Path(__file__).with_name("slurmrestd.json").read_text(encoding="utf-8"))


def differences(ours: Any, slurms: Any, at: str = "") -> list[str]:
    """Returns where a shape has a key that Slurm's has not, or another kind; null goes with any kind."""
    if isinstance(ours, dict) and isinstance(slurms, dict):
        unknown = [f"{at}.{key}: not in Slurm's" for key in ours.keys() - slurms.keys()]
        return unknown + [
            each
            for key in ours.keys() & slurms.keys()
            for each in differences(ours[key], slurms[key], f"{at}.{key}")
        ]
    if isinstance(ours, list) and isinstance(slurms, list):
        return differences(ours[0], slurms[0], f"{at}[]") if ours and slurms else []
    return [] if ours == slurms or "null" in {ours, slurms} else [f"{at}: {ours}, not {slurms}"]


def checked(name: str, said: Said) -> Said:
    """Holds an answer against what slurmrestd has answered to the same."""
    slurms = RECORDED["answers"][name]["shape"]
    assert differences(shape_of(said.document), slurms) == [], name
    # Of a job a site knows less; all around it has to be there.
    assert slurms.keys() <= said.document.keys(), name
    return said


def schema_of(description: Any, path: str, method: str) -> Any:
    """Returns the schema of an answer, from the description."""
    answer = description["paths"][path][method]["responses"]["200"]
    found = answer["content"]["application/json"]["schema"]
    text = json.dumps(found | {"components": description["components"]})
    # The word of OpenAPI 3.0 for what JSON Schema says with two types.
    return json.loads(
        text.replace('"type": "integer", "nullable": true', '"type": ["integer", "null"]')
    )


async def test_jobs_come_and_go_as_with_slurmrestd(tmp_path: Path) -> None:
    """Submit, look, list and cancel give the keys and kinds of Debian's slurmrestd, and what is described."""
    async with running(document(tmp_path, processors=1, **table(tmp_path)), tmp_path) as site:
        caller = Caller(site)
        description = (await caller.ask("GET", "/openapi/v3")).document
        for path, methods in description["paths"].items():
            assert set(methods) <= set(RECORDED["paths"][path]), path
        properties = description["components"]["schemas"]["v0.0.38_job_submission"]
        known = set(properties["properties"]["job"]["properties"])
        assert known <= set(RECORDED["job_properties"])

        said = [("/ping", "get", checked("ping", await caller.ask("GET", f"{AT}/ping")))]
        submitted = checked("submit", await caller.submit())
        assert submitted.document["job_id"] == 1
        said.append(("/job/submit", "post", submitted))
        job = checked("job", await caller.ask("GET", f"{AT}/job/1"))
        said.append(("/job/{job_id}", "get", job))
        (told,) = job.document["jobs"]
        assert (told["name"], told["user_name"], told["time_limit"]) == ("told", "nobody", 5)
        await caller.submit(name="waits")
        jobs = checked("jobs", await caller.ask("GET", f"{AT}/jobs"))
        said.append(("/jobs", "get", jobs))
        states = {each["job_id"]: each["job_state"] for each in jobs.document["jobs"]}
        assert states == {1: "RUNNING", 2: "PENDING"}
        cancelled = checked("cancel", await caller.ask("DELETE", f"{AT}/job/1"))
        said.append(("/job/{job_id}", "delete", cancelled))
        for path, method, answer in said:
            assert answer.status == 200, path
            schema = schema_of(description, f"{AT}{path}", method)
            jsonschema.validate(answer.document, schema)
        # The site says the same over its own interface.
        listed = await site.jobs.List(job_pb2.ListRequest(all_users=True))
        assert [each.user for each in listed.jobs] == ["nobody", "nobody"]
        for method, name in (("GET", "job_unknown"), ("DELETE", "cancel_unknown")):
            unknown = checked(name, await caller.ask(method, f"{AT}/job/99999"))
            assert unknown.status == 404
            assert unknown.document["errors"][0]["error_number"] == 2017
            problem = description["components"]["schemas"]["v0.0.38_error"]
            whole = problem | {"components": description["components"]}
            jsonschema.validate(unknown.document, whole)


async def test_an_array_is_told_by_its_elements(tmp_path: Path) -> None:
    """As one, and one of them; a submission that is repeated with its key is one job."""
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        caller = Caller(site)
        properties = {"environment": {"A": "1"}, "time_limit": 1, "array": "1-3"}
        body = {"script": SCRIPT, "job": properties}
        answers = [
            await caller.ask("POST", f"{AT}/job/submit", body, idempotency_key="once")
            for _ in range(2)
        ]
        numbers = {each.document["job_id"] for each in answers}
        assert len(numbers) == 1
        number = numbers.pop()
        jobs = (await caller.ask("GET", f"{AT}/job/{number}")).document["jobs"]
        assert [each["array_task_id"] for each in jobs] == [1, 2, 3]
        one = (await caller.ask("GET", f"{AT}/job/home-{number}_2")).document["jobs"]
        assert [each["array_task_id"] for each in one] == [2]
        await caller.ask("DELETE", f"{AT}/job/{number}")


async def test_who_has_no_good_token_sees_and_does_nothing(tmp_path: Path) -> None:
    """Every kind of bad token, users without one's rights, and jobs of others."""
    now = time.time()
    bad = {
        "": "a token is needed",
        "x": "no token",
        token("another secret of 32 characters!"): "signature",
        token(iat=now - 900, exp=now - 600): "expired",
        token(nbf=now + 600): "not valid yet",
        token(iss="https://other.example"): "issuer",
        token(aud="hanse-south"): "audience",
        token(sub="subject-9"): "mapped to no user",
        token(sub="subject-3"): "there is no user",
        token(sub="subject-0"): "root",
        token(scope="jobs:read jobs:write admin"): "good for more",
        token(exp=now + 10**6): "is valid for",
    }
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        for text, problem in bad.items():
            for method, path in (
                ("GET", "/jobs"),
                ("DELETE", "/job/1"),
                ("POST", "/job/submit"),
            ):
                body: Any = {} if method == "POST" else None
                said = await Caller(site, text).ask(method, f"{AT}{path}", body)
                assert said.status == 401, problem
                assert problem in said.problem
                assert said.headers["www-authenticate"].startswith("Bearer")
        assert site.core.engine.state.memory.next_job == 1
        await Caller(site).submit()
        other = Caller(site, token(sub="subject-2"))
        assert (await other.ask("GET", f"{AT}/jobs")).document["jobs"] == []
        for method in ("GET", "DELETE"):
            said, unknown = [await other.ask(method, f"{AT}/job/{number}") for number in (1, 99999)]
            assert (said.status, said.document) == (404, unknown.document)
        reader = Caller(site, token(scope="jobs:read"))
        assert (await reader.ask("GET", f"{AT}/job/1")).status == 200
        for said in (await reader.submit(), await reader.ask("DELETE", f"{AT}/job/1")):
            assert said.status == 403
            assert "insufficient_scope" in said.headers["www-authenticate"]
        writer = Caller(site, token(scope=["jobs:write"]))
        for path in (f"{AT}/jobs", f"{AT}/ping", "/openapi.json"):
            assert (await writer.ask("GET", path)).status == 403
        named = {"x_slurm_user_name": "daemon"}
        assert (await Caller(site).ask("GET", f"{AT}/jobs", **named)).status == 401
        slurms = {"x_slurm_user_token": token(), "x_slurm_user_name": "nobody"}
        assert (await Caller(site, "").ask("GET", f"{AT}/jobs", **slurms)).status == 200
        two = {"x_slurm_user_token": token(sub="subject-2")}
        assert (await Caller(site).ask("GET", f"{AT}/jobs", **two)).status == 401


async def test_a_token_of_an_operator_gives_no_rights_of_operators(tmp_path: Path) -> None:
    """Who may see all over the socket sees his own jobs here."""
    configuration = document(tmp_path, operators=["daemon"], **table(tmp_path))
    async with running(configuration, tmp_path) as site:
        await Caller(site).submit()
        operator = Caller(site, token(sub="subject-2"))
        assert (await operator.ask("GET", f"{AT}/job/1")).status == 404
        assert (await operator.ask("DELETE", f"{AT}/job/1")).status == 404
        assert (await Caller(site).ask("GET", f"{AT}/job/1")).document["jobs"]


async def test_an_answer_waits_for_no_receipt(tmp_path: Path) -> None:
    """Neither headers nor bodies are held back until the other side has confirmed what came before."""
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        assert site.core.rest is not None
        assert site.core.rest._socket is not None
        assert site.core.rest._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_what_is_no_request_is_refused(tmp_path: Path) -> None:
    """By its status, with the place that is wrong; nothing is taken."""
    limits: dict[str, Any] = {"limits": {"message_bytes": 2000, "submissions_per_s": 0.1}}
    async with running(document(tmp_path, **table(tmp_path), **limits), tmp_path) as site:
        caller = Caller(site)
        for method, path, status in (
            ("GET", "/", 404),
            ("GET", "/slurm/v0.0.99/jobs", 404),
            ("GET", f"{AT}/nodes", 404),
            ("POST", f"{AT}/jobs", 405),
            ("PUT", f"{AT}/job/1", 405),
            ("GET", f"{AT}/jobs?update_time=1", 400),
            ("DELETE", f"{AT}/job/1?signal=9", 400),
            ("GET", f"{AT}/job/one", 400),
            ("GET", f"{AT}/job/%2e%2e", 400),
        ):
            said = await caller.ask(method, path)
            assert (said.status, bool(said.problem)) == (status, True), path
        for body, status in (
            (b"", 400),
            (b"{", 400),
            (b"\xff", 400),
            (b"[" * 1500, 400),
            (b'{"job": NaN}', 400),
            (b" " * 2001, 413),
        ):
            assert (await caller.ask("POST", f"{AT}/job/submit", body)).status == status, body
        plain = {"content_type": "text/plain"}
        said = await caller.ask("POST", f"{AT}/job/submit", b"{}", **plain)
        assert said.status == 415
        assert site.core.engine.state.memory.next_job == 1
        answers = [await caller.submit() for _ in range(2)]
        assert [each.status for each in answers] == [200, 429]
        assert int(answers[1].headers["retry-after"]) >= 1
        assert "submissions" in answers[1].problem


@pytest.mark.parametrize(
    "name", ["Authorization", "X-SLURM-USER-TOKEN", "X-SLURM-USER-NAME", "Idempotency-Key"]
)
async def test_a_header_that_comes_twice_is_refused(tmp_path: Path, name: str) -> None:
    """A proxy before the site could have looked at the other one."""
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        assert site.core.rest is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", site.core.rest.port)
        value = f"Bearer {token()}" if name == "Authorization" else "nobody"
        value = token() if name == "X-SLURM-USER-TOKEN" else value
        more = "" if name == "Authorization" else f"Authorization: Bearer {token()}\r\n"
        more += f"{name}: {value}\r\n{name}: other\r\n"
        writer.write(f"GET {AT}/jobs HTTP/1.1\r\nHost: a\r\n{more}\r\n".encode())
        assert b" 400 " in await reader.readline()
        writer.close()


async def test_a_full_journal_takes_nothing_and_shows_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused then can be repeated with its key, and is one job."""
    monkeypatch.setattr(loop, "RETRY_S", 0.02)
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        caller, body = Caller(site), {"script": SCRIPT, "job": JOB}
        assert (await caller.submit()).document["job_id"] == 1
        disk = Disk(monkeypatch)
        disk.full_after(0)
        told = asyncio.create_task(
            caller.ask("POST", f"{AT}/job/submit", body, idempotency_key="k")
        )
        await until(lambda: bool(site.core.engine.problem))
        for said in (await caller.submit(), await caller.ask("DELETE", f"{AT}/job/1")):
            assert (said.status, "the journal cannot be written" in said.problem) == (503, True)
        assert (await caller.ask("GET", f"{AT}/job/1")).status == 200
        disk.works()
        await until(lambda: not site.core.engine.problem)
        assert (await told).status in {200, 503}
        again = await caller.ask("POST", f"{AT}/job/submit", body, idempotency_key="k")
        jobs = (await caller.ask("GET", f"{AT}/jobs")).document["jobs"]
        assert [each["job_id"] for each in jobs] == [1, again.document["job_id"]]


async def test_one_user_cannot_have_all_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond his share he is refused while others are answered."""
    limits: dict[str, Any] = {"limits": {"calls": 8}}
    async with running(document(tmp_path, **table(tmp_path), **limits), tmp_path) as site:
        held, go_on = asyncio.Semaphore(0), asyncio.Event()

        async def slow(self: api.RestApi, call: Any) -> Any:
            held.release()
            await go_on.wait()
            return await ping(self, call)

        ping = api.RestApi._ping
        monkeypatch.setattr(api.RestApi, "_ping", slow)
        asked = [asyncio.create_task(Caller(site).ask("GET", f"{AT}/ping")) for _ in range(4)]
        for _ in asked:
            await held.acquire()
        said = await Caller(site).ask("GET", f"{AT}/jobs")
        assert (said.status, said.headers["retry-after"]) == (429, "1")
        other = Caller(site, token(sub="subject-2"))
        assert (await other.ask("GET", f"{AT}/jobs")).status == 200
        go_on.set()
        assert {(await each).status for each in asked} == {200}
        assert (await Caller(site).ask("GET", f"{AT}/jobs")).status == 200


async def test_one_user_cannot_have_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose bodies do not end has half of them at most; what of these is held is bounded, too."""
    monkeypatch.setattr(server, "REST_MAX", 8)
    monkeypatch.setattr(server._Visitor, "most", 8)
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        assert site.core.rest is not None
        api_of = site.core.rest._api
        assert api_of is not None
        head = f"POST {AT}/job/submit HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token()}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
        open_ = [await asyncio.open_connection("127.0.0.1", site.core.rest.port) for _ in range(6)]
        for _, writer in open_:
            writer.write(head.encode() + b" " * 1000)
        lines = [asyncio.create_task(reader.readline()) for reader, _ in open_]
        await until(lambda: sum(each.done() for each in lines) == 2)
        assert all(b" 429 " in each.result() for each in lines if each.done())
        await until(lambda: api_of._budget.bytes["nobody"] >= 4000)
        other = Caller(site, token(sub="subject-2"))
        assert (await other.ask("GET", f"{AT}/jobs")).status == 200
        for _, writer in open_:
            writer.close()
        await until(lambda: not api_of._budget.calls)
        assert not api_of._budget.bytes
        shares = replace(api_of._budget.shares, bytes_per_caller=100)
        api_of._budget.shares = shares
        said = await Caller(site).submit(name="x" * 200)
        assert (said.status, said.headers["retry-after"]) == (429, "1")
        assert not api_of._budget.bytes
        await asyncio.wait(lines)


async def test_who_reads_no_answer_keeps_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was closed with something unread is gone soon."""

    async def endless(_self: api.RestApi, _call: Any) -> Any:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield bytes(1 << 16)

        return StreamingResponse(pieces())

    monkeypatch.setattr(api.RestApi, "_ping", endless)
    monkeypatch.setattr(api, "ANSWER_S", 0.3)
    monkeypatch.setattr(visitors, "REQUEST_S", 0.2)
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        assert site.core.rest is not None
        assert site.core.rest._server is not None
        state = site.core.rest._server.server_state
        with socket.create_connection(("127.0.0.1", site.core.rest.port)) as silent:
            head = f"GET {AT}/ping HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token()}"
            silent.sendall(f"{head}\r\n\r\n".encode())
            async with asyncio.timeout(20):
                await until(lambda: bool(state.connections))
                await until(lambda: not state.connections)


async def test_a_claim_that_is_the_user_gives_no_account_of_the_system(tmp_path: Path) -> None:
    """By what a provider's people call themselves none is reached; what is no name is refused as others are."""
    configuration = document(tmp_path, **table(tmp_path))
    issuer = configuration["rest"]["issuers"][0]
    del issuer["users"]
    issuer["claim_is_user"] = True
    async with running(configuration, tmp_path) as site:
        for name, problem in (
            ("daemon", "an account of the system"),
            ("#1", "an account of the system"),
            ("#0", "root"),
            ("no\0body", "there is no user"),
            ("\ud800", "there is no user"),
        ):
            said = await Caller(site, token(sub=name)).submit()
            assert (said.status, problem in said.problem) == (401, True), said.problem
        assert (await Caller(site, token(sub="nobody")).submit()).status == 200


async def test_who_hangs_up_is_no_error_of_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the midst of a body; what fails in the midst of an answer is one, and the answer ends early."""
    logged: list[tuple[str, str]] = []

    class Heard:
        def error(self, event: str, **fields: Any) -> None:
            logged.append((event, type(fields["exc_info"]).__name__))

    async def broken(_self: api.RestApi, _call: Any) -> Any:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"{"
            raise LookupError

        return StreamingResponse(pieces())

    monkeypatch.setattr(api.RestApi, "_ping", broken)
    async with running(document(tmp_path, **table(tmp_path)), tmp_path) as site:
        assert site.core.rest is not None
        api_of = site.core.rest._api
        assert api_of is not None
        monkeypatch.setattr(api_of, "_log", Heard())
        head = f"POST {AT}/job/submit HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token()}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
        with socket.create_connection(("127.0.0.1", site.core.rest.port)) as leaving:
            leaving.sendall(head.encode())
            await until(lambda: bool(api_of._budget.calls))
        await until(lambda: not api_of._budget.calls)
        assert logged == []
        with pytest.raises(http.client.IncompleteRead):
            await Caller(site).ask("GET", f"{AT}/ping")
        assert logged == [("unexpected_error", "LookupError")]


async def test_keys_rotate_by_reload(tmp_path: Path) -> None:
    """A new key, another map of users; a file that cannot be used changes nothing."""
    configuration = document(tmp_path, **table(tmp_path))
    async with running(configuration, tmp_path) as site:
        keys, other = tmp_path / "tokens.key", SECRET[::-1]

        async def statuses() -> list[int]:
            callers = (Caller(site), Caller(site, token(other)))
            return [(await each.ask("GET", f"{AT}/ping")).status for each in callers]

        assert await statuses() == [200, 401]
        keys.write_text("short")
        with pytest.raises(aio.AioRpcError, match="at least 32"):
            await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        assert await statuses() == [200, 401]
        keys.write_text(other)
        answer = await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        assert list(answer.restart_needed) == []
        assert await statuses() == [401, 200]
        configuration["rest"]["issuers"][0]["users"] = {"subject-7": "nobody"}
        (tmp_path / "home.toml").write_text(to_toml(configuration))
        await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        assert await statuses() == [401, 401]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"listen": "0.0.0.0:6820"}, "only loopback"),
        ({"certificate": "c.pem"}, "go together"),
        ({"issuers": []}, "issuers"),
        ({"more": 1}, "more"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    """At the start, by its key."""
    path = tmp_path / "home.toml"
    path.write_text(to_toml(document(tmp_path, **table(tmp_path, **change))))
    with pytest.raises(ConfigError, match=problem):
        load_config(path)


def test_a_site_whose_jobs_run_as_the_daemon_is_refused(tmp_path: Path) -> None:
    """No token may give the rights of the daemon's account."""
    path = tmp_path / "home.toml"
    spool = {"spool": str(tmp_path / "jobs")}
    for lrms in ({"kind": "slurm", "own_jobs": "as-daemon"}, {"kind": "gridengine"}):
        path.write_text(to_toml(document(tmp_path, **table(tmp_path), lrms={**lrms, **spool})))
        with pytest.raises(ConfigError, match="as their users"):
            load_config(path)
    path.write_text(to_toml(document(tmp_path, **table(tmp_path), lrms={"kind": "slurm", **spool})))
    config = load_config(path)
    assert config.rest is not None
    assert (config.rest.issuers[0].issuer, config.rest.issuers[0].audience) == (NAME, AUDIENCE)


def certificate(folder: Path) -> bytes:
    """Writes a certificate of 127.0.0.1 and its key; returns it as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rest")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(Encoding.PEM)
    (folder / "rest.pem").write_bytes(pem)
    (folder / "rest.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return pem


def test_keys_are_fetched_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From whom the host's authorities know, and in time there too."""
    certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "rest.pem", tmp_path / "rest.key")
    with served(plainly(200, key_document("one")), context) as url:
        with pytest.raises(KeysError, match="CERTIFICATE_VERIFY_FAILED"):
            issuer_keys.fetch(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "rest.pem"))
        assert issuer_keys.fetch(url) == key_document("one")
    over = threading.Event()

    def half(handler: BaseHTTPRequestHandler) -> None:
        plainly(200, b"{")(handler)
        over.wait(60.0)

    with served(half, context) as url:
        try:
            with pytest.raises(KeysError, match="not answered within"):
                issuer_keys.fetch(url, 0.2)
        finally:
            over.set()


async def test_tls_of_its_own_takes_a_renewed_certificate(tmp_path: Path) -> None:
    """Connections after the reload get the new one; a file without a key changes nothing."""
    files = {"certificate": str(tmp_path / "rest.pem"), "key": str(tmp_path / "rest.key")}
    first = certificate(tmp_path)
    async with running(document(tmp_path, **table(tmp_path, **files)), tmp_path) as site:

        async def status(pem: bytes) -> int:
            trust = ssl.create_default_context(cadata=pem.decode())
            return (await Caller(site, context=trust).ask("GET", f"{AT}/ping")).status

        assert await status(first) == 200
        assert site.core.rest is not None
        assert site.core.rest._server is not None
        context = site.core.rest._server.config.ssl
        assert context is not None
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        # Each is authenticated, encrypts, and keeps what was said if the key is known later.
        for cipher in context.get_ciphers():
            assert cipher["name"].startswith(("TLS_", "ECDHE-RSA-", "ECDHE-ECDSA-")), cipher
            assert cipher["aead"], cipher
        second = certificate(tmp_path)
        with pytest.raises(ssl.SSLError):
            await status(second)
        await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        assert await status(second) == 200
        (tmp_path / "rest.key").write_text("")
        with pytest.raises(aio.AioRpcError, match=r"rest\.certificate"):
            await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
        assert await status(second) == 200


async def test_handshakes_that_do_not_end_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted from the moment at which they are accepted; those that end count no more."""
    monkeypatch.setattr(handshake_limit, "PER_ADDRESS_MAX", 4)
    monkeypatch.setattr(handshake_limit, "UNFINISHED_MAX", 6)
    files = {"certificate": str(tmp_path / "rest.pem"), "key": str(tmp_path / "rest.key")}
    pem = certificate(tmp_path)
    async with running(document(tmp_path, **table(tmp_path, **files)), tmp_path) as site:
        rest = site.core.rest
        assert rest is not None
        listener = rest._socket
        assert listener is not None
        silent = []
        for number in range(24):
            at = ("127.0.0.1", rest.port), 60.0, (f"127.0.0.{2 + number % 3}", 0)
            silent.append(await asyncio.to_thread(socket.create_connection, *at))
        await until(lambda: listener.closed == 18)
        assert listener.unfinished == 6
        trust = ssl.create_default_context(cadata=pem.decode())
        for _ in range(8):
            said = await Caller(site, context=trust).ask("GET", f"{AT}/ping")
            assert said.status == 200
        for each in silent:
            each.close()
        await until(lambda: not listener.unfinished)


def test_keys_come_by_url_and_rotate(tmp_path: Path) -> None:
    """A token with a key that was published a moment ago is good; one whose key is gone is not; nobody need reload."""
    answers: list[tuple[int, bytes]] = [(503, b"")]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        status, content = answers[-1]
        plainly(status, content)(handler)

    async def scene(url: str) -> None:
        (issuer,) = table(tmp_path)["rest"]["issuers"]
        del issuer["keys"]
        more = table(tmp_path, issuers=[{**issuer, "algorithm": "RS256", "jwks": url}])
        async with running(document(tmp_path, **more), tmp_path) as site:

            async def said(name: str) -> Said:
                claims = {"iss": NAME, "aud": AUDIENCE, "sub": "subject-1", "scope": "jobs:read"}
                now = int(time.time())
                words = claims | {"iat": now, "exp": now + 600}
                text = jwt.encode(words, KEYS[name], "RS256", headers={"kid": name})
                return await Caller(site, text).ask("GET", f"{AT}/ping")

            async def reloaded() -> None:
                rest = site.core.rest
                assert rest is not None
                (keys,) = rest._fetched.values()
                await site.operator.ReloadPolicies(operator_pb2.ReloadPoliciesRequest())
                await keys.fetched()
                await keys.fetched()  # the first may have been under way

            away = await said("one")
            assert (away.status, away.headers["retry-after"]) == (503, "30")
            assert url not in away.problem
            answers.append((200, key_document("one")))
            await reloaded()
            assert (await said("one")).status == 200
            answers.append((200, key_document("two")))
            assert (await said("two")).status == 401, "they were looked for a moment ago"
            monkeypatch.setattr(issuer_keys, "AGAIN_S", 0.0)
            assert (await said("two")).status == 200
            assert (await said("one")).status == 401
            answers.append((500, b""))
            assert (await said("one")).status == 401
            assert (await said("two")).status == 200

    with pytest.MonkeyPatch.context() as monkeypatch, served(answer) as url:
        run(lambda: scene(url))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"jwks": "http://login.example.org/keys"}, "not https"),
        ({"jwks": "ftp://login.example.org/keys"}, "begins with https"),
        ({"jwks": "https:///keys"}, "begins with https"),
        ({"jwks": "https://[::1/keys"}, "is no URL"),
        ({"jwks": "https://x.example:port/keys"}, "is no URL"),
        ({"jwks": "https://ann@login.example.org/keys"}, "a user"),
        ({"jwks": "https://login.example.org/keys#a"}, "a fragment"),
        ({"jwks": "https://login.example.org/a b"}, "a blank"),
        ({"jwks": "https://login.example.org/keys", "keys": "tokens.key"}, "either keys"),
        ({}, "either keys"),
        ({"jwks": "https://login.example.org/keys", "algorithm": "HS256"}, "HS256"),
    ],
)
def test_keys_come_by_no_other_url(tmp_path: Path, changes: dict[str, str], problem: str) -> None:
    """None on which anybody could give others."""
    (issuer,) = table(tmp_path)["rest"]["issuers"]
    del issuer["keys"]
    one = {**issuer, "algorithm": "RS256", **changes}
    config = tmp_path / "site.toml"
    config.write_text(to_toml(document(tmp_path, **table(tmp_path, issuers=[one]))))
    with pytest.raises(ConfigError, match=problem):
        load_config(config)
