"""The folder a run leaves behind: written whole, and read again for another report."""

import json
import math
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lrms_sim.util.files import replacing, to_toml
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.schedule_files import ScheduleFileError, read_csv, write_csv
from scenarios.report.csv_files import write_flows_csv, write_sites_csv
from scenarios.report.html import write_html
from scenarios.report.selection import FLOWS_CSV, SITES_CSV
from scenarios.run.broker_result import BrokerResult
from scenarios.run.electricity import SiteElectricity
from scenarios.run.results import RESULT_FORMAT, ScenarioResult, evaluate
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import OutputError

SCHEDULE: Final = "schedule.csv"
SCHEDULE_ALONE: Final = "schedule-alone.csv"
RESULT: Final = "result.json"
SCENARIO: Final = "scenario.toml"
REPORT: Final = "report.html"
FILES: Final = (SCHEDULE, SCHEDULE_ALONE, RESULT, SCENARIO, SITES_CSV, FLOWS_CSV, REPORT)
"""Of a run's folder, as described in docs/scenarios.md."""

RESULT_BYTES_MAX: Final = 256 << 20
"""Largest result.json, in bytes; a thousand sites make about 10 MB."""


class _Lenient(BaseModel):
    # Figures are computed again from the schedules, so what else the file says does not matter.
    model_config = ConfigDict(extra="ignore", frozen=True)


class _SavedSite(_Lenient):
    name: str
    processors: Annotated[int, Field(ge=1)]
    discipline: str


class _SavedNote(_Lenient):
    reason: str
    count: int
    treatment: str


class _SavedNotes(_Lenient):
    records: list[_SavedNote]


class _SavedElectricity(_Lenient):
    name: str
    energy_kwh_alone: float
    energy_kwh: float
    cost_alone: float
    cost: float
    carbon_kg_alone: float | None
    carbon_kg: float | None
    covered: bool

    def result(self) -> SiteElectricity:
        found: dict[str, Any] = {name: math.nan if value is None else value for name, value in self}
        return SiteElectricity(**found)


