"""The process of the command `scenario`: imports next to nothing, for Ctrl-C has to work from the start."""

from lrms_sim.util.process_guard import run


def main() -> None:
    """Runs the command line of this process and ends it."""
    run("scenarios.cli.main")
