"""A user is somebody to a partner, and nobody by name; whom a site has banned has no job run there."""

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import LrmsRefusedError
from grms.site.peers.accounts import GuestAccounts
from grms.site.peers.pseudonyms import GuestOwners, Pseudonyms, read_key
from grms.site.runtime.executor_driver import ProgramGoneError
from grms.util.names import PSEUDONYM

ANN, BOB = "a" * 32, "b" * 32


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=4, unique=True))
def test_each_user_has_one_at_each_partner(pairs: list[tuple[str, str]]) -> None:
    """And no other user the same, nor the same user at another partner."""
    one, other = Pseudonyms(bytes(32)), Pseudonyms(b"x" * 32)
    pairs = [(partner.replace("\0", ""), user) for partner, user in pairs]
    names = {pair: one.of(*pair) for pair in pairs}
    assert len(set(names.values())) == len(names)
    for pair, name in names.items():
        assert PSEUDONYM.fullmatch(name)
        assert one.of(*pair) == name
        assert other.of(*pair) != name


def test_it_is_the_mac_of_both_names() -> None:
    """Kept for ever: a ban rests on it."""
    assert Pseudonyms(bytes(range(32))).of("south", "ann") == "c15ace9e89301f6521d0ba529a298a1b"


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    """The same at every start; one that others may read is not used."""
    path = tmp_path / "key"
    key = read_key(path)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == key
    path.chmod(0o640)
    with pytest.raises(ValueError, match="others may read this key"):
        read_key(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="no key of 32 bytes"):
        read_key(path)


async def test_whose_a_job_is_is_known_after_a_restart(tmp_path: Path) -> None:
    """As long as the job lives; what is no pseudonym is none."""
    owners = GuestOwners(tmp_path / "owners")
    await owners.take("north", "north/1f/1", ANN)
    await owners.take("north", "north/1f/2", "\x1b[2J")
    for known in (owners, GuestOwners(tmp_path / "owners")):
        assert [known.of(f"north/1f/{number}") for number in (1, 2, 3)] == [ANN, "", ""]
    owners.sweep(lambda key: key == "north/1f/2")
    assert owners.of("north/1f/1") == ""
    assert [path.name for path in (tmp_path / "owners").iterdir()] == ["north+1f+2"]


def test_names_are_told_where_that_is_said() -> None:
    """To those partners alone, and to no other as long as nothing is said."""
    names = Pseudonyms(bytes(32), ["south"])
    assert (names.name("south", "ann"), names.name("east", "ann")) == ("ann", "")
    assert Pseudonyms(bytes(32)).name("south", "ann") == ""


async def test_a_jobs_account_is_known_after_a_restart(tmp_path: Path) -> None:
    """As it was chosen when its program came; the name is written nowhere."""
    map_ = GuestAccounts({("north", "ann"): "ann_n"}, {"north": "grid"}, check=lambda _: None)
    owners = GuestOwners(tmp_path / "owners", accounts=map_)
    await owners.take("north", "north/1f/1", ANN, "ann")
    await owners.take("north", "north/1f/2", "", "eve")
    await owners.take("east", "east/1f/3", BOB, "ann")
    (tmp_path / "owners/north+1f+4").write_text(BOB)  # of an older version
    owners.accounts = GuestAccounts(partners={"north": "other"}, check=lambda _: None)
    for known in (owners, GuestOwners(tmp_path / "owners", accounts=owners.accounts)):
        keys = ("north/1f/1", "north/1f/2", "east/1f/3", "north/1f/4", "north/1f/5")
        found = [known.account(key.partition("/")[0], key) for key in keys]
        assert found == ["ann_n", "grid", "", "other", "other"]
        assert [known.of(key) for key in keys] == [ANN, "", BOB, BOB, ""]
    assert not any("eve" in path.read_text() for path in (tmp_path / "owners").iterdir())


async def test_an_account_that_cannot_be_read_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one remembered that could not be written; a disk has room again, and nobody runs as somebody else."""
    map_ = GuestAccounts({("north", "ann"): "ann_n"}, {"north": "grid"}, check=lambda _: None)
    owners = GuestOwners(tmp_path / "owners", accounts=map_)
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", _full)
        with pytest.raises(OSError, match="No space"):
            await owners.take("north", "north/1f/1", ANN, "ann")
    assert not list((tmp_path / "owners").iterdir())
    await owners.take("north", "north/1f/1", ANN, "ann")
    again = GuestOwners(tmp_path / "owners", accounts=map_)
    with monkeypatch.context() as full:
        full.setattr(Path, "read_text", _full)
        with pytest.raises(OSError, match="No space"):
            again.account("north", "north/1f/1")
        assert again.of("north/1f/1") == ""
    assert again.account("north", "north/1f/1") == "ann_n"
    assert again.of("north/1f/1") == ANN


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_who_has_no_account_here_goes_home(tmp_path: Path) -> None:
    """Where the site's file says so; nothing of the job is kept."""
    owners = GuestOwners(tmp_path / "owners", accounts=GuestAccounts(refuse_others=True))
    with pytest.raises(ProgramGoneError, match="no account here") as caught:
        await owners.take("north", "north/1f/1", ANN, "ann")
    assert caught.value.unwanted
    assert not (tmp_path / "owners").exists()
    with pytest.raises(LrmsRefusedError, match="no account here"):
        owners.account("north", "north/1f/1")


async def test_who_is_banned_has_no_job_run(tmp_path: Path) -> None:
    """Of that partner alone; nothing of it is kept, and the job may be decided anew at home."""
    owners = GuestOwners(tmp_path / "owners", [f"north:{ANN}"])
    with pytest.raises(ProgramGoneError, match="banned") as caught:
        await owners.take("north", "north/1f/1", ANN)
    assert caught.value.unwanted
    assert not (tmp_path / "owners").exists()
    await owners.take("east", "east/1f/1", ANN)
    await owners.take("north", "north/1f/2", BOB)
    owners.banned = frozenset((f"north:{BOB}",))
    with pytest.raises(ProgramGoneError):
        await owners.take("north", "north/1f/3", BOB)
    await owners.take("north", "north/1f/4", ANN)


async def test_who_has_used_up_the_month_is_kept_out(tmp_path: Path) -> None:
    """By what the site says; jobs of the same user that were taken meanwhile are named, others' are not."""
    asked: list[tuple[str, str, str, frozenset[str]]] = []

    def limited(partner: str, key: str, owner: str, taken: frozenset[str]) -> str:
        asked.append((partner, key, owner, taken))
        return "the month is used up" if len(taken) > 1 else ""

    owners = GuestOwners(tmp_path / "owners", limited=limited)
    for key, owner in (("north/1/1", ANN), ("north/1/2", BOB), ("north/1/3", ANN)):
        await owners.take("north", key, owner)
    with pytest.raises(ProgramGoneError, match="the month is used up") as caught:
        await owners.take("north", "north/1/4", ANN)
    assert caught.value.unwanted
    await owners.take("north", "north/1/5", "")  # whose it is nobody has said
    owners.sweep(lambda key: key != "north/1/1")
    await owners.take("north", "north/1/4", ANN)
    assert [one[3] for one in asked] == [
        frozenset(),
        frozenset(),
        {"north/1/1"},
        {"north/1/1", "north/1/3"},
        {"north/1/3"},
    ]
    assert owners.of("north/1/4") == ANN
