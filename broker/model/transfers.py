"""What has to be where before a task begins, and the transfers of a plan.

The files of a task that come from one source, a predecessor or the site of a workflow's inputs, come
together: they take the latency of the link and all their bytes over its bandwidth. A transfer begins when
the files are there, and not before now; without contention transfers do not slow each other down. A file is sent to
a site once: who begins there first has it sent, and the others find it.

Where a link carries one transfer at a time (`Network.contended`), tasks are planned one after another, and each has what
it lacks sent when it gets its place, source by source in the order in which their files exist. Each transfer
takes the first gap of its link that is long enough, from when its files exist on, and from the end of the one
before of the same task over that link on. Those of tasks planned before stay where they are. Who is planned first has
a file sent, and the others find it when that transfer ends. What takes no time needs no link.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from broker.model.network import DataFile, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """Files that a task has from one source.

    Attributes:
        maker: the task that makes them; empty for inputs of the workflow.
        site: where such inputs are; empty for what a task makes.
    """

    maker: str
    site: str
    files: tuple[DataFile, ...]


class Staging:
    """The data of one problem; where it has no network, nothing is ever waited for."""

    def __init__(self, problem: Problem) -> None:
        self._now = problem.now
        self._under_way = problem.under_way
        self.network: Network | None = problem.network
        self._sources: dict[Key, tuple[Source, ...]] = {}
        self._there: dict[tuple[str, str, str], float] = {}
        if self.network is None:
            return
        for workflow in problem.workflows:
            for task, sources in _sources(workflow.files, self.network.inputs):
                self._sources[workflow.name, task] = sources
        for placement in problem.fixed:
            site = self.network.site(placement.resources[0])
            for source in self.sources(placement.key):
                for file in source.files:
                    self._note((placement.workflow, file.name, site), placement.start)
        for copy in problem.copies:
            self._note((copy.workflow, copy.file, copy.site), copy.since)

    def _note(self, where: tuple[str, str, str], since: float) -> None:
        self._there[where] = min(since, self._there.get(where, math.inf))

    def __bool__(self) -> bool:
        return bool(self._sources)

    def sources(self, key: Key) -> tuple[Source, ...]:
        """Returns where the files of a task come from."""
        return self._sources.get(key, ())

    @property
    def known(self) -> Iterable[tuple[str, str, str]]:
        """Workflow, file and site of what is or will be there, whatever is planned."""
        return self._there.keys()

    def there(self, workflow: str, file: str, site: str) -> float:
        """Returns since when a file is at a site, whatever is planned; infinite if it is not."""
        return self._there.get((workflow, file, site), math.inf)

    @property
    def contended(self) -> bool:
        """Whether transfers wait for each other."""
        return bool(self._sources) and self.network is not None and self.network.contended

    def schedule(self) -> "TransferSchedule":
        """Returns the transfers of a plan that is to be made, none yet."""
        return TransferSchedule(self, self._there, self._under_way)

    def arrival(
        self, workflow: str, source: Source, site: str, placed: Mapping[Key, Placement]
    ) -> float:
        """Returns when all files of one source are at a site; minus infinity for nothing to wait for."""
        assert self.network is not None  # without a network there are no sources
        latest, missing = -math.inf, list[float]()
        for file in source.files:
            since = self.there(workflow, file.name, site)
            if since < math.inf:
                latest = max(latest, since)
            else:
                missing.append(file.size)
        if not missing:
            return latest
        origin, since = self.origin(workflow, source, placed)
        if origin == site:
            return latest
        return max(latest, since + self.network.link(origin, site).seconds(math.fsum(missing)))

    def origin(
        self, workflow: str, source: Source, placed: Mapping[Key, Placement]
    ) -> tuple[str, float]:
        """Returns the site of a source, and from when on its files can be sent."""
        if not source.maker:
            return source.site, self._now
        assert self.network is not None  # without a network there are no sources
        before = placed[workflow, source.maker]
        return self.network.site(before.resources[0]), max(before.end, self._now)

    def ready(self, key: Key, resource: str, placed: Mapping[Key, Placement]) -> float:
        """Returns when the files of a task are at the site of its primary resource.

        Minus infinity if it has none. `placed` has to have those that make them.
        """
        if self.network is None:
            return -math.inf
        site = self.network.site(resource)
        return max(
            (self.arrival(key[0], source, site, placed) for source in self.sources(key)),
            default=-math.inf,
        )

    def transfers(self, placements: Iterable[Placement]) -> tuple[Transfer, ...]:
        """Returns the transfers of a plan without those of tasks that have started, in order of time."""
        if self.network is None or not self._sources:
            return ()
        placed = {placement.key: placement for placement in placements}
        sent: set[tuple[str, str, str]] = set()
        found = []
        for placement in sorted(placed.values(), key=lambda each: (each.start, *each.key)):
            site = self.network.site(placement.resources[0])
            for source in self.sources(placement.key):
                where = {file: (placement.workflow, file.name, site) for file in source.files}
                files = [
                    file for file, at in where.items() if at not in sent and at not in self._there
                ]
                origin, since = self.origin(placement.workflow, source, placed)
                if not files or origin == site:
                    continue
                sent.update(where.values())
                size = math.fsum(file.size for file in files)
                link = self.network.link(origin, site)
                found.append(
                    Transfer(
                        *placement.key,
                        tuple(file.name for file in files),
                        origin,
                        site,
                        since,
                        since + link.seconds(size),
                        size,
                        size * link.price,
                    )
                )
        return tuple(sorted(found, key=_in_time))


class LinkTimes:
    """When the links of pairs of sites, each in one direction, are taken."""

    def __init__(self, under_way: Iterable[Transfer] = ()) -> None:
        self._taken: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        for each in under_way:
            self.take(each.source, each.target, each.begin, each.end)

    def earliest(self, source: str, target: str, since: float, seconds: float) -> float:
        """Returns the begin of the first gap of so many seconds from a moment on."""
        begins, ends = self._taken.get((source, target), ((), ()))
        begin = since
        for number in range(bisect_right(ends, since), len(ends)):
            if begin + seconds <= begins[number]:
                break
            begin = ends[number]
        return begin

    def take(self, source: str, target: str, begin: float, end: float) -> None:
        """Takes a link from begin to end; what takes no time needs none."""
        if not begin < end:
            return
        begins, ends = self._taken.setdefault((source, target), ([], []))
        low, high = bisect_left(ends, begin), bisect_right(begins, end)
        first, last = min([begin, *begins[low:high]]), max([end, *ends[low:high]])
        begins[low:high], ends[low:high] = [first], [last]


class TransferSchedule:
    """The transfers of a plan that is being made, task by task; made by `Staging.schedule`.

    Without contention those of a task depend on no other task, and it need not be placed here.
    """

    def __init__(
        self,
        staging: Staging,
        there: Mapping[tuple[str, str, str], float],
        under_way: Iterable[Transfer],
    ) -> None:
        self._staging = staging
        self._at = dict(there)
        self._links = LinkTimes(under_way)
        self._made: list[Transfer] = []

    def ready(self, key: Key, resource: str, placed: Mapping[Key, Placement]) -> float:
        """Returns when the files of a task are there if it is placed next, as `Staging.ready` does."""
        if not self._staging.contended:
            return self._staging.ready(key, resource, placed)
        latest, _ = self._looked(key, resource, placed)
        return latest

    def place(self, key: Key, resource: str, placed: Mapping[Key, Placement]) -> None:
        """Has the files of a task sent to the site of its primary resource."""
        if not self._staging.contended:
            return
        _, transfers = self._looked(key, resource, placed)
        for each in transfers:
            self._links.take(each.source, each.target, each.begin, each.end)
            for file in each.files:
                self._at[each.workflow, file, each.target] = each.end
        self._made += transfers

    def completed(self, plan: Plan) -> Plan:
        """Returns the plan, with the transfers that it needs, and their costs in those of its tasks."""
        if self._staging.contended:
            transfers = tuple(sorted(self._made, key=_in_time))
        else:
            transfers = self._staging.transfers(plan)
        if not transfers:
            return plan
        more: dict[Key, float] = {}
        for each in transfers:
            key = each.workflow, each.task
            more[key] = more.get(key, 0.0) + each.cost
        placements = tuple(
            replace(each, cost=each.cost + more[each.key]) if more.get(each.key) else each
            for each in plan
        )
        return Plan(placements, plan.unplanned, transfers)

    def _looked(
        self, key: Key, resource: str, placed: Mapping[Key, Placement]
    ) -> tuple[float, list[Transfer]]:
        network = self._staging.network
        assert network is not None  # without a network there is no contention
        site = network.site(resource)
        latest = -math.inf
        found: list[Transfer] = []
        before: dict[str, float] = {}
        sources = [
            (source, *self._staging.origin(key[0], source, placed))
            for source in self._staging.sources(key)
        ]
        for source, origin, since in sorted(sources, key=lambda each: each[2]):
            missing = []
            size = 0.0
            for file in source.files:
                at = self._at.get((key[0], file.name, site))
                if at is not None:
                    latest = max(latest, at)
                elif origin != site:
                    missing.append(file.name)
                    size += file.size  # in this order, as the kernel adds
            if not missing:
                continue
            link = network.link(origin, site)
            seconds = link.seconds(size)
            begin = since
            if seconds > 0:
                begin = max(since, before.get(origin, since))
                begin = self._links.earliest(origin, site, begin, seconds)
                before[origin] = begin + seconds
            end = begin + seconds
            latest = max(latest, end)
            cost = size * link.price
            found.append(Transfer(*key, tuple(missing), origin, site, begin, end, size, cost))
        return latest, found


def _in_time(transfer: Transfer) -> tuple[object, ...]:
    return transfer.begin, transfer.end, transfer.task, transfer.source


def _sources(files: Iterable[DataFile], home: str) -> Iterator[tuple[str, tuple[Source, ...]]]:
    # By task; one source has all files of a maker, or of a site.
    found: dict[str, dict[tuple[str, str], list[DataFile]]] = {}
    for file in files:
        origin = (file.maker, "") if file.maker else ("", file.site or home)
        for reader in file.readers:
            found.setdefault(reader, {}).setdefault(origin, []).append(file)
    for task, by_origin in found.items():
        yield task, tuple(Source(*origin, tuple(mine)) for origin, mine in by_origin.items())
