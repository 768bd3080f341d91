import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from grms.security import files as pki_files
from grms.security.authority import create_authority, create_request, generate_key, issue_for_site
from grms.security.certificates import PkiError
from grms.security.files import (
    read_authority,
    read_certificates,
    read_key,
    read_request,
    refuse_to_overwrite,
    write_authority,
    write_certificate,
    write_key,
)

NOW = datetime.now(UTC)
CA = create_authority("test", now=NOW)
KEY = generate_key()
CERTIFICATE = issue_for_site(CA, "KTH", [], KEY.public_key(), now=NOW)


def mode(path: Path) -> int:
    """Returns the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_an_authority_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Its key is for its owner alone from the first moment, whatever the umask."""
    old = os.umask(0)
    try:
        write_authority(CA, tmp_path / "a" / "ca")
    finally:
        os.umask(old)
    found = read_authority(tmp_path / "a" / "ca")
    assert found.certificate == CA.certificate
    assert found.key.private_numbers() == CA.key.private_numbers()
    assert mode(tmp_path / "a" / "ca" / "ca.key") == 0o600
    assert mode(tmp_path / "a" / "ca" / "ca.crt") == 0o644
    assert mode(tmp_path / "a" / "ca") == 0o700


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Keys and certificates that are there stay as they are, dangling links too."""
    write_authority(CA, tmp_path)
    before = (tmp_path / "ca.key").read_bytes()
    with pytest.raises(PkiError, match=r"ca\.crt: is there already"):
        write_authority(create_authority("new", now=NOW), tmp_path)
    with pytest.raises(PkiError, match=r"ca\.key: is there already"):
        write_key(KEY, tmp_path / "ca.key")
    with pytest.raises(PkiError, match=r"ca\.crt: is there already"):
        write_certificate(CERTIFICATE, tmp_path / "ca.crt")
    assert (tmp_path / "ca.key").read_bytes() == before
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PkiError, match="is there already"):
        refuse_to_overwrite(tmp_path / "other", tmp_path / "link")
    with pytest.raises(PkiError, match="is there already"):
        write_key(KEY, tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


def test_a_certificate_is_replaced_in_one_step(tmp_path: Path) -> None:
    """A renewal takes the place of the file, and what a killed run left is no obstacle."""
    path = tmp_path / "KTH.crt"
    write_certificate(CERTIFICATE, path)
    inode = path.stat().st_ino
    (tmp_path / ".KTH.crt.new").write_text("half")
    write_certificate(CA.certificate, path, replace=True)
    assert read_certificates(path) == [CA.certificate]
    assert path.stat().st_ino != inode
    assert [each.name for each in tmp_path.iterdir()] == ["KTH.crt"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is full no half key stays behind, and a certificate stays the old one."""
    path = tmp_path / "KTH.crt"
    write_certificate(CERTIFICATE, path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PkiError, match=r"KTH\.key: cannot be written: No space left on device"):
        write_key(KEY, tmp_path / "KTH.key")
    with pytest.raises(PkiError, match="No space left on device"):
        write_certificate(CA.certificate, path, replace=True)
    assert read_certificates(path) == [CERTIFICATE]
    assert [each.name for each in tmp_path.iterdir()] == ["KTH.crt"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where a folder is needed is an error that says where."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PkiError, match=r"file: no folder can be made: File exists"):
        write_authority(CA, tmp_path / "file")


@pytest.mark.parametrize("bits", [0o604, 0o602, 0o620, 0o777])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, bits: int) -> None:
    """A key readable by everybody, or writable by the group, is refused with the remedy."""
    path = tmp_path / "KTH.key"
    write_key(KEY, path)
    path.chmod(bits)
    with pytest.raises(PkiError, match=f"has mode {bits:04o}.*chmod 600"):
        read_key(path)


@pytest.mark.parametrize("bits", [0o600, 0o400, 0o640, 0o440])
def test_a_key_for_owner_and_group_is_taken(tmp_path: Path, bits: int) -> None:
    """A key that a service's group may read is as Debian keeps keys."""
    path = tmp_path / "KTH.key"
    write_key(KEY, path)
    path.chmod(bits)
    assert read_key(path).private_numbers() == KEY.private_numbers()


def test_what_is_no_pem_file(tmp_path: Path) -> None:
    """Missing, empty, foreign, encrypted and endless files are errors that name the file."""
    path = tmp_path / "x"
    for read in (read_certificates, read_request, read_key, read_authority):
        with pytest.raises(PkiError, match="cannot be read: No such file"):
            read(path)
    path.touch(mode=0o600)
    path.chmod(0o600)
    rsa_key = rsa.generate_private_key(65537, 2048)
    for content, match in (
        (b"", "holds no"),
        (b"\xff\0", "holds no"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no"),
        (b"a" * (pki_files.FILE_BYTES_MAX + 1), "is larger than"),
    ):
        path.write_bytes(content)
        for read in (read_certificates, read_request, read_key):
            with pytest.raises(PkiError, match=match):
                read(path)
    path.write_bytes(
        rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    )
    with pytest.raises(PkiError, match="without a password"):
        read_key(path)
    path.write_bytes(rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(PkiError, match="no elliptic-curve key"):
        read_key(path)


def test_several_certificates_in_a_file(tmp_path: Path) -> None:
    """A file may hold the old and the new authority, but not any number of them."""
    path = tmp_path / "ca.crt"
    write_certificate(CA.certificate, path)
    path.write_bytes(path.read_bytes() * 2)
    assert read_certificates(path) == [CA.certificate] * 2
    path.write_bytes(path.read_bytes() * 40)
    with pytest.raises(PkiError, match="80 certificates; at most 64"):
        read_certificates(path)


def test_a_request_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A site's request comes back whole."""
    request = create_request("KTH", KEY)
    write_certificate(request, tmp_path / "KTH.csr")
    assert read_request(tmp_path / "KTH.csr") == request


def test_an_authority_whose_files_do_not_fit(tmp_path: Path) -> None:
    """A certificate beside another authority's key is found before anything is signed."""
    write_authority(CA, tmp_path)
    (tmp_path / "ca.key").unlink()
    write_key(KEY, tmp_path / "ca.key")
    with pytest.raises(PkiError, match=r"ca\.key is not the key of ca\.crt"):
        read_authority(tmp_path)
