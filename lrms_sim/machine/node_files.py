"""Machines of nodes as TOML files. docs/nodes.md describes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from lrms_sim.machine.node_kinds import NodeKind, NodeMachine, Placement
from lrms_sim.util.documents import known_keys, listed, reading, table, text, whole
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import parse_toml, read_bytes
from lrms_sim.util.messages import shown
from lrms_sim.workload.requests import mib_of

BYTES_MAX: Final = 1 << 20

_MACHINE_KEYS: Final = ("name", "placement", "licences", "nodes")
_KIND_KEYS: Final = ("kind", "count", "cores", "memory", "gpus", "gpu_type", "features")


class NodeFileError(HanseError, ValueError):
    """A file of a machine that cannot be read; the text names file, place and problem."""


def read_machine(path: Path) -> NodeMachine:
    """Reads a machine; its name is by default that of the file.

    Raises:
        NodeFileError: it cannot be read, or says what cannot be.
    """
    document = parse_toml(read_bytes(path, BYTES_MAX, NodeFileError), str(path), NodeFileError)
    with reading(str(path), NodeFileError):
        return machine_of(document, path.stem)


def machine_of(document: Mapping[str, Any], name: str) -> NodeMachine:
    """Returns the machine that a document describes; `name` if it has none of its own.

    Raises:
        ValueError: a key is unknown or missing, or has a value that cannot be.
    """
    known_keys(document, _MACHINE_KEYS, "the machine")
    kinds = listed(document.get("nodes", []), "nodes")
    if not kinds:
        raise ValueError("no [[nodes]]: a machine has a table for each kind of nodes")
    licences = table(document.get("licences", {}), "licences", "a table [licences]")
    return NodeMachine(
        tuple(_kind(each, f"nodes[{number}]") for number, each in enumerate(kinds)),
        cast("Placement", text(document.get("placement", "best-fit"), "placement")),
        text(document.get("name", name), "name"),
        tuple((word, whole(count, f"licences.{word}")) for word, count in licences.items()),
    )


def _kind(given: object, place: str) -> NodeKind:
    said = table(given, place, "a table [[nodes]]")
    known_keys(said, _KIND_KEYS, place)
    for key in ("kind", "count", "cores"):
        if key not in said:
            raise ValueError(f"{place} has no {key}; kind, count and cores are needed")
    features = listed(said.get("features", []), f"{place}.features")
    return NodeKind(
        text(said["kind"], f"{place}.kind"),
        whole(said["count"], f"{place}.count"),
        whole(said["cores"], f"{place}.cores"),
        _memory(said.get("memory", 0), f"{place}.memory"),
        whole(said.get("gpus", 0), f"{place}.gpus"),
        text(said.get("gpu_type", ""), f"{place}.gpu_type"),
        frozenset(text(word, f"{place}.features[{at}]") for at, word in enumerate(features)),
    )


def _memory(given: object, place: str) -> int:
    if not isinstance(given, str):
        return whole(given, place)
    mib = mib_of(given)
    if mib is None:
        raise ValueError(f"{place} is {shown(given)}; an amount as '128 GiB', or MiB, is expected")
    return mib
