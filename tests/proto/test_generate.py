"""The generated code of the wire contract is what its sources give."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

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
        *(f"toy/v1/toy{ending} is missing" for ending in generate.GENERATED),
        f"{generate.BASELINE} is not the contract that the sources state",
    ]
    (tmp_path / generate.BASELINE).write_bytes(generate.contract(tmp_path))
    written = generate.generate(tmp_path, tmp_path)
    assert [str(path) for path in written] == [f"toy/v1/toy{e}" for e in generate.GENERATED]
    assert "class PartnerStub" in (tmp_path / "toy/v1/toy_pb2_grpc.pyi").read_text()
    services = (tmp_path / "toy/v1/toy_pb2_grpc.py").read_text()
    assert re.findall(r"^(?:class|def) (\w+)", services, re.MULTILINE) == [
        "PartnerStub",
        "PartnerServicer",
        "add_PartnerServicer_to_server",
    ]
    assert generate.stale(tmp_path) == []
    source.write_text(CONTRACT.replace("accepted", "taken"))
    assert "toy/v1/toy_pb2.py is not what its source gives" in generate.stale(tmp_path)
    # A source without a service has no code of services.
    source.write_text(CONTRACT.partition("service")[0])
    assert "toy/v1/toy_pb2_grpc.py has no source" in generate.stale(tmp_path)
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


def test_the_bounds_are_those_of_the_generated_code() -> None:
    """No protobuf and no gRPC is allowed that is older than the code; the newest is one major version later."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    wanted = [*project["dependencies"], *extras]
    bounds = {re.split(r"[<>=]", line)[0]: line for line in wanted}
    assert generator().protos(ROOT)
    for source in generator().protos(ROOT):
        messages = (ROOT / source.with_name(f"{source.stem}_pb2.py")).read_text()
        version = re.search(r"Protobuf Python Version: (\d+)\.(\d+)\.0$", messages, re.MULTILINE)
        assert version is not None, source
        major, minor = version.groups()
        allowed = Requirement(bounds["protobuf"]).specifier
        older = f"{major}.{int(minor) - 1}.99"
        assert not allowed.contains(older)
        assert allowed.contains(f"{major}.99")
        assert allowed.contains(f"{int(major) + 1}.99")
        assert not allowed.contains(f"{int(major) + 2}.0")
        services = ROOT / source.with_name(f"{source.stem}_pb2_grpc.py")
        if not services.exists():
            continue
        guard = re.search(r"GRPC_GENERATED_VERSION = '(.*)'", services.read_text())
        assert guard is not None, source
        for package in ("grpcio", "grpcio-health-checking", "grpcio-reflection"):
            assert bounds[package] == f"{package}>={guard[1]}"


# --- what a change would break ---------------------------------------------------------------------


EVOLVING = """syntax = "proto3";
package toy.v1;
message Offer {
  reserved 7;
  reserved "colour";
  double requested_time_s = 1;
  int32 processors = 2;
  optional string name = 3;
  repeated string partners = 4;
  oneof payload { string script = 5; bytes image = 6; }
  message Inner { bool there = 1; }
}
enum Answer { ANSWER_UNSPECIFIED = 0; ANSWER_YES = 1; }
service Partner { rpc Ask(Offer) returns (stream Offer); rpc Tell(Offer) returns (Offer); }
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("double requested_time_s = 1;", "", "requested_time_s is gone, and its number 1 is not"),
        ("double requested_time_s = 1;", "reserved 1;", "requested_time_s is gone, and its name"),
        ("requested_time_s = 1", "requested_time_s = 8", "its number 1 is not reserved"),
        ("double requested_time_s", "double time_s", "its name was requested_time_s and is time_s"),
        ("double requested_time_s", "float requested_time_s", "its type was double and is float"),
        ("optional string name", "string name", "how often it may be there"),
        ("repeated string partners", "string partners", "how often it may be there"),
        ("string script = 5; bytes", "bytes", "script is gone"),
        ("oneof payload", "oneof content", "what it excludes was payload and is content"),
        ("reserved 7;", "", "Offer: numbers 7 to 7 are no longer reserved"),
        ("reserved 7;", "string colour_code = 7;", "numbers 7 to 7 are no longer reserved"),
        ('reserved "colour";', "", "the name colour is no longer reserved"),
        ("message Inner { bool there = 1; }", "", "message toy.v1.Offer.Inner is gone"),
        ("Inner { bool there", "Inner { bool here", "toy.v1.Offer.Inner.there: its name was"),
        (" ANSWER_YES = 1;", "", "ANSWER_YES is gone, and its number 1 is not reserved"),
        ("ANSWER_YES", "ANSWER_NO", "its name was ANSWER_YES and is ANSWER_NO"),
        ("enum Answer {", "enum Reply {", "enum toy.v1.Answer is gone"),
        ("service Partner", "service Peer", "service toy.v1.Partner is gone"),
        ("rpc Tell(Offer) returns (Offer);", "", "toy.v1.Partner.Tell is gone"),
        ("returns (stream Offer)", "returns (Offer)", "a stream of answers was True and is False"),
        ("rpc Tell(Offer)", "rpc Tell(stream Offer)", "a stream of requests was False and is True"),
        ("rpc Tell(Offer)", "rpc Tell(Offer.Inner)", "its request was .toy.v1.Offer and is"),
    ],
)
def test_a_break_of_the_contract_is_found(tmp_path: Path, old: str, new: str, says: str) -> None:
    """What programs of before could not understand, or would misread, is found and named."""
    generate, source = generator(), tmp_path / "proto" / "toy" / "v1" / "toy.proto"
    source.parent.mkdir(parents=True)
    source.write_text(EVOLVING)
    (tmp_path / generate.BASELINE).write_bytes(generate.contract(tmp_path))
    assert generate.broken(tmp_path) == []
    assert EVOLVING.count(old) == 1
    source.write_text(EVOLVING.replace(old, new))
    assert any(says in line for line in generate.broken(tmp_path))


def test_additions_and_reserved_removals_break_nothing(tmp_path: Path) -> None:
    """A field, a value, a call and a message may come; a field may go if number and name stay."""
    generate, source = generator(), tmp_path / "proto" / "toy" / "v1" / "toy.proto"
    source.parent.mkdir(parents=True)
    source.write_text(EVOLVING)
    (tmp_path / generate.BASELINE).write_bytes(generate.contract(tmp_path))
    changed = EVOLVING
    for old, new in (
        ("int32 processors = 2;", 'reserved 2; reserved "processors"; string memory = 8;'),
        ("ANSWER_YES = 1;", "ANSWER_YES = 1; ANSWER_NO = 2;"),
        ("rpc Tell", "rpc Sing(More) returns (More); rpc Tell"),
        ("enum Answer", "message More {}\nenum Answer"),
    ):
        changed = changed.replace(old, new)
    source.write_text(changed)
    assert generate.broken(tmp_path) == []


def test_the_contract_keeps_what_others_were_built_with() -> None:
    """Nothing in the baseline is gone, renumbered or renamed."""
    generate = generator()
    assert (ROOT / generate.BASELINE).exists()
    assert generate.broken(ROOT) == []
