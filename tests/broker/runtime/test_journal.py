"""The journal on the disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.estimates import PROGRAMS_MAX, RUNS_KEPT
from broker.runtime import journal as module
from broker.runtime.journal import Journal, JournalError, JournalFullError, needed
from broker.scheduler.events import Submit
from broker.scheduler.records import (
    Counted,
    PlanAdopted,
    Record,
    RunMeasured,
    WorkflowForgotten,
)
from broker.scheduler.state_tables import StateTables
from grms.site.runtime.journal import Journal as SiteJournal
from tests.broker.runtime.test_codec import lived
from tests.broker.scheduler.test_state import chain, world
from tests.examples import FEW


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    """A memory made of the file is the memory that wrote it; a plan makes the last one go."""
    made = lived(3)
    with Journal(tmp_path / "b") as journal:
        for record in made.journal:
            journal.append([record])
        epoch = journal.epoch
    with Journal(tmp_path / "b") as journal:
        records = list(journal.records())
        assert journal.epoch == epoch
    plans = [each for each in made.journal if isinstance(each, PlanAdopted)]
    assert [each for each in records if isinstance(each, PlanAdopted)] == plans[-1:]
    again, known = StateTables(records), made.state.memory
    assert [w.state for w in again.workflows.values()] == [
        w.state for w in known.workflows.values()
    ]
    for before, after in zip(known.tasks(), again.tasks(), strict=True):
        assert (before.state, before.booking) == (after.state, after.booking)
        assert before.placement == after.placement
    assert again.releasing == known.releasing
    assert again.bookings_count == known.bookings_count


def test_what_is_forgotten_goes_and_its_names_are_not_given_again(tmp_path: Path) -> None:
    """Records of a forgotten workflow leave the file; counts stay."""
    made = world()
    made.tell(Submit(1, "a", chain("old", 1)))
    made.run()
    made.tell(Submit(1, "b", chain("new", 1)))
    memory = made.state.memory
    counted = Counted(made.now, memory.workflows_count, memory.bookings_count)
    with Journal(tmp_path / "b") as journal:
        journal.append([*made.journal, counted, WorkflowForgotten(made.now, "w1")])
        again = StateTables(journal.records())
    assert list(again.workflows) == ["w2"]
    assert (again.workflows_count, again.bookings_count) == (2, memory.bookings_count)


def test_one_process_has_it(tmp_path: Path) -> None:
    """A second opening is refused while the first lasts."""
    with Journal(tmp_path / "b"), pytest.raises(JournalError, match="only one broker"):
        Journal(tmp_path / "b")
    Journal(tmp_path / "b").close()


def test_a_changed_record_is_noticed(tmp_path: Path) -> None:
    """The error names the byte and says what not to do."""
    path = tmp_path / "b"
    with Journal(path) as journal:
        journal.append(world().journal)
    data = path.read_bytes()
    path.write_bytes(data[:-9] + b"x" + data[-8:])
    with pytest.raises(JournalError, match=r"damaged: byte \d+: .*never an older copy of it"):
        Journal(path)


def test_a_sites_journal_is_refused(tmp_path: Path) -> None:
    """It is whole, and somebody else's."""
    SiteJournal(tmp_path / "b", "north").close()
    with pytest.raises(JournalError, match="the journal of a daemon, not of a broker"):
        Journal(tmp_path / "b")


def test_a_file_that_has_grown_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is used: it grows with what is open and not with time; a full disk keeps nothing from being kept."""
    monkeypatch.setattr(module, "COMPACTED_FROM", 2000)
    plans = [
        PlanAdopted(float(number), number, 1.0, (), (("w", "t", "x" * 50),))
        for number in range(500)
    ]
    sizes = set()
    with Journal(tmp_path / "b") as journal:
        journal.append(world().journal)
        for plan in plans:
            journal.append([plan])
            sizes.add(journal.size_bytes)
        assert list(journal.records())[-1] == plans[-1]
        assert 2000 <= max(sizes) < 3000

        def replace(_records: object) -> None:
            raise JournalFullError("full")

        monkeypatch.setattr(journal, "replace", replace)
        for plan in plans:
            journal.append([plan])
        assert journal.size_bytes > 10 * max(sizes)
    with Journal(tmp_path / "b") as journal:
        assert list(journal.records()) == [*world().journal, plans[-1]]


def forgotten(memory: StateTables) -> list[Record]:
    """Returns records that forget each workflow that is over, and how many names there were."""
    held = {booking.placement.workflow for booking in memory.releasing.values()}
    over = [
        each.workflow_id
        for each in memory.workflows.values()
        if each.has_ended and each.workflow.name not in held
    ]
    counted = Counted(memory.latest, memory.workflows_count, memory.bookings_count)
    return [counted, *(WorkflowForgotten(memory.latest, each) for each in over), counted]


def test_only_the_last_count_is_needed() -> None:
    """It outlives what is forgotten."""
    assert needed([Counted(1.0, 1, 2), Counted(2.0, 3, 4)]) == [Counted(2.0, 3, 4)]


def test_runs_from_which_estimates_come_are_needed() -> None:
    """The last ones of the programs that ran last, also of workflows that are forgotten; the same is learned of them."""
    records: list[Record] = [
        RunMeasured(float(n), f"p{n % 3 if n > 9 else n + 9}", None, "r", 10.0, 10.0 + n)
        for n in range(3 * RUNS_KEPT + 30)
    ]
    kept = needed(records)
    assert len(kept) == 3 * RUNS_KEPT + 10
    assert StateTables(kept).estimates.programs() == StateTables(records).estimates.programs()
    many = [RunMeasured(1.0, f"q{n}", 1.0, "r", 1.0, 1.0) for n in range(PROGRAMS_MAX + 5)]
    assert needed([*many, many[0]]) == [*many[6:], many[0]]


@given(st.integers(0, 2**32))
@FEW
def test_what_is_needed_makes_the_same_broker(seed: int) -> None:
    """However often it is asked what that is, and whatever came between."""
    records = lived(seed).journal
    records += forgotten(StateTables(records))
    half = len(records) // 2
    assert needed([*needed(records[:half]), *records[half:]]) == needed(records)
    again, known = StateTables(needed(records)), StateTables(records)
    assert [(w.workflow_id, w.state) for w in again.workflows.values()] == [
        (w.workflow_id, w.state) for w in known.workflows.values()
    ]
    for one, other in zip(again.tasks(), known.tasks(), strict=True):
        assert (one.state, one.booking, one.placement) == (
            other.state,
            other.booking,
            other.placement,
        )
