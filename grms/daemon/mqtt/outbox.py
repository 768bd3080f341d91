"""What waits to be published while the MQTT broker is gone or slow.

Of *events* every one counts, so they wait in order, up to a limit; beyond it the oldest is dropped
and counted, and readers see a gap in the sequence numbers. Of *states* (a plan, figures) only the
newest counts, so one per topic waits; it is published as retained, and again on each new
connection, because a restarted broker may have forgotten it.

An event is removed only when the broker has acknowledged it: after a broken connection it is sent
again rather than lost.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Numbered(Generic[E]):
    """An event and its sequence number, counted from 1."""

    sequence: int
    event: E


class Outbox(Generic[E]):
    """Messages waiting to be published; `dropped` counts events never published.

    Raises:
        ValueError: `events_max` is below 1.
    """

    def __init__(self, events_max: int) -> None:
        if events_max < 1:
            raise ValueError(f"events_max is {events_max}; it must be at least 1")
        self.dropped = 0
        self._events_max = events_max
        self._events: deque[Numbered[E]] = deque()
        self._sequence = 0
        self._states: dict[str, tuple[int, bytes]] = {}
        self._published: dict[str, tuple[int, bytes]] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self._events) + len(self._states)

    def put(self, event: E) -> None:
        """Adds an event; if there is no room the oldest one goes."""
        if len(self._events) == self._events_max:
            self._events.popleft()
            self.dropped += 1
        self._sequence += 1
        self._events.append(Numbered(self._sequence, event))

    def put_state(self, topic: str, content: bytes) -> None:
        """Sets the state of a topic, replacing an older one that still waits."""
        self._version += 1
        self._states[topic] = (self._version, content)

    def first(self, count: int) -> Sequence[Numbered[E]]:
        """Returns the oldest events, at most so many, without removing them."""
        return tuple(islice(self._events, count))

    def confirm(self, sequence: int) -> None:
        """Takes out the events up to a sequence number: they have arrived."""
        while self._events and self._events[0].sequence <= sequence:
            self._events.popleft()

    def discard(self, sequence: int) -> None:
        """Takes out the events up to a sequence number as dropped: they cannot be published."""
        before = len(self._events)
        self.confirm(sequence)
        self.dropped += before - len(self._events)

    def states(self) -> Sequence[tuple[str, int, bytes]]:
        """Returns topic, version and content of each state, the longest waiting first."""
        return [(topic, version, content) for topic, (version, content) in self._states.items()]

    def confirm_state(self, topic: str, version: int) -> None:
        """Takes out a state that has arrived, unless a newer one has taken its place."""
        if self._states.get(topic, (0, b""))[0] == version:
            self._published[topic] = self._states.pop(topic)

    def revive_states(self) -> None:
        """Lets every state that has arrived wait again, unless a newer one does."""
        self._states = self._published | self._states
        self._published.clear()
