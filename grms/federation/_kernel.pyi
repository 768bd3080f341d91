from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from grms.policy._decisions import CompiledTransfer
from lrms_sim.kernel._scheduler import Scheduler

_Times: TypeAlias = npt.NDArray[np.float64]
_Counts: TypeAlias = npt.NDArray[np.int32]
_Sites: TypeAlias = npt.NDArray[np.int32]

SPARSE_FROM: int
"""From so many sites on, records are of those partners alone that a site has met."""

class FederationKernel:
    """K machines and their policies on one clock, over job columns owned by the caller.

    Args:
        known: offsets, shape (k + 1,), into the sites that follow: of each site the partners that it knows,
            in site order; both of a pair know each other, or the one that does not is asked all the same.
            `None`: every site knows all others.
        down: offsets, shape (k + 1,), into moments in ascending order, seconds: each site by turns leaves the
            exchange and comes back. Meanwhile it asks nobody, and questions to it get no answer.
        sparse_from: see `SPARSE_FROM`; what a replay does is the same with any number.
        own_order: whether partners of equal AWRT, asked as often, come in the order of sites that begins behind the
            asking one and goes round, not with the first site. It needs what `known` does.
        wide_area: seed, median of round trips, standard deviation of their logarithms, part of the questions that is
            lost, and time-out: messages take time, in seconds. It needs what `own_order` does, a number of partners asked
            at every site, and no rounds.
    """

    def __init__(
        self,
        processors: Sequence[int],
        schedulers: Sequence[Scheduler],
        transfer: Sequence[CompiledTransfer | Sequence[CompiledTransfer | None]],
        orders: Sequence[
            Sequence[int] | Callable[[list[float], list[float]], Sequence[int]] | None
        ],
        count_open: Sequence[bool],
        reoffer: Sequence[tuple[float, tuple[int, float, bool] | None] | None] | None = None,
        rogues: Mapping[int, tuple[Sequence[CompiledTransfer | None], bool, bool, bool, bool]]
        | None = None,
        partners_asked: Sequence[int | None] | None = None,
        shadows: Sequence[Scheduler | None] | None = None,
        restarts: Sequence[float] | None = None,
        known: tuple[npt.NDArray[np.int64], _Sites] | None = None,
        down: tuple[npt.NDArray[np.int64], _Times] | None = None,
        sparse_from: int = ...,
        own_order: bool = False,
        wide_area: tuple[int, float, float, float, float] | None = None,
    ) -> None: ...
    def bind(
        self,
        submit_time: _Times,
        processors: _Counts,
        requested_time: _Times,
        run_time: _Times,
        submitted_to: _Sites,
        start_time: _Times,
        end_time: _Times,
        executed_on: _Sites,
        groups: npt.NDArray[np.int8] | None = None,
        users: _Counts | None = None,
        checkpoint: _Times | None = None,
    ) -> None:
        """Sets the jobs, merged in order of arrival; `checkpoint` is how often their state is kept, 0: never."""

    def set_tariffs(
        self,
        tariffs: Sequence[tuple[_Times, _Times, _Times, float, float, float] | None],
        preferences: Sequence[tuple[float, float, float, bool] | None],
    ) -> None:
        """Sets what a busy processor costs at each site, and which sites prefer partners where a job costs less.

        Args:
            tariffs: offsets, values, sums before, first moment, period and greatest absolute value of a step
                function.
            preferences: longest delay of own jobs, saving that counts, look-ahead, and whether other partners
                are left out; of a site with a fixed order of partners.
        """

    def place_on_nodes(
        self,
        shape: _Counts,
        asked: npt.NDArray[np.int64],
        nodes: npt.NDArray[np.int64],
        holds: npt.NDArray[np.uint8],
        tells: npt.NDArray[np.uint8],
    ) -> None:
        """Sets what the bound jobs ask of nodes.

        Args:
            shape: shape (n,), the demand of each job.
            asked: shape (2, s), memory in MiB and GPUs that each demand asks for in all.
            nodes: shape (k, 2), the same of each site's nodes.
            holds: shape (k, s), whether a site could run such a job if it were empty.
            tells: shape (k, s), whether a site can tell its partners what such a job needs.
        """

    def run(self, rows: int) -> int:
        """Replays arrivals before row `rows`; at the last one drains every machine."""

    @property
    def offers(self) -> list[int]:
        """Number of offers of each site that have reached a partner."""

    @property
    def preempted(self) -> list[int]:
        """Number of times that a job of each site's users was sent home."""

    @property
    def lost(self) -> list[float]:
        """Work of each site's users that was lost with these, processor seconds."""

    def awrt(self) -> list[float]:
        """Returns the AWRT of each site's own users, seconds, nan for a site without jobs."""
