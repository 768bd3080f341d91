"""Keys and certificates as files.

A private key is created with mode 0600 and never overwritten; a certificate is replaced atomically, so that a
concurrently reading daemon finds the old or the new one, complete.
"""

import stat
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from grms.security.authority import Authority, key_pem
from grms.security.certificates import PkiError
from lrms_sim.util.files import read_bytes, sync_folder, write_new

AUTHORITY_CERTIFICATE = "ca.crt"
AUTHORITY_KEY = "ca.key"
"""Files of an authority's folder."""

FILE_BYTES_MAX = 1 << 20
"""Longest file of keys or certificates."""

CERTIFICATES_MAX = 64


def read_pem(path: Path) -> bytes:
    """Returns the content of a file of keys or certificates; `PkiError` if it is unreadable or too long."""
    return read_bytes(path, FILE_BYTES_MAX, PkiError)


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Returns the certificates in a file, at least one; `PkiError` if there are none or it is unreadable."""
    return certificates_in(read_pem(path), path)


def certificates_in(content: bytes, path: Path) -> list[x509.Certificate]:
    """Returns the certificates in the content of `path`, at least one; `PkiError` if there are none or too many."""
    try:
        found = x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise PkiError(f"{path}: holds no certificate in PEM form") from error
    if len(found) > CERTIFICATES_MAX:
        raise PkiError(
            f"{path}: holds {len(found)} certificates; at most {CERTIFICATES_MAX} may be"
        )
    return found


def read_request(path: Path) -> x509.CertificateSigningRequest:
    """Returns the certificate request in a file; `PkiError` if there is none or it is unreadable."""
    try:
        return x509.load_pem_x509_csr(read_pem(path))
    except ValueError as error:
        raise PkiError(f"{path}: holds no request for a certificate in PEM form") from error


def holds_request(path: Path) -> bool:
    """Returns whether a file holds a certificate request rather than certificates; `PkiError` if unreadable."""
    return b"CERTIFICATE REQUEST-----" in read_pem(path)


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Returns the private key in a file that only its owner and group can read.

    Raises:
        PkiError: it is unreadable, readable by others, or no such key.
    """
    check_key_mode(path)
    try:
        key = load_pem_private_key(read_pem(path), password=None)
    except (ValueError, TypeError) as error:
        raise PkiError(f"{path}: holds no private key in PEM form without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise PkiError(f"{path}: is no elliptic-curve key; make one with `grms pki request`")
    return key


def check_key_mode(path: Path) -> None:
    """Checks that only a key's owner and group can access it; `PkiError` otherwise."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise PkiError(f"{path}: cannot be read: {error.strerror}") from error
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise PkiError(
            f"{path}: has mode {stat.S_IMODE(mode):04o}, so that others can use this key; "
            f"chmod 600 {path}"
        )


def read_authority(folder: Path) -> Authority:
    """Returns the authority whose certificate and key are in a folder.

    Raises:
        PkiError: they are missing, or do not match.
    """
    certificate = read_certificates(folder / AUTHORITY_CERTIFICATE)[0]
    key = read_key(folder / AUTHORITY_KEY)
    if certificate.public_key() != key.public_key():
        raise PkiError(
            f"{folder}: {AUTHORITY_KEY} is not the key of {AUTHORITY_CERTIFICATE}; "
            "bring both back from the same backup"
        )
    return Authority(certificate, key)


def write_authority(authority: Authority, folder: Path) -> None:
    """Writes a new authority into a folder, creating it if needed.

    Raises:
        PkiError: there is one already, or it cannot be written.
    """
    certificate, key = folder / AUTHORITY_CERTIFICATE, folder / AUTHORITY_KEY
    refuse_to_overwrite(certificate, key)
    write_key(authority.key, key)
    write_certificate(authority.certificate, certificate)


def refuse_to_overwrite(*paths: Path) -> None:
    """Raises `PkiError` if one of the files exists."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise PkiError(f"{path}: is there already and is not overwritten; move it away first")


def write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> None:
    """Writes a private key that only its owner can read; `PkiError` if the file exists, or cannot be written."""
    _write(path, key_pem(key), 0o600)


def write_certificate(
    certificate: x509.Certificate | x509.CertificateSigningRequest,
    path: Path,
    *,
    replace: bool = False,
) -> None:
    """Writes a certificate, or a request for one; `replace` atomically overwrites an existing file.

    Raises:
        PkiError: the file exists without `replace`, or cannot be written.
    """
    _write(path, certificate.public_bytes(Encoding.PEM), 0o644, replace=replace)


def _write(path: Path, content: bytes, mode: int, *, replace: bool = False) -> None:
    """Writes a new file, or replaces one; nothing new is left if that fails."""
    draft = path.with_name(f".{path.name}.new") if replace else path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PkiError(f"{path.parent}: no folder can be made: {error.strerror}") from error
    try:
        if replace:
            draft.unlink(missing_ok=True)  # of a run that was killed
        write_new(draft, content, mode)
        try:
            if replace:
                draft.replace(path)
            sync_folder(path.parent)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    except FileExistsError as error:
        raise PkiError(
            f"{path}: is there already and is not overwritten; move it away first"
        ) from error
    except OSError as error:
        raise PkiError(f"{path}: cannot be written: {error.strerror}") from error
