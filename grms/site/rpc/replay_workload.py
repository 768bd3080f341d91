"""The workload of a replay: it comes in blocks of columns, and every row is checked before the first arrives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from grms.v1 import replay_pb2
from lrms_sim.workload.groups import GROUPS

ROWS_MAX: Final = 50_000_000


@dataclass(slots=True)
class ReplayWorkload:
    """Columns in order of arrival.

    Attributes:
        submit_time: seconds.
        requested_time: seconds.
        run_time: seconds, at most what was requested.
        user_group: of each job's user, from 1; empty if groups mean nothing.
        place: of each job among all of the replay, from 1; empty if no site sends guests home.
    """

    replay_id: str = ""
    total: int = 0
    submit_time: list[float] = field(default_factory=list)
    processors: list[int] = field(default_factory=list)
    requested_time: list[float] = field(default_factory=list)
    run_time: list[float] = field(default_factory=list)
    user_group: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)

    def take(self, block: replay_pb2.LoadRequest) -> str:
        """Adds a block; returns what is wrong with it, nothing if all is well.

        The first one says whose workload it is, and how many rows it has.
        """
        if not self.replay_id:
            self.replay_id, self.total = block.replay_id, block.jobs_total
        columns = (
            block.submit_time_s,
            block.processors,
            block.requested_time_s,
            block.run_time_s,
        )
        if len({len(column) for column in columns}) != 1:
            return "the columns of a block have different lengths"
        self.submit_time.extend(block.submit_time_s)
        self.processors.extend(block.processors)
        self.requested_time.extend(block.requested_time_s)
        self.run_time.extend(block.run_time_s)
        self.user_group.extend(block.user_group)
        self.place.extend(block.place)
        if len(self.submit_time) > min(self.total, ROWS_MAX):
            return f"more rows than jobs_total, {self.total}"
        return ""

    def problem(self, processors: int) -> str:
        """Returns why the whole cannot be replayed at a site, nothing if it can."""
        if not self.replay_id:
            return "the first block has no replay_id"
        if len(self.submit_time) != self.total:
            return f"{len(self.submit_time)} rows came; jobs_total is {self.total}"
        if self.user_group and len(self.user_group) != self.total:
            return f"{len(self.user_group)} rows have a user_group; all or none must"
        if self.place and len(self.place) != self.total:
            return f"{len(self.place)} rows have a place; all or none must"
        for row, group in enumerate(self.user_group):
            if group not in GROUPS:
                return f"row {row}: user_group is {group}; it must be from 1 to {GROUPS[-1]}"
        return self._problem_of_a_row(processors)

    def _problem_of_a_row(self, processors: int) -> str:
        before = -math.inf
        columns: Sequence[Sequence[float]] = (
            self.submit_time,
            self.processors,
            self.requested_time,
            self.run_time,
        )
        for row, (submit, width, request, run) in enumerate(zip(*columns, strict=True)):
            if not (math.isfinite(submit) and submit >= before):
                return f"row {row}: submit_time_s is {submit}; rows are in order of arrival"
            if not 1 <= width <= processors:
                return f"row {row}: processors is {width}; this site has {processors}"
            if not (0 < run <= request < math.inf):
                return (
                    f"row {row}: run_time_s is {run}, requested_time_s {request}; 0 < run ≤ request"
                )
            before = submit
        return ""
