"""Keys and certificates for tests."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grms.security.authority import (
    Authority,
    create_authority,
    generate_key,
    issue_for_server,
    issue_for_site,
)
from grms.security.files import (
    AUTHORITY_CERTIFICATE,
    write_authority,
    write_certificate,
    write_key,
)
from grms.security.tls import TlsFiles

LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Federation:
    """An authority and the folder in which it and what it issues are.

    Attributes:
        authority: who signs.
        folder: where everything is.
    """

    authority: Authority
    folder: Path

    @property
    def ca(self) -> Path:
        """The authority's certificate."""
        return self.folder / AUTHORITY_CERTIFICATE

    def site(self, name: str, *, now: datetime | None = None, days: int = 30) -> TlsFiles:
        """Returns new keys of a site; `now` in the past makes a certificate that has ended."""
        key = generate_key()
        certificate = issue_for_site(
            self.authority,
            name,
            LOOPBACK,
            key.public_key(),
            now=now or datetime.now(UTC),
            days=days,
        )
        write_key(key, self.folder / f"{name}.key")
        write_certificate(certificate, self.folder / f"{name}.crt")
        return TlsFiles(self.ca, self.folder / f"{name}.crt", self.folder / f"{name}.key")

    def server(self, name: str) -> TlsFiles:
        """Returns new keys of a server on this machine that is no site."""
        key = generate_key()
        certificate = issue_for_server(
            self.authority, LOOPBACK, key.public_key(), now=datetime.now(UTC)
        )
        write_key(key, self.folder / f"{name}.key")
        write_certificate(certificate, self.folder / f"{name}.crt")
        return TlsFiles(self.ca, self.folder / f"{name}.crt", self.folder / f"{name}.key")


def new_federation(folder: Path, *, now: datetime | None = None) -> Federation:
    """Returns a new authority, written into a folder."""
    authority = create_authority("test", now=now or datetime.now(UTC))
    write_authority(authority, folder)
    return Federation(authority, folder)


def tls_table(files: TlsFiles) -> dict[str, str]:
    """Returns the table of a configuration that names keys."""
    return {
        "authority": str(files.authority),
        "certificate": str(files.certificate),
        "key": str(files.key),
    }
