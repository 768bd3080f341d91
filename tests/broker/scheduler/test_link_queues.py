"""What waits for links: beside a plain queue, and what is expected of it."""

import math

from hypothesis import given
from hypothesis import strategies as st

from broker.scheduler.link_queues import FileAt, Key, LinkQueues, Waiting
from tests.oracles.link_queues import PlainLinks

LINKS = (("x", "y"), ("y", "x"), ("x", "z"))


class Links:
    """Queues, and what comes of them: a second for each byte."""

    def __init__(self) -> None:
        self.there: dict[FileAt, float] = {}
        self.taken: dict[tuple[str, str], float] = {}
        self.queues = LinkQueues(lambda _ends, size: size, self.there, self.taken)
        self.begun: list[tuple[float, Key, frozenset[FileAt]]] = []

    def go_on(self, now: float) -> None:
        """Begins what can begin."""
        while (taken := self.queues.take(now)) is not None:
            waiting, missing = taken
            end = now + sum(waiting.sizes[file] for file in missing)
            self.taken[waiting.ends] = end
            self.there |= dict.fromkeys(missing, end)
            self.queues.changed(waiting.ends)
            self.begun.append((now, waiting.key, frozenset(missing)))

    def expected(self, now: float) -> list[tuple[float, Key, float]]:
        """Returns when what waits should begin and end."""
        spans = ((each.key, self.queues.span(each.key, now)) for each in self.queues)
        return sorted((span[0], key, span[1]) for key, span in spans if span is not None)

    def check_expected(self, now: float, key: Key) -> None:
        """What is expected around a change is what it would be had all come just now."""
        fresh = LinkQueues(lambda _ends, size: size, self.there, self.taken)
        for each in self.queues:
            fresh.put(each)
        assert self.queues.span(key, now) == fresh.span(key, now)
        for ends in LINKS:
            assert self.queues.free(ends, (15.0, 0), now) == fresh.free(ends, (15.0, 0), now)
            file = ("w", "f0", ends[1])
            assert self.queues.file(ends, file, now) == fresh.file(ends, file, now)


def waiting(task: str, moment: float, *sizes: float, link: int = 0) -> Waiting:
    """Returns files of a task that wait for a link."""
    ends = LINKS[link]
    files = {("w", f"{task}{number}", ends[1]): size for number, size in enumerate(sizes)}
    return Waiting(("w", task, "maker"), ends, files, (moment, 0))


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[float, Waiting | Key]]:
    """Draws what is put and taken back, and when; files are few, so some are wanted by many."""
    found: list[tuple[float, Waiting | Key]] = []
    moment = 0.0
    for number in range(draw(st.integers(1, 25))):
        moment += draw(st.sampled_from((0.0, 0.0, 1.0, 3.0, 10.0)))
        key = ("w", f"t{draw(st.integers(0, 7))}", "")
        if draw(st.integers(0, 5)) == 0:
            found.append((moment, key))
            continue
        ends = draw(st.sampled_from(LINKS))
        files = draw(st.sets(st.integers(0, 5), min_size=1, max_size=3))
        sizes = {("w", f"f{file}", ends[1]): 1.0 + file for file in sorted(files)}
        order = float(draw(st.integers(0, 30))), number
        found.append((moment, Waiting(key, ends, sizes, order)))
    return found


@given(changes())
def test_the_queues_begin_what_plain_ones_do(drawn: list[tuple[float, Waiting | Key]]) -> None:
    """At the same moments, and what is expected comes where nothing more is put."""
    links, plain = Links(), PlainLinks()
    now = 0.0
    for moment, change in drawn:
        while links.queues.next_time <= moment:
            now = max(now, links.queues.next_time)
            links.go_on(now)
            plain.go_on(now)
            assert links.begun == plain.begun
        now = moment
        if isinstance(change, Waiting):
            links.queues.put(change)
            plain.waiting[change.key] = change.ends, dict(change.sizes), change.order
        else:
            links.queues.discard(change)
            plain.waiting.pop(change, None)
        assert len(links.queues) == len(plain.waiting)
        links.check_expected(now, change.key if isinstance(change, Waiting) else change)
    begun = len(links.begun)
    expected = links.expected(now)
    while links.queues.next_time < math.inf:
        now = max(now, links.queues.next_time)
        links.go_on(now)
        plain.go_on(now)
    assert plain.next_time == math.inf
    # Equal orders of different links begin in any order of the links.
    assert sorted(links.begun, key=repr) == sorted(plain.begun, key=repr)
    came = [(at, key, max(links.there[file] for file in files)) for at, key, files in links.begun]
    assert sorted(came[begun:]) == expected


