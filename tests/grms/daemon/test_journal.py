"""What journals have in common: opening, appending, what a crash and what damage leave, errors."""

import errno
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any as _Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon import journal as module
from grms.daemon.journal import (
    JournalDamagedError,
    JournalError,
    JournalFile,
    JournalFullError,
    JournalKind,
    JournalLaterError,
    JournalTakenError,
    JournalUnchangedError,
    RecordCodec,
    reading,
)
from lrms_sim.util.version import __version__


class Thing(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """A record."""

    name: str


class Other(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """Another."""

    number: int


class Later(msgspec.Struct, frozen=True, tag=True, array_like=True, forbid_unknown_fields=True):
    """One that only a later program knows."""

    number: int


Any = Thing | Other
WORDS: dict[str, _Any] = {
    "kinds": frozenset({"Thing", "Other"}),
    "only_one": "one tester at a time",
    "cure": "look around",
}
KIND: JournalKind[Any] = JournalKind(
    program="tester", codec=RecordCodec[Any]((Thing, Other)), **WORDS
)


class Things(JournalFile[Any]):
    """The least journal: names of things."""

    def __init__(self, path: Path, kind: JournalKind[Any] = KIND, **notes: str) -> None:
        super().__init__(path, kind, notes)

    def put(self, *names: str) -> None:
        """Keeps names, all or none."""
        self.append([Thing(name) for name in names])

    def names(self) -> list[str]:
        """Returns all names."""
        return [each.name for each in self.records() if isinstance(each, Thing)]


def written(path: Path, *groups: Sequence[str]) -> list[int]:
    """Makes a journal of groups of names, and returns where each group ends, and where the first begins."""
    ends = []
    with Things(path) as things:
        ends.append(things.size_bytes)
        for names in groups:
            things.put(*names)
            ends.append(things.size_bytes)
    return ends


def found(path: Path) -> list[str]:
    """Opens a journal to write it, and returns what is in it."""
    with Things(path) as things:
        names = things.names()
        assert things.count == len(names)
        return names


GROUPS = ("a", "bc", "d" * 700, "", "efg")


# --- what is written -----------------------------------------------------------------------------


def test_what_was_put_is_there_after_reopening(tmp_path: Path) -> None:
    """In its order, and it goes on behind; the file begins with a line for people."""
    path = tmp_path / "j"
    written(path, "ab", "c")
    assert path.read_bytes().startswith(b"Hanse journal 1\n")
    with Things(path) as things:
        things.append([])
        things.append([Other(7), Thing("d")])
        assert things.count == 5
    with Things(path) as things:
        assert list(things.records()) == [*map(Thing, "abc"), Other(7), Thing("d")]
        assert list(things.records({Other})) == [Other(7)]
        assert things.size_bytes == path.stat().st_size


def test_what_is_durable_was_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group by itself, with the file's length; and the folder, where the file is new in it."""
    synced: list[str] = []

    def note(what: str, do: Callable[[int], None]) -> Callable[[int], None]:
        def sync(number: int) -> None:
            synced.append(f"{what} {Path(f'/proc/self/fd/{number}').readlink().name}")
            do(number)

        return sync

    monkeypatch.setattr(os, "fdatasync", note("data", os.fdatasync))
    monkeypatch.setattr(os, "fsync", note("all", os.fsync))
    with Things(tmp_path / "j") as things:
        assert synced == ["data j.new", f"all {tmp_path.name}"]
        synced.clear()
        things.put("a", "b")
        things.put("c")
        assert synced == ["data j", "data j"]
        synced.clear()
        things.replace([Thing("d")])
        assert synced == ["data j.new", f"all {tmp_path.name}"]
        synced.clear()
    with Things(tmp_path / "j"):
        named = f"all {tmp_path.name}"
        assert synced == ["data j", named], "what a killed process has left is relied on"
        synced.clear()
    with JournalFile(tmp_path / "p", KIND, {}, durability="process") as other:
        other.append([Thing("a")])
        other.replace([Thing("b")])
    assert synced == []


def test_notes_stay_and_those_of_its_own_are_left_alone(tmp_path: Path) -> None:
    """A note can be changed; the epoch and what it was made with cannot. A replaced file keeps them."""
    with Things(tmp_path / "j", owner="ann") as things:
        epoch = things.note("epoch")
        things.set_note("replay", "1")
        things.set_note("replay", "2")
        for own in ("owner", "epoch", "written_by", "program"):
            with pytest.raises(ValueError, match=own):
                things.set_note(own, "mine")
    for _ in range(2):
        with Things(tmp_path / "j", owner="bob") as things:
            assert (things.note("owner"), things.note("replay")) == ("ann", "2")
            assert things.note("epoch") == epoch
            assert things.note("nothing") is None
            assert things.count == 0
            things.replace([])


def test_all_records_can_be_replaced(tmp_path: Path) -> None:
    """In more than one piece; what is appended goes on after them, and nothing is left beside."""
    many = [Thing(str(number)) for number in range(10_000)]
    written(tmp_path / "j", *GROUPS)
    with Things(tmp_path / "j") as things:
        things.replace(iter(many))
        assert things.count == len(many)
        things.put("last")
    with Things(tmp_path / "j") as things:
        assert list(things.records()) == [*many, Thing("last")]
    assert {each.name for each in tmp_path.iterdir()} == {"j", "j.lock"}
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_batches_of_a_new_file_have_few_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long records are; one that is too long by itself stands alone."""
    monkeypatch.setattr(module, "BATCH_BYTES", 1000)
    many = [Thing(f"{number}" * (900 if number % 50 == 0 else 30)) for number in range(1, 500)]
    with Things(tmp_path / "j") as things:
        things.replace(many)
        assert things.count == len(many)
        assert list(things.records()) == many
    with reading(tmp_path / "j", KIND) as scan:
        for batch in scan.batches():
            assert len(batch.body) <= 1000 or batch.count == 1


def test_records_are_replaced_by_their_own(tmp_path: Path) -> None:
    """What is read comes of the old file while the new one is written."""
    written(tmp_path / "j", *GROUPS)
    with Things(tmp_path / "j") as things:
        things.replace(
            each for each in things.records() if isinstance(each, Thing) and each.name > "c"
        )
        assert things.names() == ["d"] * 700 + ["e", "f", "g"]


@given(st.lists(st.text(st.characters(), max_size=20), max_size=5))
def test_every_text_can_be_kept(names: list[str]) -> None:
    """Half a surrogate pair is none; whoever has it in a name finds a question mark."""
    codec = RecordCodec[Any]((Thing, Other))
    records = [Thing(name) for name in names] + [Other(2)]
    expected = [name.encode(errors="replace").decode() for name in names]
    kept = codec.decode(codec.encode(list[Any](records)))
    assert [each.name for each in kept if isinstance(each, Thing)] == expected


# --- what a crash leaves -------------------------------------------------------------------------


def test_a_tail_that_was_cut_anywhere_is_cut_off(tmp_path: Path) -> None:
    """The last group was never acknowledged; all before it is there, and the journal goes on."""
    path = tmp_path / "j"
    ends = written(path, *GROUPS)
    whole = path.read_bytes()
    names = list("abc" + "d" * 700)
    for length in range(ends[-2], ends[-1]):
        path.write_bytes(whole[:length])
        with Things(path) as things:
            assert things.cut_bytes == length - ends[-2]
        assert found(path) == names
        assert path.stat().st_size == ends[-2]
    with Things(path) as things:
        things.put("x")
    assert found(path) == [*names, "x"]


@pytest.mark.parametrize("block", [512, 4096])
def test_blocks_that_never_reached_the_disk_are_no_damage(tmp_path: Path, block: int) -> None:
    """Of the last group alone, in whichever order they were written; what is missing is zeros."""
    path = tmp_path / "j"
    before = written(path, "abc")[-1]
    with Things(path) as things:
        things.put(*(f"{number:0300}" for number in range(5 * block // 300)))
    whole = path.read_bytes()
    edges = [before, *range((before // block + 1) * block, len(whole), block), len(whole)]
    blocks = list(itertools.pairwise(edges))
    assert len(blocks) > 4
    for missing in itertools.product([False, True], repeat=len(blocks)):
        data = bytearray(whole)
        for (begin, end), gone in zip(blocks, missing, strict=True):
            if gone:
                data[begin:end] = bytes(end - begin)
        path.write_bytes(data)
        names = found(path)
        assert names[:3] == ["a", "b", "c"]
        assert len(names) == 3 or not any(missing)


def test_a_file_that_grew_and_was_not_written_is_cut_off(tmp_path: Path) -> None:
    """However much of it is zeros."""
    path = tmp_path / "j"
    written(path, "ab")
    whole = path.read_bytes()
    for more in (1, 3, 19, 20, 600, 5000):
        path.write_bytes(whole + bytes(more))
        assert found(path) == ["a", "b"]
        assert path.read_bytes() == whole


def test_a_compaction_that_was_cut_off_leaves_nothing(tmp_path: Path) -> None:
    """The old file is whole until the new one is."""
    written(tmp_path / "j", "ab")
    (tmp_path / "j.new").write_bytes(b"half of it")
    assert found(tmp_path / "j") == ["a", "b"]
    assert not (tmp_path / "j.new").exists()


def test_a_journal_that_was_never_begun_is_new(tmp_path: Path) -> None:
    """Somebody has made an empty file for it, or a crash has."""
    (tmp_path / "j").touch(0o644)
    assert found(tmp_path / "j") == []
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


# --- damage --------------------------------------------------------------------------------------


def test_a_bit_that_has_flipped_anywhere_is_damage(tmp_path: Path) -> None:
    """Of an acknowledged record nothing is lost without a word, the last one included; the byte is said."""
    path = tmp_path / "j"
    ends = written(path, "ab", "c", "de")
    whole = path.read_bytes()
    begins = [16, *ends]
    for at in range(16, len(whole)):
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        begin = max(each for each in begins if each <= at)
        for _ in range(2):
            with pytest.raises(
                JournalDamagedError, match=rf"damaged: byte {begin}: .*; look around"
            ):
                Things(path)
        assert path.read_bytes() == data


def test_groups_are_chained(tmp_path: Path) -> None:
    """One that is taken out, put in twice, exchanged, or of another journal does not fit."""
    path, other = tmp_path / "j", tmp_path / "other"
    begin, *ends = written(path, "ab", "cd", "ef")
    written(other, "ab", "cd", "ef")
    whole, foreign = path.read_bytes(), other.read_bytes()
    pieces = [whole[b:e] for b, e in itertools.pairwise([begin, *ends])]
    one, two, three = pieces
    for what in (
        one + three,
        two + three,
        one + two + two + three,
        two + one + three,
        one + foreign[ends[0] : ends[1]] + three,
        one + bytes(len(two)) + three,
        one + two[:-3] + three,
        one + two[:30] + three,
        one + two + three + b"text behind",
        one + bytes(len(two)) + b"text behind",
    ):
        path.write_bytes(whole[:begin] + what)
        with pytest.raises(JournalDamagedError, match="is not what was written"):
            Things(path)


def test_zeros_in_the_middle_are_damage(tmp_path: Path) -> None:
    """However many: other groups follow, so that this one was acknowledged. With something else behind, too."""
    path = tmp_path / "j"
    begin, *ends = written(path, ["a"], ["b" * 3000], ["c"])
    whole = path.read_bytes()
    for data in (
        whole[: ends[0]] + bytes(ends[1] - ends[0]) + whole[ends[1] :],
        whole[: ends[0] + 40] + bytes(2000) + whole[ends[0] + 2040 :],
        whole[: ends[0] + 40] + bytes(2000) + whole[ends[0] + 2040 : ends[1]] + b"text behind",
    ):
        path.write_bytes(data)
        with pytest.raises(JournalDamagedError, match=rf"byte {ends[0]}:"):
            Things(path)
    assert begin < ends[0]


def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Also one from before the first release; the error says what to do."""
    for text, words in (
        (b"no journal, but long enough to be looked at " * 50, "byte 0: it is no journal"),
        (b"short", "byte 0: it is no journal"),
        (b"Hanse journal 1\n", "byte 16: what stands there is not"),
        (b"SQLite format 3\0" + bytes(100), "from before the first release"),
    ):
        path = tmp_path / "text"
        path.write_bytes(text)
        path.chmod(0o644)
        with pytest.raises(JournalError, match=words):
            Things(path)
        assert path.read_bytes() == text
    with pytest.raises(JournalError, match="folder must exist"):
        Things(tmp_path / "missing" / "j")
    assert not (tmp_path / "missing").exists()


def test_the_journal_of_another_program_is_refused(tmp_path: Path) -> None:
    """It is whole, and somebody else's."""
    kind: JournalKind[Any] = JournalKind(program="baker", codec=KIND.codec, **WORDS)
    Things(tmp_path / "j", kind).close()
    with pytest.raises(JournalError, match="the journal of a baker, not of a tester"):
        Things(tmp_path / "j")


def test_what_a_later_version_has_written_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another form of file, a kind of record or a field that is not known: nothing of it is changed."""
    path = tmp_path / "j"
    later = JournalKind(
        program="tester", codec=RecordCodec[Any | Later]((Thing, Other, Later)), **WORDS
    )
    monkeypatch.setattr(module, "__version__", "7.5.1")
    with JournalFile(path, later, {}) as journal:
        journal.append([Thing("a"), Later(3)])
    monkeypatch.undo()
    held = path.read_bytes()
    with Things(path) as things:
        said = r"byte \d+: records 1 to 2: .*Later.* use Hanse 7\.5\.1 or a later one"
        with pytest.raises(JournalLaterError, match=said) as error:
            things.names()
        assert "damaged" not in str(error.value)
    path.write_bytes(held.replace(b"journal 1\n", b"journal 9\n"))
    with pytest.raises(JournalLaterError, match=rf"version 9; this program, Hanse {__version__}"):
        Things(path)


class Grown(
    msgspec.Struct,
    frozen=True,
    tag="Thing",
    array_like=True,
    forbid_unknown_fields=True,
):
    """A thing as a later program knows it."""

    name: str
    weight: float = 0.0
    parts: tuple[str, ...] = ()
    heavy: bool = False


GROWN = RecordCodec[Grown]([Grown])


@given(
    st.builds(
        Grown,
        st.text(max_size=3),
        st.sampled_from([0.0, -0.0, 1.5]),
        st.sampled_from([(), ("a",)]),
        st.booleans(),
    )
)
def test_fields_at_the_end_that_say_nothing_are_left_out(thing: Grown) -> None:
    """The record is the same to the last bit when it is read, and an older program reads it if it says nothing new."""
    body = GROWN.encode([thing])
    (again,) = GROWN.decode(body)
    assert repr(again) == repr(thing)  # minus zero is another zero
    if repr(thing) == repr(Grown(thing.name)):
        assert KIND.codec.decode(body) == [Thing(thing.name)]
    else:
        with pytest.raises(msgspec.DecodeError, match="of at most length 1"):
            KIND.codec.decode(body)


# --- disks ---------------------------------------------------------------------------------------


class Disk:
    """Lets the system's calls fail, from a number of bytes or calls on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._pwrite, self._sync = os.pwrite, os.fdatasync

    def full_after(self, size: int, code: int = errno.ENOSPC) -> None:
        """Has room for so many bytes more."""
        left = size

        def pwrite(number: int, data: bytes, at: int) -> int:
            nonlocal left
            if left == 0:
                raise OSError(code, os.strerror(code))
            written = self._pwrite(number, data[:left], at)
            left -= written
            return written

        self._patch.setattr(os, "pwrite", pwrite)

    def fails_to_sync(self, code: int) -> None:
        """Fails when it is to make something durable."""

        def sync(_number: int) -> None:
            raise OSError(code, os.strerror(code))

        self._patch.setattr(os, "fdatasync", sync)

    def works(self) -> None:
        """Works again."""
        self._patch.setattr(os, "pwrite", self._pwrite)
        self._patch.setattr(os, "fdatasync", self._sync)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("size", [0, 1, 30, 500, None])
def test_a_full_disk_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int | None, code: int
) -> None:
    """Wherever it is full, in the middle of a group or when that is synced; with room it goes on."""
    disk = Disk(monkeypatch)
    with Things(tmp_path / "j") as things:
        things.put("a")
        before = (tmp_path / "j").read_bytes()
        if size is None:
            disk.fails_to_sync(code)
        else:
            disk.full_after(size, code)
        for _ in range(2):
            with pytest.raises(JournalFullError, match="the disk is full; make room"):
                things.put("b" * 600)
            with pytest.raises(JournalFullError):
                things.set_note("replay", "x" * 600)
            with pytest.raises(JournalFullError):
                things.replace([Thing("c" * 600)])
        assert (tmp_path / "j").read_bytes() == before
        assert {each.name for each in tmp_path.iterdir()} == {"j", "j.lock"}
        assert (things.count, things.note("replay")) == (1, None)
        disk.works()
        things.put("d")
    assert found(tmp_path / "j") == ["a", "d"]


@pytest.mark.parametrize("cuts", [False, True])
def test_nothing_is_written_behind_what_is_left_of_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: bool
) -> None:
    """Where even cutting it off fails for lack of room, that comes before the next append, and counts as full."""
    disk, truncate = Disk(monkeypatch), os.ftruncate
    with Things(tmp_path / "j") as things:
        things.put("a")
        disk.fails_to_sync(errno.ENOSPC)
        if not cuts:

            def fails(number: int, length: int) -> None:
                raise OSError(errno.EDQUOT, f"{number} {length}")

            monkeypatch.setattr(os, "ftruncate", fails)
        for _ in range(2):
            with pytest.raises(JournalFullError):
                things.put("b" * 5000)
        disk.works()
        if not cuts:
            with pytest.raises(JournalFullError):
                things.put("c")
        monkeypatch.setattr(os, "ftruncate", truncate)
        things.put("d")
    assert found(tmp_path / "j") == ["a", "d"]


