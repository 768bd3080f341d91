import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.util.names import (
    SITE_NAME,
    Endpoint,
    check_host,
    check_site_name,
    is_loopback,
    is_tls_name,
    parse_endpoint,
    site_of_uri,
    site_uri,
    tls_name,
)

SITE_NAMES = st.from_regex(SITE_NAME, fullmatch=True)


@given(SITE_NAMES)
def test_a_site_is_found_again_by_its_uri(name: str) -> None:
    """The URI of a site leads back to it and to no other."""
    assert site_of_uri(site_uri(name)) == check_site_name(name) == name


@given(SITE_NAMES, SITE_NAMES)
def test_two_sites_never_share_a_tls_name(one: str, other: str) -> None:
    """TLS names differ without regard to case iff the sites do, and are legal host names."""
    assert (tls_name(one).lower() == tls_name(other).lower()) == (one == other)
    assert check_host(tls_name(one)) == tls_name(one)
    assert is_tls_name(tls_name(one).upper() + ".")


def test_the_tls_name_of_a_known_site() -> None:
    """The name is the one that certificates in the field have: it never changes."""
    assert tls_name("KTH") == "4b5448.site.hanse.invalid"
    assert site_uri("KTH") == "hanse://site/KTH"
    assert not is_tls_name("kth.example.org")
    assert not is_tls_name("website.hanse.invalid")


@pytest.mark.parametrize(
    "name", ["", "-a", ".", "a/b", "a b", "a+", "#", "a\n", "é", "a" * 65, "../x", "a\0"]
)
def test_what_is_no_site_name(name: str) -> None:
    """Characters that mean something in topics, paths and logs are refused, as is undue length."""
    with pytest.raises(ValueError, match="is no name for a site"):
        check_site_name(name)
    assert site_of_uri(f"hanse://site/{name}") is None


@pytest.mark.parametrize("uri", ["KTH", "hanse://other/KTH", "HANSE://site/KTH", "spiffe://a/b"])
def test_another_uri_is_no_site(uri: str) -> None:
    """A URI of another form stands for no site."""
    assert site_of_uri(uri) is None


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("localhost:7001", Endpoint("localhost", 7001)),
        ("127.0.0.1:1", Endpoint("127.0.0.1", 1)),
        ("[::1]:65535", Endpoint("::1", 65535)),
        ("grms.kth.example:7001", Endpoint("grms.kth.example", 7001)),
    ],
)
def test_an_endpoint_is_read_and_written_alike(text: str, endpoint: Endpoint) -> None:
    """Names, addresses and bracketed IPv6 addresses are endpoints."""
    assert parse_endpoint(text) == endpoint
    assert str(endpoint) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        ":7001",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:٣",
        "localhost:-1",
        "localhost:" + "9" * 5000,
        "::1:7001",
        "[localhost]:7001",
        "[::1]",
        "[fe80::1%eth0]:1",
        "unix:/run/x:1",
        "unix:1:2",
        "dns:///host:1",
        "10.0.0.300:1",
        "*.example.org:1",
        "a b:1",
        "a..b:1",
        "-a.b:1",
        "a" * 300 + ":1",
        "host:1\n",
    ],
)
def test_what_is_no_endpoint(text: str) -> None:
    """Schemes, paths, wildcards and impossible ports are refused with the text."""
    with pytest.raises(ValueError, match=r"."):
        parse_endpoint(text)


@given(st.text(max_size=80))
def test_any_text_is_an_endpoint_or_a_value_error(text: str) -> None:
    """No text makes anything else than an endpoint or a ValueError, and the endpoint is it."""
    try:
        endpoint = parse_endpoint(text)
    except ValueError:
        return
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),  # noqa: S104  # not bound, but refused
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_known_by_the_address(host: str, loopback: bool) -> None:
    """Only loopback addresses and `localhost` are loopback; any address for all is not."""
    assert is_loopback(host) is loopback
    assert Endpoint(host, 1).is_loopback is loopback
    assert Endpoint(host, 1).is_unspecified is (host in {"0.0.0.0", "::"})  # noqa: S104  # as above
