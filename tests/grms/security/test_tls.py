"""Mutual TLS as gRPC really does it, between a server and clients on loopback."""

import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from grms.security.authority import renew
from grms.security.certificates import PkiError
from grms.security.files import read_certificates, write_certificate
from grms.security.tls import (
    AdmissionRefusal,
    CertificateTrust,
    NotAdmittedError,
    ServerTls,
    TlsFiles,
    admit,
    channel_credentials,
    channel_options,
    fingerprint,
)
from grms.site.gateway.peer_listener import PartnerPort, PortLimits
from grms.util.names import Endpoint, read_fingerprint
from tests.grms.keys import Federation, new_federation

PARTNERS = frozenset({"CTC", "SDSC"})
METHOD = "/test.Echo/Who"
DEADLINE_S = 300.0


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    """Returns an authority with the keys of KTH, whose server the tests call."""
    return new_federation(tmp_path)


class Server:
    """KTH's server: tells a caller who it is, and refuses whoever is no partner.

    Attributes:
        partners: who is let in.
        now: the time by which certificates are judged.
        port: where it listens.
        certificates: what each call has shown.
    """

    def __init__(self) -> None:
        self.partners = PARTNERS
        self.now: Callable[[], float] = time.time
        self.port = 0
        self.certificates: list[bytes] = []
        self.front: PartnerPort | None = None

    async def who(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        """Answers with the caller's name."""
        assert self.front is not None
        shown = self.front.shown(context.peer())
        self.certificates += shown.get("x509_pem_cert", [])
        try:
            return admit(shown, self.partners, now=self.now()).encode()
        except NotAdmittedError as error:
            await context.abort(error.status, str(error))
            raise AssertionError("unreachable") from error


@asynccontextmanager
async def serving(
    tls: ServerTls | None,
) -> AsyncIterator[Server]:
    """Runs KTH's server on a free port."""
    mine = Server()
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(mine.who)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test.Echo", {"Who": handler}),)
    )
    mine.front = PartnerPort(Endpoint("127.0.0.1", 0), tls, PortLimits())
    server.add_insecure_port(mine.front.inner_address)
    await server.start()
    try:
        async with mine.front as front:
            mine.port = front.address[1]
            yield mine
    finally:
        await server.stop(grace=None)


async def ask(server: Server, files: TlsFiles | None, expected: str = "KTH") -> str:
    """Calls a server as the site with those files, None for no TLS, and returns its answer."""
    target = f"127.0.0.1:{server.port}"
    if files is None:
        channel = grpc.aio.insecure_channel(target)
    else:
        channel = grpc.aio.secure_channel(
            target, channel_credentials(files), channel_options(expected)
        )
    async with channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
        return bytes(await call(b"", timeout=DEADLINE_S)).decode()


async def refused(server: Server, files: TlsFiles | None, expected: str = "KTH") -> grpc.StatusCode:
    """Calls a server and returns the status with which it refuses."""
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask(server, files, expected)
    return failure.value.code()


async def test_partners_know_each_other_by_certificate(federation: Federation) -> None:
    """A partner is let in under the name in its certificate."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        assert await ask(server, federation.site("CTC")) == "CTC"
        assert await ask(server, federation.site("SDSC")) == "SDSC"


async def test_an_unlisted_site_of_the_right_authority_is_refused(federation: Federation) -> None:
    """Being of the federation is not being a partner, and names are equal letter by letter."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        for site in ("NIKHEF", "ctc", "KTH"):
            files = federation.site(site) if site != "KTH" else _files(federation, "KTH")
            assert await refused(server, files) is grpc.StatusCode.PERMISSION_DENIED


async def test_whoever_is_taken_off_the_list_is_out_at_once(federation: Federation) -> None:
    """The list is asked at every call, so an open connection does not outlive a change."""
    files = federation.site("CTC")
    async with (
        serving(ServerTls(federation.site("KTH"))) as server,
        grpc.aio.secure_channel(
            f"127.0.0.1:{server.port}", channel_credentials(files), channel_options("KTH")
        ) as channel,
    ):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
        assert await call(b"", timeout=DEADLINE_S) == b"CTC"
        server.partners = frozenset({"SDSC"})
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call(b"", timeout=DEADLINE_S)
        assert failure.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "CTC is not among the partners" in (failure.value.details() or "")


