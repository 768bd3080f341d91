"""What a site makes of what pilots tell, without a batch system: one state, and events by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from grms.site.model import commands, events, records
from grms.site.model.commands import Append, Command, Refusal, Refuse
from grms.site.model.compaction import compacted
from grms.site.model.events import RunNews, RunState
from grms.site.model.invariants import check
from grms.site.model.jobs import Exit, Request
from grms.site.model.lifecycle import Outcome, ReservationState
from grms.site.model.reservations import Reservation, Resource
from grms.site.model.settings import SiteSettings
from grms.site.scheduler.reservations import GROUPED_MAX
from grms.site.scheduler.state import SiteState
from lrms_sim.workload.requests import Gpus
from lrms_sim.workload.requests import Request as Needs

POOL = Resource("pool", processors=2, piloted=True)
PLAIN = Resource("plain", processors=2)
SETTINGS = SiteSettings("home", 4, 1, resources=(POOL, PLAIN), runs_nothing=False)
OWNER = "broker:b"


class World:
    """A state, a clock and a journal."""

    def __init__(self, settings: SiteSettings = SETTINGS) -> None:
        self.settings = settings
        self.state = SiteState(settings)
        self.now = 100.0
        self.journal: list[records.Record] = []
        self.number = 0

    def tell(self, kind: type[events.Event], *words: Any, **more: Any) -> list[Command]:
        """Hands an event over; returns the commands without the records, which are kept."""
        self.number += 1
        done = self.state.handle(kind(self.number, *words, **more), self.now)
        assert all(command.cause == self.number for command in done)
        if done and isinstance(done[0], Append):
            self.journal += done[0].records
            done = done[1:]
        check(self.state.memory)
        return done

    def restart(self) -> list[Command]:
        """Makes the state anew from the journal."""
        self.state = SiteState(self.settings, self.journal)
        check(self.state.memory)
        return self.tell(events.Restarted, None)

    def pilot(self, *, until: float = 1000.0) -> None:
        """Opens a pilot."""
        number = self.state.memory.pilots.next_number
        self.tell(events.PilotWanted, "pool")
        self.tell(events.PilotConnected, number, until, "n1", "", ())

    def book(self, key: str, begin: float, end: float, resource: str = "pool") -> list[Command]:
        """Asks for a reservation of one processor."""
        return self.tell(events.BookReservation, OWNER, key, resource, begin, end, 1)

    def launch(self, number: int, request: Request | None = None, **more: Any) -> list[Command]:
        """Launches a program."""
        known: dict[str, Any] = {"program": True, "payload": b"what runs", "to_the_end": True}
        asked = request or Request(1, 50.0)
        key = f"launch {number}"
        return self.tell(
            events.LaunchReservation, OWNER, number, key, asked, 20.0, **(known | more)
        )

    def run(self, key: str, begin: float = 100.0, end: float = 200.0) -> int:
        """Reserves and launches; returns the number."""
        (*_, answer) = self.book(key, begin, end)
        assert isinstance(answer, commands.ReplyReservation)
        self.launch(answer.reservation.number)
        return answer.reservation.number

    def one(self, number: int) -> Reservation:
        """Returns a reservation."""
        return self.state.memory.reservations.reservations[number]

    def free(self) -> list[tuple[float, float, int]]:
        """Returns the free time from now on."""
        return self.state.memory.reservations.free(POOL, self.now, self.now + 10_000.0)


def refusal(done: Sequence[Command]) -> str:
    """Returns why something was refused."""
    (only,) = done
    assert isinstance(only, Refuse)
    return only.reason


def ended(number: int, outcome: Outcome | None = Outcome.COMPLETED, **more: Any) -> RunNews:
    """Returns that a program has ended."""
    known: dict[str, Any] = {"start_time": 101.0, "end_time": 102.0}
    return RunNews(number, RunState.ENDED, outcome=outcome, **(known | more))


def test_a_resource_is_closed_until_its_pilot_is_there_and_after_it_drains() -> None:
    """Its free time is that of the open pilot, and only one is asked for at a time."""
    world = World()
    assert world.free() == []
    assert (
        refusal(world.book("a", 100.0, 200.0))
        == "1 processors of pool are not free from 100.0 to 200.0"
    )
    (start,) = world.tell(events.PilotWanted, "pool")
    assert start == commands.PilotStart(2, 1, "pool")
    assert world.tell(events.PilotWanted, "pool") == []
    assert world.tell(events.PilotWanted, "plain") == []
    assert world.tell(events.PilotWanted, "gone") == []
    assert world.free() == []
    world.now = 110.0
    world.tell(events.PilotConnected, 1, 1000.0, "n1", "", ())
    assert world.free() == [(110.0, 1000.0, 2)]
    assert (
        refusal(world.book("b", 900.0, 1100.0))
        == "1 processors of pool are not free from 900.0 to 1100.0"
    )
    world.book("c", 200.0, 300.0)
    done = world.tell(events.PilotDrains, 1, "time")
    assert world.one(1).state is ReservationState.RELEASED
    assert world.one(1).reason == "time"
    assert [type(one) for one in done] == [commands.PublishReservation]
    assert world.free() == []
    (again,) = world.tell(events.PilotWanted, "pool")
    assert again == commands.PilotStart(world.number, 2, "pool")


@pytest.mark.parametrize("told", [True, False])
def test_a_pilot_that_drains_without_a_reason_has_one(told: bool) -> None:
    """What was reserved there is given back with it; that it drains is recorded once, also where it says so again."""
    world = World()
    world.pilot()
    world.book("a", 200.0, 300.0)
    if told:
        world.tell(events.PilotDrains, 1, "")
        reason = "it drains"
    else:
        world.tell(events.PilotConnected, 1, 1000.0, "n1", "time", ())
        reason = "time"
    assert (world.one(1).state, world.one(1).reason) == (ReservationState.RELEASED, reason)
    world.tell(events.PilotDrains, 1, "again")
    drained = [one for one in world.journal if isinstance(one, records.PilotDrained)]
    assert drained == [records.PilotDrained(100.0, 1, reason)]


def test_a_program_is_given_to_the_pilot_and_ends_as_the_pilot_tells() -> None:
    """With its begin, its end, its exit code; what is told twice is told once more to the pilot alone."""
    world = World()
    world.pilot()
    world.book("a", 100.0, 200.0)
    assert commands.PilotRun(world.number + 1, 1, 1) in world.launch(1)
    found = world.one(1)
    assert (found.pilot, found.run_key, found.payload) == (1, "home/1/1", b"what runs")
    assert found.due_time == math.inf
    world.tell(events.PilotTold, 1, (RunNews(1, RunState.RUNNING, 101.5),))
    assert (world.one(1).state, world.one(1).start_time) == (ReservationState.RUNNING, 101.5)
    world.now = 110.0
    end = ended(1, Outcome.FAILED, exit=Exit(3), end_time=105.0, reason="so")
    *_, known = world.tell(events.PilotTold, 1, (end,))
    assert known == commands.PilotKnows(world.number, 1, (1,))
    found = world.one(1)
    assert (found.state, found.outcome, found.exit) == (
        ReservationState.ENDED,
        Outcome.FAILED,
        Exit(3),
    )
    assert (found.end_time, found.reason, found.payload) == (105.0, "so", b"")
    assert world.free() == [(110.0, 1000.0, 2)]
    assert world.tell(events.PilotTold, 1, (end,)) == [commands.PilotKnows(world.number, 1, (1,))]


@pytest.mark.parametrize(
    ("request_", "more", "reason"),
    [
        (
            None,
            {"program": False, "payload": b""},
            "this resource has pilots, which run programs; there is none",
        ),
        (Request(2, 50.0), {}, "the program needs 2 processors; reservation 1 has 1"),
        (
            None,
            {"payload": b"x" * 1_000_001},
            "what is to run has 1000001 bytes; at most 1000000 are possible",
        ),
        (
            Request.of(Needs(wall_time=5.0, gpus=Gpus(1))),
            {},
            "the program asks for GPUs; a pilot hands out processors of one node alone",
        ),
        (
            Request.of(Needs(wall_time=5.0, image="a.sif")),
            {},
            "the program asks for a container image; a pilot hands out processors of one node alone",
        ),
        (
            Request.of(Needs(wall_time=5.0, exclusive=True)),
            {},
            "the program asks for whole nodes; a pilot hands out processors of one node alone",
        ),
        (
            Request.of(Needs(wall_time=5.0, signal="USR1")),
            {},
            "the program asks for a signal before its end; a pilot hands out processors of one node alone",
        ),
        (
            Request.of(Needs(wall_time=5.0, licences=(("a", 1),))),
            {},
            "the program asks for licences; a pilot hands out processors of one node alone",
        ),
    ],
)
def test_what_a_pilot_cannot_run_is_refused(
    request_: Request | None, more: dict[str, Any], reason: str
) -> None:
    """The answer says what it is."""
    world = World()
    world.pilot()
    world.book("a", 100.0, 200.0)
    assert refusal(world.launch(1, request_, **more)) == reason
    assert world.one(1).state is ReservationState.BOOKED


def test_a_program_needs_a_pilot_that_is_there_until_its_reservation_ends() -> None:
    """And one on a resource without pilots is refused where the batch system is real."""
    world = World()
    world.pilot()
    world.book("a", 100.0, 200.0)
    world.book("b", 100.0, 200.0, "plain")
    assert (
        refusal(world.launch(2))
        == "this site cannot run a program in a reservation: its batch system is real, and none of its processors stand behind what can be reserved; hand the program in as a job (grms submit)"
    )
    memory = world.state.memory
    memory.pilots.pilots[1] = memory.pilots.present[1] = replace(
        memory.pilots.pilots[1], until=150.0
    )
    assert (
        refusal(world.launch(1))
        == "the pilot of pool is not there, or ends before the reservation does"
    )


def test_moves_and_releases_are_told_to_the_pilot() -> None:
    """A moved program keeps its limit; a released one is ended, and what it tells later changes nothing."""
    world = World()
    world.pilot()
    number = world.run("a", 150.0, 250.0)
    done = world.tell(events.MoveReservation, OWNER, number, old=(150.0, 250.0), new=(100.0, 300.0))
    assert done[1] == commands.PilotMove(world.number, 1, number)
    assert (world.one(number).job_begin, world.one(number).end) == (100.0, 300.0)
    assert world.one(number).run_time == 50.0
    done = world.tell(events.ReleaseReservation, OWNER, number)
    assert commands.PilotKill(world.number, 1, number) in done
    running = RunNews(number, RunState.RUNNING, 101.0)
    assert world.tell(events.PilotTold, 1, (running,)) == [
        commands.PilotKill(world.number, 1, number)
    ]
    assert world.one(number).state is ReservationState.RELEASED
    assert world.one(number).outcome is Outcome.CANCELLED


def test_a_pilot_that_connects_again_is_given_what_it_has_not_got() -> None:
    """What it has is not sent again, but its window is, and what it should not have is ended."""
    world = World()
    world.pilot()
    has, lost, over = world.run("a"), world.run("b"), world.run("c", 300.0, 400.0)
    world.tell(events.ReleaseReservation, OWNER, over)
    for told in (world.restart(), []):
        assert told in ([commands.PilotStart(world.number, 1, "pool")], [])
        runs = (RunNews(has, RunState.RUNNING, 101.0), RunNews(over, RunState.WAITING))
        done = world.tell(events.PilotConnected, 1, 1000.4, "n1", "", runs)
        wanted = [one for one in done if isinstance(one, commands.PilotCommand)]
        assert wanted == [
            commands.PilotKill(world.number, 1, over),
            commands.PilotMove(world.number, 1, has),
            commands.PilotRun(world.number, 1, lost),
        ]
    assert world.one(has).state is ReservationState.RUNNING
    assert world.state.memory.pilots.pilots[1].until == 1000.0


def test_a_pilot_that_comes_back_for_less_time_gives_back_what_is_behind_it() -> None:
    """What ends by then stays, and so does what has been launched."""
    world = World()
    world.pilot()
    launched = world.run("a", 100.0, 900.0)
    for key, begin, end in (("b", 200.0, 300.0), ("c", 400.0, 500.0), ("d", 500.0, 501.0)):
        world.book(key, begin, end)
    done = world.tell(events.PilotConnected, 1, 500.0, "n1", "", ())
    given_back = [one for one in done if isinstance(one, commands.PublishReservation)]
    assert [one.reservation.number for one in given_back] == [4]
    assert world.one(4).reason == "its pilot ends earlier"
    assert [world.one(number).state for number in (launched, 2, 3, 4)] == [
        ReservationState.LAUNCHED,
        ReservationState.BOOKED,
        ReservationState.BOOKED,
        ReservationState.RELEASED,
    ]


def test_a_pilot_that_ends_takes_its_programs_with_it_as_far_as_is_known() -> None:
    """What has not begun is given back, what has is told as found, and of the rest nobody can say."""
    world = World()
    world.pilot()
    begun, waits, dark = world.run("a"), world.run("b"), world.run("c", 300.0, 400.0)
    world.book("d", 500.0, 600.0)
    found = (
        ended(begun, Outcome.NODE_FAIL, reason="died"),
        RunNews(waits, RunState.ENDED, reason="it had not begun"),
    )
    done = world.tell(events.PilotEnded, 1, found, "cancelled", 600.0, 60.0)
    assert commands.PilotForget(world.number, 1) in done
    assert world.one(begun).outcome is Outcome.NODE_FAIL
    assert world.one(waits).state is ReservationState.RELEASED
    assert math.isnan(world.one(waits).start_time)
    assert world.one(dark).outcome is Outcome.UNKNOWN
    assert world.one(dark).reason == (
        "its pilot has ended, and it is unknown whether it has begun: cancelled"
    )
    assert world.one(4).state is ReservationState.RELEASED
    assert world.one(4).reason == "cancelled"
    assert world.free() == []
    book = world.state.memory.pilots
    assert (book.held, book.used, book.present) == (600.0, 60.0, {})
    assert world.tell(events.PilotEnded, 1, found, "again", 1.0, 1.0) == []
    assert world.tell(events.PilotConnected, 1, 1000.0, "n1", "", ()) == []
    assert world.tell(events.PilotTold, 1, found) == []
    assert world.tell(events.PilotLeaves, 1) == [commands.PilotGoes(world.number, 1)]


def test_a_program_that_cannot_be_started_has_failed() -> None:
    """It never ran, and says why."""
    world = World()
    world.pilot()
    number = world.run("a")
    end = RunNews(number, RunState.ENDED, outcome=Outcome.FAILED, reason="no room")
    world.tell(events.PilotTold, 1, (end,))
    found = world.one(number)
    assert (found.state, found.outcome, found.reason) == (
        ReservationState.ENDED,
        Outcome.FAILED,
        "no room",
    )
    assert math.isnan(found.start_time)


def test_the_job_of_a_pilot_is_offered_to_nobody() -> None:
    """It stays, whatever a policy would do, and is refused where this site cannot run it."""
    world = World()
    wide = world.tell(events.Submit, None, "me", "pilot 1", "", Request(8, 60.0), b"", here=True)
    assert refusal(wide) == "processors is 8; this site has 4"
    world.tell(events.Submit, None, "me", "pilot 1", "", Request(2, 60.0), b"", here=True)
    (job,) = world.state.jobs()
    assert job.here
    assert [type(one) for one in world.journal] == [records.JobReceived, records.JobKept]


def test_a_compacted_journal_makes_the_same_pilots() -> None:
    """Sums are kept, and what is forgotten with its pilot is gone."""
    world = World()
    for _ in range(3):
        world.pilot()
        number = world.run(f"run {world.number}")
        world.tell(
            events.PilotEnded,
            world.state.memory.pilots.next_number - 1,
            (ended(number),),
            "over",
            6.0,
            5.0,
        )
    world.pilot()
    world.run("last")
    kept = compacted(world.settings, lambda: world.journal)
    assert kept is not None
    again = SiteState(world.settings, kept).memory
    memory = world.state.memory
    assert again.pilots.pilots == memory.pilots.pilots
    assert (again.pilots.held, again.pilots.used) == (18.0, 15.0)
    assert again.pilots.next_number == memory.pilots.next_number == 5
    assert again.reservations.reservations == memory.reservations.reservations


def grouped(*keys: str, processors: int = 1, **more: Any) -> tuple[events.GroupedProgram, ...]:
    """Returns programs of a group, thought to take 20 s."""
    request = Request(processors, 50.0)
    return tuple(events.GroupedProgram(key, request, 20.0, b"what", **more) for key in keys)


def answers(done: Sequence[Command]) -> tuple[Reservation | str, ...]:
    """Returns the answer about a group."""
    (reply,) = [one for one in done if isinstance(one, commands.ReplyGroup)]
    return reply.programs


def test_each_program_of_a_group_is_booked_and_launched_in_the_journal() -> None:
    """As long as it is thought to take on that resource, and at its price; the group has the number of the first."""
    fast = replace(POOL, speed=2.0, cost_per_hour=36.0)
    world = World(replace(SETTINGS, resources=(fast, PLAIN)))
    world.pilot()
    before = len(world.journal)
    world.tell(events.LaunchGroup, OWNER, "pool", 100.0, 200.0, 2, grouped("a", "b"))
    expected: list[records.Record] = []
    for number, key in ((1, "a"), (2, "b")):
        expected += [
            records.ReservationBooked(
                100.0, number, OWNER, key, "pool", 100.0, 200.0, 1, 0.1, 1, 2
            ),
            records.ReservationLaunched(
                100.0,
                number,
                key,
                run_time=10.0,
                cut_off=False,
                needed_time=50.0,
                to_the_end=True,
                pilot=1,
                run_key=f"home/1/{number}",
                request=Request(1, 50.0),
                payload=b"what",
            ),
        ]
    assert world.journal[before:] == expected


def test_programs_of_a_group_share_its_processors() -> None:
    """All are given to the pilot at once; together they hold what the group has, and less once fewer are left."""
    world = World()
    world.pilot()
    programs = grouped("a", "b", "c")
    done = world.tell(events.LaunchGroup, OWNER, "pool", 100.0, 200.0, 2, programs)
    assert [one.reservation for one in done if isinstance(one, commands.PilotRun)] == [1, 2, 3]
    assert [one for one in done if isinstance(one, commands.PublishReservation)] == []
    found = answers(done)
    assert [one.state for one in found if isinstance(one, Reservation)] == [
        ReservationState.LAUNCHED
    ] * 3
    assert {(one.group, one.share, one.run_time) for one in map(world.one, (1, 2, 3))} == {
        (1, 2, 20.0)
    }
    assert {(one.needed_time, one.cut_off) for one in map(world.one, (1, 2, 3))} == {(50.0, False)}
    assert world.free() == [(200.0, 1000.0, 2)]
    assert (
        refusal(world.book("d", 150.0, 160.0))
        == "1 processors of pool are not free from 150.0 to 160.0"
    )
    world.tell(events.PilotTold, 1, (ended(1),))
    assert world.free() == [(200.0, 1000.0, 2)]
    world.tell(events.PilotTold, 1, (ended(2),))
    assert world.free() == [(100.0, 200.0, 1), (200.0, 1000.0, 2)]
    world.restart()
    assert world.free() == [(100.0, 200.0, 1), (200.0, 1000.0, 2)]
    # What has not begun when the time is over is its owner's to launch again.
    world.tell(events.PilotTold, 1, (ended(3, None, start_time=None),))
    assert world.one(3).state is ReservationState.RELEASED
    assert world.free() == [(100.0, 1000.0, 2)]


def test_a_group_that_is_launched_twice_runs_once() -> None:
    """The same keys have the same answer, also after the end, and with a program that is refused each time."""
    world = World()
    world.pilot()
    wide = events.GroupedProgram("w", Request(3, 50.0), 20.0, b"what")
    programs = (*grouped("a"), wide, *grouped("x", refusal="it has no shell"))
    order = OWNER, "pool", 100.0, 200.0, 2, programs
    first = answers(world.tell(events.LaunchGroup, *order))
    assert first[1:] == (
        "the program needs 3 processors; the group has 2",
        "it has no shell",
    )
    world.restart()
    world.tell(events.PilotTold, 1, (ended(1),))
    world.now = 300.0
    done = world.tell(events.LaunchGroup, *order)
    assert [type(one) for one in done] == [commands.ReplyGroup]
    again = answers(done)
    assert isinstance(again[0], Reservation)
    assert again[0].state is ReservationState.ENDED
    assert again[1:] == first[1:]
    assert len(world.state.memory.reservations.reservations) == 1
    (only,) = world.tell(events.MoveReservation, OWNER, 1, (100.0, 200.0), (100.0, 300.0))
    assert isinstance(only, Refuse)


def test_a_group_is_launched_as_a_whole_or_not() -> None:
    """Where processors or a pilot are missing, where too many are open, and where part of it is known."""
    world = World()
    window = 100.0, 200.0
    order = OWNER, "pool", *window
    assert (
        refusal(world.tell(events.LaunchGroup, *order, 2, grouped("a")))
        == "the pilot of pool is not there, or ends before the reservation does"
    )
    world.pilot()
    for wrong, why in (
        ((OWNER, "gone", *window, 2, grouped("a")), "there is no resource 'gone' here"),
        (
            (OWNER, "plain", *window, 2, grouped("a")),
            "plain has no pilots: programs are launched in groups only where there are some",
        ),
        ((*order, 3, grouped("a")), "3 processors of pool are not free from 100.0 to 200.0"),
        (
            (OWNER, "pool", 50.0, 90.0, 2, grouped("a")),
            "the pilot of pool is not there, or ends before the reservation does",
        ),
        (
            (OWNER, "pool", 200.0, 100.0, 2, grouped("a")),
            "window is 200.0 to 100.0; its end must be after its beginning",
        ),
        ((*order, 0, grouped("a")), "processors is 0; it must be at least 1"),
    ):
        assert refusal(world.tell(events.LaunchGroup, *wrong)) == why
    most = world.settings.limits.text_characters
    for programs, field, reason in (
        ((), "programs", f"the group has 0 programs; 1 to {GROUPED_MAX} are possible"),
        (
            grouped("a", "a"),
            "programs",
            "two programs of the group have the same idempotency_key",
        ),
        (
            grouped("a", ""),
            "programs[1].idempotency_key",
            f"idempotency_key has 0 characters; 1 to {most} are possible",
        ),
        (
            grouped("k" * (most + 1)),
            "programs[0].idempotency_key",
            f"idempotency_key has {most + 1} characters; 1 to {most} are possible",
        ),
    ):
        done = world.tell(events.LaunchGroup, *order, 2, programs)
        assert done == [Refuse(world.number, Refusal.INVALID, reason, field)]
    world.tell(events.LaunchGroup, *order, 1, grouped("a"))
    # Whoever asks for a group with others has forgotten what it was: none of them is run.
    known, other = answers(world.tell(events.LaunchGroup, *order, 1, grouped("a", "b")))
    assert known is world.one(1)
    assert isinstance(other, Reservation)
    assert (other.number, other.outcome) == (0, Outcome.UNKNOWN)
    assert (other.begin, other.end, other.booked) == (known.begin, known.end, known.booked)
    assert (other.owner, other.key, other.launch_key) == (OWNER, "b", "b")
    assert other.reason == (
        "its group was launched before, and how it ended is forgotten; it is not run again"
    )
    assert list(world.state.memory.reservations.reservations) == [1]
    limits = replace(world.settings.limits, reservations_open=2)
    small = World(replace(world.settings, limits=limits))
    small.pilot()
    assert (
        refusal(small.tell(events.LaunchGroup, *order, 2, grouped(*"abc")))
        == "broker:b has 0 open reservations, and at most 2"
    )
    assert small.state.memory.reservations.reservations == {}


def small_memory(**limits: float) -> World:
    """Returns a site with a pilot that forgets a reservation as soon as another is over."""
    made = World()
    few = replace(made.settings.limits, reservations_kept=1, **limits)  # type: ignore[arg-type]  # whole numbers where the field has one
    world = World(replace(made.settings, limits=few))
    world.pilot()
    return world


def run_group(world: World, *keys: str) -> tuple[Reservation | str, ...]:
    """Launches a group; everything of it ends at once."""
    order = OWNER, "pool", 100.0, 200.0, 2, grouped(*keys)
    found = answers(world.tell(events.LaunchGroup, *order))
    for one in found:
        if isinstance(one, Reservation) and one.is_open:
            world.tell(events.PilotTold, 1, (ended(one.number),))
    return found


@pytest.mark.parametrize("restarts", [False, True])
def test_a_group_whose_end_is_forgotten_does_not_run_again(restarts: bool) -> None:
    """Its answer was lost, and many others have ended since: it is over, and nobody knows how."""
    world = small_memory()
    run_group(world, "a", "b")
    run_group(world, "c", "d")
    assert list(world.state.memory.reservations.reservations) == [4]
    if restarts:
        short = compacted(world.settings, lambda: world.journal)
        assert short is not None
        assert len(short) < len(world.journal)
        world.journal = list(short)
        world.restart()
    check(world.state.memory)
    found = run_group(world, "a", "b")
    told = [(one.number, one.state, one.outcome) for one in found if isinstance(one, Reservation)]
    over = ReservationState.ENDED, Outcome.UNKNOWN
    assert told == [(1, *over), (2, *over)]
    # Part of it is known still, and the rest is not begun anew.
    found = run_group(world, "c", "d")
    assert [one.outcome for one in found if isinstance(one, Reservation)] == [
        Outcome.UNKNOWN,
        Outcome.COMPLETED,
    ]
    assert world.state.memory.reservations.next_number == 5
    assert (
        refusal(world.book("a", 100.0, 200.0))
        == "reservation 1 of this key was over so long ago that it is forgotten; it is not made again"
    )


def test_what_could_not_be_remembered_is_refused() -> None:
    """Rather than that keys are dropped that may be asked for again; after an hour there is room."""
    world = small_memory(reservation_keys_kept=3)
    run_group(world, "a", "b")
    run_group(world, "c", "d")  # the keys of three are kept by now, besides the last
    order = OWNER, "pool", 100.0, 900.0
    assert (
        refusal(world.tell(events.LaunchGroup, *order, 1, grouped("e")))
        == "3 reservations are open or were over within 3600 s, and the idempotency keys of no more can be remembered: ask again later"
    )
    assert (
        refusal(world.book("f", 100.0, 200.0))
        == "3 reservations are open or were over within 3600 s, and the idempotency keys of no more can be remembered: ask again later"
    )
    # All are known as before, whatever room there is.
    assert len(run_group(world, "a", "b")) == 2
    world.now += 3600.0
    assert (
        refusal(world.book("f", 5000.0, 6000.0, "plain"))
        == "3 reservations are open or were over within 3600 s, and the idempotency keys of no more can be remembered: ask again later"
    )
    world.now += 1.0
    (*_, answer) = world.book("f", 5000.0, 6000.0, "plain")
    assert isinstance(answer, commands.ReplyReservation)
    world.tell(events.ReleaseReservation, OWNER, answer.reservation.number)
    # For one more the oldest is dropped, and no other.
    book = world.state.memory.reservations
    assert [book.forgotten(OWNER, key) for key in "abcd"] == [0, 2, 3, 4]


def test_what_waits_in_a_pilot_can_be_had_not_begin() -> None:
    """The reservation stays as it is until the pilot has said whether it has begun; others are released at once."""
    world = World()
    world.pilot()
    world.tell(events.LaunchGroup, OWNER, "pool", 100.0, 200.0, 1, grouped("a", "b"))
    done = world.tell(events.ReleaseReservation, OWNER, 1, unless_begun=True)
    assert isinstance(done[0], commands.PilotWithdraw)
    assert done[0].reservation == 1
    assert world.one(1).state is ReservationState.LAUNCHED
    world.tell(events.PilotTold, 1, (ended(1, None, start_time=None),))
    assert world.one(1).state is ReservationState.RELEASED
    world.tell(events.PilotTold, 1, (RunNews(2, RunState.RUNNING, 101.0),))
    world.tell(events.ReleaseReservation, OWNER, 2, unless_begun=True)
    world.tell(events.PilotTold, 1, (ended(2),))
    assert world.one(2).outcome is Outcome.COMPLETED
    world.book("c", 100.0, 200.0, "plain")
    world.tell(events.ReleaseReservation, OWNER, 3, unless_begun=True)
    assert world.one(3).state is ReservationState.RELEASED
