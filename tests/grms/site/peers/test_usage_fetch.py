"""What partners have recorded of own users' jobs: fetched once each, whatever dies, and whoever lies."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grms.daemon.ports import free_port
from grms.site.accounting.usage import compared, told_in, usage_in
from grms.site.model.usage import UsageRecord, Weights
from grms.site.peers.usage_fetch import Told
from grms.site.runtime.usage_log import read_usage, told_folder, usage_folder
from grms.site.wire.convert import write_offer
from grms.v1 import operator_pb2, partner_pb2
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.grms.site.peers.partner import Partner, full, full_site, listening
from tests.grms.site.runtime.test_usage_log import NEW_YEAR, record
from tests.waiting import until


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grms.site.runtime.usage_log.GATHERED_S", 0.01)
    monkeypatch.setattr("grms.site.peers.usage_fetch.FIRST_S", 0.05)
    monkeypatch.setattr("grms.site.peers.usage_fetch.INTERVAL_S", 0.05)


def told(folder: Path, partner: str = "away") -> list[UsageRecord]:
    """Returns what is kept at home of what a partner has told."""
    home = usage_folder(folder / "home.journal", "home")
    return list(read_usage(told_folder(home, partner), partner))


async def test_what_own_users_use_at_a_partner_comes_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every job once, in parts, through restarts of both; and it is what home has recorded itself."""
    monkeypatch.setattr("grms.site.rpc.partner_service.USAGE_MAX", 2)
    for life in range(3):
        async with two_sites(tmp_path) as (home, _):
            await full(home)
            for number in range(3):
                await home.submit(f"{life}/{number}", run_time_s=0.1 + number)
            await until(lambda: len(told(tmp_path)) == 3 * (life + 1))  # noqa: B023  # at once
    kept = told(tmp_path)
    assert len({one.key for one in kept}) == len(kept) == 9
    assert [one.told_number for one in kept] == list(range(1, 10))
    where = usage_folder(tmp_path / "home.journal", "home"), "home", Weights()
    own = [one for one in usage_in(*where) if one.site == "away"]
    theirs = list(told_in(*where))
    assert {one.global_job_id for one in own} == {one.global_job_id for one in theirs}
    assert {(one.job_id, one.user) for one in own} == {(one.job_id, one.user) for one in theirs}
    (sums,) = compared(own, theirs, "home")
    assert sums.own.processor_s == pytest.approx(sums.told.processor_s)


async def test_a_log_that_was_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    """What is known is passed over, though it has other numbers there; what is new comes."""
    async with two_sites(tmp_path) as (home, _):
        await full(home)
        await home.submit("a", run_time_s=0.1)
        await home.submit("b", run_time_s=0.1)
        await until(lambda: len(told(tmp_path)) == 2)
    shutil.rmtree(tmp_path / "away.usage")
    async with two_sites(tmp_path) as (home, _):
        await full(home)
        await home.submit("c", run_time_s=0.1)
        await until(lambda: len(told(tmp_path)) == 3)
    assert len({one.key for one in told(tmp_path)}) == 3
    assert len({one.told_log for one in told(tmp_path)}) == 2


async def test_a_job_that_was_given_up_on_is_accounted_for(tmp_path: Path) -> None:
    """Home has taken it back and run it anew; what the partner has spent on it is known all the same."""
    async with two_sites(tmp_path) as (home, away):
        await full(home)
        job = await home.submit("goes", run_time_s=500.0, requested_time_s=500.0)
        guests = away.core.engine.state.partners["home"].guests
        await until(lambda: any(not math.isnan(one.start_time) for one in guests.values()))
        await home.operator.TakeBack(operator_pb2.InterveneRequest(job_id=job.job_id))
        await until(lambda: len(told(tmp_path)) == 1)
    (one,) = told(tmp_path)
    assert one.run_time > 0
    assert str(one.outcome) == "cancelled"


