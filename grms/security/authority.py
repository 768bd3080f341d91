"""A private certificate authority for the sites of a federation.

The operator of the authority alone decides which names exist: a certificate has the names given to the
authority, never those in a request. A site's certificate contains the URI `hanse://site/<name>`, by which
partners identify it; the host name that `grms.util.names.tls_name` makes of its name, by which a TLS client
verifies the site whatever the address; and the hosts of its daemon, for every other client.

Keys are elliptic-curve keys (P-256), which every TLS library supports and which sign fast.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from grms.security.certificates import (
    PkiError,
    alternative_names,
    check_signature,
    common_name,
    is_authority,
)
from grms.util.names import check_host, check_site_name, is_tls_name, site_uri, tls_name

AUTHORITY_DAYS = 3650
"""Default validity of an authority, in days."""

CERTIFICATE_DAYS = 365
"""Default validity of a certificate, in days."""

DAYS_MAX = 36_500
HOSTS_MAX = 64
NAME_CHARACTERS_MAX = 64
"""Longest common name in a certificate (RFC 5280, appendix A.1)."""

CLOCK_SKEW = timedelta(minutes=5)
"""Antedating of certificates, for slow clocks."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority with its secret key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def generate_key() -> ec.EllipticCurvePrivateKey:
    """Returns a new private key, from the operating system's source of chance."""
    return ec.generate_private_key(ec.SECP256R1())


def create_authority(name: str, *, now: datetime, days: int = AUTHORITY_DAYS) -> Authority:
    """Returns a new self-signed authority.

    Raises:
        ValueError: the name is empty or too long, or the time too long.
    """
    key = generate_key()
    subject = _subject(name)
    builder = _builder(subject, subject, key.public_key(), now=now, end=_end(now, days))
    return Authority(builder.sign(key, hashes.SHA256()), key)


def issue_for_site(
    authority: Authority,
    site: str,
    hosts: Iterable[str],
    public_key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    days: int = CERTIFICATE_DAYS,
) -> x509.Certificate:
    """Returns a certificate with which a site's daemon is a server and a client.

    The site's name is also the common name, which an MQTT broker uses as user name. `hosts` are host names and
    addresses of the daemon, without port. Validity begins at `now`, and ends after `days`, or with the authority.

    Raises:
        ValueError: the site, a host or the time is not allowed.
        PkiError: the authority is not valid now.
    """
    names = [
        x509.UniformResourceIdentifier(site_uri(site)),
        x509.DNSName(tls_name(site)),
        *_host_names(hosts),
    ]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return _issue(authority, site, names, usages, public_key, now=now, days=days)


def issue_for_server(
    authority: Authority,
    hosts: Sequence[str],
    public_key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    days: int = CERTIFICATE_DAYS,
) -> x509.Certificate:
    """Returns a certificate for a server other than a site, such as an MQTT broker.

    `hosts` are its host names and addresses, the first being the common name. Validity begins at `now`, and ends
    after `days`, or with the authority.

    Raises:
        ValueError: there is no host, or a host or the time is not allowed.
        PkiError: the authority is not valid now.
    """
    names = _host_names(hosts)
    if not names:
        raise ValueError("a server needs at least one host name or address")
    usages = [ExtendedKeyUsageOID.SERVER_AUTH]
    # A host may be longer than a common name, which is only for people here.
    subject = hosts[0][:NAME_CHARACTERS_MAX]
    return _issue(authority, subject, names, usages, public_key, now=now, days=days)


def renew(
    authority: Authority, certificate: x509.Certificate, *, now: datetime, days: int
) -> x509.Certificate:
    """Returns the certificate renewed for some days: same names, same key.

    Raises:
        ValueError: the time is not allowed.
        PkiError: the certificate is not this authority's, or is an authority's itself.
    """
    check_signature(certificate, authority.certificate)
    if is_authority(certificate):
        raise PkiError("this is an authority's certificate; make a new authority instead")
    public_key = certificate.public_key()
    if not isinstance(public_key, ec.EllipticCurvePublicKey):
        raise PkiError("the certificate's key is not an elliptic-curve key; issue a new one")
    return _issue(
        authority,
        common_name(certificate.subject),
        list(alternative_names(certificate)),
        list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value),
        public_key,
        now=now,
        days=days,
    )


