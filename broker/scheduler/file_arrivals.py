"""When the files of tasks are at which site, where a network is known and runs are simulated.

Files go to the site of a task as soon as it has a place and they exist: those from one source together, each
of them once to a site. Where links carry one transfer at a time (`Network.contended`), they wait for their link (`LinkQueues`) in the
order in which the plan has them begin. A transfer is journaled when it begins, and goes on while the broker does not run; what
waits is found again by what tasks need. Programs are given their files by their sites when they are launched, so nothing
waits for them here.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from broker.model.network import HOME, Copy, DataFile, Network
from broker.model.plan import Plan, Transfer
from broker.model.program import Input, Output
from broker.model.transfers import LinkTimes
from broker.model.workflow import Workflow
from broker.scheduler.lifecycle import AT_SITE, DONE, HELD, TaskState
from broker.scheduler.link_queues import FileAt, Key, LinkQueues, Waiting
from broker.scheduler.records import FilesSent
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables
from broker.scheduler.transaction import Transaction

WAITING_FOR_FILES: Final = HELD | {TaskState.WAITING}

_SLACK: Final = 1e-9
"""Seconds by which two ways may differ, for rounding."""


@dataclass(frozen=True, slots=True)
class _Parcel:
    # Files of one source that a task needs at a site and that are not on their way there.
    key: Key
    origin: str
    since: float
    files: tuple[DataFile, ...]


class FileArrivals:
    """What has been sent, and what waits for its link.

    Attributes:
        sent_bytes: since the broker began to work.
        planned_bytes: that the present plan sends.
        planned_transfers: of the present plan; unknown after a restart until the next one.
    """

    def __init__(self, memory: StateTables, network: Network | None) -> None:
        self._memory = memory
        self._network = network
        self._at: dict[FileAt, float] = {}
        self._reads: dict[str, Mapping[str, tuple[DataFile, ...]]] = {}
        self._made_for: dict[str, Mapping[str, dict[str, float]]] = {}
        self.sent_bytes = 0.0
        self.planned_bytes = 0.0
        self.planned_transfers: tuple[Transfer, ...] = ()
        # By workflow, file and site when the plan has it sent; and what fixed tasks still have to be sent by the plan before.
        self._planned_begin: dict[FileAt, float] = {}
        self._kept: tuple[Transfer, ...] = ()
        # Until when each link is taken by what has begun; after a restart by what is of workflows that have not ended.
        self._taken: dict[tuple[str, str], float] = {}
        self._queues = LinkQueues(self._seconds, self._at, self._taken)
        self._numbers = itertools.count()
        for workflow, each in self._begun():
            self._at |= {(workflow, file, each.target): each.end for file in each.files}
            self._take(each.source, each.target, each.end)

    def _begun(self) -> Iterator[tuple[str, Transfer]]:
        # What has been sent, with the ids of workflows. Where links have become faster since, by a restart with another network,
        # it has gone so from its begin: else a mistake in the network would hold a link for as long as it lasts.
        for workflow, sent in self._memory.sent.items():
            for each in sent:
                end = each.end
                if self._network is not None:
                    end = min(
                        end, each.begin + self._seconds((each.source, each.target), each.size)
                    )
                yield workflow, each if end == each.end else replace(each, end=end)

    def _take(self, source: str, target: str, end: float) -> None:
        self._taken[source, target] = max(end, self._taken.get((source, target), end))

    def _seconds(self, ends: tuple[str, str], size: float) -> float:
        assert self._network is not None  # without a network nothing is sent
        return self._network.link(*ends).seconds(size)

    def site(self, resource: str) -> str:
        """Returns the site of a resource: what the network says, else the one that has it, else itself."""
        assert self._network is not None  # sites matter where there is a network
        if resource in self._network.sites:
            return self._network.sites[resource]
        supply = self._memory.supplies.get(resource)
        return resource if supply is None else supply.site or resource

    def network(self) -> Network | None:
        """Returns the network with the sites of all resources, for a planner."""
        if self._network is None:
            return None
        sites = {name: self.site(name) for name in self._memory.supplies}
        named = {**self._network.sites, **sites}
        return replace(self._network, sites=named)

    def planned(self, live: LiveWorkflow) -> Workflow:
        """Returns a workflow for a planner: one that names no files has those of its programs, as far as known.

        They come from the broker, where what tasks have left is brought as they end.
        """
        workflow = live.planned
        if self._network is None or workflow.files or not live.programs:
            return workflow
        sizes: dict[bytes, int] = {}
        readers: dict[bytes, dict[str, None]] = {}
        for program in live.programs.values():
            for given in program.inputs:
                content: Input | Output | None = given
                if given.task:
                    left = live.tasks[given.task].outputs
                    content = next((each for each in left if each.name == given.output), None)
                if content is not None and content.sha256:
                    sizes[content.sha256] = content.size
                    readers.setdefault(content.sha256, {})[program.task] = None
        files = (
            DataFile(sha256.hex(), size, tuple(readers[sha256]), site=HOME)
            for sha256, size in sizes.items()
        )
        return replace(workflow, files=tuple(files))

    def copies(self) -> tuple[Copy, ...]:
        """Returns what has been sent of workflows that have not ended, and forgets the rest."""
        names = {each.workflow_id: each.workflow.name for each in self._memory.live.values()}
        for key in [each for each in self._at if each[0] not in names]:
            del self._at[key]  # in place, as the queues look at it too
        self._reads = {key: reads for key, reads in self._reads.items() if key in names}
        self._made_for = {key: made for key, made in self._made_for.items() if key in names}
        return tuple(
            Copy(names[workflow], file, site, since)
            for (workflow, file, site), since in self._at.items()
        )

    def under_way(self, now: float, fixed: Collection[tuple[str, str]]) -> tuple[Transfer, ...]:
        """Returns what a new plan leaves as it is: what has begun, and what fixed tasks have to be sent.

        There is none where transfers do not wait for each other. `fixed` has workflow and task of each of them.
        """
        if self._network is None or not self._network.contended:
            return ()
        begun = [each for _, each in self._begun() if each.end > now]
        self._kept = tuple(self._still_sent(now, begun, fixed))
        return (*begun, *self._kept)

    def _still_sent(
        self, now: float, begun: list[Transfer], fixed: Collection[tuple[str, str]]
    ) -> Iterator[Transfer]:
        # What fixed tasks have to be sent, in the order of the plan, each in the first gap of its link.
        assert self._network is not None  # as above
        found: list[tuple[float, int, str, _Parcel]] = []
        for workflow, name in fixed:
            task = self._memory.live[workflow].tasks[name]
            if task.state in HELD and task.booking is not None:
                site = self.site(task.booking.placement.resources[0])
                for parcel in self._parcels(task, site, now, {})[1]:
                    order = self._moment(task, parcel, site, parcel.since)
                    found.append((order, len(found), site, parcel))
        links = LinkTimes(begun)
        sent: set[FileAt] = set()
        for _, _, site, parcel in sorted(found, key=lambda each: each[:2]):
            workflow, reader, _ = parcel.key
            files = [each for each in parcel.files if (workflow, each.name, site) not in sent]
            size = math.fsum(each.size for each in files)
            if not files or parcel.since == math.inf:
                continue
            seconds = self._seconds((parcel.origin, site), size)
            begin = links.earliest(parcel.origin, site, parcel.since, seconds)
            links.take(parcel.origin, site, begin, begin + seconds)
            sent.update((workflow, each.name, site) for each in files)
            yield Transfer(
                self._memory.workflows[workflow].workflow.name,
                reader,
                tuple(each.name for each in files),
                parcel.origin,
                site,
                begin,
                begin + seconds,
                size,
                size * self._network.link(parcel.origin, site).price,
            )

    def adopt(self, plan: Plan) -> None:
        """Takes note of what a plan sends."""
        self.planned_transfers = (*self._kept, *plan.transfers)
        self.planned_bytes = math.fsum(each.size for each in plan.transfers)
        self._planned_begin = {
            (each.workflow, file, each.target): each.begin
            for each in reversed(self.planned_transfers)
            for file in each.files
        }

    def counts(self, workflow: LiveWorkflow) -> bool:
        """Returns whether files of a workflow are sent here."""
        return self._network is not None and bool(workflow.workflow.files) and not workflow.programs

    def files(self, task: LiveTask) -> tuple[DataFile, ...]:
        """Returns the files that a task waits for."""
        if self._network is None or task.program is not None or not task.owner.workflow.files:
            return ()
        owner = task.owner
        if owner.workflow_id not in self._reads:
            reads: dict[str, list[DataFile]] = {}
            for file in owner.workflow.files:
                for reader in file.readers:
                    reads.setdefault(reader, []).append(file)
            self._reads[owner.workflow_id] = {name: tuple(mine) for name, mine in reads.items()}
        return self._reads[owner.workflow_id].get(task.task.name, ())

    def arrival(
        self, task: LiveTask, resource: str, now: float, ends: Mapping[str, float] | None = None
    ) -> float:
        """Returns when the files of a task are at the site of a resource; minus infinity for none.

        What has not been sent there is sent now or, where its task has not ended, at that task's end: by
        `ends`, by name, else by its reservation or the plan. Where links carry one transfer at a time, it begins after what waits before it.
        """
        if not self.files(task):
            return -math.inf
        assert self._network is not None  # without a network a task waits for no files
        site = self.site(resource)
        latest, parcels = self._parcels(task, site, now, ends or {})
        free: dict[str, float] = {}
        for parcel in sorted(parcels, key=lambda each: each.since):
            arrival = self._expected(task, parcel, site, now, free)
            latest = max(latest, arrival)
        return latest

    def _expected(
        self, task: LiveTask, parcel: _Parcel, site: str, now: float, free: dict[str, float]
    ) -> float:
        # When files should be at a site; `free` says when links are, as far as others of the same task come before.
        ends = parcel.origin, site
        missing, latest = list[DataFile](), -math.inf
        for file in parcel.files:
            coming = self._queues.file(ends, (parcel.key[0], file.name, site), now)
            if coming is None:
                missing.append(file)
            else:
                latest = max(latest, coming)
        if not missing:
            return latest
        seconds = self._seconds(ends, math.fsum(file.size for file in missing))
        begin = parcel.since
        if self.contended and seconds > 0:
            order = self._moment(task, parcel, site, now), 0
            begin = max(begin, free.get(parcel.origin, begin), self._queues.free(ends, order, now))
            free[parcel.origin] = begin + seconds
        return max(latest, begin + seconds)

    @property
    def contended(self) -> bool:
        """Whether a link carries one transfer at a time."""
        return self._network is not None and self._network.contended

    def _parcels(
        self, task: LiveTask, site: str, now: float, ends: Mapping[str, float]
    ) -> tuple[float, list[_Parcel]]:
        # When what is at a site, or on its way, is there; and what is not, by where it comes from.
        latest = -math.inf
        coming: dict[tuple[str, str, float], list[DataFile]] = {}
        workflow = task.owner.workflow_id
        for file in self.files(task):
            at = self._at.get((workflow, file.name, site))
            if at is not None:
                latest = max(latest, at)
                continue
            origin, since = self._origin(task, file, now, ends)
            if origin != site:
                coming.setdefault((file.maker, origin, since), []).append(file)
        return latest, [
            _Parcel((workflow, task.task.name, maker or f"/{origin}"), origin, since, tuple(mine))
            for (maker, origin, since), mine in coming.items()
        ]

    def _moment(self, task: LiveTask, parcel: _Parcel, site: str, otherwise: float) -> float:
        # When the plan has files sent to a site, for this task or another one.
        name = task.owner.workflow.name
        begins = (self._planned_begin.get((name, file.name, site)) for file in parcel.files)
        return min((each for each in begins if each is not None), default=otherwise)

    def _origin(
        self, task: LiveTask, file: DataFile, now: float, ends: Mapping[str, float]
    ) -> tuple[str, float]:
        # Where a file is or will be, and from when on it can be sent.
        assert self._network is not None  # as above
        if not file.maker:
            return file.site or self._network.inputs, now
        maker = task.owner.tasks[file.maker]
        place = maker.booking.placement if maker.booking is not None else maker.placement
        if place is None:
            return "", math.inf  # nobody knows yet
        if maker.state in DONE:
            return self.site(place.resources[0]), now
        end = place.end if maker.booking is None else maker.booking.end
        return self.site(place.resources[0]), max(now, ends.get(file.maker, end))

    def send(self, task: LiveTask, transaction: Transaction) -> None:
        """Has what there is of a task's files sent to where it is booked or planned, or lets it wait for its link."""
        files = self.files(task)
        if not files:
            return
        place = task.booking.placement if task.booking is not None else task.placement
        waits: dict[Key, Waiting] = {}
        if place is not None:
            site, workflow = self.site(place.resources[0]), task.owner.workflow_id
            for parcel in self._parcels(task, site, transaction.now, {})[1]:
                maker = parcel.files[0].maker
                if maker and task.owner.tasks[maker].state not in DONE:
                    continue
                ends = parcel.origin, site
                size = math.fsum(file.size for file in parcel.files)
                if not (self.contended and self._seconds(ends, size) > 0):
                    self._sent(task, ends, parcel.files, transaction)
                    continue
                before = self._queues.get(parcel.key)
                same = before is not None and before.ends == ends
                asked = before.order if before is not None and same else None
                number = next(self._numbers) if asked is None else asked[1]
                moment = self._moment(
                    task, parcel, site, transaction.now if asked is None else asked[0]
                )
                waits[parcel.key] = Waiting(
                    parcel.key,
                    ends,
                    {(workflow, file.name, site): file.size for file in parcel.files},
                    (moment, number),
                )
        self._queues.keep_only((task.owner.workflow_id, task.task.name), waits)
        for waiting in waits.values():
            self._queues.put(waiting)

    def _sent(
        self,
        task: LiveTask,
        ends: tuple[str, str],
        files: Collection[DataFile],
        transaction: Transaction,
    ) -> float:
        # Files begin to go now; returns when they are there.
        assert self._network is not None  # without a network nothing is sent
        owner, now = task.owner, transaction.now
        size = math.fsum(file.size for file in files)
        end = now + self._seconds(ends, size)
        cost = size * self._network.link(*ends).price
        names = tuple(file.name for file in files)
        key = owner.workflow_id, task.task.name
        transaction.note(FilesSent(now, *key, names, *ends, now, end, size, cost))
        self._take(*ends, end)
        self.sent_bytes += size
        for file in files:
            self._at[owner.workflow_id, file.name, ends[1]] = end
        return end

    def nearness(self, task: LiveTask) -> Callable[[str], bool]:
        """Returns a function: whether links are needed no longer for a task on a resource than where it is planned or booked.

        What counts is what it reads and is not there yet, and what it makes, where tasks that wait for it have places. Without a place,
        or files, it is near everywhere.
        """
        place = task.booking.placement if task.booking is not None else task.placement
        files = self._network is not None and task.owner.workflow.files
        if not files or place is None or task.program is not None:
            return lambda _resource: True
        here = self.site(place.resources[0])
        ways = dict[str, float]()

        def is_near(resource: str) -> bool:
            site = self.site(resource)
            if site == here:
                return True
            for each in (here, site):
                if each not in ways:
                    ways[each] = self._way(task, each)
            return ways[site] <= ways[here] + _SLACK

        return is_near

    def _way(self, task: LiveTask, site: str) -> float:
        # How long links are needed for a task at a site, in seconds.
        sizes: dict[tuple[str, str], float] = {}
        for file in self.files(task):
            if (task.owner.workflow_id, file.name, site) not in self._at:
                origin, _ = self._origin(task, file, 0.0, {})
                if origin != site:
                    sizes[origin, file.maker] = sizes.get((origin, file.maker), 0.0) + file.size
        found = [self._seconds((origin, site), size) for (origin, _), size in sizes.items()]
        for reader, size in self._outgoing(task.owner).get(task.task.name, {}).items():
            after = task.owner.tasks[reader]
            place = after.booking.placement if after.booking is not None else after.placement
            if place is not None:
                target = self.site(place.resources[0])
                if target != site:
                    found.append(self._seconds((site, target), size))
        return math.fsum(found)

    def _outgoing(self, owner: LiveWorkflow) -> Mapping[str, dict[str, float]]:
        # By task and reader how many bytes go from one to the other; worked out once.
        found = self._made_for.get(owner.workflow_id)
        if found is None:
            sizes: dict[str, dict[str, float]] = {}
            for file in owner.workflow.files:
                for reader in file.readers if file.maker else ():
                    mine = sizes.setdefault(file.maker, {})
                    mine[reader] = mine.get(reader, 0.0) + file.size
            found = self._made_for[owner.workflow_id] = sizes
        return found

    @property
    def next_time(self) -> float:
        """When the next link is free for which something waits, seconds; infinity for never."""
        return self._queues.next_time

    def begin(self, transaction: Transaction) -> None:
        """Begins the transfers whose turn it is; the tasks that have waited for these files are looked at."""
        while (taken := self._queues.take(transaction.now)) is not None:
            waiting, missing = taken
            workflow, name, _ = waiting.key
            owner = self._memory.workflows.get(workflow)
            task = None if owner is None else owner.tasks[name]
            if task is None or task.owner.closing or task.state not in WAITING_FOR_FILES:
                continue
            readers = {key: None for file in missing for key in self._queues.readers(file)}
            names = {file for _, file, _ in missing}
            files = [each for each in self.files(task) if each.name in names]
            self._sent(task, waiting.ends, files, transaction)
            self._queues.changed(waiting.ends)
            names_of = dict.fromkeys(reader for _, reader, _ in (waiting.key, *readers))
            transaction.touched += (task.owner.tasks[reader] for reader in names_of)

    def transfers(self, now: float) -> list[tuple[Transfer, bool]]:
        """Returns what is sent or has been, of workflows that have not ended, and what the plan still has to send.

        With each comes whether it has begun. What waits for its link stands where it is expected. What the plan has for tasks that were
        sent something meanwhile, or that should be over by now, in seconds, is left out.
        """
        found = [(each, True) for _, each in self._begun()]
        for waiting in self._queues:
            span = self._queues.span(waiting.key, now)
            live = self._memory.workflows.get(waiting.key[0])
            if span is not None and live is not None and not live.closing:
                names = tuple(file for _, file, _ in waiting.sizes)
                size = math.fsum(waiting.sizes.values())
                key = live.workflow.name, waiting.key[1]
                found.append((Transfer(*key, names, *waiting.ends, *span, size, 0.0), False))
        known = {(each.workflow, file, each.target) for each, _ in found for file in each.files}
        for each in self.planned_transfers:
            workflow = self._memory.live.get(each.workflow)
            task = None if workflow is None else workflow.tasks.get(each.task)
            waits = task is not None and task.state in WAITING_FOR_FILES
            sent = any((each.workflow, file, each.target) in known for file in each.files)
            if waits and each.end > now and not sent:
                found.append((each, False))
        return found

    def take_up(self) -> None:
        """Notes, when the broker begins, that what tasks have had is where they run or ran."""
        if self._network is None:
            return
        for task in self._memory.tasks():
            place = task.booking.placement if task.booking is not None else task.placement
            if place is not None and task.state in DONE | AT_SITE:
                for file in self.files(task):
                    key = task.owner.workflow_id, file.name, self.site(place.resources[0])
                    self._at.setdefault(key, -math.inf)
