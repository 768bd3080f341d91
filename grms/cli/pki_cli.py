"""The commands `grms pki …`: keys and certificates for the sites of a federation.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from lrms_sim.util.errors import HanseError
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

    from grms.security.certificates import Facts

P = ParamSpec("P")

EXIT_EXPIRES = 1
"""Exit status of `grms pki show --expires-within` if something expires."""

_PATH = click.Path(path_type=Path)
_CA = click.option(
    "--ca",
    "authority",
    required=True,
    type=_PATH,
    metavar="FOLDER",
    help="The authority's folder, from `grms pki init`.",
)
_ENDPOINTS = click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="HOST",
    help="Host name or IP address under which it is reached; a port after it is left out.",
)
_OUTPUT = click.option(
    "--output",
    type=_PATH,
    default=".",
    metavar="FOLDER",
    help="Where to put the files.  [default: here]",
)


def _days(default: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    return click.option(
        "--days",
        type=click.IntRange(1, 36_500),
        default=default,
        show_default=True,
        help="How long it is valid.",
    )


class _Pki(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        """Runs a command; errors that users can fix become messages without traceback."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            raise HanseError(str(error)) from error


@click.group(cls=_Pki)
def pki() -> None:
    """Make and look at the keys and certificates of a federation."""


@pki.command(short_help="Make a certificate authority.")
@click.argument("folder", type=_PATH)
@click.option("--name", default="Hanse federation", show_default=True, help="A word for people.")
@_days(3650)
def init(folder: Path, *, name: str, days: int) -> None:
    """Make a certificate authority in FOLDER: ca.crt for all sites, ca.key to be kept secret.

    The owner of ca.key can pose as any site. Keep it off the machines that run daemons, and make a
    backup.
    """
    from grms.security import authority  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import write_authority  # noqa: PLC0415  # same

    made = authority.create_authority(name, now=datetime.now(UTC), days=days)
    write_authority(made, folder)
    _print_made(made.certificate, folder / "ca.crt", folder / "ca.key")


@pki.command(short_help="Make a key, and a request for its certificate.")
@click.argument("site")
@_OUTPUT
def request(site: str, *, output: Path) -> None:
    """Make a key for SITE and a request for its certificate, at the site itself.

    SITE.key stays where it is; SITE.csr goes to the authority, for `grms pki issue --request`.
    """
    from grms.security.authority import create_request, generate_key  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import refuse_to_overwrite, write_certificate, write_key  # noqa: PLC0415  # same

    key = generate_key()
    made = create_request(site, key)
    key_path, request_path = output / f"{site}.key", output / f"{site}.csr"
    refuse_to_overwrite(key_path, request_path)
    write_key(key, key_path)
    write_certificate(made, request_path)
    click.echo(f"{key_path}: the private key; it stays here\n{request_path}: for the authority")
    click.echo(_key_text(key.public_key()))


@pki.command(short_help="Issue a site's certificate.")
@click.argument("site")
@_CA
@_ENDPOINTS
@click.option(
    "--request",
    "request_path",
    type=_PATH,
    metavar="FILE",
    help="The site's request; without it a key is made here too.",
)
@_OUTPUT
@_days(365)
def issue(
    site: str,
    *,
    authority: Path,
    endpoints: tuple[str, ...],
    request_path: Path | None,
    output: Path,
    days: int,
) -> None:
    """Issue a certificate for SITE: SITE.crt, and SITE.key unless the site has made its own."""
    from grms.security import authority as made  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import read_authority, read_request  # noqa: PLC0415  # same
    from grms.util.names import check_site_name  # noqa: PLC0415  # same

    check_site_name(site)
    hosts = _hosts(endpoints)
    ca = read_authority(authority)
    if request_path is None:
        key = made.generate_key()
        public_key = key.public_key()
    else:
        key = None
        public_key = made.key_of_request(read_request(request_path), site)
    certificate = made.issue_for_site(ca, site, hosts, public_key, now=datetime.now(UTC), days=days)
    _write(certificate, key, output, site)


@pki.command("issue-server", short_help="Issue a key and a certificate for an MQTT broker.")
@click.argument("host")
@_CA
@_ENDPOINTS
@_OUTPUT
@_days(365)
def issue_server(
    host: str, *, authority: Path, endpoints: tuple[str, ...], output: Path, days: int
) -> None:
    """Issue a key and a certificate for a server that is no site, such as an MQTT broker.

    HOST is how it is reached; --endpoint names more of them.
    """
    from grms.security import authority as made  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import read_authority  # noqa: PLC0415  # same

    hosts = _hosts((host, *endpoints))
    ca = read_authority(authority)
    key = made.generate_key()
    certificate = made.issue_for_server(
        ca, hosts, key.public_key(), now=datetime.now(UTC), days=days
    )
    _write(certificate, key, output, hosts[0])


