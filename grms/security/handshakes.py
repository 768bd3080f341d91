"""Failed TLS handshakes: the reason in words, at both sides.

The side that refuses sees OpenSSL's error. The side that is refused gets an alert (RFC 8446,
section 6), which gRPC turns into "Socket closed"; so after a failure it shakes hands once more with
Python's `ssl`, which reports the alert (`why_refused`).
"""

import socket
import ssl
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography import x509

from grms.security.certificates import PkiError
from grms.security.files import read_certificates
from grms.security.tls import TlsFiles, client_context
from grms.util.names import Endpoint, tls_name


class Handshake(StrEnum):
    """How a handshake has failed, seen from the side that refuses."""

    NO_CERTIFICATE = "no_certificate"
    """The other side shows none."""

    UNKNOWN_AUTHORITY = "unknown_authority"
    """Its certificate was not signed by an authority of this site's."""

    EXPIRED = "expired"
    """Its certificate has ended, or has not begun."""

    BAD_CERTIFICATE = "bad_certificate"
    """Its certificate is for something else, or damaged."""

    DISTRUSTED = "distrusted"
    """Its certificate is believed no more, though TLS takes it: refused, or its authority has gone."""

    NOT_TLS = "not_tls"
    """It does not speak TLS, or none that is new enough."""

    REFUSED = "refused"
    """It refuses the certificate of this site."""

    CLOSED = "closed"
    """It hung up in the middle."""

    SLOW = "slow"
    """It did not come to an end in time."""

    OTHER = "other"
    """Anything else; the words say what."""


_TIME: Final = {9: "not valid yet", 10: "expired"}
"""What OpenSSL's codes for a certificate's time mean (`X509_V_ERR_…`)."""

_UNKNOWN: Final = frozenset({2, 7, 18, 19, 20, 21})
"""OpenSSL's codes for a missing or invalid signature of a known authority."""

_PLAIN: Final = (
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "WRONG_VERSION_NUMBER",
    "UNSUPPORTED_PROTOCOL",
    "RECORD_LAYER_FAILURE",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
    "BAD_RECORD_TYPE",
)

_ALERTS: Final = {
    "UNKNOWN_CA": "its authority is not known there",
    "CERTIFICATE_EXPIRED": "it has expired, or the clocks differ",
    "CERTIFICATE_REQUIRED": "none was shown",
    "BAD_CERTIFICATE": "it is bad, or not valid yet by the clock there",
    "UNSUPPORTED_CERTIFICATE": "it is of an unsupported kind, or for something else",
    "CERTIFICATE_REVOKED": "it was revoked",
    "CERTIFICATE_UNKNOWN": "it cannot be used",
    "ACCESS_DENIED": "access is denied",
    "DECRYPT_ERROR": "its signature is wrong",
}


def handshake_problem(error: ssl.SSLError) -> tuple[Handshake, str]:
    """Returns the kind of a failed handshake, and words about the other side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_problem(error)
    if isinstance(error, ssl.SSLEOFError):
        return Handshake.CLOSED, "it hung up in the middle"
    reason = error.reason or str(error)
    if "DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return Handshake.NO_CERTIFICATE, "it shows no certificate"
    if (alert := _alert(reason)) is not None:
        return Handshake.REFUSED, f"it refuses this site's certificate: {alert}"
    if any(plain in reason for plain in _PLAIN):
        text = f"it does not speak TLS 1.2 or newer ({reason.lower().replace('_', ' ')})"
        return Handshake.NOT_TLS, text
    return Handshake.OTHER, reason.lower().replace("_", " ")


def _certificate_problem(error: ssl.SSLCertVerificationError) -> tuple[Handshake, str]:
    code = error.verify_code
    if code in _TIME:
        return Handshake.EXPIRED, f"its certificate is {_TIME[code]}"
    if code in _UNKNOWN:
        text = f"its certificate is of an unknown authority ({error.verify_message})"
        return Handshake.UNKNOWN_AUTHORITY, text
    return Handshake.BAD_CERTIFICATE, f"its certificate: {error.verify_message}"


def _alert(reason: str) -> str | None:
    _, found, name = reason.partition("_ALERT_")
    if not found:
        return None
    return _ALERTS.get(name, name.lower().replace("_", " "))


def why_refused(place: Endpoint | Path, files: TlsFiles, partner: str, timeout_s: float) -> str:
    """Returns why no TLS connection to a partner comes about; empty if one does. Blocks.

    `place` is where it is, or the Unix socket of the way there.

    It connects, shows this site's certificate and waits for the first byte: in TLS 1.3 a server
    refuses a client after the client's handshake has ended. Each step may take `timeout_s` seconds.
    """
    try:
        context, name = client_context(files), tls_name(partner)
    except PkiError as error:
        return str(error)
    try:
        with _connection(place, timeout_s) as plain:
            return _shake(context, plain, name, partner)
    except OSError:
        return ""  # it is no matter of TLS


def shown_by(place: Endpoint | Path, files: TlsFiles, partner: str, timeout_s: float) -> bytes:
    """Returns the certificate (DER) that a partner shows at a place, as for `why_refused`. Blocks.

    Each step may take `timeout_s` seconds.

    Raises:
        OSError: the handshake fails.
        PkiError: the site's own files are unusable.
    """
    context = client_context(files)
    with (
        _connection(place, timeout_s) as plain,
        context.wrap_socket(plain, server_hostname=tls_name(partner)) as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown is not None  # it was verified
    return shown


def certificates_end(
    place: Endpoint | Path, files: TlsFiles, partner: str, timeout_s: float
) -> float:
    """Returns when the first certificate of a connection expires, seconds since 1970. Blocks.

    gRPC neither reports the other side's certificate nor checks it again while the connection
    stands, so this shakes hands once more. Each step may take `timeout_s` seconds.

    Raises:
        OSError: the connection fails.
        PkiError: the site's own files are unusable.
    """
    shown = shown_by(place, files, partner, timeout_s)
    theirs = x509.load_der_x509_certificate(shown).not_valid_after_utc
    own = read_certificates(files.certificate)[0].not_valid_after_utc
    return min(theirs, own).timestamp()


def _connection(place: Endpoint | Path, timeout_s: float) -> socket.socket:
    if isinstance(place, Endpoint):
        return socket.create_connection((place.host, place.port), timeout_s)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.settimeout(timeout_s)
    try:
        found.connect(str(place))
    except OSError:
        found.close()
        raise
    return found


def _shake(context: ssl.SSLContext, plain: socket.socket, name: str, partner: str) -> str:
    try:
        with context.wrap_socket(plain, server_hostname=name) as secure:
            secure.recv(1)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == 62:  # X509_V_ERR_HOSTNAME_MISMATCH
            return f"who answers there has a certificate, but not that of {partner}"
        return f"TLS: {handshake_problem(error)[1]}"
    except ssl.SSLError as error:
        return f"TLS: {handshake_problem(error)[1]}"
    except OSError:
        return ""  # no word, no reason
    return ""
