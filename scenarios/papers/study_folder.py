"""The folder of a study: its runs as they end, its figures as JSON, and its page."""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lrms_sim.text_files import write_text
from lrms_sim.version import __version__
from scenarios.errors import OutputError

RESULT: Final = "study.json"
PAGE: Final = "study.html"
RUNS: Final = "runs.jsonl"
TABLE: Final = "statements.md"

_Case = TypeVar("_Case")


def make_folder(folder: Path) -> None:
    """Makes a study's folder where there is none.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error


def write_study(folder: Path, figures: str, page: str, table: str = "") -> Path:
    """Writes the figures of a study and its page, and returns the page's path.

    Args:
        folder: of the study.
        figures: as JSON.
        page: as HTML.
        table: of its statements, as Markdown; empty for none.

    Raises:
        OutputError: a file cannot be written; the one from before is still there.
    """
    for name, text in ((RESULT, figures), (TABLE, table), (PAGE, page)):
        path = folder / name
        if not text:
            continue
        try:
            write_text(path, text)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    return folder / PAGE


class RunLog:
    """The runs that are done; each is on disk when it is over, so that a study can go on.

    Attributes:
        known: what each run came to, as plain values, by its key.

    Args:
        folder: of the study.

    Raises:
        OutputError: the file is there and cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RUNS
        self.known: dict[str, Any] = {}
        try:
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise OutputError(f"{self._path} cannot be read: {error}") from error
        for line in text.splitlines():
            try:
                values = json.loads(line)
            except ValueError:
                continue  # cut off when the power went
            if isinstance(values, dict) and values.get("version") == __version__:
                self.known[values["key"]] = values["found"]

    def add(self, key: str, found: Any) -> None:
        """Keeps a run.

        Args:
            key: everything that its result depends on, but the program's version.
            found: what it came to, as JSON can say it.

        Raises:
            OutputError: the file cannot be written.
        """
        self.known[key] = found
        line = json.dumps({"version": __version__, "key": key, "found": found})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise OutputError(f"{self._path} cannot be written: {error.strerror}") from error


def in_threads(
    todo: Iterable[_Case], run: Callable[[_Case], Any], workers: int
) -> Iterator[tuple[_Case, Any]]:
    """Yields cases with what came of each, as they end.

    Args:
        todo: the cases.
        run: runs one; most of its work holds no lock of the interpreter.
        workers: threads.
    """
    # A few more than there are threads are handed out, so that Ctrl-C ends soon.
    waiting = iter(todo)
    running: dict[Future[Any], _Case] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                for case in waiting:
                    running[pool.submit(run, case)] = case
                    if len(running) >= 2 * workers:
                        break
                if not running:
                    return
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def progress_bar(console: Console) -> Progress:
    """Returns a bar for the runs of a study, which is gone when they are done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)