async def test_a_call_after_the_end_of_a_certificate_is_refused(federation: Federation) -> None:
    """A call after the certificate's end is refused though TLS accepted it at its beginning."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        server.now = lambda: time.time() + 31 * 86400
        assert await refused(server, federation.site("CTC")) is grpc.StatusCode.UNAUTHENTICATED


async def test_another_authority_is_refused(federation: Federation, tmp_path: Path) -> None:
    """A certificate of the right name by a wrong authority does not get through TLS."""
    stranger = new_federation(tmp_path / "stranger").site("CTC")
    believing = TlsFiles(federation.ca, stranger.certificate, stranger.key)
    async with serving(ServerTls(federation.site("KTH"))) as server:
        assert await refused(server, believing) is grpc.StatusCode.UNAVAILABLE
        # Nor does a client believe a server of another authority.
        assert await refused(server, stranger) is grpc.StatusCode.UNAVAILABLE
        assert server.certificates == []


async def test_an_expired_certificate_is_refused(federation: Federation) -> None:
    """Neither a client nor a server with a certificate that has ended gets through TLS."""
    past = datetime.now(UTC) - timedelta(days=3)
    old = new_federation(federation.folder / "old", now=past)
    ended = old.site("CTC", now=past, days=1)
    with pytest.raises(PkiError, match=r"is valid from .* renew it"):
        ended.check(site="CTC", now=time.time())
    async with serving(ServerTls(old.site("KTH"))) as server:
        assert await refused(server, ended) is grpc.StatusCode.UNAVAILABLE
        assert server.certificates == []
    async with serving(ServerTls(ended)) as server:
        assert await refused(server, old.site("SDSC"), "CTC") is grpc.StatusCode.UNAVAILABLE


async def test_a_server_that_is_another_site_is_not_called(federation: Federation) -> None:
    """Who is asked for CTC at KTH's address gets nothing: the address proves no name."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        files = federation.site("CTC")
        for expected in ("CTC", "kth", "KTH2"):
            assert await refused(server, files, expected) is grpc.StatusCode.UNAVAILABLE
        assert server.certificates == []


