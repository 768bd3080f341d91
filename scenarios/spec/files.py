"""Reads scenario files."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.files import parse_toml, read_bytes
from scenarios.spec.problems import cross_problems, problems_of
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import SpecError

FILE_BYTES_MAX: Final = 1 << 20


def load_spec(path: Path, *, shown: str | None = None) -> ScenarioSpec:
    """Reads a scenario file; whether the files it names exist is not checked.

    `shown` is its name in errors, by default the path.

    Raises:
        SpecError: it cannot be read, is no TOML, or breaks the format; the text has a line for each
            error.
    """
    shown = shown or str(path)
    data = read_bytes(path, FILE_BYTES_MAX, SpecError.of(shown), shown=shown)
    return parse_spec(data, folder=path.parent, shown=shown)


def parse_spec(data: bytes, *, folder: Path, shown: str) -> ScenarioSpec:
    """Parses a scenario; `shown` is its name in errors, relative paths are relative to `folder`.

    Raises:
        SpecError: it is no TOML, or breaks the format.
    """
    document = parse_toml(data, shown, SpecError.of(shown))
    problems: list[Mistake] = []
    try:
        spec = ScenarioSpec.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        problems = problems_of(error, document, ScenarioSpec)
    problems += cross_problems(document)
    if problems:
        raise SpecError(shown, problems)
    return spec
