"""Records what a release writes, as bytes: journals, wire messages, files.

`python -m tests.release.record` is run before a release is tagged, and again only as long as that has not happened. From then on the folder of that
version stands for the release, and every later program has to read it (docs/compatibility.md).
"""

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from broker.runtime import journal as broker_journal
from grms.daemon.journal import JournalKind
from grms.daemon.journal_lines import lines
from grms.site.model.jobs import Request
from grms.site.model.records import KINDS
from grms.site.runtime import journal as site_journal
from grms.util.dependencies import Dependency
from lrms_sim.util.version import __version__
from lrms_sim.workload.requests import Gpus, Memory
from lrms_sim.workload.requests import Request as Needs
from tests.broker.runtime.test_codec import lived
from tests.field_paths import repeats
from tests.grms.site.daemons import two_sites
from tests.proto.test_later_words import FILES
from tests.waiting import run

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[1]
RULE_BASES: Final = ROOT / "scenarios" / "library" / "rule-bases"
DEPTH_MAX: Final = 3

JOURNALS: Final[dict[str, JournalKind[Any]]] = {
    "site": site_journal.KIND,
    "kinds": site_journal.KIND,
    "broker": broker_journal.KIND,
}
"""What is recorded, by the file's name: a site that has exchanged jobs, each kind of record of a site, a broker."""


def messages() -> Iterator[Descriptor]:
    """Yields the messages of the wire."""
    for file in FILES:
        yield from file.message_types_by_name.values()


def plain(message: Message) -> dict[str, Any]:
    """Returns what a message says, as JSON has it."""
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


def filled(kind: Descriptor, numbers: Iterator[int], depth: int = 0) -> Message:
    """Returns a message with a value in every field, of each choice in the last."""
    message = GetMessageClass(kind)()
    for field in kind.fields:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            if value.message_type is None:
                getattr(message, field.name)[_scalar(key, numbers)] = _scalar(value, numbers)
        elif field.message_type is not None and depth < DEPTH_MAX:
            inner = filled(field.message_type, numbers, depth + 1)
            if repeats(field):
                getattr(message, field.name).append(inner)
            else:
                getattr(message, field.name).CopyFrom(inner)
        elif field.message_type is None and repeats(field):
            getattr(message, field.name).append(_scalar(field, numbers))
        elif field.message_type is None:
            setattr(message, field.name, _scalar(field, numbers))
    return message


def _scalar(field: FieldDescriptor, numbers: Iterator[int]) -> Any:
    number = next(numbers)
    if field.enum_type is not None:
        values = field.enum_type.values
        return values[number % len(values)].number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return True
    if field.type == FieldDescriptor.TYPE_STRING:
        return f"ä{number}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b"\x00\xff%d" % number
    if field.type in {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}:
        return number + 0.1
    return number


SCALARS: Final[dict[type[msgspec.inspect.Type], Callable[[int], object]]] = {
    msgspec.inspect.BoolType: bool,
    msgspec.inspect.IntType: lambda number: number % 100 + 1,  # signals and the like have bounds
    msgspec.inspect.FloatType: lambda number: number + 0.1,
    msgspec.inspect.StrType: lambda number: f"ä{number}",
    msgspec.inspect.BytesType: lambda number: b"\x00\xff%d" % number,
    msgspec.inspect.NoneType: lambda _: None,
}
"""A value of a simple type, by a number."""


def needs(numbers: Iterator[int]) -> Needs:
    """Returns all that a job may ask for, as its numbers depend on each other."""
    number = next(numbers)
    return Needs(
        tasks=4,
        cores_per_task=number,
        nodes_min=2,
        nodes_max=4,
        tasks_per_node=2,
        memory=Memory(number, "gpu"),
        gpus=Gpus(number, "task", f"ä{number}"),
        features=(f"ä{number}",),
        exclusive=True,
        licences=((f"ä{number}", number),),
        wall_time=number + 0.1,
        image=f"ä{number}",
        signal="B:USR1",
        signal_before=number + 0.2,
        requeue=False,
        partition="a,b",
        account=f"ä{number}",
        qos=f"ö{number}",
        modules=(f"ä{number}", f"ö{number}"),
    )


