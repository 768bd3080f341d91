"""The generated code of the wire contract is what its sources give."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    """Returns `proto/generate.py` as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "proto" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CONTRACT = """syntax = "proto3";
package toy.v1;
message Offer { double requested_time_s = 1; }
message Answer { bool accepted = 1; }
service Partner { rpc Ask(Offer) returns (Answer); }
"""


def test_generated_code_is_up_to_date() -> None:
    """The code of the wire contract in the packages is what its sources give."""
    assert generator().stale(ROOT) == []


def test_stale_generated_code_is_caught(tmp_path: Path) -> None:
    """Missing, altered and surplus generated files are violations; fresh ones are not."""
    generate = generator()
    source = tmp_path / "proto" / "toy" / "v1" / "toy.proto"
    source.parent.mkdir(parents=True)
    source.write_text(CONTRACT)
    assert generate.stale(tmp_path) == [
        f"toy/v1/toy{ending} is missing" for ending in generate.GENERATED
    ]
    written = generate.generate(tmp_path, tmp_path)
    assert [str(path) for path in written] == [f"toy/v1/toy{e}" for e in generate.GENERATED]
    assert "class PartnerStub" in (tmp_path / "toy/v1/toy_pb2_grpc.pyi").read_text()
    assert generate.stale(tmp_path) == []
    source.write_text(CONTRACT.replace("accepted", "taken"))
    assert "toy/v1/toy_pb2.py is not what its source gives" in generate.stale(tmp_path)
    source.unlink()
    assert len(generate.stale(tmp_path)) == len(generate.GENERATED)


def test_a_bad_contract_is_reported(tmp_path: Path) -> None:
    """What the protocol compiler complains of reaches the person who runs it."""
    generate = generator()
    source = tmp_path / "proto" / "toy" / "v1" / "toy.proto"
    source.parent.mkdir(parents=True)
    source.write_text(CONTRACT.replace("double", "dooble"))
    with pytest.raises(generate.GenerationError, match="dooble"):
        generate.generate(tmp_path, tmp_path)
