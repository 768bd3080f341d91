"""Interrupts the four commands at random moments and judges how they end.

    python -m benchmarks.interrupts               500 tries, the delays from a seed
    python -m benchmarks.interrupts -n 40 --seed 7

Each try starts a command that would work for a while, sends SIGINT after a random delay of at most
`--longest` seconds, and looks at the status and at standard error. A command has to end with status
130 and the one word `interrupted`. Before the first line of the house runs, the interpreter itself
answers: it is killed by the signal (which shells show as 130 as well), or shows a traceback of its
own start. Such tries are counted apart, with the longest delay among them.
"""

import random
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import options_of

BIN = Path(sysconfig.get_path("scripts"))
COMMANDS = {
    "lrms-sim": ("generate", "--processors", "256", "--jobs", "3000000", "-o", "much.swf"),
    "grms": (
        *("train", "synthetic-three-sites", "--site", "small", "--partner", "large"),
        *("--output", "trained"),
    ),
    "gorba": ("generate", "benchmark", "--class", "lRlD", "--tasks", "7000", "--output", "p.json"),
    "scenario": ("run", "synthetic-three-sites", "--output", "ran"),
}
"""A long-running invocation of each command."""

STATUS = 128 + signal.SIGINT
WAIT_S = 60.0
OURS = ("/command.py", "/process_guard.py", "/bin/", "/grms/__init__.py", "/lrms_sim/__init__.py")
"""Files that a traceback may name before the guard is active: those that lead to it."""


@dataclass(frozen=True)
class Try:
    """One interrupted process; a signal that killed it is a negative status."""

    command: str
    delay_s: float
    status: int
    errors: str

    @property
    def verdict(self) -> str:
        """`as it should`, `done` before the signal came, `interpreter`, or `WRONG`."""
        if self.status == STATUS and self.errors.endswith("interrupted\n"):
            return "WRONG" if "Traceback" in self.errors else "as it should"
        if self.status == 0 and not self.errors:
            return "done"
        # Even earlier there is no traceback: the interpreter could not import its own modules.
        begun = "Traceback" in self.errors or "Fatal Python error: init_" in self.errors
        started = self.status == -signal.SIGINT or begun
        return "interpreter" if started and self._at_the_start() else "WRONG"

    def _at_the_start(self) -> bool:
        """Returns whether only code before the guard was running."""
        files = [line for line in self.errors.splitlines() if line.startswith('  File "')]
        # Frozen modules, and `<string>`: lines of .pth files, run by `site`.
        house = [line for line in files if "site-packages" not in line and '"<' not in line]
        library = str(Path(sysconfig.get_path("stdlib")))
        return all(library in line or any(part in line for part in OURS) for line in house)


def attempt(command: str, delay_s: float, folder: Path) -> Try:
    """Starts a command, interrupts it, and returns how it ended."""
    with subprocess.Popen(
        [str(BIN / command), *COMMANDS[command]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # Background processes ignore SIGINT by default.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
    ) as process:
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            errors += f"Traceback: none, but it went on for {WAIT_S:g} s\n"
    return Try(command, delay_s, process.returncode, errors)


def main() -> int:
    """Tries as often as asked, prints what came of it, and returns 1 where a try went wrong."""
    parser = options_of(__doc__)
    parser.add_argument("-n", type=int, default=500, metavar="TRIES")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.6, metavar="SECONDS")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311  # no secret
    counts: Counter[tuple[str, str]] = Counter()
    latest_s = 0.0
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.n):
            command = list(COMMANDS)[number % len(COMMANDS)]
            one = attempt(command, chance.uniform(0.0, arguments.longest), Path(folder))
            counts[command, one.verdict] += 1
            if one.verdict == "interpreter":
                latest_s = max(latest_s, one.delay_s)
            if one.verdict == "WRONG":
                wrong.append(one)
    for (command, verdict), count in sorted(counts.items()):
        print(f"{command:<10} {verdict:<14} {count:5d}")
    print(f"latest signal that the interpreter itself answered: {1000 * latest_s:.0f} ms")
    for one in wrong:
        print(f"{one.command} after {one.delay_s:.3f} s: status {one.status}\n{one.errors}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
