"""Writes the Python code of the wire contract, or checks that it is up to date.

`make proto` runs it. The code of `proto/X/v1/*.proto` goes to `X/v1/`, so that the import path
mirrors the path of the source; it is checked in, and a test compares it with a fresh run. So is the
contract itself, as descriptors (`proto/baseline.binpb`): a source that breaks it is refused.
"""

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

ROOT = Path(__file__).resolve().parents[1]

BASELINE = "proto/baseline.binpb"
"""The contract that programs elsewhere were built with: a `FileDescriptorSet`."""

MESSAGES = ("_pb2.py", "_pb2.pyi")
SERVICES = ("_pb2_grpc.py", "_pb2_grpc.pyi")
GENERATED = (*MESSAGES, *SERVICES)
"""Endings of the files that are kept for one source; those of services only if it has one."""


class GenerationError(Exception):
    """The compiler is missing, or has refused a source; the text is the compiler's own."""


def protos(root: Path) -> list[Path]:
    """Returns the sources of the contract, `X/v1/Y.proto`, relative to `root/proto`."""
    folder = root / "proto"
    return sorted(path.relative_to(folder) for path in folder.glob("*/v*/*.proto"))


def generate(root: Path, target: Path) -> list[Path]:
    """Writes the code of every source below `target`.

    Args:
        root: the checkout.
        target: an existing folder.

    Returns:
        The files written, relative to `target`.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    sources = protos(root)
    if not sources:
        return []
    # The compiler writes stubs of messages, but none of services.
    stubs = Path(sys.executable).with_name("protoc-gen-mypy_grpc")
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python", "mypy_grpc")]
    _compile(root, f"--plugin=protoc-gen-mypy_grpc={stubs}", *outputs)
    written = []
    for path in sources:
        written += [path.with_name(path.stem + ending) for ending in MESSAGES]
        code, types = (path.with_name(path.stem + ending) for ending in SERVICES)
        services = without_experimental((target / code).read_text())
        if "class " in services:
            (target / code).write_text(services)
            written += [code, types]
        else:
            (target / code).unlink()
            (target / types).unlink()
    return written


def without_experimental(code: str) -> str:
    """Returns the compiler's code of services without the classes of gRPC's experimental interface.

    A method of such a class makes a connection for each call; nothing uses them, and the stubs for
    type checkers do not know them. They are two fifths of the code.
    """
    lines = code.splitlines(keepends=True)
    for node in reversed(ast.parse(code).body):
        if isinstance(node, ast.ClassDef) and not node.name.endswith(("Stub", "Servicer")):
            # Before a class stand a comment and two blank lines.
            del lines[node.lineno - 4 : node.end_lineno]
    return "".join(lines)


def _compile(root: Path, *options: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "--proto_path=."),
            *options,
            *(str(path) for path in protos(root)),
        ],
        cwd=root / "proto",
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise GenerationError(done.stderr.strip())


def contract(root: Path) -> bytes:
    """Returns the contract that the sources state, as a serialized `FileDescriptorSet`.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "contract.binpb"
        _compile(root, "--include_imports", f"--descriptor_set_out={made}")
        return made.read_bytes()


def broken(root: Path) -> list[str]:
    """Returns what of the baseline the sources no longer keep, one line for each thing.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    baseline = root / BASELINE
    if not baseline.exists():
        return []
    return breaks(
        FileDescriptorSet.FromString(baseline.read_bytes()),
        FileDescriptorSet.FromString(contract(root)),
    )


def stale(root: Path) -> list[str]:
    """Returns what is wrong with the generated code in the checkout, one line for each file.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        expected = generate(root, fresh)
        found = []
        for path in expected:
            if not (root / path).exists():
                found.append(f"{path} is missing")
            elif (root / path).read_bytes() != (fresh / path).read_bytes():
                found.append(f"{path} is not what its source gives")
        baseline = root / BASELINE
        if expected and (not baseline.exists() or baseline.read_bytes() != contract(root)):
            found.append(f"{BASELINE} is not the contract that the sources state")
    surplus = {
        path.relative_to(root) for ending in GENERATED for path in root.glob(f"*/v*/*{ending}")
    }
    return found + [f"{path} has no source" for path in sorted(surplus - set(expected))]


# --- what a change would break -------------------------------------------------------------------


def breaks(before: FileDescriptorSet, now: FileDescriptorSet) -> list[str]:
    """Returns what of a contract no longer holds, one line for each thing.

    Compared is what is on the wire (numbers, types, whether a field repeats), and what programs and
    JSON call it (names). Adding is always possible; what goes leaves number and name `reserved`.

    Args:
        before: the contract that others were built with.
        now: the contract as it is.
    """
    found: list[str] = []
    messages, enums, services = _named(now)
    for kind, old_ones, new_ones, compare in (
        ("message", _named(before)[0], messages, _message),
        ("enum", _named(before)[1], enums, _enum),
        ("service", _named(before)[2], services, _service),
    ):
        old_by_name: Mapping[str, Any] = old_ones
        new_by_name: Mapping[str, Any] = new_ones
        for name, old in old_by_name.items():
            if name not in new_by_name:
                found.append(f"{kind} {name} is gone")
            else:
                found.extend(f"{name}{each}" for each in compare(old, new_by_name[name]))
    return found