def test_a_file_whose_name_may_be_lost_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file has the old one's name, and nobody knows for how long: this is no full disk."""
    written(tmp_path / "j", "ab")
    with Things(tmp_path / "j") as things:

        def fails(number: int) -> None:
            raise OSError(errno.ENOSPC, str(number))

        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(JournalError) as caught:
            things.replace([Thing("c")])
        assert type(caught.value) is JournalError
        monkeypatch.undo()
    assert found(tmp_path / "j") == ["c"]


def test_a_compaction_that_cannot_begin_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For whatever reason; what is appended is appended all the same."""
    written(tmp_path / "j", "ab")
    with Things(tmp_path / "j") as things:
        opens = os.open

        def fails(path: str | Path, flags: int, mode: int = 0o777) -> int:
            if str(path).endswith(".new"):
                raise OSError(errno.EMFILE, "Too many open files")
            return opens(path, flags, mode)

        monkeypatch.setattr(os, "open", fails)
        with pytest.raises(JournalUnchangedError, match="Too many open files") as caught:
            things.replace([Thing("c")])
        assert not isinstance(caught.value, JournalFullError)
        monkeypatch.undo()
        things.put("d")
    assert found(tmp_path / "j") == ["a", "b", "d"]


def test_a_file_that_was_deleted_takes_no_records(tmp_path: Path) -> None:
    """Nobody would find them."""
    with Things(tmp_path / "j") as things:
        things.put("a")
        (tmp_path / "j").unlink()
        with pytest.raises(JournalError, match="deleted while it was used"):
            things.put("b")


def test_a_disk_that_fails_otherwise_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was appended is not known; what was there before is there at the next start."""
    disk = Disk(monkeypatch)
    with Things(tmp_path / "j") as things:
        things.put("a")
        disk.fails_to_sync(errno.EIO)
        with pytest.raises(
            JournalError, match=r"Input/output error; check that .* the tester again"
        ) as caught:
            things.put("b")
        assert type(caught.value) is JournalError
    disk.works()
    assert found(tmp_path / "j")[0] == "a"


