"""The parts of a daemon without sockets: what its certificate has to be, and its privileges."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from grms.security.tls import TlsFiles
from grms.site.assembly import check_certificate, check_privileges
from grms.site.config.load import ConfigError, load_config, parse_config
from lrms_sim.util.files import to_toml
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document


def check(folder: Path, files: TlsFiles) -> None:
    """Looks at the certificate of the site `home`."""
    tls = {
        "authority": str(files.authority),
        "certificate": str(files.certificate),
        "key": str(files.key),
    }
    text = to_toml(document(folder, tls=tls)).encode()
    check_certificate(parse_config(text, folder=folder, shown="x"), structlog.get_logger())


def test_a_certificate_is_the_sites_own(tmp_path: Path) -> None:
    """Another site's, another authority's and one with another key are refused."""
    federation = new_federation(tmp_path)
    home, away = federation.site("home"), federation.site("away")
    check(tmp_path, home)
    with pytest.raises(ConfigError, match="is for the site away, not for home"):
        check(tmp_path, away)
    with pytest.raises(ConfigError, match="is not the key of"):
        check(tmp_path, TlsFiles(home.authority, home.certificate, away.key))
    (tmp_path / "other").mkdir()
    other = new_federation(tmp_path / "other")
    with pytest.raises(ConfigError, match="was not signed by any authority"):
        check(tmp_path, TlsFiles(other.ca, home.certificate, home.key))


def test_one_that_has_ended_is_told(tmp_path: Path) -> None:
    """Users are served; the log says why partners are not."""
    long_ago = datetime.now(UTC) - timedelta(days=200)
    federation = new_federation(tmp_path, now=long_ago)
    with capture_logs() as logs:
        check(tmp_path, federation.site("home", now=long_ago))
    (entry,) = logs
    assert entry["event"] == "certificate_not_valid"
    assert entry["log_level"] == "error"
    assert "grms pki renew" in entry["problem"]


def test_a_daemon_says_that_sudo_will_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its file needs sudo and nothing can gain rights; it names the keys, and serves all the same."""
    users, programs = tmp_path / "users.map", tmp_path / "operator"
    users.write_text("ann@away  ann\n")
    programs.mkdir()
    (programs / "scontrol").write_text('#!/bin/sh\nexec sudo -n -u slurm /usr/bin/scontrol "$@"\n')
    lrms: dict[str, Any] = {"kind": "slurm", "spool": str(tmp_path)}
    lrms["watch"] = {"comment": "grid", "programs": str(programs)}
    path = tmp_path / "site.toml"
    path.write_text(to_toml(document(tmp_path, lrms=lrms, guests={"users": str(users)})))
    for denied in (False, True):
        monkeypatch.setattr("grms.lrms.privileges.no_new_privileges", lambda _, said=denied: said)
        with capture_logs() as logs:
            check_privileges(load_config(path), structlog.get_logger())
        assert [entry["event"] for entry in logs] == ["no_new_privileges"] * denied
    assert logs[0]["problem"].startswith(
        "guests.users, lrms.own_jobs, lrms.watch.programs: sudo refuses"
    )
