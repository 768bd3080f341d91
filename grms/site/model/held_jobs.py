"""Which own jobs are held, and for what: dependencies, and the limits of arrays.

A job is held (HELD) from its submission until all that it waits for has happened, and, if it is an element of an
array, until it is its turn and fewer of its elements are under way than may be. It is then decided like any other. A job
whose dependencies cannot be met any more is hopeless, and is ended.

Everything here follows from the journal's records, in their order. A dependency on a job that is forgotten counts
as met: a job that did not end as wanted has ended those that wait for it at the same moment, and is refused to
later ones.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.util.dependencies import Dependency
from grms.util.job_arrays import ArraySpec
from grms.util.values import dataclass

OK: Final = frozenset({Outcome.COMPLETED, Outcome.NOT_RUN})
"""Outcomes of a job that has completed; a simulated batch system runs no program."""


SHOWN: Final = 3
"""Most dependencies named to a person."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is waited for: the job of that number, or the array; number 0: jobs of the same name before it."""

    number: int
    array: bool = False


SINGLETON: Final = Target(0)


class JobArray(msgspec.Struct, eq=False, kw_only=True):
    """An array of which elements are remembered.

    Attributes:
        array: the number of its first element; the others follow.
        array_id: its name for users.
        payload: what all elements run; each has a part of its own.
        dependencies: of all elements.
        received: numbers of remembered elements that have not ended, or have.
        open: how many have not ended.
        not_ok: how many have ended and not completed.
        forgotten_not_ok: of those, how many are no longer remembered.
        under_way: numbers of elements that are not held any more, and have not ended.
        ready: a heap of the elements that wait for nothing but the limit; with some that no longer do.
    """

    array: int
    array_id: str
    spec: ArraySpec
    user: str
    idempotency_key: str
    name: str
    request: Request
    payload: bytes
    dependencies: tuple[Dependency, ...] = ()
    received: int = 0
    open: int = 0
    not_ok: int = 0
    forgotten_not_ok: int = 0
    under_way: set[int] = msgspec.field(default_factory=set)
    ready: list[int] = msgspec.field(default_factory=list)

    def element(self, index: int) -> int:
        """Returns the number of the element of an index; 0 if there is none."""
        position = self.spec.position(index)
        return 0 if position < 0 else self.array + position

    def element_id(self, index: int) -> str:
        """Returns an element's name for users."""
        return f"{self.array_id}_{index}"

    @property
    def numbers(self) -> range:
        """The numbers of all elements."""
        return range(self.array, self.array + len(self.spec))

    @property
    def has_room(self) -> bool:
        """Whether one more element may be under way."""
        return not self.spec.limit or len(self.under_way) < self.spec.limit


class _Held:
    # A held job, and what it still waits for.
    __slots__ = ("array", "terms")

    def __init__(self, array: JobArray | None) -> None:
        self.array = array
        self.terms: dict[Target, list[Dependency]] = {}


