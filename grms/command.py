"""The process of the command `grms`: imports next to nothing, for Ctrl-C has to work from the start."""

import os

from lrms_sim.util.process_guard import run


def main() -> None:
    """Runs the command line of this process and ends it."""
    # gRPC's own lines say nothing that our errors do not.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    run("grms.cli.main")
