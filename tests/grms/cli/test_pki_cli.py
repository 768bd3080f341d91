import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from click.testing import CliRunner, Result

from grms.cli.main import run_command
from grms.security.certificates import facts
from grms.security.files import read_certificates, read_key
from tests.schemas import printed


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each test in a folder of its own, with an authority in `ca`."""
    monkeypatch.chdir(tmp_path)
    assert run("init", "ca", "--name", "Test federation").exit_code == 0


class _Program(click.Command):
    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        sys.exit(run_command(args or ()))


def run(*arguments: str) -> Result:
    """Runs `grms pki`."""
    # Through the whole program: it is what tells errors, and a command keeps the options for help that it is
    # asked with first.
    return CliRunner().invoke(_Program("grms"), ["pki", *arguments])


def test_the_way_from_nothing_to_a_site(tmp_path: Path) -> None:
    """Three commands make an authority, a key that stays at the site, and its certificate."""
    made = run("request", "KTH", "--output", "kth")
    assert made.exit_code == 0
    assert "it stays here" in made.output
    made = run(
        "issue", "KTH", "--ca", "ca", "--request", "kth/KTH.csr", "--output", "kth",
        "--endpoint", "grms.kth.example:7001", "--endpoint", "192.0.2.7", "--endpoint", "[::1]:7001",
        "--endpoint", "::1", "--days", "90",
    )  # fmt: skip
    assert made.exit_code == 0
    assert "site KTH: KTH" in made.output
    assert "reached at: grms.kth.example, 192.0.2.7, ::1" in made.output
    assert "signed by: Test federation" in made.output
    assert "(90 days left)" in made.output
    certificate = read_certificates(tmp_path / "kth" / "KTH.crt")[0]
    assert certificate.public_key() == read_key(tmp_path / "kth" / "KTH.key").public_key()
    assert not (tmp_path / "KTH.key").exists()
    for key in ("ca/ca.key", "kth/KTH.key"):
        assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600


def test_the_key_can_be_made_by_the_authority(tmp_path: Path) -> None:
    """Without a request both files are made, and never over others."""
    assert run("issue", "CTC", "--ca", "ca").exit_code == 0
    assert facts(read_certificates(tmp_path / "CTC.crt")[0]).site == "CTC"
    key = (tmp_path / "CTC.key").read_bytes()
    (tmp_path / "CTC.crt").unlink()
    again = run("issue", "CTC", "--ca", "ca")
    assert again.exit_code == 2
    assert again.output.startswith("Error: CTC.key: is there already")
    assert (tmp_path / "CTC.key").read_bytes() == key
    assert not (tmp_path / "CTC.crt").exists()


def test_a_server_gets_a_certificate_of_no_site(tmp_path: Path) -> None:
    """An MQTT broker is issued hosts and no site."""
    made = run("issue-server", "mqtt.example.org:8883", "--ca", "ca", "--endpoint", "127.0.0.1")
    assert made.exit_code == 0
    assert "server: mqtt.example.org" in made.output
    found = facts(read_certificates(tmp_path / "mqtt.example.org.crt")[0])
    assert (found.site, found.hosts) == (None, ("mqtt.example.org", "127.0.0.1"))


def test_renewal_replaces_the_certificate(tmp_path: Path) -> None:
    """The certificate gets a later end; no key is read but the authority's."""
    run("issue", "KTH", "--ca", "ca", "--days", "10", "--endpoint", "localhost")
    (tmp_path / "KTH.key").unlink()
    before = facts(read_certificates(tmp_path / "KTH.crt")[0])
    made = run("renew", "KTH.crt", "--ca", "ca", "--days", "400")
    assert made.exit_code == 0
    after = facts(read_certificates(tmp_path / "KTH.crt")[0])
    assert (after.end - before.end).days in {389, 390}
    assert (after.name, after.site, after.hosts) == (before.name, before.site, before.hosts)


