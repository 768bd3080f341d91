"""What a field of a record means where a journal leaves it out.

Journals leave out fields at the end of a record that have their defaults (`grms.daemon.journal.RecordCodec`), so another
default would change what journals say that are there already.
"""

import json
from pathlib import Path

import msgspec
import pytest

from broker.scheduler.records import KINDS as BROKER_KINDS
from grms.site.model.records import KINDS as SITE_KINDS
from grms.site.model.usage import UsageRecord

RECORDED: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "defaults.json").read_text()
)


def defaults(kinds: tuple[type[msgspec.Struct], ...]) -> dict[str, str]:
    """Returns the default of each field that has one."""
    found = {}
    for kind in kinds:
        for field in msgspec.structs.fields(kind):
            if field.default is not msgspec.NODEFAULT:
                found[f"{kind.__name__}.{field.name}"] = repr(field.default)
            elif field.default_factory is not msgspec.NODEFAULT:
                found[f"{kind.__name__}.{field.name}"] = repr(field.default_factory())
    return found


@pytest.mark.parametrize(
    ("daemon", "kinds"), [("site", SITE_KINDS), ("usage", (UsageRecord,)), ("broker", BROKER_KINDS)]
)
def test_a_default_stays_what_it_was(daemon: str, kinds: tuple[type[msgspec.Struct], ...]) -> None:
    """A new field is added to defaults.json; what is there is never changed, nor left out while the field is there."""
    assert defaults(kinds) == RECORDED[daemon]