def create_request(site: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateSigningRequest:
    """Returns a certificate request: the site's name and proof of its key.

    Raises:
        ValueError: it is no name for a site.
    """
    subject = _subject(check_site_name(site))
    return x509.CertificateSigningRequestBuilder(subject).sign(key, hashes.SHA256())


def key_of_request(request: x509.CertificateSigningRequest, site: str) -> ec.EllipticCurvePublicKey:
    """Returns the public key of a request; the rest is ignored.

    Raises:
        PkiError: the signature is invalid, it is for another site, or has another kind of key.
    """
    if not request.is_signature_valid:
        raise PkiError("the request's signature is wrong; let the site make a new one")
    if (asked := common_name(request.subject)) != site:
        raise PkiError(f"the request is for {asked!r}, not for {site!r}")
    key = request.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise PkiError("the request's key is not a P-256 key; make it with `grms pki request`")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Returns a private key as PEM, not encrypted: the file's mode protects it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _issue(
    authority: Authority,
    subject: str,
    names: Sequence[x509.GeneralName],
    usages: Sequence[x509.ObjectIdentifier],
    public_key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    days: int,
) -> x509.Certificate:
    ca = authority.certificate
    if not ca.not_valid_before_utc <= now < ca.not_valid_after_utc:
        raise PkiError(
            f"the authority {common_name(ca.subject)!r} is valid from {ca.not_valid_before_utc:%F} "
            f"to {ca.not_valid_after_utc:%F}; make a new one"
        )
    end = min(_end(now, days), ca.not_valid_after_utc)
    signer = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(_subject(subject), ca.subject, public_key, now=now, end=end, signer=signer)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    return builder.sign(authority.key, hashes.SHA256())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    end: datetime,
    signer: x509.SubjectKeyIdentifier | None = None,
) -> x509.CertificateBuilder:
    """Returns a certificate to be signed; self-signed without `signer`."""
    authority = signer is None
    own = x509.SubjectKeyIdentifier.from_public_key(public_key)
    usage = dict.fromkeys(
        (
            *("content_commitment", "key_encipherment", "data_encipherment"),
            *("key_agreement", "encipher_only", "decipher_only"),
        ),
        False,
    )
    usage |= {"digital_signature": not authority, "key_cert_sign": authority, "crl_sign": authority}
    constraints = x509.BasicConstraints(ca=authority, path_length=0 if authority else None)
    return (
        x509.CertificateBuilder(
            issuer_name=issuer,
            subject_name=subject,
            public_key=public_key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - CLOCK_SKEW,
            not_valid_after=end,
        )
        .add_extension(constraints, critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(own, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer or own),
            critical=False,
        )
    )


def _end(now: datetime, days: int) -> datetime:
    if not 1 <= days <= DAYS_MAX:
        raise ValueError(
            f"a certificate cannot be valid for {days} days; 1 to {DAYS_MAX} are allowed"
        )
    return now + timedelta(days=days)


def _subject(name: str) -> x509.Name:
    if not 1 <= len(name.encode()) <= NAME_CHARACTERS_MAX or not name.isprintable():
        raise ValueError(
            f"{name!r} is no name for a certificate; 1 to {NAME_CHARACTERS_MAX} printable "
            "characters are"
        )
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(hosts):
        check_host(host)
        if is_tls_name(host):
            raise ValueError(f"{host!r} stands for a site; only that site's certificate has it")
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    if len(names) > HOSTS_MAX:
        raise ValueError(f"{len(names)} hosts are too many for one certificate; {HOSTS_MAX} fit")
    return names
