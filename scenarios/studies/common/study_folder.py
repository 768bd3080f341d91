"""The folder of a study: its runs as they end, its figures as JSON, and its page."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lrms_sim.util.files import write_text
from scenarios.util.errors import OutputError

RESULT: Final = "study.json"
PAGE: Final = "study.html"
RUNS: Final = "runs.jsonl"
TABLE: Final = "statements.md"

_Case = TypeVar("_Case")


def make_folder(folder: Path) -> None:
    """Makes a study's folder if there is none; `OutputError` if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error


def write_study(folder: Path, figures: str, page: str, table: str = "") -> Path:
    """Writes the figures and the page of a study, and returns the page's path.

    `table` is the Markdown table of its statements; empty for none.

    Raises:
        OutputError: a file cannot be written; the earlier one is still there.
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


def in_threads(
    todo: Iterable[_Case], run: Callable[[_Case], Any], workers: int
) -> Iterator[tuple[_Case, Any]]:
    """Runs cases in threads, and yields each with its result as they end.

    Most of the work of `run` should hold no lock of the interpreter.
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
