import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from grms.daemon.mqtt.outbox import Numbered, Outbox

LIMIT = 5


class OutboxAgainstAList(RuleBasedStateMachine):
    """Every event is published once, waits, or is counted as dropped; the newest ones stay."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox: Outbox[int] = Outbox(LIMIT)
        self.put = 0
        self.arrived: list[int] = []
        self.taken: tuple[Numbered[int], ...] = ()

    @rule()
    def add(self) -> None:
        """Something happens."""
        self.put += 1
        self.outbox.put(self.put)

    @rule(count=st.integers(1, LIMIT))
    def take(self, count: int) -> None:
        """A message is on its way; events may come, and be dropped, meanwhile."""
        self.taken = tuple(self.outbox.first(count))

    @rule()
    def arrive(self) -> None:
        """It has arrived."""
        if self.taken:
            self.outbox.confirm(self.taken[-1].sequence)
            self.arrived += [
                each.sequence for each in self.taken if each.sequence > (self.arrived or [0])[-1]
            ]
            self.taken = ()

    @rule()
    def lose(self) -> None:
        """The connection is gone; it may have arrived or not."""
        self.taken = ()

    @invariant()
    def nothing_is_lost_silently(self) -> None:
        """The newest events wait in order, and everything is accounted for."""
        waiting = [each.sequence for each in self.outbox.first(LIMIT)]
        assert waiting == list(range(self.put - len(waiting) + 1, self.put + 1))
        assert [each.event for each in self.outbox.first(LIMIT)] == waiting
        assert self.arrived == sorted(set(self.arrived))
        gone = self.put - len(waiting)
        # What was dropped while its message was on the way may have arrived all the same.
        assert gone - len(self.arrived) <= self.outbox.dropped <= gone


TestOutboxAgainstAList = OutboxAgainstAList.TestCase
TestOutboxAgainstAList.settings = settings(max_examples=50, stateful_step_count=40)


def test_the_oldest_goes_at_the_limit() -> None:
    """Beyond the limit each new event costs the oldest one, which is counted."""
    outbox: Outbox[str] = Outbox(2)
    for event in "abcd":
        outbox.put(event)
    assert outbox.first(9) == (Numbered(3, "c"), Numbered(4, "d"))
    assert (outbox.dropped, len(outbox)) == (2, 2)
    outbox.discard(3)
    assert (outbox.dropped, len(outbox)) == (3, 1)


def test_of_states_the_newest_waits() -> None:
    """A newer state takes the place of one that waits, or that is on its way."""
    outbox: Outbox[str] = Outbox(1)
    outbox.put_state("a", b"1")
    (topic, version, content) = outbox.states()[0]
    assert (topic, content) == ("a", b"1")
    outbox.put_state("a", b"2")
    outbox.confirm_state("a", version)
    assert [content for _, _, content in outbox.states()] == [b"2"]
    outbox.confirm_state("a", outbox.states()[0][1])
    assert (len(outbox), outbox.states()) == (0, [])
    outbox.confirm_state("a", 99)


def test_a_forgetful_broker_is_told_again() -> None:
    """States that had arrived wait again on a new connection; newer ones keep their place."""
    outbox: Outbox[str] = Outbox(1)
    for topic, content in (("a", b"1"), ("b", b"1")):
        outbox.put_state(topic, content)
    for topic, version, _ in outbox.states():
        outbox.confirm_state(topic, version)
    outbox.put_state("b", b"2")
    outbox.revive_states()
    assert {topic: content for topic, _, content in outbox.states()} == {"a": b"1", "b": b"2"}


@given(st.integers(max_value=0))
def test_a_limit_leaves_room_for_something(limit: int) -> None:
    """An outbox for nothing is refused."""
    with pytest.raises(ValueError, match="must be at least 1"):
        Outbox(limit)