def test_a_full_disk_keeps_no_journal_from_being_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written before there is a record; then it says who has written it."""
    monkeypatch.setattr(module, "__version__", "0.0.1")
    written(tmp_path / "j", "ab")
    monkeypatch.undo()
    Disk(monkeypatch).full_after(0)
    assert found(tmp_path / "j") == ["a", "b"]
    monkeypatch.undo()
    before = (tmp_path / "j").read_bytes()
    with Things(tmp_path / "j") as things:
        assert things.note("written_by") == "0.0.1"
        assert (tmp_path / "j").read_bytes() == before
        things.put("c")
        things.put("d")
        assert things.note("written_by") == __version__
    with reading(tmp_path / "j", KIND) as scan:
        assert [batch.count for batch in scan.batches()] == [2, 0, 1, 1]
        assert scan.notes["written_by"] == __version__


# --- others --------------------------------------------------------------------------------------


def test_a_journal_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """What is there whole; compaction leaves a reader what there was."""
    path = tmp_path / "j"
    with Things(path) as things:
        things.put("a")
        with reading(path, KIND) as scan:
            records = scan.records()
            assert next(records) == Thing("a")
            things.put("b")
            assert next(records) == Thing("b")
            things.replace([Thing("c")])
            assert list(records) == []
        begin = things.size_bytes
        things.put("d")
        os.truncate(path, things.size_bytes - 1)  # it is being written
        assert things.size_bytes > begin + 1
        with reading(path, KIND) as scan:
            assert list(scan.records()) == [Thing("c")]
    with (
        pytest.raises(JournalError, match="cannot be read: No such file"),
        reading(tmp_path / "no", KIND),
    ):
        pass


def test_the_lock_goes_with_its_process_however_that_ends(tmp_path: Path) -> None:
    """While another process has it nobody else gets it; killed, it has let go."""
    path = tmp_path / "j"
    Things(path).close()
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('has it', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: S603  # this program
        [sys.executable, "-c", code, f"{path}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"has it\n"
        with pytest.raises(JournalTakenError, match=r"another process has .*one tester at a time"):
            Things(path)
        holder.kill()
        holder.wait(300)
        Things(path).close()


def test_a_lock_that_was_deleted_still_keeps_others_away(tmp_path: Path) -> None:
    """The file itself is locked as well, also one that has taken another's place."""
    with Things(tmp_path / "j") as things:
        things.put("a")
        for _ in range(2):
            (tmp_path / "j.lock").unlink()
            with pytest.raises(JournalTakenError):
                Things(tmp_path / "j")
            things.replace([Thing("b")])


