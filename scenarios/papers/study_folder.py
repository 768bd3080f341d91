"""The folder of a study: its figures as JSON and its page, written whole or not at all."""

from pathlib import Path
from typing import Final

from lrms_sim.schedule_files import replacing
from scenarios.errors import OutputError

RESULT: Final = "study.json"
PAGE: Final = "study.html"


def make_folder(folder: Path) -> None:
    """Makes a study's folder where there is none.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error


def write_study(folder: Path, figures: str, page: str) -> Path:
    """Writes the figures of a study and its page, and returns the page's path.

    Raises:
        OutputError: a file cannot be written; the one from before is still there.
    """
    for path, text in ((folder / RESULT, figures), (folder / PAGE, page)):
        try:
            with replacing(path) as draft:
                draft.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    return folder / PAGE
