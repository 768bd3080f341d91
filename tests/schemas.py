"""What commands print as JSON, held against the schemas in docs/schemas/commands."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

with pytest.MonkeyPatch.context() as patch:
    # Where this is found, it makes 38 grammars of addresses, which takes a second; nothing here checks them.
    patch.setitem(sys.modules, "rfc3987_syntax", None)
    from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parents[1] / "docs/schemas/commands"


def printed(schema: str, text: str) -> Any:
    """Returns the document that a command has printed, which is as its schema says."""
    document = json.loads(text)
    validator = Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text("utf-8")))
    assert [error.message for error in validator.iter_errors(document)] == []
    return document


def printed_lines(schema: str, text: str) -> list[Any]:
    """Returns the documents that a command has printed, one a line."""
    return [printed(schema, line) for line in text.splitlines()]