@pki.command()
@click.argument("certificate", type=_PATH)
@_CA
@_days(365)
def renew(certificate: Path, *, authority: Path, days: int) -> None:
    """Give CERTIFICATE a later end; its names and its key stay. The file is replaced.

    The key is not needed, so this is done where the authority is. A running daemon takes the new
    file up by itself.
    """
    from grms.security import authority as made  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import read_authority, read_certificates, write_certificate  # noqa: PLC0415  # same

    old = read_certificates(certificate)[0]
    ca = read_authority(authority)
    new = made.renew(ca, old, now=datetime.now(UTC), days=days)
    write_certificate(new, certificate, replace=True)
    _print_made(new, certificate)


@pki.command()
@click.argument("files", nargs=-1, required=True, type=_PATH)
@click.option(
    "--expires-within",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help=f"End with status {EXIT_EXPIRES} if one of them ends so soon; for a timer.",
)
@json_option("grms-pki-show", "grms.cli.output_models:PkiCertificatesOutput")
def show(files: tuple[Path, ...], *, expires_within: int | None, as_json: bool) -> None:
    """Show what certificates say, and requests for them.

    Before an authority issues, it compares the key's fingerprint with the one that the site read
    out when it made the request.
    """
    from grms.security.certificates import common_name, facts  # noqa: PLC0415  # see the module's docstring
    from grms.security.files import holds_request, read_certificates, read_request  # noqa: PLC0415  # same

    now = datetime.now(UTC)
    soon = False
    shown: list[dict[str, Any]] = []
    lines: list[str] = []
    for path in files:
        if holds_request(path):
            asked = read_request(path)
            name = common_name(asked.subject)
            signed = "" if asked.is_signature_valid else "\n  NOT signed with its key: refuse it"
            lines.append(f"{path}\n  request of site: {printable(name)}{signed}")
            lines.append(_key_text(asked.public_key()))
            shown.append(
                {
                    **_values(path, asked.public_key()),
                    **dict.fromkeys(("issuer", "begin", "end", "days_left", "fingerprint")),
                    "is_request": True,
                    "name": name,
                    "site": name,
                    "hosts": [],
                    "is_authority": False,
                    "is_signature_valid": asked.is_signature_valid,
                }
            )
            continue
        for certificate in read_certificates(path):
            found = facts(certificate)
            lines.append(f"{path}\n{_text(found, now)}\n{_key_text(certificate.public_key())}")
            days_left = found.days_left(now)
            shown.append(
                {
                    **_values(path, certificate.public_key()),
                    **asdict(found),
                    "is_request": False,
                    "days_left": days_left,
                    "is_signature_valid": None,
                }
            )
            soon = soon or days_left < (expires_within or 0)
    if as_json:
        print_json("grms-pki-show", {"certificates": shown})
    else:
        click.echo("\n".join(lines))
    if soon and expires_within is not None:
        click.get_current_context().exit(EXIT_EXPIRES)


def _values(path: Path, key: "PublicKeyTypes") -> dict[str, Any]:
    from grms.security.certificates import key_fingerprint  # noqa: PLC0415  # see the module's docstring

    return {"file": str(path), "key_fingerprint": key_fingerprint(key)}


def _hosts(endpoints: tuple[str, ...]) -> list[str]:
    from grms.util.names import check_host, parse_endpoint  # noqa: PLC0415  # see the docstring

    hosts = []
    for endpoint in endpoints:
        try:
            hosts.append(check_host(endpoint))
        except ValueError:
            hosts.append(parse_endpoint(endpoint).host)
    return hosts


def _write(
    certificate: "x509.Certificate",
    key: "ec.EllipticCurvePrivateKey | None",
    folder: Path,
    name: str,
) -> None:
    from grms.security.files import refuse_to_overwrite, write_certificate, write_key  # noqa: PLC0415  # see the module's docstring

    certificate_path, key_path = folder / f"{name}.crt", folder / f"{name}.key"
    if key is None:
        write_certificate(certificate, certificate_path)
        _print_made(certificate, certificate_path)
        return
    refuse_to_overwrite(certificate_path, key_path)
    write_key(key, key_path)
    write_certificate(certificate, certificate_path)
    _print_made(certificate, certificate_path, key_path)


def _print_made(certificate: "x509.Certificate", path: Path, key: Path | None = None) -> None:
    from grms.security.certificates import facts  # noqa: PLC0415  # see the module's docstring

    click.echo(f"{path}\n{_text(facts(certificate), datetime.now(UTC))}")
    if key is not None:
        click.echo(f"{key}\n  private key, readable by you alone")


def _key_text(key: "PublicKeyTypes") -> str:
    from grms.security.certificates import key_fingerprint  # noqa: PLC0415  # see the module's docstring

    return f"  key's SHA-256: {key_fingerprint(key)}"


def _text(found: "Facts", now: datetime) -> str:
    if now < found.begin:
        state = "not yet valid"
    elif now >= found.end:
        state = "EXPIRED"
    else:
        state = f"{found.days_left(now):.0f} days left"
    what = "authority" if found.is_authority else f"site {found.site}" if found.site else "server"
    lines = [
        f"  {what}: {found.name}",
        *([f"  reached at: {', '.join(found.hosts)}"] if found.hosts else []),
        f"  signed by: {found.issuer}",
        f"  valid: {found.begin:%F %T} to {found.end:%F %T} UTC ({state})",
        f"  SHA-256: {found.fingerprint}",
    ]
    return "\n".join(lines)
