"""Checkpoints: a training run as a JSON file, from which it can be resumed bit for bit.

The file holds the strategy's state, the history, the best individual so far, and a description of
data and settings, with numbers to the last bit. It is replaced atomically, and has a checksum.
A run is resumed only with the same data and settings; workloads are in the description as checksums.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation
from grms.learning.evolution.termination import GenerationRecord
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import write_text

SCHEMA = "hanse.training/2"
"""Value of the key `schema` in files that this version reads and writes."""

FILE_BYTES_MAX = 256 << 20
"""Largest checkpoint that is read; a run of the paper's size has some hundred kilobytes."""


class CheckpointError(HanseError, ValueError):
    """A checkpoint that cannot be written, read or resumed; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best individual so far, and the generation in which it appeared."""

    genome: Genome
    evaluation: Evaluation
    generation: int

    def to_state(self) -> dict[str, Any]:
        """Returns the individual as plain values, exact to the last bit."""
        return {
            "genome": self.genome.to_state(),
            "value": self.evaluation.value,
            "figures": [list(row) for row in self.evaluation.figures],
            "generation": self.generation,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Returns the individual that `to_state` described."""
        figures = tuple(tuple(row) for row in state["figures"])
        return cls(
            Genome.from_state(state["genome"]),
            Evaluation(state["value"], figures),
            state["generation"],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A training run between two generations.

    Attributes:
        strategy: its `to_state`.
        best: the best individual so far; `None` before the first generation.
        finished: why the run has stopped by itself; empty if it has not.
    """

    strategy: Mapping[str, Any]
    history: tuple[GenerationRecord, ...]
    best: Best | None
    finished: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file with the snapshots of one run.

    Attributes:
        path: the JSON file, in an existing folder.
        description: data and settings of the run, plain values.
        interval_s: least time between two writes during the run, seconds. Its end and an
            interruption are always written.
    """

    path: Path
    description: Mapping[str, Any]
    interval_s: float = 2.0

    def write(self, snapshot: Snapshot) -> None:
        """Replaces the file; `CheckpointError` if it cannot be written."""
        document = {
            "schema": SCHEMA,
            "finished": snapshot.finished,
            "description": self.description,
            "best": None if snapshot.best is None else snapshot.best.to_state(),
            "history": [record.to_state() for record in snapshot.history],
            "strategy": snapshot.strategy,
        }
        text = _json(document | {"sha256": _sha256(document)}) + "\n"
        try:
            write_text(self.path, text)
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error

    def read(self) -> Snapshot:
        """Reads the file.

        Raises:
            CheckpointError: it cannot be read, is no checkpoint, or is one of other data or
                settings.
        """
        document = _document(self.path)
        if document.pop("sha256", None) != _sha256(document):
            raise CheckpointError(
                f"{self.path}: is damaged: its checksum is wrong; begin anew in another folder"
            )
        difference = first_difference(
            document.get("description"), json.loads(json.dumps(self.description))
        )
        if difference is not None:
            raise CheckpointError(
                f"{self.path}: is of another training run: {difference}; resume with the data and "
                f"settings it was begun with, or begin anew in another folder"
            )
        try:
            best = document["best"]
            return Snapshot(
                strategy=document["strategy"],
                history=tuple(GenerationRecord.from_state(one) for one in document["history"]),
                best=None if best is None else Best.from_state(best),
                finished=document["finished"],
            )
        except (KeyError, TypeError, ValueError) as error:
            # The checksum is right, so another program wrote this.
            raise CheckpointError(f"{self.path}: is no checkpoint: {error!r}") from error


def is_unfinished(path: Path) -> bool:
    """Returns whether a checkpoint is of a run that has not stopped by itself.

    Raises:
        CheckpointError: it cannot be read, or is no checkpoint.
    """
    return not _document(path).get("finished")


def _json(document: Mapping[str, Any]) -> str:
    # AWRT of a site without jobs is NaN, which Python's JSON writes and reads.
    return json.dumps(document, separators=(",", ":"))


def _sha256(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(_json(document).encode()).hexdigest()


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise CheckpointError(
                f"{path}: is no checkpoint: it is larger than {FILE_BYTES_MAX} bytes"
            )
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"{path}: is no checkpoint: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise CheckpointError(f"{path}: schema is {found!r}; this version reads {SCHEMA!r}")
    return document


def first_difference(saved: object, found: object) -> str | None:
    """Returns where two descriptions first differ, for display; `None` if they are equal."""
    return next(_differences(saved, found, ""), None)


def _differences(saved: object, found: object, place: str) -> Iterator[str]:
    if isinstance(saved, Mapping) and isinstance(found, Mapping):
        for key in sorted({*saved, *found}):
            where = f"{place}.{key}" if place else str(key)
            if key not in found:
                yield f"{where} is there no more"
            elif key not in saved:
                yield f"{where} was not there"
            else:
                yield from _differences(saved[key], found[key], where)
    elif isinstance(saved, list) and isinstance(found, list):
        if len(saved) != len(found):
            yield f"{place} had {len(saved)} entries and has {len(found)}"
        for index, (one, other) in enumerate(zip(saved, found, strict=False)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif saved != found:
        yield f"{place or 'it'} was {_shown(saved)} and is {_shown(found)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
