"""Clusters that run as long as a test wants them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Cluster(Protocol):
    """A batch system, real or not."""

    def up(self) -> None:
        """Starts it; what has begun is ended where that fails."""

    def down(self) -> None:
        """Ends it."""


@contextmanager
def up(cluster: Cluster) -> Iterator[None]:
    """Has a cluster meanwhile."""
    cluster.up()
    try:
        yield
    finally:
        cluster.down()
