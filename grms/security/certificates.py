"""Contents of certificates: subject, issuer, validity."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from grms.util.names import site_of_uri, tls_name
from lrms_sim.util.errors import HanseError


class PkiError(HanseError):
    """Something about keys and certificates that a user can put right; the text says how."""


class IdentityError(PkiError):
    """A certificate does not say whose it is."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Contents of a certificate.

    Attributes:
        name: common name of its subject.
        site: that it identifies, if any.
        hosts: host names and addresses, without the one made of the site's name.
        issuer: common name of the signer.
        fingerprint: SHA-256, in hexadecimal digits with colons.
    """

    name: str
    site: str | None
    hosts: tuple[str, ...]
    issuer: str
    begin: datetime
    end: datetime
    is_authority: bool
    fingerprint: str

    def days_left(self, now: datetime) -> float:
        """Returns how long it is still valid, in days; negative once it is not."""
        return (self.end - now) / timedelta(days=1)


def check_signature(certificate: x509.Certificate, authority: x509.Certificate) -> None:
    """Checks the signature of an authority; `PkiError` if it is invalid."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise PkiError(
            f"the certificate of {common_name(certificate.subject)!r} was not signed by the "
            f"authority {common_name(authority.subject)!r}"
        ) from error


def site_of_certificate(certificate: x509.Certificate) -> str:
    """Returns the site identified by a certificate: its one `hanse://site/<name>`.

    Trust is not checked here; TLS has done that before.

    Raises:
        IdentityError: it names no site or several.
    """
    uris = alternative_names(certificate).get_values_for_type(x509.UniformResourceIdentifier)
    sites = [site for uri in uris if (site := site_of_uri(uri)) is not None]
    if len(sites) != 1:
        raise IdentityError(
            f"the certificate of {common_name(certificate.subject)!r} names {len(sites)} sites "
            "as hanse://site/<name>; it must be one"
        )
    return sites[0]


def facts(certificate: x509.Certificate) -> Facts:
    """Returns what a certificate says, for people."""
    names = alternative_names(certificate)
    try:
        site = site_of_certificate(certificate)
    except IdentityError:
        site = None
    made = tls_name(site) if site is not None else ""
    hosts = [name for name in names.get_values_for_type(x509.DNSName) if name != made]
    hosts += [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return Facts(
        name=common_name(certificate.subject),
        site=site,
        hosts=tuple(hosts),
        issuer=common_name(certificate.issuer),
        begin=certificate.not_valid_before_utc,
        end=certificate.not_valid_after_utc,
        is_authority=is_authority(certificate),
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
    )


def key_fingerprint(key: PublicKeyTypes) -> str:
    """Returns the SHA-256 of a public key (SubjectPublicKeyInfo), in digits with colons.

    It is the same for a key, its requests, and its certificates.
    """
    content = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(content).digest().hex(":").upper()


def alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    """Returns the alternative names of a certificate; none without that extension."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])
    return found.value


def common_name(name: x509.Name) -> str:
    """Returns the common name of a subject or issuer; empty if there is none."""
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def is_authority(certificate: x509.Certificate) -> bool:
    """Returns whether a certificate may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