def test_a_path_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    """Links in a circle, and a name that is too long, are errors of a journal."""
    (tmp_path / "j").symlink_to("k")
    (tmp_path / "k").symlink_to("j")
    for path in (tmp_path / "j", tmp_path / ("x" * 300)):
        with pytest.raises(JournalError, match="cannot be opened"):
            Things(path)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A device would have lost its mode; and nothing is made beside it."""
    path = tmp_path / "j"
    if kind == "folder":
        path.mkdir(0o755)
    else:
        os.mkfifo(path, 0o666)
    before = path.stat().st_mode
    with pytest.raises(JournalError, match="this is no file; name one"):
        Things(path)
    assert path.stat().st_mode == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_root_is_no_file_either() -> None:
    """It has no name to which that of a lock could be added."""
    with pytest.raises(JournalError, match="/: this is no file; name one"):
        Things(Path("/"))


def test_a_journal_is_its_users_alone(tmp_path: Path) -> None:
    """Whatever the umask is, nobody else reads scripts and keys, in no file of it."""
    mask = os.umask(0)
    try:
        with Things(tmp_path / "j") as things:
            assert things.narrowed is None
            things.put("a")
            things.replace(things.records())
            assert {path.name for path in tmp_path.iterdir()} == {"j", "j.lock"}
            for path in tmp_path.iterdir():
                assert path.stat().st_mode & 0o777 == 0o600, path
    finally:
        os.umask(mask)


def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """What it was is known, so that it can be told."""
    with Things(tmp_path / "j"):
        pass
    (tmp_path / "j").chmod(0o644)
    with Things(tmp_path / "j") as things:
        assert things.narrowed == 0o644
        assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_another_name_does_not_get_past_the_lock(tmp_path: Path) -> None:
    """A symbolic link, to the file or on the way to it, is the same journal; a hard link none."""
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    (tmp_path / "link").symlink_to("real/j")
    with Things(tmp_path / "real" / "j") as things:
        for path in (tmp_path / "link", tmp_path / "way" / "j"):
            with pytest.raises(JournalTakenError):
                Things(path)
        assert things.path == tmp_path.resolve() / "real" / "j"
    with Things(tmp_path / "link"), pytest.raises(JournalTakenError):
        Things(tmp_path / "real" / "j")
    (tmp_path / "hard").hardlink_to(tmp_path / "real" / "j")
    with pytest.raises(JournalError, match="has 2 names"):
        Things(tmp_path / "hard")
