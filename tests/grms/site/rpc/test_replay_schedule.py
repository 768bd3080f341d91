"""What became of a workload, from the records alone."""

from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    GuestConfirmed,
    GuestReserved,
    JobDelegated,
    JobEnded,
    JobKept,
    JobLeaving,
    JobLeft,
    JobOffered,
    JobReoffered,
    JobReofferEnded,
    JobStarted,
    Record,
)
from grms.site.rpc.replay_schedule import OF_SCHEDULES, read_schedule
from grms.v1 import replay_pb2

ASK = Request(2, 100.0)


def test_own_jobs_run_where_they_went_last() -> None:
    """Here, at the partner that took it on its arrival, or at the one that it left the queue for."""
    records: list[Record] = [
        JobKept(0.0, 1),
        JobStarted(0.0, 1, 0.0),
        JobOffered(1.0, 2, "b", 1),
        JobDelegated(1.0, 2),
        JobKept(2.0, 3),
        JobReoffered(900.0, 3, "b", 2),
        JobReofferEnded(900.0, 3, "b", 2, settled=True),
        JobReoffered(900.0, 3, "c", 1),
        JobLeaving(900.0, 3),
        JobLeft(900.0, 3),
        JobDelegated(900.0, 3),
        JobEnded(950.0, 1, Outcome.COMPLETED, 950.0, 950.0, ""),
        JobEnded(1000.0, 3, Outcome.COMPLETED, 1000.0, 100.0, ""),
        JobOffered(1000.0, 4, "b", 3),
        JobEnded(1001.0, 4, Outcome.COMPLETED, 1001.0, 1.0, ""),  # before the answer
    ]
    own, guests = read_schedule("a", records)
    assert guests == []
    needed = [record for record in records if isinstance(record, OF_SCHEDULES)]
    assert read_schedule("a", needed) == (own, [])
    assert sorted(own, key=lambda row: row.row) == [
        replay_pb2.OwnRow(row=0, executed_on="a", start_time_s=0.0, end_time_s=950.0),
        replay_pb2.OwnRow(row=1, executed_on="b", offer_number=1),
        replay_pb2.OwnRow(row=2, executed_on="c", offer_number=1, end_time_s=1000.0),
        replay_pb2.OwnRow(row=3, executed_on="b", offer_number=3, end_time_s=1001.0),
    ]


def test_a_place_is_no_guest() -> None:
    """Before its job has left its home's queue, or where that never happens."""
    taken, given_back, held = (OfferId(7, number) for number in (1, 2, 3))
    records: list[Record] = [
        record
        for offer in (taken, given_back, held)
        for record in (
            GuestAccepted(0.0, GuestRef("b", offer), 1, ASK, b""),
            GuestReserved(0.0, GuestRef("b", offer)),
        )
    ]
    records += [
        GuestConfirmed(1.0, GuestRef("b", taken)),
        JobStarted(1.0, GuestRef("b", taken), 1.0),
        JobEnded(2.0, GuestRef("b", given_back), Outcome.LOST, 2.0, 0.0, ""),
        JobEnded(9.0, GuestRef("b", taken), Outcome.COMPLETED, 9.0, 8.0, ""),
    ]
    ran = replay_pb2.GuestRow(home="b", offer_number=1, start_time_s=1.0, end_time_s=9.0)
    assert read_schedule("a", records) == ([], [ran])