def usage(site: Running, number: int, **more: Any) -> partner_pb2.GuestUsage:
    """Returns what a partner could say of an offer of a site."""
    job = next(iter(site.core.engine.state.partners["away"].open.values()))
    message = partner_pb2.GuestUsage(
        number=number,
        offer=write_offer(job.offer),
        processors=1,
        requested_time_s=10.0,
        accept_time_s=5.0,
        start_time_s=6.0,
        end_time_s=8.0,
        run_time_s=2.0,
    )
    for field, value in more.items():
        setattr(message, field, value)
    return message


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"end_time_s": math.nan},
        {"start_time_s": -math.inf},
        {"run_time_s": -1.0},
        {"run_time_s": math.inf},
        {"requested_time_s": 0.0},
        {"processors": 0},
        {"memory_mib": 2**60},
    ],
    ids=str,
)
async def test_what_cannot_be_is_not_kept(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A partner that says it is faulty; nothing of its answer is taken."""
    partner = Partner()
    async with full_site(partner, tmp_path) as site:
        await site.submit("goes", requested_time_s=500.0)
        book = site.core.engine.state.partners["away"]
        await until(lambda: len(book.open) == 1)
        number = wrong.pop("number", 1)
        partner.usage = partner_pb2.ListUsageResponse(
            log="l", records=[usage(site, number, **wrong)]
        )
        await until(lambda: bool(book.faulty))
        assert "what jobs have used" in book.faulty
    assert told(tmp_path) == []


async def test_offers_that_were_never_made_have_used_nothing(tmp_path: Path) -> None:
    """Of the present journal, or of one to come; of a journal that was lost there may have been some."""
    for epoch, number, kept in ((0, 2, 0), (1, 1, 0), (-1, 7, 1)):
        partner, port = Partner(), free_port()
        configuration = document(tmp_path, partners={"away": port})
        async with listening(partner, port), running(configuration, tmp_path) as site:
            await site.linked()
            await full(site)
            await site.submit(f"goes{epoch}", requested_time_s=500.0)
            book = site.core.engine.state.partners["away"]
            await until(lambda: len(book.open) >= 1)  # noqa: B023  # at once
            message = usage(site, 1)
            message.offer.epoch += epoch
            message.offer.number = number if epoch else book.next_number + 5
            partner.usage = partner_pb2.ListUsageResponse(log="l", records=[message])
            await until(lambda: bool(book.faulty) or len(told(tmp_path)) == 1)  # noqa: B023  # at once
            assert len(told(tmp_path)) == kept
        (tmp_path / "home.journal").unlink()


def parts(records: list[UsageRecord], sizes: list[int]) -> Iterator[list[UsageRecord]]:
    """Yields records in parts of these sizes, the rest at last."""
    begin = 0
    for size in sizes:
        yield records[begin : begin + size]
        begin += size
    yield records[begin:]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.booleans()), max_size=8),
    st.integers(1, 20),
)
def test_whatever_dies_when_each_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, bool, bool]], count: int
) -> None:
    """Home is killed between an answer and the disk, or after it; the partner's log is begun anew."""
    folder = tmp_path_factory.mktemp("usage")
    names = ["first"]
    whole = [record(number, home="home") for number in range(1, count + 1)]

    def answer(name: str, after: int) -> list[UsageRecord]:
        after = after if name == names[-1] else 0
        return [
            replace(one, told_log=names[-1], told_number=number)
            for number, one in enumerate(whole, 1)
            if number > after
        ]

    for size, lost, anew in [*lives, (count, False, False)]:
        if anew:
            names.append(f"log {len(names)}")
        home = Told(folder, "away")
        home.load(NEW_YEAR, 1000, 1)
        got = answer(home.name, home.number)[: size or None]
        if not lost:
            home.add(got, NEW_YEAR, 1)
    home = Told(folder, "away")
    home.load(NEW_YEAR, 1000, 1)
    while got := answer(home.name, home.number)[:3]:
        home.add(got, NEW_YEAR, 1)
    kept = list(read_usage(told_folder(folder, "away"), "away"))
    assert sorted(one.key for one in kept) == sorted(one.key for one in whole)


def test_of_lost_journals_no_more_is_kept_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partner may name epochs without end; of the present one there are no more than offers."""
    monkeypatch.setattr("grms.site.peers.usage_fetch.FOREIGN_MAX", 3)
    home = Told(tmp_path, "away")
    foreign = [replace(record(n), key=f"home/{n + 2:x}/1", told_number=n) for n in range(1, 9)]
    assert home.add(foreign[:2], NEW_YEAR, 1) == 2
    assert home.add(foreign[2:], NEW_YEAR, 1) == 1
    again = Told(tmp_path, "away")
    again.load(NEW_YEAR, 24, 1)
    assert again.add(foreign[5:], NEW_YEAR, 1) == 0
    assert again.add([record(1), record(2)], NEW_YEAR, 1) == 2
