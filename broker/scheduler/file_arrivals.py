"""When the files of tasks are at which site, where a network is known and runs are simulated.

Files go to the site of a task as soon as it has a place and they exist: those from one source together, each
of them once to a site. Where links carry one transfer at a time (`Network.contended`), a transfer begins behind those that were
sent over its link before. What is on its way is not in the journal: after a restart it is sent anew, and files that
a task has had are where it ran. Programs are given their files by their sites when they are launched, so nothing
waits for them here.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from broker.model.network import HOME, Copy, DataFile, Network
from broker.model.plan import Plan, Transfer
from broker.model.program import Input, Output
from broker.model.workflow import Workflow
from broker.scheduler.lifecycle import AT_SITE, DONE, HELD, TaskState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables

WAITING_FOR_FILES: Final = HELD | {TaskState.WAITING}

FileAt = tuple[str, str, str]
"""Workflow (its id), file and site."""


class FileArrivals:
    """What has been sent.

    Attributes:
        sent_bytes: since the broker began to work.
        planned_bytes: that the present plan sends.
        planned_transfers: of the present plan; unknown after a restart until the next one.
        sent: transfers that have begun, by the ids of their workflows that have not ended.
    """

    def __init__(self, memory: StateTables, network: Network | None) -> None:
        self._memory = memory
        self._network = network
        self._at: dict[FileAt, float] = {}
        self._reads: dict[str, Mapping[str, tuple[DataFile, ...]]] = {}
        self.sent_bytes = 0.0
        self.planned_bytes = 0.0
        self.planned_transfers: tuple[Transfer, ...] = ()
        self.sent: dict[str, list[Transfer]] = {}
        # Where links carry one transfer at a time: until when each is taken by what has been sent, that, and what fixed
        # tasks still have to be sent by the plan before.
        self._free: dict[tuple[str, str], float] = {}
        self._under_way: list[Transfer] = []
        self._kept: tuple[Transfer, ...] = ()

    def site(self, resource: str) -> str:
        """Returns the site of a resource: what the network says, else the one that has it, else itself."""
        assert self._network is not None, "sites matter where there is a network"
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
        self._at = {key: since for key, since in self._at.items() if key[0] in names}
        self._reads = {key: reads for key, reads in self._reads.items() if key in names}
        self.sent = {key: some for key, some in self.sent.items() if key in names}
        return tuple(
            Copy(names[workflow], file, site, since)
            for (workflow, file, site), since in self._at.items()
        )

    def under_way(self, now: float, fixed: Collection[tuple[str, str]]) -> tuple[Transfer, ...]:
        """Returns what a new plan leaves as it is: what has been sent, and what fixed tasks have to be sent.

        There is none where transfers do not wait for each other. `fixed` has workflow and task of each of them.
        """
        if self._network is None or not self._network.contended:
            return ()
        self._under_way = [each for each in self._under_way if each.end > now]
        self._kept = tuple(
            each
            for each, begun in self.transfers(now)
            if not begun and (each.workflow, each.task) in fixed
        )
        return (*self._under_way, *self._kept)

    def adopt(self, plan: Plan) -> None:
        """Takes note of what a plan sends."""
        self.planned_transfers = (*self._kept, *plan.transfers)
        self.planned_bytes = math.fsum(each.size for each in plan.transfers)

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
        `ends`, by name, else by its reservation or the plan.
        """
        files = self.files(task)
        if not files:
            return -math.inf
        assert self._network is not None, "without a network a task waits for no files"
        site = self.site(resource)
        latest = -math.inf
        coming: dict[tuple[str, float], float] = {}
        for file in files:
            at = self._at.get((task.owner.workflow_id, file.name, site))
            if at is not None:
                latest = max(latest, at)
                continue
            origin, since = self._origin(task, file, now, ends or {})
            if origin != site:
                coming[origin, since] = coming.get((origin, since), 0.0) + file.size
        free = self._free.copy() if self._network.contended else {}
        for (origin, since), size in sorted(coming.items(), key=lambda each: each[0][1]):
            end = self._begin(origin, site, since, free) + self._network.link(origin, site).seconds(
                size
            )
            free[origin, site] = end
            latest = max(latest, end)
        return latest

    def _begin(
        self, source: str, target: str, since: float, free: Mapping[tuple[str, str], float]
    ) -> float:
        # When a transfer begins; `free` says when each link is.
        assert self._network is not None, "without a network nothing is sent"
        return max(since, free.get((source, target), since)) if self._network.contended else since

    def _origin(
        self, task: LiveTask, file: DataFile, now: float, ends: Mapping[str, float]
    ) -> tuple[str, float]:
        # Where a file is or will be, and from when on it can be sent.
        assert self._network is not None, "as above"
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

    def send(self, task: LiveTask, now: float) -> None:
        """Has what there is of a task's files sent to where it is booked or planned."""
        files = self.files(task)
        place = task.booking.placement if task.booking is not None else task.placement
        if not files or place is None:
            return
        assert self._network is not None, "as above"
        site = self.site(place.resources[0])
        coming: dict[tuple[str, str], list[DataFile]] = {}
        for file in files:
            done = not file.maker or task.owner.tasks[file.maker].state in DONE
            if done and (task.owner.workflow_id, file.name, site) not in self._at:
                origin, _ = self._origin(task, file, now, {})
                if origin != site:
                    coming.setdefault((file.maker, origin), []).append(file)
        for (_, origin), mine in coming.items():
            size = math.fsum(file.size for file in mine)
            link = self._network.link(origin, site)
            begin = self._begin(origin, site, now, self._free)
            arrival = begin + link.seconds(size)
            self.sent_bytes += size
            names = tuple(file.name for file in mine)
            key = task.owner.workflow.name, task.task.name
            sent = Transfer(*key, names, origin, site, begin, arrival, size, size * link.price)
            self.sent.setdefault(task.owner.workflow_id, []).append(sent)
            if self._network.contended:
                self._free[origin, site] = arrival
                self._under_way.append(sent)
            for file in mine:
                self._at[task.owner.workflow_id, file.name, site] = arrival

    def transfers(self, now: float) -> list[tuple[Transfer, bool]]:
        """Returns what is sent or has been, of workflows that have not ended, and what the plan still has to send.

        With each comes whether it has begun. What the plan has for tasks that were sent something meanwhile, or that should be over
        by now, in seconds, is left out.
        """
        live = {workflow.workflow_id for workflow in self._memory.live.values()}
        found = [(each, True) for key, some in self.sent.items() if key in live for each in some]
        begun = {(each.workflow, each.task, each.target) for each, _ in found}
        for each in self.planned_transfers:
            workflow = self._memory.live.get(each.workflow)
            task = None if workflow is None else workflow.tasks.get(each.task)
            waits = task is not None and task.state in WAITING_FOR_FILES
            if waits and each.end > now and (each.workflow, each.task, each.target) not in begun:
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
                    self._at[key] = -math.inf