async def test_a_certificate_of_no_site_is_refused(federation: Federation) -> None:
    """The certificate of an MQTT broker is no client's: TLS or the missing name stops it."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        status = await refused(server, federation.server("broker"))
        assert status in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED}


async def test_without_tls_there_is_no_identity(federation: Federation) -> None:
    """A plain connection does not reach a TLS server, and a plain server admits nobody."""
    async with serving(ServerTls(federation.site("KTH"))) as server:
        assert await refused(server, None) is grpc.StatusCode.UNAVAILABLE
    async with serving(None) as server:
        assert await refused(server, None) is grpc.StatusCode.UNAUTHENTICATED


async def test_a_renewed_certificate_is_used_without_a_restart(federation: Federation) -> None:
    """The next connection sees the new certificate; half-replaced files change nothing."""
    kth, ctc = federation.site("KTH"), federation.site("CTC")
    async with serving(ServerTls(kth)) as server:
        assert await ask(server, ctc) == "CTC"
        old = read_certificates(kth.certificate)[0]
        # Another site's certificate without its key: the old pair stays in use.
        write_certificate(read_certificates(ctc.certificate)[0], kth.certificate, replace=True)
        assert await ask(server, ctc) == "CTC"
        kth.certificate.unlink()
        assert await ask(server, ctc) == "CTC"
        # Only an authority that has changed shows which certificate the server has now.
        fresh = new_federation(federation.folder / "fresh")
        theirs = fresh.site("KTH")
        kth.authority.write_bytes(federation.ca.read_bytes() + fresh.ca.read_bytes())
        kth.key.write_bytes(theirs.key.read_bytes())
        write_certificate(read_certificates(theirs.certificate)[0], kth.certificate)
        assert await ask(server, fresh.site("SDSC")) == "SDSC"
        assert await ask(server, TlsFiles(fresh.ca, ctc.certificate, ctc.key)) == "CTC"
        assert read_certificates(kth.certificate)[0] != old


def test_admission_by_hand(federation: Federation) -> None:
    """Each refusal has its reason and status, and the text says what to do."""
    pem = federation.site("CTC").certificate.read_bytes()
    now = time.time()
    assert admit({"x509_pem_cert": [pem]}, PARTNERS, now=now) == "CTC"
    for connection, partners, at, refusal, status in (
        ({}, PARTNERS, now, AdmissionRefusal.NO_CERTIFICATE, grpc.StatusCode.UNAUTHENTICATED),
        (
            {"x509_common_name": [b"CTC"], "x509_subject_alternative_name": [b"hanse://site/CTC"]},
            PARTNERS,
            now,
            AdmissionRefusal.NO_CERTIFICATE,
            grpc.StatusCode.UNAUTHENTICATED,
        ),
        (
            {"x509_pem_cert": [pem, pem]},
            PARTNERS,
            now,
            AdmissionRefusal.NO_CERTIFICATE,
            grpc.StatusCode.UNAUTHENTICATED,
        ),
        (
            {"x509_pem_cert": [b"none"]},
            PARTNERS,
            now,
            AdmissionRefusal.NO_IDENTITY,
            grpc.StatusCode.UNAUTHENTICATED,
        ),
        (
            {"x509_pem_cert": [federation.server("broker").certificate.read_bytes()]},
            PARTNERS,
            now,
            AdmissionRefusal.NO_IDENTITY,
            grpc.StatusCode.UNAUTHENTICATED,
        ),
        (
            {"x509_pem_cert": [pem]},
            PARTNERS,
            now + 31 * 86400,
            AdmissionRefusal.EXPIRED,
            grpc.StatusCode.UNAUTHENTICATED,
        ),
        (
            {"x509_pem_cert": [pem]},
            frozenset({"SDSC"}),
            now,
            AdmissionRefusal.NOT_LISTED,
            grpc.StatusCode.PERMISSION_DENIED,
        ),
    ):
        with pytest.raises(NotAdmittedError) as failure:
            admit(connection, partners, now=at)
        assert (failure.value.refusal, failure.value.status) == (refusal, status)
        assert failure.value.site == ("CTC" if refusal in {"expired", "not_listed"} else None)


def test_a_daemon_finds_out_before_it_listens(federation: Federation, tmp_path: Path) -> None:
    """What would fail with the first partner is found at the start, and named."""
    kth, ctc = federation.site("KTH"), federation.site("CTC")
    now = time.time()
    end = kth.check(site="KTH", now=now).not_valid_after_utc
    for files, site, at, match in (
        (kth, "CTC", now, "is for the site KTH, not for CTC"),
        (kth, "KTH", end.timestamp(), "renew it"),
        (kth, "KTH", now - 3600, "or set the clock"),
        (TlsFiles(kth.authority, kth.certificate, ctc.key), "KTH", now, "is not the key of"),
        (federation.server("broker"), "KTH", now, "names 0 sites"),
        (
            TlsFiles(new_federation(tmp_path / "o").ca, kth.certificate, kth.key),
            "KTH",
            now,
            "was not signed by any authority",
        ),
        (TlsFiles(tmp_path / "none", kth.certificate, kth.key), "KTH", now, "No such file"),
    ):
        with pytest.raises(PkiError, match=match):
            files.check(site=site, now=at)
    for make in (ServerTls, channel_credentials):
        with pytest.raises(PkiError, match="No such file"):
            make(TlsFiles(kth.authority, kth.certificate, tmp_path / "none"))
    with pytest.raises(PkiError, match="is not the key of"):
        ServerTls(TlsFiles(kth.authority, kth.certificate, ctc.key))
    kth.key.chmod(0o644)
    with pytest.raises(PkiError, match="chmod 600"):
        ServerTls(kth)


def test_an_authority_and_its_successor(federation: Federation, tmp_path: Path) -> None:
    """While a federation changes its authority, certificates of both are good."""
    new = new_federation(tmp_path / "new")
    both = tmp_path / "both.crt"
    both.write_bytes(new.ca.read_bytes() + federation.ca.read_bytes())
    for each in (new, federation):
        files = each.site("KTH")
        TlsFiles(both, files.certificate, files.key).check(site="KTH", now=time.time())


def test_the_word_for_the_authorities_is_for_those_that_are_believed(
    federation: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file is replaced as soon as it has been opened."""
    (tmp_path / "other").mkdir()
    other = new_federation(tmp_path / "other").ca.read_bytes()
    trust, believed = CertificateTrust(_files(federation, "KTH")), federation.ca.read_bytes()
    opened = Path.open

    def replaced(path: Path, *args: Any, **more: Any) -> Any:
        file = opened(path, *args, **more)
        if path == federation.ca:
            path.unlink()
            with opened(path, "wb") as new:
                new.write(other)
        return file

    monkeypatch.setattr(Path, "open", replaced)
    assert trust.authority() == hashlib.sha256(believed).hexdigest()
    assert trust.authority() == hashlib.sha256(other).hexdigest()


def test_renewal_keeps_the_key(federation: Federation) -> None:
    """After a renewal the files still belong together."""
    files = federation.site("KTH")
    old = read_certificates(files.certificate)[0]
    new = renew(federation.authority, old, now=datetime.now(UTC), days=90)
    write_certificate(new, files.certificate, replace=True)
    assert files.check(site="KTH", now=time.time() + 60 * 86400) == new


def _files(federation: Federation, site: str) -> TlsFiles:
    """Returns the files of a site that has them already."""
    folder = federation.folder
    return TlsFiles(federation.ca, folder / f"{site}.crt", folder / f"{site}.key")


@pytest.mark.parametrize("form", ["{}", "sha256 Fingerprint={}", " {} ", "SHA-256={}"])
def test_a_fingerprint_is_read_as_programs_write_it(form: str) -> None:
    """With colons or blanks, in capitals, behind a name; anything else is none."""
    digits = hashlib.sha256(b"x").hexdigest()
    assert read_fingerprint(form.format(digits)) == digits == fingerprint(b"x")
    colons = ":".join(digits[i : i + 2] for i in range(0, 64, 2)).upper()
    assert read_fingerprint(form.format(colons)) == digits
    for wrong in ("", digits[:-1], digits + "0", "g" * 64, digits[:40]):
        with pytest.raises(ValueError, match="no SHA-256 fingerprint"):
            read_fingerprint(wrong)
