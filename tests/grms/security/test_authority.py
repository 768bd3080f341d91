from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings

from grms.security.authority import (
    Authority,
    create_authority,
    create_request,
    generate_key,
    issue_for_server,
    issue_for_site,
    key_of_request,
    renew,
)
from grms.security.certificates import (
    IdentityError,
    PkiError,
    check_signature,
    facts,
    site_of_certificate,
)
from grms.util.names import tls_name
from tests.grms.util.test_names import SITE_NAMES

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CA = create_authority("test", now=NOW, days=1000)
KEY = generate_key()


def certificate(site: str = "KTH", *hosts: str, authority: Authority = CA) -> x509.Certificate:
    """Returns a certificate for the one key of these tests."""
    return issue_for_site(authority, site, hosts, KEY.public_key(), now=NOW, days=100)


@given(SITE_NAMES)
@settings(max_examples=20)
def test_a_certificate_says_whose_it_is(site: str) -> None:
    """Every site's certificate stands for it, has its TLS name, and is the authority's."""
    made = certificate(site)
    assert site_of_certificate(made) == site
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [tls_name(site)]
    check_signature(made, CA.certificate)


def test_an_authority_signs_and_a_site_does_not() -> None:
    """The authority signs certificates of one level; a site's key signs connections alone."""
    constraints = CA.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    made = certificate()
    assert made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign, usage.crl_sign) == (True, False, False)
    forged = issue_for_site(
        Authority(made, KEY), "CTC", [], generate_key().public_key(), now=NOW, days=1
    )
    with pytest.raises(PkiError, match=r"'CTC' was not signed by the authority 'test'"):
        check_signature(forged, CA.certificate)


def test_a_server_is_no_site() -> None:
    """A broker's certificate names hosts, no site, and is no client's."""
    made = issue_for_server(CA, ["mqtt.example.org", "::1"], KEY.public_key(), now=NOW)
    assert facts(made).site is None
    assert facts(made).hosts == ("mqtt.example.org", "::1")
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    with pytest.raises(IdentityError, match="names 0 sites"):
        site_of_certificate(made)


@pytest.mark.parametrize("host", [tls_name("KTH"), tls_name("KTH").upper() + "."])
def test_nobody_gets_the_tls_name_of_a_site_as_a_host(host: str) -> None:
    """Neither a server nor another site can be issued a name by which TLS knows a site."""
    with pytest.raises(ValueError, match="stands for a site"):
        issue_for_server(CA, [host], KEY.public_key(), now=NOW)
    with pytest.raises(ValueError, match="stands for a site"):
        certificate("CTC", host)


@pytest.mark.parametrize(
    ("site", "host"),
    [("a/b", "localhost"), ("", "localhost"), ("KTH", "*.example.org"), ("KTH", "unix:/x")],
)
def test_names_that_are_not_allowed(site: str, host: str) -> None:
    """No certificate is made for what is no site or no host."""
    with pytest.raises(ValueError, match=r"is (no|neither)"):
        certificate(site, host)


def test_limits_of_a_certificate() -> None:
    """Time, number of hosts and length of a name have bounds, which the error gives."""
    for days in (0, -1, 36_501):
        with pytest.raises(ValueError, match=f"{days} days"):
            create_authority("x", now=NOW, days=days)
    with pytest.raises(ValueError, match="65 hosts are too many"):
        certificate("KTH", *(f"h{number}.example" for number in range(65)))
    for name in ("", "x" * 65, "two\nlines"):
        with pytest.raises(ValueError, match="no name for a certificate"):
            create_authority(name, now=NOW)
    with pytest.raises(ValueError, match="at least one host"):
        issue_for_server(CA, [], KEY.public_key(), now=NOW)


def test_no_certificate_outlives_its_authority() -> None:
    """What is issued ends with the authority at the latest, and an ended one issues nothing."""
    end = CA.certificate.not_valid_after_utc
    late = issue_for_site(CA, "KTH", [], KEY.public_key(), now=end - timedelta(days=3), days=100)
    assert late.not_valid_after_utc == end
    for now in (end, NOW - timedelta(days=1)):
        with pytest.raises(PkiError, match="make a new one"):
            issue_for_site(CA, "KTH", [], KEY.public_key(), now=now)


def test_renewal_changes_the_time_alone() -> None:
    """A renewed certificate has the same names, key and uses, another number and a later end."""
    old = certificate("KTH", "grms.kth.example")
    later = NOW + timedelta(days=90)
    new = renew(CA, old, now=later, days=365)
    assert new.not_valid_after_utc == later + timedelta(days=365)
    assert new.public_key() == old.public_key()
    assert new.serial_number != old.serial_number
    assert new.subject == old.subject
    for kind in (x509.SubjectAlternativeName, x509.ExtendedKeyUsage, x509.KeyUsage):
        assert new.extensions.get_extension_for_class(kind).value == (
            old.extensions.get_extension_for_class(kind).value
        )
    check_signature(new, CA.certificate)


def test_what_cannot_be_renewed() -> None:
    """Neither another authority's certificate nor an authority itself is renewed."""
    other = create_authority("other", now=NOW)
    with pytest.raises(PkiError, match="not signed by"):
        renew(CA, certificate(authority=other), now=NOW, days=1)
    # An authority of the same name with another key did not sign it either.
    twin = create_authority("test", now=NOW)
    with pytest.raises(PkiError, match="not signed by"):
        renew(CA, certificate(authority=twin), now=NOW, days=1)
    with pytest.raises(PkiError, match="make a new authority"):
        renew(CA, CA.certificate, now=NOW, days=1)


def test_a_request_proves_the_key_and_nothing_else() -> None:
    """Of a request the authority takes the key, if name and signature are right."""
    request = create_request("KTH", KEY)
    assert key_of_request(request, "KTH") == KEY.public_key()
    with pytest.raises(PkiError, match="is for 'KTH', not for 'CTC'"):
        key_of_request(request, "CTC")
    curve = ec.generate_private_key(ec.SECP384R1())
    with pytest.raises(PkiError, match="not a P-256 key"):
        key_of_request(create_request("KTH", curve), "KTH")
    der = bytearray(request.public_bytes(Encoding.DER))
    der[-1] ^= 1
    with pytest.raises(PkiError, match="signature is wrong"):
        key_of_request(x509.load_der_x509_csr(bytes(der)), "KTH")
