"""Mutual TLS between sites: what servers and channels need, and the peer's identity.

Three checks stand between a stranger and a service. TLS verifies that the peer has the key of a
valid certificate signed by the federation's authority. The certificate identifies the site; neither
its address, nor an MQTT topic, nor a field of a message does. The list of partners is checked at
every call, so that removing a site from it takes effect at once, on open connections too.
"""

import hashlib
import ssl
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, Self

import grpc
from cryptography import x509

from grms.security.certificates import (
    IdentityError,
    PkiError,
    check_signature,
    site_of_certificate,
)
from grms.security.files import certificates_in, read_certificates, read_key, read_pem
from grms.util.names import tls_name

_IDENTITIES_KEPT = 1024

CALLS_PROTOCOL: Final = "h2"
"""ALPN of connections that carry calls (RFC 9113, section 3.2)."""

TUNNEL_PROTOCOL: Final = "hanse-tunnel/1"
"""ALPN of connections over which the one who has opened them is called (`grms.daemon.tunnel`)."""


class AdmissionRefusal(StrEnum):
    """Why the other side of a connection is not let in."""

    NO_CERTIFICATE = "no_certificate"
    """The connection is not one of mutual TLS."""

    NO_IDENTITY = "no_identity"
    """Its certificate is the authority's, but names no site, as an MQTT broker's does."""

    EXPIRED = "expired"
    """Its certificate has expired since the connection began."""

    NOT_LISTED = "not_listed"
    """It is a site, but not a partner of this one."""


class CertificateTimeError(PkiError):
    """A certificate is right, but not valid at this time."""


class NotAdmittedError(Exception):
    """The peer of a connection is refused.

    `site` is `None` if unknown; `status` is the gRPC status of the call.
    """

    def __init__(self, refusal: AdmissionRefusal, site: str | None = None) -> None:
        known = refusal is AdmissionRefusal.NOT_LISTED
        self.refusal = refusal
        self.site = site
        self.status = (
            grpc.StatusCode.PERMISSION_DENIED if known else grpc.StatusCode.UNAUTHENTICATED
        )
        text = {
            AdmissionRefusal.NO_CERTIFICATE: "no client certificate; partners use mutual TLS",
            AdmissionRefusal.NO_IDENTITY: "the client certificate names no site as hanse://site/<name>",
            AdmissionRefusal.EXPIRED: f"the certificate of {site} has expired; renew it",
            AdmissionRefusal.NOT_LISTED: f"{site} is not among the partners of this site",
        }
        super().__init__(text[refusal])


