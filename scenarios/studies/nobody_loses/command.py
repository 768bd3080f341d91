"""What `scenario study nobody-loses` does, apart from its command line."""

from rich.console import Console

from lrms_sim.util.files import write_text
from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.nobody_loses.kept import KEPT, figures_of
from scenarios.studies.nobody_loses.options import StudyOptions
from scenarios.studies.nobody_loses.page import page_of
from scenarios.studies.nobody_loses.study import Study, run_study
from scenarios.util.errors import OutputError


def run_and_keep(options: StudyOptions, console: Console) -> Study:
    """Runs the study, and writes the figures that are kept of it into its folder.

    Raises:
        TraceMissingError: a log is not on this machine.
        OutputError: a file cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    study = run_study(options, console)
    path = options.folder / KEPT
    try:
        write_text(path, figures_of(study))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    return study


run_command = StudyCommand(run_and_keep, page_of)