def sample(kind: msgspec.inspect.Type, numbers: Iterator[int], choice: int = 0) -> Any:
    """Returns a value of a type, as msgspec encodes it; of several that it may have, that of a place."""
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = kind.types[choice]
    if isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if kind.cls in {Needs, Request, Dependency}:
            return _bound(kind.cls, numbers, choice)
        return kind.cls(**{each.name: sample(each.type, numbers, choice) for each in kind.fields})
    if isinstance(kind, msgspec.inspect.VarTupleType):
        return tuple(sample(kind.item_type, numbers, choice) for _ in range(2))
    if isinstance(kind, msgspec.inspect.TupleType):
        return tuple(sample(each, numbers, choice) for each in kind.item_types)
    if isinstance(kind, msgspec.inspect.EnumType):
        return list(kind.cls)[next(numbers) % len(kind.cls)]
    return SCALARS[type(kind)](next(numbers))


def _bound(kind: type, numbers: Iterator[int], choice: int) -> Needs | Request | Dependency:
    # Values whose fields depend on each other.
    if kind is Dependency:
        return Dependency("afterok", f"ä{next(numbers)}")
    asked = needs(numbers)
    plain = Request(asked.processors, asked.wall_time or 0.0)
    return asked if kind is Needs else plain if choice else Request.of(asked)


def record_journals(folder: Path) -> None:
    """Records the journals, and beside each what `journal show` prints of it."""

    async def scene(place: Path) -> None:
        async with two_sites(place) as (home, away):
            await home.submit("stays", processors=4, run_time_s=0.2)
            gone = await home.submit("goes", processors=3)
            assert (await home.ended(gone.job_id)).executed_on == "away"
            await away.submit("open", processors=1, run_time_s=90.0)
            await home.submit("waits", processors=4, run_time_s=90.0)

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run(lambda: scene(place))
        shutil.copy(place / "home.journal", folder / "site.journal")
    numbers = count(1)
    with site_journal.Journal(folder / "kinds.journal", "home") as of_site:
        for choice in (0, -1):
            of_site.append(
                [sample(msgspec.inspect.type_info(kind), numbers, choice) for kind in KINDS]
            )
    with broker_journal.Journal(folder / "broker.journal") as of_broker:
        of_broker.append(lived(1).journal)
    for lock in folder.glob("*.lock"):
        lock.unlink()
    for each, kind in JOURNALS.items():
        shown = lines(folder / f"{each}.journal", kind)
        (folder / f"{each}.jsonl").write_text("".join(f"{line}\n" for line in shown))


def record_wire(folder: Path) -> None:
    """Records each message of the wire, and what it says."""
    numbers = count(1)
    found = {}
    for kind in messages():
        message = filled(kind, numbers)
        packed = base64.b64encode(message.SerializeToString(deterministic=True)).decode()
        found[kind.full_name] = {"bytes": packed, "says": plain(message)}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / "wire.json").write_text(text + "\n", encoding="utf-8")


def record_files(folder: Path) -> None:
    """Records files that commands write."""
    first = min(RULE_BASES.rglob("*.json"))
    shutil.copy(first, folder / "rule-base.json")
    commands = (
        ("lrms_sim", "generate --processors 8 --jobs 12 --seed 1 -o log.swf"),
        ("lrms_sim", "run log.swf --discipline easy --schedule schedule.csv --swf schedule.swf"),
        ("broker", "generate benchmark --class lRlD --tasks 8 --output problem.json"),
        ("broker", "plan problem.json --evaluations 50 --json plan.json"),
    )
    for package, words in commands:
        whole = [sys.executable, "-m", package, *words.split()]
        subprocess.run(whole, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # our own


def main() -> None:
    """Records the present version."""
    argparse.ArgumentParser(
        prog="python -m tests.release.record", description=(__doc__ or "").partition("\n\n")[2]
    ).parse_args()
    git = shutil.which("git") or "git"

    def asked(*words: str) -> str:
        return subprocess.check_output([git, *words], cwd=ROOT, text=True).strip()  # noqa: S603  # our own

    if asked("tag", "--list", f"v{__version__}"):
        raise SystemExit(f"v{__version__} is tagged: what it has written is not recorded again")
    folder = FOLDER / __version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for record in (record_journals, record_wire, record_files):
        record(folder)
    # The last commit; what it does not have yet is in the one that adds the recording.
    (folder / "commit").write_text(f"{asked('rev-parse', 'HEAD')}\n")


if __name__ == "__main__":
    main()