class _Paths(Protocol):
    """The paths as a configuration has them."""

    @property
    def authority(self) -> str: ...  # see `TlsFiles`
    @property
    def certificate(self) -> str: ...  # same
    @property
    def key(self) -> str: ...  # same


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where a daemon's keys and certificates are.

    Attributes:
        authority: certificates of the authorities whose word is taken; more than one while a
            federation changes its authority.
        certificate: the site's, followed by none or more between it and the authority's.
        key: its private key, readable by nobody else.
    """

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, paths: _Paths) -> Self:
        """Returns the files that a configuration names."""
        return cls(Path(paths.authority), Path(paths.certificate), Path(paths.key))

    def check(self, *, site: str, now: float) -> x509.Certificate:
        """Returns the site's certificate, after a check of all that would fail later.

        Args:
            site: whose daemon this is.
            now: seconds since 1970.

        Raises:
            PkiError: a file cannot be read, key and certificate do not belong together, the
                certificate is another site's or of another authority.
            CertificateTimeError: that is as it should be, but it is not valid now.
        """
        authorities = read_certificates(self.authority)
        certificate = read_certificates(self.certificate)[0]
        if read_key(self.key).public_key() != certificate.public_key():
            raise PkiError(f"{self.key}: is not the key of {self.certificate}")
        try:
            found = site_of_certificate(certificate)
        except IdentityError as error:
            raise PkiError(f"{self.certificate}: {error}") from error
        if found != site:
            raise PkiError(f"{self.certificate}: is for the site {found}, not for {site}")
        self._check_issuer(certificate, authorities)
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not begin.timestamp() <= now < end.timestamp():
            raise CertificateTimeError(
                f"{self.certificate}: is valid from {begin:%F %T} to {end:%F %T} UTC; "
                "renew it with `grms pki renew`, or set the clock"
            )
        return certificate

    def _check_issuer(
        self, certificate: x509.Certificate, authorities: list[x509.Certificate]
    ) -> None:
        if any(_has_signed(authority, certificate) for authority in authorities):
            return
        raise PkiError(f"{self.certificate}: was not signed by any authority in {self.authority}")

    def _stamp(self) -> tuple[int, ...]:
        paths = (self.authority, self.certificate, self.key)
        return tuple(
            stamp for path in paths for stamp in (path.stat().st_mtime_ns, path.stat().st_ino)
        )


def fingerprint(certificate: bytes) -> str:
    """Returns the SHA-256 fingerprint of a certificate in DER: 64 hexadecimal digits, small."""
    return hashlib.sha256(certificate).hexdigest()


class CertificateTrust:
    """Whether a certificate that TLS has verified is still trusted.

    TLS verifies a certificate only when a connection begins, and not at all in a resumed session.
    `refused` are fingerprints, as `fingerprint` returns them; a changed file of authorities is read
    again.
    """

    def __init__(self, files: TlsFiles, refused: Iterable[str] = ()) -> None:
        self.files = files
        self.refused = frozenset(refused)
        self._stamp: tuple[int, int] | None = None
        self._content = b""
        self._authorities: list[x509.Certificate] = []

    def authority(self) -> str:
        """Returns a word for the authorities that are believed now: another one after each change of them."""
        with suppress(OSError, PkiError):
            found = self.files.authority.stat()
            stamp = found.st_mtime_ns, found.st_ino
            if stamp != self._stamp:
                # Read once: what it is compared by is what it is believed by.
                content = read_pem(self.files.authority)
                self._authorities = certificates_in(content, self.files.authority)
                self._content, self._stamp = content, stamp
        return _word(self._content)

    def problem(self, pem: bytes, authority: str, *, now: float) -> str:
        """Returns why a certificate (PEM) is no longer trusted, in words; empty if it is.

        `authority` is that of the time of the verification; `now` is in seconds since 1970.
        """
        if fingerprint(ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))) in self.refused:
            return "it is among those that tls.refused names"
        certificate = _read(pem)
        if now >= certificate.not_valid_after_utc.timestamp():
            return "it has expired"
        if authority != self.authority() and not any(
            _has_signed(each, certificate) for each in self._authorities
        ):
            return "no authority in tls.authority has signed it"
        return ""


def _word(authorities: bytes) -> str:
    return hashlib.sha256(authorities).hexdigest()


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        check_signature(certificate, authority)
    except PkiError:
        return False
    return True


@lru_cache(maxsize=_IDENTITIES_KEPT)
def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


class ServerTls:
    """The TLS of a server that speaks with holders of certificates alone.

    A renewed certificate is used from the next connection on, without a restart. Where the files
    cannot be read or do not belong together, as while somebody replaces them one by one, the last
    good ones stay in use.

    Attributes:
        authority: by which authorities `context` has the other side verified, in the word of
            `CertificateTrust.authority`.

    Raises:
        PkiError: a file cannot be read, or key and certificate do not belong together.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp: tuple[int, ...] = ()
        self.authority = ""
        try:
            self._context = self._load()
        except ssl.SSLError as error:
            raise PkiError(f"{files.certificate}: cannot be used: {error}") from error
        except OSError as error:
            raise PkiError(f"{error.filename}: cannot be read: {error.strerror}") from error

    def context(self) -> ssl.SSLContext:
        """Returns what the next connection is made with."""
        with suppress(OSError, PkiError):
            if self._files._stamp() != self._stamp:  # noqa: SLF001  # one module, two halves of one thing
                self._context = self._load()
        return self._context

    def _load(self) -> ssl.SSLContext:
        files = self._files
        stamp = files._stamp()  # noqa: SLF001  # as above
        if read_key(files.key).public_key() != read_certificates(files.certificate)[0].public_key():
            raise PkiError(f"{files.key}: is not the key of {files.certificate}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        # Each connection is verified anew: no session is taken up again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.set_alpn_protocols([CALLS_PROTOCOL, TUNNEL_PROTOCOL])
        authorities = read_pem(files.authority)
        certificates_in(authorities, files.authority)
        context.load_verify_locations(cadata=authorities.decode("ascii"))
        context.load_cert_chain(files.certificate, files.key)
        self._stamp, self.authority = stamp, _word(authorities)
        return context


def client_context(files: TlsFiles, protocol: str = CALLS_PROTOCOL) -> ssl.SSLContext:
    """Returns what a client shakes hands with, with the files' present content.

    `protocol` is the one that it wants to speak then.

    Raises:
        PkiError: a file is unusable.
    """
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(str(files.authority))
        context.load_cert_chain(str(files.certificate), str(files.key))
        context.set_alpn_protocols([protocol])
    except OSError as error:
        raise PkiError(f"the own certificate cannot be used: {error}") from error
    return context


def shown_site(pem: bytes) -> str:
    """Returns the site of a certificate that TLS has verified; empty if it names none."""
    try:
        return _identity(pem)[0]
    except ValueError:
        return ""


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """Returns credentials for calls to a partner, with the files' present content.

    Renewed certificates need new credentials.

    Raises:
        PkiError: a file cannot be read.
    """
    read_key(files.key)
    return grpc.ssl_channel_credentials(
        root_certificates=read_pem(files.authority),
        private_key=read_pem(files.key),
        certificate_chain=read_pem(files.certificate),
    )


def channel_options(partner: str) -> tuple[tuple[str, str], ...]:
    """Returns the options of a channel that ends at one partner and nowhere else.

    The channel fails (UNAVAILABLE) if the server's certificate is not this partner's, so an address
    may come from anywhere.

    Raises:
        ValueError: it is no name for a site.
    """
    return (("grpc.ssl_target_name_override", tls_name(partner)),)


def admit(
    connection: Mapping[str, Iterable[bytes]], partners: Container[str], *, now: float
) -> str:
    """Returns the partner at the other side of a call; `now` is in seconds since 1970.

    `connection` is gRPC's `auth_context`; `partners` are the sites that may call.

    Raises:
        NotAdmittedError: the caller is refused; it has the status for the call.
    """
    shown = list(connection.get("x509_pem_cert", ()))
    if len(shown) != 1:
        raise NotAdmittedError(AdmissionRefusal.NO_CERTIFICATE)
    try:
        site, end = _identity(bytes(shown[0]))
    except ValueError as error:
        raise NotAdmittedError(AdmissionRefusal.NO_IDENTITY) from error
    if now >= end:
        raise NotAdmittedError(AdmissionRefusal.EXPIRED, site)
    if site not in partners:
        raise NotAdmittedError(AdmissionRefusal.NOT_LISTED, site)
    return site


@lru_cache(maxsize=_IDENTITIES_KEPT)
def _identity(pem: bytes) -> tuple[str, float]:
    """Returns the site of a certificate that TLS has verified, and its end in seconds.

    Raises:
        ValueError: it names no site.
    """
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        return site_of_certificate(certificate), certificate.not_valid_after_utc.timestamp()
    except IdentityError as error:
        raise ValueError(str(error)) from error
