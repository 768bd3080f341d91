"""Nothing happens before its records are durable, and then in order."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.engine import group_commit
from grms.site.engine.group_commit import GroupCommit, timed
from grms.site.engine.journal import JournalError, JournalFullError
from grms.site.facts.records import JobKept, Record
from tests.waiting import run, until


def record(number: int) -> Record:
    """Returns a record that can be told from others."""
    return JobKept(0.0, number)


class Disk:
    """A disk that can be full, slow or broken."""

    def __init__(self) -> None:
        self.written: list[Record] = []
        self.groups: list[int] = []
        self.problem: JournalError | None = None
        self.gate = threading.Event()
        self.gate.set()

    def write(self, records: Sequence[Record]) -> None:
        """Writes a group, all or none."""
        self.gate.wait(300)
        if self.problem is not None:
            raise self.problem
        self.written.extend(records)
        self.groups.append(len(records))


@given(
    story=st.lists(
        st.one_of(st.integers(1, 3), st.just("after"), st.just("nested"), st.just("flush")),
        max_size=30,
    )
)
def test_what_waits_is_done_in_order_and_never_early(story: list[int | str]) -> None:
    """Every action finds all records appended before it written, and those before it done."""

    async def scene() -> None:
        disk = Disk()
        commit = GroupCommit(disk.write, in_thread=False)
        appended = 0
        done: list[int] = []
        wanted = 0

        def action(number: int, seen: int) -> None:
            assert len(disk.written) >= seen
            done.append(number)

        for step in story:
            if isinstance(step, int):
                commit.append([record(appended + place) for place in range(step)])
                appended += step
            elif step == "flush":
                commit.flush()
            elif step == "nested":

                def nested(number: int = wanted, seen: int = appended) -> None:
                    action(number, seen)
                    commit.append([record(-1)])
                    commit.flush()

                commit.after(nested)
                wanted += 1
                appended += 0
            else:
                commit.after(lambda number=wanted, seen=appended: action(number, seen))  # type: ignore[misc]  # defaults bind the loop's values
                wanted += 1
        commit.flush()
        assert done == list(range(wanted))
        assert not commit.pending
        assert [entry for entry in disk.written if entry != record(-1)] == [
            record(number) for number in range(appended)
        ]

    run(scene)


def test_records_gather_while_a_group_is_written() -> None:
    """What comes while the disk is busy becomes one group, and the loop goes on meanwhile."""

    async def scene() -> None:
        disk = Disk()
        disk.gate.clear()
        commit = GroupCommit(disk.write, in_thread=True)
        task = asyncio.create_task(commit.run(), name="journal")
        done: list[int] = []
        commit.append([record(0)])
        commit.after(lambda: done.append(0))
        await until(lambda: commit._writing)
        for number in range(1, 100):
            commit.append([record(number)])
            commit.after(lambda number=number: done.append(number))  # type: ignore[misc]  # binds the loop's value
        assert done == []
        disk.gate.set()
        await commit.settled()
        assert disk.groups == [1, 99]
        assert done == list(range(100))
        task.cancel()
        await asyncio.wait([task])
        commit.close()

    run(scene)


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_full_disk_holds_everything_back(
    monkeypatch: pytest.MonkeyPatch, *, in_thread: bool
) -> None:
    """While nothing can be written nothing is done; with room again all is, once and in order."""
    monkeypatch.setattr(group_commit, "RETRY_S", 0.01)

    async def scene() -> None:
        disk = Disk()
        disk.problem = JournalFullError("the disk is full")
        said: list[str] = []
        commit = GroupCommit(disk.write, in_thread=in_thread, on_problem=said.append)
        task = asyncio.create_task(commit.run(), name="journal")
        done: list[int] = []
        for number in range(3):
            commit.append([record(number)])
            commit.after(lambda number=number: done.append(number))  # type: ignore[misc]  # binds the loop's value
            commit.flush()
            await asyncio.sleep(0.02)
        assert said == ["the disk is full"]
        assert not done
        assert not disk.written
        disk.problem = None
        await commit.settled()
        assert said == ["the disk is full", ""]
        assert done == [0, 1, 2]
        assert disk.written == [record(0), record(1), record(2)]
        task.cancel()
        await asyncio.wait([task])
        commit.close()

    run(scene)


def test_a_broken_disk_is_not_survived() -> None:
    """Any other failure ends the task, and with it the daemon."""

    async def scene() -> None:
        disk = Disk()
        disk.problem = JournalError("the disk is on fire")
        commit = GroupCommit(disk.write, in_thread=True)
        task = asyncio.create_task(commit.run(), name="journal")
        commit.append([record(0)])
        with pytest.raises(JournalError, match="on fire"):
            await task
        direct = GroupCommit(disk.write, in_thread=False)
        direct.append([record(0)])
        with pytest.raises(JournalError, match="on fire"):
            direct.flush()
        disk.problem = None
        commit._records.clear()
        commit.close()

    run(scene)


def test_a_group_that_was_begun_is_written_once() -> None:
    """Ending in the middle of a write neither loses its records nor writes them twice."""

    async def scene() -> None:
        disk = Disk()
        disk.gate.clear()
        commit = GroupCommit(disk.write, in_thread=True)
        task = asyncio.create_task(commit.run(), name="journal")
        commit.append([record(0)])
        await until(lambda: commit._writing)
        commit.append([record(1)])
        task.cancel()
        await asyncio.sleep(0.02)
        disk.gate.set()
        await asyncio.wait([task])
        commit.close()
        assert disk.written == [record(0), record(1)]

    run(scene)


def test_only_a_commit_that_succeeds_is_timed() -> None:
    """Each success tells how long it took; a failure is the caller's and tells nothing."""
    took: list[float] = []
    disk = Disk()
    write = timed(disk.write, took.append)
    write([record(1)])
    disk.problem = JournalFullError("full")
    with pytest.raises(JournalFullError):
        write([record(2)])
    assert len(took) == 1
    assert took[0] >= 0