def test_what_is_expected_is_worked_out_once_for_each() -> None:
    """Where thousands come one after another, and each is asked for; else the broker stands still meanwhile."""
    asked: list[float] = []

    def seconds(_ends: tuple[str, str], size: float) -> float:
        asked.append(size)
        return size

    queues = LinkQueues(seconds, {}, {})
    for number in range(500):
        each = waiting(f"t{number}", float(number), 1.0)
        assert queues.free(each.ends, each.order, 0.0) == number
        queues.put(each)
        assert queues.span(each.key, 0.0) == (number, number + 1.0)
    assert len(asked) == 500


def test_what_is_urgent_goes_before_what_has_not_begun() -> None:
    """And what comes between is expected after those before it."""
    links = Links()
    links.queues.put(waiting("early", 5.0, 10.0))
    links.go_on(0.0)
    links.queues.put(waiting("late", 30.0, 10.0))
    links.queues.put(waiting("urgent", 20.0, 4.0))
    assert links.queues.next_time == 10.0
    assert links.queues.free(LINKS[0], (25.0, 0), 0.0) == 14.0
    assert links.queues.free(LINKS[0], (1.0, 0), 0.0) == 10.0
    assert links.queues.free(LINKS[1], (1.0, 0), 3.0) == 3.0
    assert links.expected(0.0)[1] == (14.0, ("w", "late", "maker"), 24.0)
    links.go_on(10.0)
    assert [key[1] for _, key, _ in links.begun] == ["early", "urgent"]


def test_a_file_is_sent_once_to_a_site() -> None:
    """Who waits for it too is sent the rest, or nothing."""
    links = Links()
    shared = {("w", "f", "y"): 3.0}
    first = Waiting(("w", "a", ""), LINKS[0], shared, (1.0, 0))
    second = Waiting(("w", "b", ""), LINKS[0], {**shared, ("w", "g", "y"): 2.0}, (2.0, 0))
    third = Waiting(("w", "c", ""), LINKS[0], shared, (3.0, 0))
    for each in (third, second, first):
        links.queues.put(each)
    assert links.queues.file(LINKS[0], ("w", "f", "y"), 0.0) == 3.0
    assert links.queues.file(LINKS[0], ("w", "g", "y"), 0.0) == 5.0
    assert links.queues.file(LINKS[0], ("w", "h", "y"), 0.0) is None
    assert links.queues.span(third.key, 0.0) is None
    assert links.queues.readers(("w", "f", "y")) == [third.key, second.key, first.key]
    for now in (0.0, 3.0, 5.0):
        links.go_on(now)
    assert [(at, len(files)) for at, _, files in links.begun] == [(0.0, 1), (3.0, 1)]
    assert len(links.queues) == 0


def test_a_task_that_goes_elsewhere_waits_there_alone() -> None:
    """What waited for it before is forgotten."""
    links = Links()
    links.queues.put(waiting("a", 1.0, 10.0))
    links.queues.put(waiting("b", 2.0, 10.0))
    links.queues.keep_only(("w", "a"), ())
    assert links.queues.get(("w", "a", "maker")) is None
    links.queues.put(waiting("b", 2.0, 10.0, link=2))
    assert links.queues.next_time == -math.inf
    links.go_on(0.0)
    assert links.taken == {LINKS[2]: 10.0}
