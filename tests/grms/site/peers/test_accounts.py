"""As which local account a partner's job runs: by its user, by its home site, or not at all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import LrmsRefusedError
from grms.site.config.load import ConfigError, load_config
from grms.site.peers.accounts import GuestAccounts, NoAccountError, guest_accounts, read_users
from lrms_sim.util.files import to_toml
from tests.grms.site.daemons import document

MAP = """# users of partners
ann@south   ann_s   # the same person
o'b;$(id)@south  obrien
-u@south dash
a@b@south two

ann@north   ann
"""


def test_a_map() -> None:
    """A name is whatever the other site has; it is compared, and never handed to anybody."""
    assert read_users(MAP) == {
        ("south", "ann"): "ann_s",
        ("south", "o'b;$(id)"): "obrien",
        ("south", "-u"): "dash",
        ("south", "a@b"): "two",
        ("north", "ann"): "ann",
    }


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("ann@south", "line 2: it must be USER@SITE and a local account"),
        ("ann@south a b", "line 2: it must be"),
        ("ann ann", "line 2: 'ann' is not USER@SITE"),
        ("@south ann", "is not USER@SITE"),
        ("a\x1bb@south ann", "is not USER@SITE"),
        ("ann@so/uth ann", "'so/uth' is no name for a site"),
        ("x@south x", "'x@south' comes twice"),
        ("ann@south root", "'root' is no local account"),
        ("ann@south -u", "'-u' is no local account"),
        ("ann@south 0", "'0' is no local account"),
        ("ann@south #0", "line 2: it must be"),
        ("ann@south ../x", "is no local account"),
    ],
)
def test_what_is_no_map(line: str, text: str) -> None:
    """Its line is named."""
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        read_users(f"x@south x\n{line}\n")


@given(st.text(max_size=40))
def test_no_name_becomes_another(user: str) -> None:
    """Whatever a home site calls its user, only the very same name in the map is his."""
    accounts = GuestAccounts({("south", "ann"): "ann_s"}, {"south": "grid"}, check=lambda _: None)
    assert accounts.of("south", user) == ("ann_s" if user == "ann" else "grid")
    assert accounts.of("north", user) == ""


def test_who_has_none() -> None:
    """Runs as all others of his partner, or not at all; so does who may not be used."""
    known = {("south", "ann"): "ann_s"}
    assert GuestAccounts(known).of("south", "eve") == ""
    strict = GuestAccounts(known, {"south": "grid"}, refuse_others=True, check=lambda _: None)
    assert strict.of("south", "ann") == "ann_s"
    for user in ("", "eve"):
        with pytest.raises(NoAccountError, match="its user has no account here"):
            strict.of("south", user)
    assert strict.accounts == ["ann_s", "grid"]

    def refuses(account: str) -> None:
        raise LrmsRefusedError(f"{account} is the system's")

    with pytest.raises(NoAccountError, match="ann_s is the system's"):
        GuestAccounts(known, check=refuses).of("south", "ann")


def test_a_sites_file(tmp_path: Path) -> None:
    """The map is read with it; what is wrong in it is said with its name."""
    lrms = {"kind": "slurm"}
    guests = {"users": "users.map", "unknown_users": "refuse"}
    written = document(tmp_path, partners={"south": 1}, lrms=lrms, guests=guests)
    written["partners"][0]["account"] = "grid"
    path = tmp_path / "home.toml"
    path.write_text(to_toml(written))
    config = load_config(path)
    with pytest.raises(ConfigError, match=r"users\.map: cannot be read: No such file"):
        guest_accounts(config)
    (tmp_path / "users.map").write_text(MAP)
    found = guest_accounts(config)
    assert (found.users[("south", "ann")], found.partners) == ("ann_s", {"south": "grid"})
    assert found.refuse_others
    (tmp_path / "users.map").write_bytes(b"\xff\n")
    with pytest.raises(ConfigError, match=r"users\.map: .*utf-8"):
        guest_accounts(config)
