"""What commands show as JSON: each has the option, and its schema is what the model says."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from broker.cli.main import cli as gorba
from grms.cli.main import cli as grms
from lrms_sim.cli.main import cli as lrms_sim
from lrms_sim.util.json_output import JsonOption, model_of
from scenarios.cli.main import cli as scenario

SCHEMAS = Path(__file__).resolve().parents[2] / "docs/schemas/commands"
PROGRAMS = {"lrms-sim": lrms_sim, "grms": grms, "gorba": gorba, "scenario": scenario}

SHOWS_WITHOUT = {
    "lrms-sim strategy show": "it shows a file that is JSON",
    "grms policy show": "same",
    "grms journal show": "each line of it is JSON",
    "gorba journal show": "same",
    "gorba logs": "it prints what a program has printed, as it is",
    "grms logs": "it prints what a job has printed, as it is",
    "grms top": "it shows on a screen what status, partners and jobs have as JSON",
}
"""Commands that show something and have no JSON of their own, and why."""

ACTS = {
    "lrms-sim": {"export", "generate", "import"},
    "grms": {
        "cancel",
        "deputy",
        "drain",
        "examples",
        "fetch",
        "journal renumber",
        "relay",
        "reload",
        "resubmit",
        "serve",
        "submit",
        "take-back",
        "train",
    }
    | {"write-off", "dashboard", "pki init", "pki issue", "pki issue-server", "pki renew"}
    | {"pki request"},
    "gorba": {"add", "close", "open", "record", "wait"}
    | {"cancel", "dashboard", "fetch", "replan", "serve", "submit", "generate benchmark"}
    | {"generate pool", "resources add", "resources broken", "resources remove"},
    "scenario": {"down", "fetch", "up", "paper decentralized-grid", "paper genetic-fuzzy"}
    | {"paper gorba-rescheduling", "paper greedy-criteria", "paper utility-scheduling"}
    | {
        "study electricity",
        "study kinds-of-nodes",
        "study malleability",
        "study nobody-loses",
        "study questions-and-delays",
        "study scale",
    },
}
"""Commands that do something: they print an id, an address or what they have written."""


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yields all commands that are no groups, with what is typed for them."""
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            yield from commands(each, f"{name} {word}")
        if command.invoke_without_command or command.params:
            return
    else:
        yield name, command


EVERY = {name: each for program, top in PROGRAMS.items() for name, each in commands(top, program)}
OPTIONS = {
    name: option
    for name, command in EVERY.items()
    for option in command.params
    if isinstance(option, JsonOption)
}


def schema_text(schema: str) -> str:
    """Returns the schema of a model as its file has it."""
    document = model_of(schema).model_json_schema(mode="serialization")
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def test_every_command_that_shows_something_has_json() -> None:
    """Those that do something are named, and those that show what is JSON already."""
    acting = {f"{program} {word}" for program, words in ACTS.items() for word in words}
    assert set(EVERY) - set(OPTIONS) == acting | set(SHOWS_WITHOUT)


def test_no_command_has_a_json_of_another_kind() -> None:
    """The option is made in one place."""
    for name, command in EVERY.items():
        named = [option for option in command.params if "--json" in option.opts]
        assert all(isinstance(option, JsonOption) for option in named), name


@pytest.mark.parametrize("schema", sorted({option.schema for option in OPTIONS.values()}))
def test_the_schemas_in_the_documentation_are_these(schema: str) -> None:
    """Each file in docs/schemas/commands is what the model says; the message has what to write."""
    text = schema_text(schema)
    assert (SCHEMAS / f"{schema}.json").read_text(encoding="utf-8") == text, text


def test_no_schema_is_left_over() -> None:
    """Each file is of a command."""
    known = {f"{option.schema}.json" for option in OPTIONS.values()}
    assert {path.name for path in SCHEMAS.iterdir()} == known
