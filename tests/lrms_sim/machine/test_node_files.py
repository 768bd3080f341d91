"""Machines of nodes as files."""

from pathlib import Path

import pytest

from lrms_sim.machine.node_files import NodeFileError, read_machine
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine

TEXT = """
placement = "first-fit"
[licences]
matlab = 10
[[nodes]]
kind = "thin"
count = 64
cores = 32
memory = "128 GiB"
[[nodes]]
kind = "gpu"
count = 8
cores = 64
memory = 524288
gpus = 4
gpu_type = "a100"
features = ["ib"]
"""


def read(folder: Path, text: str) -> NodeMachine:
    """Returns the machine of a file with this text."""
    path = folder / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return read_machine(path)


def test_a_machine(tmp_path: Path) -> None:
    """Its name is that of the file, memory is an amount or MiB."""
    assert read(tmp_path, TEXT) == NodeMachine(
        (
            NodeKind("thin", 64, 32, 128 * 1024),
            NodeKind("gpu", 8, 64, 512 * 1024, 4, "a100", frozenset({"ib"})),
        ),
        "first-fit",
        "cluster",
        (("matlab", 10),),
    )
    assert read(tmp_path, 'name = "south"' + TEXT).name == "south"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('kind = "thin"', "", "nodes[0] has no kind; kind, count and cores are needed"),
        ("count = 64", "count = 0", "node kind 'thin': nodes is 0"),
        ("cores = 32", "cores = 1.5", "nodes[0].cores is 1.5; a whole number is expected"),
        ('"128 GiB"', '"much"', "nodes[0].memory is 'much'; an amount as '128 GiB'"),
        ("gpus = 4", "gpu = 4", "nodes[1]: 'gpu' is no key"),
        ('["ib"]', "[1]", "nodes[1].features[0] is 1; a text is expected"),
        ("matlab = 10", "matlab = -1", "licence 'matlab': -1 is not from 0"),
        ('"first-fit"', '"worst"', "placement 'worst'; there are best-fit and first-fit"),
        ('kind = "gpu"', 'kind = "thin"', "two kinds of nodes are called 'thin'"),
        (TEXT, "name = 'x'", "no [[nodes]]: a machine has a table for each kind"),
    ],
)
def test_mistakes_name_their_place(tmp_path: Path, before: str, after: str, words: str) -> None:
    """And the file."""
    with pytest.raises(NodeFileError) as met:
        read(tmp_path, TEXT.replace(before, after))
    assert str(met.value).startswith(f"{tmp_path / 'cluster.toml'}: ")
    assert words in str(met.value)
