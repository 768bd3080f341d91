from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from grms.security.authority import create_authority
from grms.security.certificates import (
    IdentityError,
    PkiError,
    check_signature,
    common_name,
    facts,
    is_authority,
    site_of_certificate,
)
from tests.grms.security.test_authority import CA, KEY, NOW, certificate


def with_names(*names: x509.GeneralName) -> x509.Certificate:
    """Returns a certificate of the authority with any names."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odd")])
    builder = x509.CertificateBuilder(
        CA.certificate.subject, subject, KEY.public_key(), 7, NOW, NOW + timedelta(days=1)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(CA.key, hashes.SHA256())


def test_the_facts_of_a_certificate() -> None:
    """What people are shown: names, hosts, issuer, validity, fingerprint."""
    found = facts(certificate("KTH", "grms.kth.example", "192.0.2.7", "grms.kth.example"))
    assert (found.name, found.site, found.issuer) == ("KTH", "KTH", "test")
    assert found.hosts == ("grms.kth.example", "192.0.2.7")
    assert not found.is_authority
    assert (NOW - found.begin, found.end - NOW) == (timedelta(minutes=5), timedelta(days=100))
    assert found.days_left(NOW + timedelta(days=101)) == -1
    assert len(found.fingerprint) == 95
    assert facts(CA.certificate).is_authority


def test_a_certificate_of_no_site_or_of_two_is_nobodys() -> None:
    """The identity is one URI; a DNS name that reads like one, or two of them, are none."""
    uri = x509.UniformResourceIdentifier
    for names in (
        (),
        (x509.DNSName("hanse://site/KTH"),),
        (uri("hanse://site/KTH"), uri("hanse://site/CTC")),
        (uri("hanse://site/a%20b"),),
        (uri("https://example.org/KTH"),),
    ):
        with pytest.raises(IdentityError, match=r"names [02] sites"):
            site_of_certificate(with_names(*names))
    assert site_of_certificate(with_names(uri("https://a"), uri("hanse://site/KTH"))) == "KTH"


def test_a_signature_is_the_authoritys_or_not() -> None:
    """Another authority, of the same name even, has not signed a certificate."""
    made = certificate()
    check_signature(made, CA.certificate)
    for name in ("test", "other"):
        with pytest.raises(PkiError, match=f"'KTH' was not signed by the authority '{name}'"):
            check_signature(made, create_authority(name, now=NOW).certificate)


def test_a_certificate_with_nothing_in_it() -> None:
    """One without extensions and without a name signs nobody, names nobody and is readable."""
    builder = x509.CertificateBuilder(
        x509.Name([]), x509.Name([]), KEY.public_key(), 7, NOW, NOW + timedelta(days=1)
    )
    bare = builder.sign(CA.key, hashes.SHA256())
    found = facts(bare)
    assert (found.name, found.issuer, found.site, found.hosts) == ("", "", None, ())
    assert not is_authority(bare)
    assert common_name(bare.subject) == ""