def test_show_says_what_is_in_a_certificate() -> None:
    """Every certificate of every file is shown, and a timer can ask whether one ends soon."""
    run("issue", "KTH", "--ca", "ca", "--days", "10")
    shown = run("show", "KTH.crt", "ca/ca.crt")
    assert shown.exit_code == 0
    assert "site KTH: KTH" in shown.output
    assert "authority: Test federation" in shown.output
    assert "SHA-256: " in shown.output
    told = printed("grms-pki-show", run("show", "KTH.crt", "ca/ca.crt", "--json").output)
    site, authority = told["certificates"]
    assert (site["site"], site["is_authority"], site["is_request"]) == ("KTH", False, False)
    assert 9 < site["days_left"] <= 10
    assert (authority["name"], authority["is_authority"]) == ("Test federation", True)
    assert run("show", "KTH.crt", "--expires-within", "9").exit_code == 0
    assert run("show", "ca/ca.crt", "KTH.crt", "--expires-within", "11").exit_code == 1


def test_an_authority_can_look_at_a_request() -> None:
    """The key's fingerprint is what the site was told, and what the certificate has later."""
    said = run("request", "KTH").output
    line = next(each for each in said.splitlines() if "key's SHA-256" in each)
    shown = run("show", "KTH.csr")
    assert shown.exit_code == 0
    assert "request of site: KTH" in shown.output
    assert line in shown.output
    (request,) = printed("grms-pki-show", run("show", "KTH.csr", "--json").output)["certificates"]
    assert request["is_request"]
    assert request["key_fingerprint"] in line
    run("issue", "KTH", "--ca", "ca", "--request", "KTH.csr")
    assert line in run("show", "KTH.crt").output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("init", "ca"), "ca/ca.crt: is there already"),
        (("init", "b", "--name", ""), "no name for a certificate"),
        (("issue", "a/b", "--ca", "ca"), "'a/b' is no name for a site"),
        (("issue", "KTH", "--ca", "none"), "none/ca.crt: cannot be read"),
        (("issue", "KTH", "--ca", "ca", "--endpoint", "*.x:1"), "neither a host name"),
        (("issue", "KTH", "--ca", "ca", "--endpoint", "unix:/x"), "unix:/x"),
        (("issue", "KTH", "--ca", "ca", "--request", "no.csr"), "no.csr: cannot be read"),
        (("issue", "KTH", "--ca", "ca", "--request", "ca/ca.crt"), "holds no request"),
        (("issue", "KTH"), "Missing option '--ca'"),
        (("issue", "KTH", "--ca", "ca", "--days", "0"), "0 is not in the range"),
        (("issue-server", "4b5448.site.hanse.invalid", "--ca", "ca"), "stands for a site"),
        (("request", ".."), "'..' is no name for a site"),
        (("renew", "ca/ca.crt", "--ca", "ca"), "make a new authority instead"),
        (("show", "ca/ca.key"), "ca/ca.key: holds no certificate"),
        (("show", "ca"), "ca: cannot be read: Is a directory"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], text: str) -> None:
    """A mistake ends with status 2 and one message that names it, never with a traceback."""
    found = run(*arguments)
    assert (found.exit_code, isinstance(found.exception, SystemExit)) == (2, True)
    assert text in found.output
    assert "Traceback" not in found.output


def test_a_key_that_others_can_read_is_not_used() -> None:
    """An authority whose key has been given away signs nothing until that is put right."""
    os.chmod("ca/ca.key", 0o644)  # noqa: PTH101  # a path as the command has it
    found = run("issue", "KTH", "--ca", "ca")
    assert found.exit_code == 2
    assert "chmod 600 ca/ca.key" in found.output


def test_it_is_a_part_of_grms(capsys: pytest.CaptureFixture[str]) -> None:
    """`grms pki` is this, with the status and the form of errors that `grms` has."""
    assert run_command(["pki", "show", "ca/ca.crt"]) == 0
    assert run_command(["pki", "show", "nothing"]) == 2
    shown = capsys.readouterr()
    assert "authority: Test federation" in shown.out
    assert shown.err == "Error: nothing: cannot be read: No such file or directory\n"
    assert run_command(["pki", "show", "ca/ca.crt", "--expires-within", "9999"]) == 1
