"""Who works: threads, processes or a cluster; also options of commands, so nothing here is slow to import."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from lrms_sim.util.option_fields import option, taken

if TYPE_CHECKING:
    from lrms_sim.util.executors import Executor

ExecutorName = Literal["threads", "processes", "dask"]


@dataclass(frozen=True, slots=True)
class Workers:
    """Executor and number of workers.

    Attributes:
        count: default one per processor.
        scheduler: address of a dask scheduler; default a cluster on this machine.
    """

    executor: ExecutorName = option("Who evaluates; the result is the same.", default="threads")
    count: int | None = option(
        "How many.  [default: one for each processor]", default=None, flag="--workers"
    )
    scheduler: str | None = option(
        "Of a dask scheduler, tcp://HOST:PORT.", default=None, metavar="ADDRESS"
    )

    def __post_init__(self) -> None:
        _ = self.number

    @property
    def number(self) -> int:
        """Number of workers; a guess for an existing cluster."""
        from lrms_sim.util.executors import check_workers  # noqa: PLC0415  # see the module's docstring

        return check_workers(self.count)

    def started(self) -> "AbstractContextManager[Executor]":
        """Returns the workers as a context that ends them; `ExecutorError` if a cluster is unreachable."""
        from lrms_sim.util.executors import DaskExecutor, ProcessExecutor, ThreadExecutor  # noqa: PLC0415  # same

        if self.executor == "processes":
            return ProcessExecutor(self.count)
        if self.executor == "dask":
            return DaskExecutor(self.scheduler, self.count)
        return ThreadExecutor(self.count)


def workers_of(chosen: dict[str, Any]) -> Workers:
    """Removes the workers' options from `chosen`, and returns the workers.

    Raises:
        click.UsageError: there is a scheduler for another executor, or a number is out of its
            bounds.
    """
    if chosen["scheduler"] is not None and chosen["executor"] != "dask":
        raise click.UsageError("--scheduler goes with --executor dask")
    try:
        return Workers(**taken(Workers, chosen))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