class _SavedResult(_Lenient):
    """What of result.json cannot be computed from the schedules."""

    format: int
    name: str
    title: str
    description: str
    seed: int
    elapsed_s: float
    sites: Annotated[list[_SavedSite], Field(min_length=1)]
    workload_notes: list[_SavedNotes]
    acknowledgements: list[str]
    broker: BrokerResult | None = None
    electricity: list[_SavedElectricity] = []


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the files of a run are.

    Attributes:
        report: the HTML page; `None` if none was wanted.
    """

    folder: Path
    report: Path | None


def check_folder(folder: Path) -> None:
    """Checks that a run may be written there, before it is run.

    Raises:
        OutputError: the folder has other files, or is a file.
    """
    try:
        if not folder.exists():
            return
        if not folder.is_dir():
            raise OutputError(f"{folder} is a file; name a folder with --output")
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise OutputError(f"{folder} cannot be read: {error.strerror or error}") from error
    if names and not names.issuperset({RESULT, SCHEDULE, SCHEDULE_ALONE, SCENARIO}):
        raise OutputError(
            f"{folder} has files that are not of a run; name a new or empty folder with --output, "
            f"or one that an earlier run wrote"
        )


def save_run(
    folder: Path,
    spec: ScenarioSpec,
    result: ScenarioResult,
    *,
    html: bool = True,
    step: Callable[[str], None] | None = None,
) -> Saved:
    """Writes a run's files, replacing those of an earlier run in that folder.

    Everything is written to a temporary folder first and moved in at the end, so that an
    interrupted run leaves the folder as it was. `spec` has every seed; `html` also writes the HTML
    page; `step` is called with the name of each file before it is written.

    Raises:
        OutputError: the folder has other files, or cannot be written to.
    """
    check_folder(folder)
    writers: dict[str, Callable[[Path], object]] = {
        SCENARIO: lambda path: path.write_text(to_toml(spec.to_mapping()), encoding="utf-8"),
        SCHEDULE: lambda path: write_csv(result.schedule, path),
        SCHEDULE_ALONE: lambda path: write_csv(result.schedule_alone, path),
        RESULT: lambda path: path.write_text(result.to_json(), encoding="utf-8"),
        SITES_CSV: lambda path: write_sites_csv(result, path),
        FLOWS_CSV: lambda path: write_flows_csv(result, path),
    }
    if html:
        writers[REPORT] = lambda path: write_html(result, path)
    try:
        with _beside(folder) as draft:
            for name, write in writers.items():
                if step is not None:
                    step(name)
                write(draft / name)
            with _uninterrupted():
                _move_in(draft, folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{folder} cannot be written: {reason}") from error
    return Saved(folder, folder / REPORT if html else None)


def save_report(
    folder: Path, result: ScenarioResult, *, step: Callable[[str], None] | None = None
) -> None:
    """Rewrites a run's page and its CSV files, each replaced at once.

    `result` is what `load_run` returned for the folder; `step` is called with the name of each file
    before it is written.

    Raises:
        OutputError: a file cannot be written.
    """
    writers = {SITES_CSV: write_sites_csv, FLOWS_CSV: write_flows_csv, REPORT: write_html}
    for name, write in writers.items():
        if step is not None:
            step(name)
        try:
            with replacing(folder / name) as draft:
                write(result, draft)
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{folder / name} cannot be written: {reason}") from error


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Yields an empty folder on the same file system, which is gone afterwards."""
    parent = folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=parent))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _move_in(draft: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in FILES:
        if (draft / name).exists():
            (draft / name).replace(folder / name)
        else:
            # A report of an earlier run would not be of these figures.
            (folder / name).unlink(missing_ok=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending = []
    before = signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        raise KeyboardInterrupt


def load_run(folder: Path) -> ScenarioResult:
    """Loads a run that `save_run` wrote; its figures are computed anew from its schedules.

    Raises:
        OutputError: it is not the folder of a run, or a file in it is damaged.
    """
    saved = _load_result(folder / RESULT)
    machines = [MachineInfo(site.name, site.processors) for site in saved.sites]
    schedules: list[Schedule] = []
    try:
        schedules.extend(read_csv(folder / name, machines) for name in (SCHEDULE, SCHEDULE_ALONE))
        return evaluate(
            name=saved.name,
            title=saved.title,
            description=saved.description,
            seed=saved.seed,
            disciplines=[site.discipline for site in saved.sites],
            schedule=schedules[0],
            schedule_alone=schedules[1],
            workload_notes=[
                [(note.reason, note.count, note.treatment) for note in notes.records]
                for notes in saved.workload_notes
            ],
            elapsed_s=saved.elapsed_s,
            acknowledgements=saved.acknowledgements,
            broker=saved.broker,
            electricity=[one.result() for one in saved.electricity],
        )
    except ScheduleFileError as error:
        raise OutputError(str(error)) from error
    except ValueError as error:
        raise OutputError(f"{folder}: {error}; run the scenario again") from error


def _load_result(path: Path) -> _SavedResult:
    try:
        if path.stat().st_size > RESULT_BYTES_MAX:
            raise OutputError(f"{path} is larger than {RESULT_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path} cannot be read: {error.strerror or error}; "
            f"`scenario report` takes the folder that `scenario run` wrote"
        ) from error
    except UnicodeDecodeError as error:
        raise OutputError(f"{path}: byte {error.start} is not UTF-8 text") from error
    try:
        document: Any = json.loads(text, parse_constant=lambda _: math.nan)
        found = document.get("format") if isinstance(document, dict) else None
        if found != RESULT_FORMAT:
            raise OutputError(f"{path}: format is {found!r}; this version reads {RESULT_FORMAT}")
        return _SavedResult.model_validate(document)
    except (json.JSONDecodeError, RecursionError) as error:
        raise OutputError(f"{path}: no JSON: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise OutputError(f"{path}: {place}: {first['msg']}") from error
