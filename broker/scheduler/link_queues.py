"""Transfers that wait for links, each of which carries one transfer at a time.

A transfer waits from when its files exist until its link is free and nothing that waits there comes before it. The order is
that of the plan: by the moments at which it has them begin, so what is late keeps its place, and what is urgent goes before
all that has not begun. A link is never idle while something waits for it. What has begun is not interrupted.

Who waits for a file that another one has sent to the same site meanwhile has nothing sent.
"""

import bisect
import heapq
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

Ends = tuple[str, str]
"""The sites between which a link goes: source and target."""

FileAt = tuple[str, str, str]
"""Workflow (its id), file and site."""

Key = tuple[str, str, str]
"""For whom something is sent, and whose it is: a workflow's id, the task that reads it, and the task that made it or nothing."""

Order = tuple[float, int]
"""A moment in seconds, and a number for those of the same moment."""

_Name = TypeVar("_Name", FileAt, tuple[str, str])


@dataclass(frozen=True, slots=True)
class Waiting:
    """Files of one source that wait to be sent to a task together.

    Attributes:
        sizes: bytes of each.
        order: of two that wait for a link the one with the smaller order is sent first.
    """

    key: Key
    ends: Ends
    sizes: Mapping[FileAt, float]
    order: Order


@dataclass(slots=True)
class _Queue:
    # Of one link. What is expected is known of the first ones alone, as far as it has been asked for, and as long as nothing
    # changes there: `free` has when the link is free again after each; spans are by key, and who has a file sent by file. It holds
    # for the moment at which the first one begins.
    order: list[tuple[Order, Key]] = field(default_factory=list)
    begin: float = math.nan
    free: list[float] = field(default_factory=list)
    spans: dict[Key, tuple[float, float]] = field(default_factory=dict)
    senders: dict[FileAt, Key] = field(default_factory=dict)

    def forget(self) -> None:
        self.free.clear()
        self.spans.clear()
        self.senders.clear()


