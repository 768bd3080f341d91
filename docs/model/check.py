"""Checks the model of the offer protocol with SPIN, exhaustively: `make model`.

The model as it is must have no error. Then each precaution is left out, and SPIN must find what comes of it: its
shortest way is printed with --trails. Needs Debian's `spin` and a C compiler.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

MODEL: Final = Path(__file__).with_name("offer.pml")

LEFT_OUT: Final = {
    "NO_TOMBSTONE": "an offer is withdrawn, and that is not remembered",
    "JOURNAL_LAST": "an offer is sent before it is in the journal",
    "NO_LOOKUP": "after a restart a job is submitted without a look",
    "SILENCE_IS_NO": "no answer is taken for a no",
    "DECIDES_ANEW": "an offer that comes again is decided again",
    "REPORTS_ONCE": "an end is reported once, heard or not",
    "TAKES_NOTHING_UP": "after a restart nothing is resumed",
}
"""The switches of the model."""


def check(switch: str = "", *, trail: bool = False) -> tuple[int, int, str]:
    """Checks the model with a precaution left out, or none.

    Returns the number of errors (SPIN stops at the first), that of the states, and the way to the error if wanted.

    Raises:
        RuntimeError: SPIN or the compiler fails, or not all states were visited.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(MODEL, folder)
        switches = [f"-D{switch}"] if switch else []
        _run(["spin", *switches, "-a", MODEL.name], folder)
        # Safety alone; breadth first, so that the way to an error is a shortest one.
        _run(
            ["cc", "-O1", "-w", "-DSAFETY", "-DBFS", "-DVECTORSZ=256", "-o", "pan", "pan.c"], folder
        )
        told = _run(["./pan", "-m1000000"], folder)
        found = re.search(r"errors: (\d+)", told)
        states = re.search(r"(\d+) states, stored", told)
        if found is None or states is None or (found[1] == "0" and "Search not completed" in told):
            raise RuntimeError(f"SPIN has not come to an end:\n{told}")
        way = ""
        if trail and found[1] != "0":
            way = _run(["spin", *switches, "-t", "-p", "-g", MODEL.name], folder)
        return int(found[1]), int(states[1]), way


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )  # our own
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    """Checks it as it is and without each precaution."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trails", action="store_true", help="print the way to what is found")
    options = parser.parse_args()
    if shutil.which("spin") is None:
        print("there is no spin; on Debian: apt install spin", file=sys.stderr)
        return 1
    errors, states, way = check(trail=True)
    print(f"{'as it is':18} {states:9} states, {errors} errors")
    if errors:
        print(way)
    bad = errors > 0
    for switch, what in LEFT_OUT.items():
        errors, states, way = check(switch, trail=options.trails)
        bad = bad or not errors
        print(f"{switch:18} {states:9} states, {'found' if errors else 'NOT FOUND'}: {what}")
        if options.trails:
            print(way)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
