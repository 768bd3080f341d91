from grms.simulation.clock import ManualClock
from grms.simulation.fault_injection import Faults
from grms.simulation.network import Network
from grms.simulation.random_source import RandomSource


def arrivals(faults: Faults, count: int = 2000) -> tuple[list[float], list[int]]:
    """Returns when messages arrived that were all sent at 0, and which, in order of arrival."""
    clock = ManualClock()
    network = Network(clock, RandomSource(3), faults)
    times: list[float] = []
    which: list[int] = []

    def arrive(number: int) -> None:
        times.append(clock.now)
        which.append(number)

    for number in range(count):
        network.send("a", "b", lambda number=number: arrive(number))  # type: ignore[misc]  # binds the number
    while clock.step():
        pass
    return times, which


def test_a_good_network_loses_nothing() -> None:
    """Every message arrives once, after a while, not in the order of sending."""
    times, which = arrivals(Faults())
    assert sorted(which) == list(range(2000))
    assert which != sorted(which)
    assert 0.04 < sum(times) / 2000 < 0.06


def test_a_bad_network_loses_doubles_and_delays() -> None:
    """Each fault is as frequent as said; healing ends them."""
    assert 1300 < len(arrivals(Faults(loss=0.3))[1]) < 1500
    assert 2500 < len(arrivals(Faults(duplication=0.3))[1]) < 2700
    late = [time for time in arrivals(Faults(late=0.3))[0] if time > 2.0]
    assert 400 < len(late) < 700
    faults = Faults(loss=1.0, duplication=1.0, late=1.0)
    assert arrivals(faults)[1] == []
    faults.heal()
    assert sorted(arrivals(faults)[1]) == list(range(2000))


def test_a_link_can_break_in_one_direction_or_for_calls_alone() -> None:
    """Where calls alone are barred, answers to calls of the other pass; breaks of one direction add up."""
    clock = ManualClock()
    network = Network(clock, RandomSource(3), Faults(delay_mean=0.0))
    arrived: list[tuple[float, str, bool]] = []

    def send(source: str, target: str, *, answer: bool) -> None:
        told = (source + target, answer)
        network.send(source, target, lambda: arrived.append((clock.now, *told)), answer=answer)

    network.bar("a", "b", 2.0)
    network.cut_one_way("c", "a", 2.0)
    network.cut_one_way("c", "a", 4.0)
    for moment in (1.0, 3.0, 5.0):
        clock.advance(moment)
        for source, target in (("a", "b"), ("b", "a"), ("c", "a"), ("a", "c")):
            send(source, target, answer=False)
            send(source, target, answer=True)
    clock.advance(6.0)
    lost = {(1.0, "ab", False)} | {
        (at, "ca", answer) for at in (1.0, 3.0) for answer in (False, True)
    }
    every = {
        (at, pair, answer)
        for at in (1.0, 3.0, 5.0)
        for pair in ("ab", "ba", "ca", "ac")
        for answer in (False, True)
    }
    assert set(arrived) == every - lost
    assert len(arrived) == len(every - lost)
    assert network.blocked == len(lost)


def test_a_cut_lets_nothing_through_until_it_is_mended() -> None:
    """In both directions, also what was sent before; cuts add up; others are not concerned."""
    clock = ManualClock()
    network = Network(clock, RandomSource(3), Faults(delay_mean=0.0))
    arrived: list[tuple[float, str]] = []

    def send(source: str, target: str) -> None:
        network.send(source, target, lambda: arrived.append((clock.now, source + target)))

    send("a", "b")
    network.cut("a", "b", 5.0)
    network.isolate("a", ["a", "b", "c"], 2.0)
    for moment in (1.0, 3.0, 6.0):
        clock.advance(moment)
        for source, target in (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")):
            send(source, target)
    clock.advance(7.0)
    assert arrived == [
        (1.0, "bc"),
        (3.0, "ac"),
        (3.0, "bc"),
        (6.0, "ab"),
        (6.0, "ba"),
        (6.0, "ac"),
        (6.0, "bc"),
    ]