class LinkQueues:
    """What waits for links.

    Args:
        seconds: how long so many bytes take over a link.
        there: files that are at sites or on their way, and since when; they are not sent again.
        taken: until when each link is taken by what has begun, seconds.
    """

    def __init__(
        self,
        seconds: Callable[[Ends, float], float],
        there: Mapping[FileAt, float],
        taken: Mapping[Ends, float],
    ) -> None:
        self._seconds = seconds
        self._there = there
        self._taken = taken
        self._waiting: dict[Key, Waiting] = {}
        self._queues: dict[Ends, _Queue] = {}
        self._of_task: dict[tuple[str, str], dict[Key, None]] = {}
        self._readers: dict[FileAt, dict[Key, None]] = {}
        # One entry for each link that something waits for, or has waited.
        self._due: list[tuple[float, Ends]] = []
        self._listed: set[Ends] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting.values())

    def get(self, key: Key) -> Waiting | None:
        """Returns what waits by its key; `None` if it does not."""
        return self._waiting.get(key)

    def put(self, waiting: Waiting) -> None:
        """Lets something wait, in place of what had its key."""
        if self._waiting.get(waiting.key) == waiting:
            return
        self.discard(waiting.key)
        self._waiting[waiting.key] = waiting
        self._of_task.setdefault(waiting.key[:2], {})[waiting.key] = None
        for file in waiting.sizes:
            self._readers.setdefault(file, {})[waiting.key] = None
        queue = self._queues.setdefault(waiting.ends, _Queue())
        place = waiting.order, waiting.key
        at = bisect.bisect_left(queue.order, place)
        self._forget(queue, at)
        queue.order.insert(at, place)
        self._list(waiting.ends)

    def discard(self, key: Key) -> None:
        """Lets something wait no more."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        queue = self._queues[waiting.ends]
        at = bisect.bisect_left(queue.order, (waiting.order, key))
        self._forget(queue, at)
        del queue.order[at]
        del self._waiting[key]
        _drop(self._of_task, key[:2], key)
        for file in waiting.sizes:
            _drop(self._readers, file, key)
        if not queue.order:
            del self._queues[waiting.ends]

    def keep_only(self, task: tuple[str, str], keys: Collection[Key]) -> None:
        """Lets nothing else wait for a task, given by its workflow's id and its name."""
        for key in [each for each in self._of_task.get(task, ()) if each not in keys]:
            self.discard(key)

    # --- what begins ---------------------------------------------------------------------------

    @property
    def next_time(self) -> float:
        """When the next link is free for which something waits, seconds; infinity for never."""
        while self._due and self._due[0][1] not in self._queues:
            self._listed.discard(heapq.heappop(self._due)[1])
        return self._due[0][0] if self._due else math.inf

    def take(self, now: float) -> tuple[Waiting, list[FileAt]] | None:
        """Returns what begins now, with those of its files that are to be sent; `None` if nothing does.

        It waits no more, and has its link until the caller says otherwise.
        """
        while self.next_time <= now:
            _, ends = heapq.heappop(self._due)
            self._listed.discard(ends)
            if self._taken.get(ends, now) > now:
                self._list(ends)
                continue
            waiting = self._waiting[self._queues[ends].order[0][1]]
            self.discard(waiting.key)
            if ends in self._queues:
                self._list(ends)
            missing = [file for file in waiting.sizes if file not in self._there]
            if missing:
                return waiting, missing
        return None

    def _list(self, ends: Ends) -> None:
        if ends not in self._listed:
            self._listed.add(ends)
            heapq.heappush(self._due, (self._taken.get(ends, -math.inf), ends))

    def readers(self, file: FileAt) -> list[Key]:
        """Returns what waits with a file."""
        return list(self._readers.get(file, ()))

    def changed(self, ends: Ends) -> None:
        """Notes that a link is taken until another moment."""
        queue = self._queues.get(ends)
        if queue is not None:
            queue.forget()

    # --- what is expected ----------------------------------------------------------------------

    def span(self, key: Key, now: float) -> tuple[float, float] | None:
        """Returns when something that waits should begin and end, in seconds; `None` if it does not wait, or nothing is left of it to send."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return None
        queue = self._at(waiting.ends, now)
        self._expect(queue, bisect.bisect_left(queue.order, (waiting.order, key)) + 1)
        return queue.spans.get(key)

    def file(self, ends: Ends, file: FileAt, now: float) -> float | None:
        """Returns when a file that waits for a link should be there, in seconds; `None` if none waits with it."""
        if file not in self._readers or ends not in self._queues:
            return None
        queue = self._at(ends, now)
        while file not in queue.senders and len(queue.free) < len(queue.order):
            self._expect(queue, len(queue.free) + 1)
        return queue.spans[queue.senders[file]][1] if file in queue.senders else None

    def free(self, ends: Ends, order: Order, now: float) -> float:
        """Returns from when on a link should be free for something of this order, in seconds."""
        if ends not in self._queues:
            return max(now, self._taken.get(ends, now))
        queue = self._at(ends, now)
        at = bisect.bisect_left(queue.order, order, key=lambda each: each[0])
        self._expect(queue, at)
        return queue.free[at - 1] if at else queue.begin

    def _at(self, ends: Ends, now: float) -> _Queue:
        queue = self._queues[ends]
        begin = max(now, self._taken.get(ends, now))
        if queue.begin != begin:
            queue.forget()
            queue.begin = begin
        return queue

    def _expect(self, queue: _Queue, count: int) -> None:
        # Works out what is expected of so many, as far as it is not known.
        for _, key in queue.order[len(queue.free) : count]:
            sizes = self._waiting[key].sizes
            missing = [
                file for file in sizes if file not in self._there and file not in queue.senders
            ]
            free = begin = queue.free[-1] if queue.free else queue.begin
            if missing:
                size = math.fsum(sizes[file] for file in missing)
                free = begin + self._seconds(self._waiting[key].ends, size)
                queue.spans[key] = begin, free
                queue.senders |= dict.fromkeys(missing, key)
            queue.free.append(free)

    def _forget(self, queue: _Queue, at: int) -> None:
        # What is expected from this place in the order on holds no more.
        for _, key in queue.order[at : len(queue.free)]:
            if queue.spans.pop(key, None) is not None:
                for file in self._waiting[key].sizes:
                    if queue.senders.get(file) == key:
                        del queue.senders[file]
        del queue.free[at:]


def _drop(index: "dict[_Name, dict[Key, None]]", name: "_Name", key: Key) -> None:
    mine = index[name]
    del mine[key]
    if not mine:
        del index[name]