def _named(
    contract: FileDescriptorSet,
) -> tuple[
    dict[str, DescriptorProto], dict[str, EnumDescriptorProto], dict[str, ServiceDescriptorProto]
]:
    messages: dict[str, DescriptorProto] = {}
    enums: dict[str, EnumDescriptorProto] = {}
    services: dict[str, ServiceDescriptorProto] = {}

    def take(scope: str, own: Sequence[DescriptorProto]) -> None:
        for message in own:
            name = f"{scope}.{message.name}"
            messages[name] = message
            enums.update({f"{name}.{each.name}": each for each in message.enum_type})
            take(name, message.nested_type)

    for file in contract.file:
        take(file.package, file.message_type)
        enums.update({f"{file.package}.{each.name}": each for each in file.enum_type})
        services.update({f"{file.package}.{each.name}": each for each in file.service})
    return messages, enums, services


def _message(old: DescriptorProto, new: DescriptorProto) -> Iterator[str]:
    fields = {field.number: field for field in new.field}
    # An end is exclusive in messages.
    held = [(each.start, each.end) for each in new.reserved_range]
    for field in old.field:
        if field.number not in fields:
            yield from _gone(field.name, field.number, held, new.reserved_name)
            continue
        was, is_ = _facts(field, old), _facts(fields[field.number], new)
        for fact, value in was.items():
            if is_[fact] != value:
                yield f".{field.name}: {fact} was {value} and is {is_[fact]}"
    for begin, end in ((each.start, each.end) for each in old.reserved_range):
        if not any(left <= begin and end <= right for left, right in held):
            yield f": numbers {begin} to {end - 1} are no longer reserved"
    for name in old.reserved_name:
        if name not in new.reserved_name:
            yield f": the name {name} is no longer reserved"


def _facts(field: FieldDescriptorProto, message: DescriptorProto) -> dict[str, str]:
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    label = FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()
    # An `optional` field is the only member of a group that has no name in the source.
    one_of = field.HasField("oneof_index") and not field.proto3_optional
    return {
        "its name": field.name,
        "its name in JSON": field.json_name,
        "its type": field.type_name or kind,
        "how often it may be there": "optional" if field.proto3_optional else f"({label})",
        "what it excludes": message.oneof_decl[field.oneof_index].name if one_of else "nothing",
    }


def _enum(old: EnumDescriptorProto, new: EnumDescriptorProto) -> Iterator[str]:
    names = {value.number: value.name for value in new.value}
    # An end is inclusive in enums.
    held = [(each.start, each.end + 1) for each in new.reserved_range]
    for value in old.value:
        if value.number not in names:
            yield from _gone(value.name, value.number, held, new.reserved_name)
        elif names[value.number] != value.name:
            yield f".{value.name}: its name was {value.name} and is {names[value.number]}"


def _gone(
    name: str, number: int, held: Sequence[tuple[int, int]], held_names: Sequence[str]
) -> Iterator[str]:
    if not any(begin <= number < end for begin, end in held):
        yield f".{name} is gone, and its number {number} is not reserved"
    if name not in held_names:
        yield f".{name} is gone, and its name is not reserved"


def _service(old: ServiceDescriptorProto, new: ServiceDescriptorProto) -> Iterator[str]:
    methods = {method.name: method for method in new.method}
    for method in old.method:
        if method.name not in methods:
            yield f".{method.name} is gone"
            continue
        other = methods[method.name]
        for fact, was, is_ in (
            ("its request", method.input_type, other.input_type),
            ("its answer", method.output_type, other.output_type),
            ("a stream of requests", method.client_streaming, other.client_streaming),
            ("a stream of answers", method.server_streaming, other.server_streaming),
        ):
            if was != is_:
                yield f".{method.name}: {fact} was {was} and is {is_}"


def main() -> int:
    """Regenerates the code and the baseline in the checkout, unless they would break a promise."""
    if not protos(ROOT):
        print("There is no .proto file under proto/*/v1 yet: nothing to generate.")
        return 0
    try:
        problems = broken(ROOT)
        if problems:
            print("Programs that speak the present contract would break:", file=sys.stderr)
            print(*problems, sep="\n", file=sys.stderr)
            print(
                f"Add instead, and reserve what goes. If it has to be, remove {BASELINE} first.",
                file=sys.stderr,
            )
            return 1
        for path in generate(ROOT, ROOT):
            print(f"wrote {path}")
        (ROOT / BASELINE).write_bytes(contract(ROOT))
        print(f"wrote {BASELINE}")
    except GenerationError as error:
        print(f"The protocol compiler failed:\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