class HeldJobBook:
    """Held jobs, by number, and arrays.

    Attributes:
        arrays: by number.
        hopeless: held jobs whose dependencies cannot be met, with the first such dependency.
    """

    def __init__(self) -> None:
        self.arrays: dict[int, JobArray] = {}
        # Emptied from the front, which a plain dict would search for anew each time.
        self.hopeless: OrderedDict[int, Dependency] = OrderedDict()
        self._held: dict[int, _Held] = {}
        self._ready: OrderedDict[int, None] = OrderedDict()
        self._with_room: dict[int, JobArray] = {}
        self._waiting: dict[Target, dict[int, None]] = {}
        self._named: dict[tuple[str, str], OrderedDict[int, None]] = {}

    def __contains__(self, number: int) -> bool:
        """Returns whether a job is held."""
        return number in self._held

    def __len__(self) -> int:
        """Returns the number of held jobs."""
        return len(self._held)

    # --- what happens --------------------------------------------------------------------------

    def receive_array(self, array: JobArray) -> None:
        """Notes an array; its elements follow."""
        self.arrays[array.array] = array

    def receive(
        self,
        number: int,
        named: tuple[str, str],
        dependencies: tuple[Dependency, ...],
        *,
        array: JobArray | None,
        resolve: Callable[[Dependency], Target | None],
        ended: Callable[[int], bool | None],
    ) -> bool:
        """Notes a job, and returns whether it is held at first.

        Args:
            number: of the job, greater than all before.
            named: its user and name.
            dependencies: what it waits for.
            array: of which it is an element.
            resolve: returns what a dependency names; None if it is forgotten.
            ended: returns whether the job of a number has ended, and completed; None if it has not ended.
        """
        if named not in self._named:
            self._named[named] = OrderedDict()
        self._named[named][number] = None
        if array is not None:
            array.received += 1
            array.open += 1
        if array is None and not dependencies:
            return False
        held = self._held[number] = _Held(array)
        for dependency in dependencies:
            target = SINGLETON if dependency.kind == "singleton" else resolve(dependency)
            if target is None:
                continue
            met = self._met(dependency, target, number, named, ended)
            if met is None:
                held.terms.setdefault(target, []).append(dependency)
                if target is not SINGLETON:
                    self._waiting.setdefault(target, {})[number] = None
            elif not met:
                self.hopeless.setdefault(number, dependency)
        self._perhaps_ready(number, held)
        return True

    def outlook(
        self,
        number: int,
        named: tuple[str, str],
        dependencies: tuple[Dependency, ...],
        *,
        resolve: Callable[[Dependency], Target | None],
        ended: Callable[[int], bool | None],
    ) -> str:
        """Returns what a job would wait for if it were received now, for a person; empty for nothing.

        The arguments are those of `receive`.
        """
        waits: list[Dependency] = []
        for dependency in dependencies:
            target = SINGLETON if dependency.kind == "singleton" else resolve(dependency)
            met = target is None or self._met(dependency, target, number, named, ended)
            if met is None:
                waits.append(dependency)
            elif not met:
                return f"its dependency {dependency} cannot be met: it would be cancelled at once"
        return f"waits for {_listed(waits)}" if waits else ""

    def _met(
        self,
        dependency: Dependency,
        target: Target,
        number: int,
        named: tuple[str, str],
        ended: Callable[[int], bool | None],
    ) -> bool | None:
        # Whether it is met, or cannot be; None while that is open.
        if target is SINGLETON:
            return next(iter(self._named.get(named, (number,)))) == number or None
        if not target.array:
            ok = ended(target.number)
            return None if ok is None else _satisfies(dependency.kind, ok=ok)
        array = self.arrays[target.number]
        if array.not_ok and dependency.kind == "afterok":
            return False
        return None if array.open else _satisfies(dependency.kind, ok=not array.not_ok)

    def release(self, number: int) -> None:
        """Notes that a job is not held any more."""
        held = self._drop(number)
        if held.array is not None:
            held.array.under_way.add(number)

    def end(
        self, number: int, named: tuple[str, str], *, array: JobArray | None, outcome: Outcome
    ) -> None:
        """Notes the end of a job, held or not."""
        ok = outcome in OK
        if number in self._held:
            self._drop(number)
        others = self._named[named]
        was_first = next(iter(others)) == number
        del others[number]
        if not others:
            del self._named[named]
        elif was_first:
            self._settle(next(iter(others)), SINGLETON, ok=True)
        self._settle_all(Target(number), ok=ok)
        if array is not None:
            self._element_ended(number, array, ok=ok)

    def _element_ended(self, number: int, array: JobArray, *, ok: bool) -> None:
        array.open -= 1
        first_not_ok = not (ok or array.not_ok)
        array.not_ok += not ok
        array.under_way.discard(number)
        if array.ready:
            self._with_room[array.array] = array
        target = Target(array.array, array=True)
        if not array.open:
            self._settle_all(target, ok=not array.not_ok)
        elif first_not_ok:
            for waiting in self._waiting.get(target, ()):
                for dependency in self._held[waiting].terms[target]:
                    if dependency.kind == "afterok":
                        self.hopeless.setdefault(waiting, dependency)

    def forget(self, array: JobArray, outcome: Outcome) -> bool:
        """Notes that an ended element is no longer remembered; returns whether the array is not, either."""
        array.received -= 1
        array.forgotten_not_ok += outcome not in OK
        if array.received:
            return False
        del self.arrays[array.array]
        self._with_room.pop(array.array, None)
        return True

    def _settle_all(self, target: Target, *, ok: bool) -> None:
        for number in self._waiting.pop(target, ()):
            self._settle(number, target, ok=ok)

    def _settle(self, number: int, target: Target, *, ok: bool) -> None:
        held = self._held.get(number)
        if held is None:
            return
        for dependency in held.terms.pop(target, ()):
            if not _satisfies(dependency.kind, ok=ok):
                self.hopeless.setdefault(number, dependency)
        self._perhaps_ready(number, held)

    def _perhaps_ready(self, number: int, held: _Held) -> None:
        if held.terms or number in self.hopeless:
            return
        if held.array is None:
            self._ready[number] = None
        else:
            heapq.heappush(held.array.ready, number)
            self._with_room[held.array.array] = held.array

    def _drop(self, number: int) -> _Held:
        held = self._held.pop(number)
        self._ready.pop(number, None)
        self.hopeless.pop(number, None)
        for target in held.terms:
            if target is not SINGLETON and (waiting := self._waiting.get(target)) is not None:
                del waiting[number]
                if not waiting:
                    del self._waiting[target]
        return held

    # --- what is to be done --------------------------------------------------------------------

    def next_hopeless(self) -> tuple[int, Dependency] | None:
        """Returns a held job that is to be ended, and the dependency that cannot be met."""
        return next(iter(self.hopeless.items()), None)

    def next_ready(self) -> int:
        """Returns the number of a held job that is to be released; 0 if there is none.

        Of one array the elements come in order, and never more than its limit.
        """
        for number in self._ready:
            return number
        for name, array in list(self._with_room.items()):
            while array.ready and array.ready[0] not in self._held:
                heapq.heappop(array.ready)
            if array.ready and array.has_room:
                return array.ready[0]
            del self._with_room[name]
        return 0

    def why(self, number: int) -> str:
        """Returns what a held job waits for, for a person; empty if it is not held."""
        held = self._held.get(number)
        if held is None:
            return ""
        waits = [each for terms in held.terms.values() for each in terms]
        if waits:
            return f"waits for {_listed(waits)}"
        if held.array is not None and not held.array.has_room:
            return f"waits for room in its array: {held.array.spec.limit} elements at a time"
        return "is about to be decided"


def _listed(dependencies: list[Dependency]) -> str:
    shown = ", ".join(map(str, dependencies[:SHOWN]))
    more = len(dependencies) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _satisfies(kind: str, *, ok: bool) -> bool:
    return {"afternotok": not ok, "afterany": True, "singleton": True}.get(kind, ok)
