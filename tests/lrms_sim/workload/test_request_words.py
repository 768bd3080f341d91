"""What jobs ask for, as people write it."""

from collections.abc import Callable

import pytest

from lrms_sim.workload.requests import (
    Gpus,
    Memory,
    RequestError,
    gpus_of,
    licence_of,
    memory_of,
    nodes_of,
)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (nodes_of, "2", (2, 2)),
        (nodes_of, "2-4", (2, 4)),
        (memory_of, "4G", Memory(4096, "core")),
        (memory_of, "64GiB/node", Memory(65536, "node")),
        (memory_of, "1t/gpu", Memory(1 << 20, "gpu")),
        (gpus_of, "2", Gpus(2)),
        (gpus_of, "a100:2/node", Gpus(2, "node", "a100")),
        (licence_of, "matlab", ("matlab", 1)),
        (licence_of, "matlab@host:2", ("matlab@host", 2)),
    ],
)
def test_words_are_read(read: Callable[[str], object], text: str, value: object) -> None:
    """With what they leave out."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (nodes_of, "x"),
        (nodes_of, "2-"),
        (nodes_of, "9" * 16),
        (memory_of, "4"),
        (memory_of, "4G/rack"),
        (memory_of, "0G"),
        (gpus_of, "a100:"),
        (gpus_of, "1/rack"),
        (licence_of, "a b"),
    ],
)
def test_other_words_are_refused(read: Callable[[str], object], text: str) -> None:
    """With the text."""
    with pytest.raises(RequestError):
        read(text)
