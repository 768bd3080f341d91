"""Names of sites and endpoints: which are allowed, and names derived from them.

A site's name is used in MQTT topics, certificates, file names and logs, so it has none of the
characters that are special there.
"""

import ipaddress
import re
from dataclasses import dataclass

SITE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Letters, digits, `_`, `.` and `-`, at most 64 characters, as in scenario files."""

PSEUDONYM = re.compile(r"[0-9a-f]{32}")
"""What a site calls one of its users to a partner."""

ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
"""A local account for jobs: never a number, and never what could be read as an option."""

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
"""An environment variable that sites pass on to jobs."""

HOST_CHARACTERS_MAX = 253
"""Longest host name in the domain name system (RFC 1035, section 2.3.4)."""

PORT_MAX = 65535

_URI_PREFIX = "hanse://site/"
_TLS_SUFFIX = "site.hanse.invalid"
_LABEL_CHARACTERS = 60
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


def check_site_name(name: str) -> str:
    """Returns the name of a site; `ValueError` if it is no name for a site."""
    if SITE_NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name!r} is no name for a site; 1 to 64 letters, digits, `_`, `.` and `-` are, "
            "beginning with a letter or digit"
        )
    return name


def site_uri(name: str) -> str:
    """Returns a site's URI for certificates: `hanse://site/<name>`.

    Raises:
        ValueError: it is no name for a site.
    """
    return _URI_PREFIX + check_site_name(name)


def site_of_uri(uri: str) -> str | None:
    """Returns the site of a URI, or `None`."""
    name = uri.removeprefix(_URI_PREFIX)
    return name if name != uri and SITE_NAME.fullmatch(name) else None


def tls_name(name: str) -> str:
    """Returns the host name under which TLS knows a site, whatever its address.

    A TLS client compares host names, not URIs, and host names do not tell KTH from kth. So every
    certificate of a site also has this name, which spells the site's in hexadecimal digits under
    the domain that never exists (RFC 2606): two sites never share one.

    Raises:
        ValueError: it is no name for a site.
    """
    digits = check_site_name(name).encode("ascii").hex()
    labels = [
        digits[at : at + _LABEL_CHARACTERS] for at in range(0, len(digits), _LABEL_CHARACTERS)
    ]
    return ".".join([*labels, _TLS_SUFFIX])


def is_tls_name(host: str) -> bool:
    """Returns whether a host name is one that `tls_name` makes, of whatever site."""
    return f".{host.removesuffix('.').lower()}".endswith(f".{_TLS_SUFFIX}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a daemon listens: a host name or an IP address without brackets, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody outside this machine can reach it, by its address alone.

        The name `localhost` counts; any other name could lead anywhere.
        """
        return is_loopback(self.host)

    @property
    def is_unspecified(self) -> bool:
        """Whether it is the wildcard address: for listening only."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


def is_loopback(host: str) -> bool:
    """Returns whether a host is this machine's loopback by its address, or `localhost`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(host: str) -> str:
    """Returns a host name or IP address.

    Raises:
        ValueError: it is neither. Schemes such as `unix:`, paths, wildcards and addresses that
            mean something on one machine alone (`fe80::1%eth0`) are not.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        labels = host.removesuffix(".").split(".")
        numeric = labels[-1].isdigit()  # what looks like an address and is none, as 10.0.0.300
        if len(host) > HOST_CHARACTERS_MAX or numeric or not all(map(_LABEL.fullmatch, labels)):
            raise ValueError(f"{host!r} is neither a host name nor an IP address") from None
    else:
        if getattr(address, "scope_id", None) is not None:
            raise ValueError(f"{host!r} has a scope, which other machines do not know")
    return host


def parse_endpoint(text: str) -> Endpoint:
    """Returns the endpoint that a text names, as `host:port` or `[IPv6 address]:port`.

    Raises:
        ValueError: it names none.
    """
    host, colon, digits = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        bracketed = True
    else:
        bracketed = False
    if not colon or bracketed != (":" in host):
        raise ValueError(f"{text!r} is no endpoint; write host:port or [IPv6 address]:port")
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:6]) <= PORT_MAX):
        raise ValueError(f"{text!r} has the port {digits!r}; it must be 1 to {PORT_MAX}")
    return Endpoint(check_host(host), int(digits))


def read_fingerprint(text: str) -> str:
    """Returns a certificate's SHA-256 fingerprint, 64 hexadecimal digits, from any common spelling.

    Raises:
        ValueError: it is no fingerprint.
    """
    digits = text.strip().rpartition("=")[2].replace(":", "").replace(" ", "").lower()
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise ValueError(f"{text!r} is no SHA-256 fingerprint; it has 64 hexadecimal digits")
    return digits
