import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given

from grms.learning.checkpoint import (
    Best,
    Checkpoint,
    CheckpointError,
    Snapshot,
    first_difference,
    is_unfinished,
)
from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation, StrategySettings
from grms.learning.evolution.termination import GenerationRecord
from tests.training_grids import genomes, no_genome, rule_space, same_genome

DESCRIPTION = {"site": "a", "partners": ["b"], "load": 0.1 + 0.2, "none": None}
RECORD = GenerationRecord(0, 3, 1 / 3, math.pi, 1e300, 0.25)
STRATEGY = new_strategy("paper", rule_space(2), StrategySettings(), 1)


def snapshot(genome: Genome | None = None, finished: str = "") -> Snapshot:
    best = Best(genome or no_genome(), Evaluation(1 / 3, ((1 / 3, math.nan),)), 0)
    return Snapshot(STRATEGY.to_state(), (RECORD,), best, finished)


def checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "checkpoint.json", DESCRIPTION)


@given(genome=genomes())
def test_a_snapshot_comes_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, genome: Genome
) -> None:
    """Strategy, history and best; AWRT of a site without jobs is no number and stays that."""
    kept = checkpoint(tmp_path_factory.getbasetemp())
    kept.write(snapshot(genome, "why not"))
    again = kept.read()
    assert again.strategy == STRATEGY.to_state()
    assert again.history == (RECORD,)
    assert again.finished == "why not"
    assert again.best is not None
    assert same_genome(again.best.genome, genome)
    assert again.best.generation == 0
    assert again.best.evaluation.value == 1 / 3
    assert math.isnan(again.best.evaluation.figures[0][1])


def test_writing_again_replaces_the_whole_file(tmp_path: Path) -> None:
    """The second is there, nothing of the first, and no temporary file."""
    kept = checkpoint(tmp_path)
    kept.write(snapshot(finished="x" * 10_000))
    kept.write(Snapshot(STRATEGY.to_state(), (), None))
    assert kept.read().best is None
    assert kept.read().history == ()
    assert list(tmp_path.iterdir()) == [kept.path]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """A full disk costs the new checkpoint, not the old one; the error names the file."""
    kept = checkpoint(tmp_path)
    kept.write(snapshot(finished="old"))
    full = OSError(28, "No space left on device")
    with (
        patch.object(Path, "write_text", side_effect=full),
        pytest.raises(CheckpointError, match=r"checkpoint\.json: cannot be written: No space"),
    ):
        kept.write(snapshot(finished="new"))
    assert kept.read().finished == "old"


def damage(**change: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: document | change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (damage(finished="yes"), "is damaged: its checksum is wrong"),
        (damage(history=[]), "is damaged"),
        (damage(strategy={}), "is damaged"),
        (damage(surplus=1), "is damaged"),
        (damage(sha256="0" * 64), "is damaged"),
        (damage(sha256=5), "is damaged"),
        (damage(description=None), "is damaged"),
        (damage(schema="hanse.training/9"), "'hanse.training/9'; this version reads"),
        (damage(schema=None), "schema is None"),
    ],
)
def test_damage_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], complaint: str
) -> None:
    """Whatever is not what was written is refused, by the file's name."""
    kept = checkpoint(tmp_path)
    kept.write(snapshot())
    kept.path.write_text(json.dumps(change(json.loads(kept.path.read_text()))))
    with pytest.raises(CheckpointError, match=complaint) as caught:
        kept.read()
    assert str(caught.value).startswith(f"{kept.path}: ")


@pytest.mark.parametrize("byte", [0, 40, 200, 400, 700, -80, -3])
def test_one_byte_is_enough(tmp_path: Path, byte: int) -> None:
    """A single changed character anywhere is an error, never a crash or another run."""
    kept = checkpoint(tmp_path)
    kept.write(snapshot())
    content = bytearray(kept.path.read_bytes())
    content[byte] ^= 0b11
    kept.path.write_bytes(content)
    with pytest.raises(CheckpointError):
        kept.read()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is no checkpoint"),
        (b'{"schema": "hanse.tr', "is no checkpoint"),
        (b"\xff\xfe", "is no checkpoint"),
        (b"[" * 100_000, "is no checkpoint"),
        (b"[]", "schema is None"),
        (b'{"schema":"hanse.rule-base/1"}', "'hanse.rule-base/1'"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    """Rubbish, half a file, another kind of file: read or looked at, an error in words."""
    kept = checkpoint(tmp_path)
    kept.path.write_bytes(content)
    with pytest.raises(CheckpointError, match=complaint):
        kept.read()
    with pytest.raises(CheckpointError, match=complaint):
        is_unfinished(kept.path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """The text says what is different, and what to do."""
    checkpoint(tmp_path).write(snapshot())
    other = Checkpoint(tmp_path / "checkpoint.json", DESCRIPTION | {"load": 0.3})
    said = r"another training run: load was 0\.3000\d+4 and is 0\.3; resume with the data"
    with pytest.raises(CheckpointError, match=said):
        other.read()


def test_a_file_without_its_parts_is_refused(tmp_path: Path) -> None:
    """With the right checksum, but of another program."""
    kept = checkpoint(tmp_path)
    with patch.object(GenerationRecord, "to_state", return_value={"round": 1}):
        kept.write(snapshot())
    with pytest.raises(CheckpointError, match="is no checkpoint: TypeError"):
        kept.read()


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """One that is missing, a folder, one that is far too large."""
    kept = checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint\.json: cannot be read: No such file"):
        kept.read()
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        Checkpoint(tmp_path, DESCRIPTION).read()
    kept.write(snapshot())
    with (
        patch("grms.learning.checkpoint.FILE_BYTES_MAX", 100),
        pytest.raises(CheckpointError, match="larger than 100 bytes"),
    ):
        kept.read()


def test_a_run_is_unfinished_until_it_says_why_it_stopped(tmp_path: Path) -> None:
    """What a run that was cut off has last written says no reason."""
    kept = checkpoint(tmp_path)
    kept.write(snapshot())
    assert is_unfinished(kept.path)
    kept.write(snapshot(finished="the target is reached"))
    assert not is_unfinished(kept.path)


def test_differences_of_any_shape() -> None:
    """New keys, other lengths, other types; long values are cut."""
    assert first_difference({}, {"x": 1}) == "x was not there"
    assert first_difference({"x": [1]}, {"x": [1, 2]}) == "x had 1 entries and has 2"
    assert first_difference({"x": [1, {"y": 2}]}, {"x": [1, {"y": 3}]}) == "x[1].y was 2 and is 3"
    assert first_difference(None, {"x": "y" * 500}) == (
        "it was None and is {'x': '" + "y" * 70 + "..."
    )
    assert first_difference([1.0, "a"], [1.0, "a"]) is None
