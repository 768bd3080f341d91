"""Changes the pure cores in small ways, one at a time, and looks whether a test notices.

    python -m benchmarks.mutants                     every core, every mutant
    python -m benchmarks.mutants broker --sample 200
    python -m benchmarks.mutants --module grms.site.core.offers --show
    python -m benchmarks.mutants --at grms/site/core/offers.py:239 --at scenarios/archive/traces.py:40

A mutant is one module with one change: a comparison moved or turned round, a condition negated, `and`
for `or`, a call, an argument of one or an assignment left out, another value returned, an operator for its opposite. It is
found where one of its core's tests fails that reach the changed lines, or does not come to an end.
Nothing is written into the tree. --module and --at also take modules of no core; their own tests count.

With --state FOLDER what is found is noted there at once, and the same command goes on after an
interruption: what was found is not tried again, what lives is, and so is all of a module that has changed.

Survivors are printed with their places. One that no test can find, because it changes nothing, is
listed in mutants_equivalent.toml with the reason, and does not count. The figures go to mutants.json
beside this file (--dry: nowhere); with --least the status is 1 where a core has a smaller share found.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.mutant_runs import ENDLESS, FOUND, LIVES, prepare, results
from benchmarks.mutation import ROOT, Mutant, mutants_of

FIGURES: Final = Path(__file__).with_name("mutants.json")
EQUIVALENT: Final = Path(__file__).with_name("mutants_equivalent.toml")
WORDS: Final = {FOUND: "found", ENDLESS: "found (it does not end)", LIVES: "lives"}


@dataclass(frozen=True)
class Core:
    """Modules that decide, and the tests of them.

    Attributes:
        modules: patterns of their files, from the root.
        tests: files and folders of their tests.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """The paths of its modules, in order."""
        found = {path for pattern in self.modules for path in ROOT.glob(pattern)}
        return sorted(str(path.relative_to(ROOT)) for path in found if path.stem != "__init__")


CORES: Final = {
    "site": Core(
        ("grms/site/core/*.py", "grms/site/facts/*.py"),
        (
            "tests/grms/site/core",
            "tests/grms/site/facts",
            "tests/grms/testing/test_order.py",
            "tests/grms/testing/test_findings.py",
        ),
    ),
    "broker": Core(
        ("broker/core/*.py", "broker/sites/dispatcher.py"),
        (
            "tests/broker/core",
            "tests/broker/sites/test_dispatcher.py",
        ),
    ),
    "broker-model": Core(("broker/model/*.py",), ("tests/broker/model",)),
}


def own_test(path: str) -> str | None:
    """Returns the test file that mirrors a module's, where there is one."""
    module = Path(path)
    mirror = Path("tests") / module.parent / f"test_{module.name.lstrip('_')}"
    return str(mirror) if (ROOT / mirror).exists() else None


def main() -> int:
    """Examines what was asked for, and says what came of it."""
    arguments = _arguments()
    named = _named(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the forks end as well
    prepare()
    os.chdir(ROOT)
    reasons = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    good = True
    for name, core, mutants in named:
        every = len(mutants)
        if arguments.sample is not None and arguments.sample < every:
            mutants = random.Random(arguments.seed).sample(mutants, arguments.sample)  # noqa: PLW2901, S311  # no secret
        if arguments.show:
            for mutant in mutants:
                print(f"{mutant.path}:{mutant.line}: {mutant.place}: {mutant.change}")
            continue
        begun, machine = time.monotonic(), _machine()  # the commit that was tried, not a later one
        state = State(arguments.state, name, mutants)
        goes_on = bool(state.found)
        fates = _examine(core, mutants, state, arguments.workers, tell=bool(arguments.at))
        figures[name] = report(name, fates, reasons, core.files)
        figures[name]["of"] = every
        if not goes_on:  # else it is a part of the time
            figures[name]["seconds"] = round(time.monotonic() - begun)
        figures[name]["machine"] = machine
        good = good and figures[name]["found_share"] >= arguments.least
    if not (arguments.dry or arguments.show or arguments.module or arguments.at):
        FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    return 0 if good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cores", nargs="*", help=f"of {', '.join(CORES)}; all where none is named")
    parser.add_argument("--module", action="append", help="only this one, by its full name")
    parser.add_argument("--at", action="append", metavar="FILE:LINE", help="only what is there")
    parser.add_argument("--tests", action="append", help="tests of a module of no core")
    parser.add_argument("--sample", type=int, help="only so many of each core")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--least", type=float, default=0.0, help="share that has to be found")
    parser.add_argument("--show", action="store_true", help="only list the mutants")
    parser.add_argument("--state", type=Path, metavar="FOLDER", help="go on, and note there")
    parser.add_argument("--dry", action="store_true", help="do not write mutants.json")
    arguments = parser.parse_args()
    unknown = set(arguments.cores) - CORES.keys()
    if unknown:
        parser.error(f"there is no core {', '.join(sorted(unknown))}: take {', '.join(CORES)}")
    if arguments.workers < 1 or (arguments.sample is not None and arguments.sample < 1):
        parser.error("--workers and --sample need at least 1")
    arguments.places = []
    for place in arguments.at or ():
        path, _, line = place.rpartition(":")
        if not line.isdecimal() or not (ROOT / path).is_file():
            parser.error(f"--at {place!r}: say FILE:LINE, with a file from the root of the tree")
        arguments.places.append((path, int(line)))
    arguments.paths = [f"{module.replace('.', '/')}.py" for module in arguments.module or ()]
    for path in arguments.paths:
        if not (ROOT / path).is_file():
            parser.error(f"--module: there is no {path}")
    return arguments


def _named(arguments: argparse.Namespace) -> list[tuple[str, Core, list[Mutant]]]:
    # The cores to examine, with their mutants.
    if not (arguments.paths or arguments.places):
        cores = {name: CORES[name] for name in arguments.cores or CORES}
        return [(name, core, _mutants(core.files)) for name, core in cores.items()]
    paths = dict.fromkeys([*arguments.paths, *(path for path, _ in arguments.places)])
    named = []
    for name, core in CORES.items():
        of_core = [path for path in paths if path in core.files]
        named.append((name, core, _mutants(of_core)))
    for path in paths:
        if not any(path in core.files for core in CORES.values()):
            mirror = own_test(path)
            tests = arguments.tests or ([mirror] if mirror else [])
            if not tests:
                raise SystemExit(f"{path} has no test file of its own: say --tests")
            named.append((path, Core((path,), tuple(tests)), _mutants([path])))
    wanted = []
    for name, core, mutants in named:
        kept = [
            one
            for one in mutants
            if one.path in arguments.paths
            or any(
                one.path == path and one.line <= line <= one.last_line
                for path, line in arguments.places
            )
        ]
        if kept:
            wanted.append((name, core, kept))
    return wanted


def _mutants(paths: Sequence[str]) -> list[Mutant]:
    modules = [path.removesuffix(".py").replace("/", ".") for path in paths]
    return [mutant for module in modules for mutant in mutants_of(module)]


class State:
    """Which mutants of a core have been found already, in a file.

    Args:
        folder: where the file is, or is to be; None for none.
        name: of the core.
        mutants: all that are to be tried.
    """

    def __init__(self, folder: Path | None, name: str, mutants: Sequence[Mutant]) -> None:
        self.found: dict[Mutant, int] = {}
        self._file = None if folder is None else folder / f"{name.replace('/', '.')}.jsonl"
        self._digests = {
            file: hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
            for file in {mutant.file for mutant in mutants}
        }
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if self._file.exists():
            names = {self._name(mutant): mutant for mutant in mutants}
            for line in self._file.read_text(encoding="utf-8").splitlines():
                *words, fate = json.loads(line)
                if (mutant := names.get(tuple(words))) is not None:
                    self.found[mutant] = fate

    def note(self, mutant: Mutant, fate: int) -> None:
        """Keeps what came of a mutant, where it was found."""
        if fate == LIVES:
            return
        self.found[mutant] = fate
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*self._name(mutant), fate]) + "\n")

    def _name(self, mutant: Mutant) -> tuple[str, str, int]:
        return mutant.path, self._digests[mutant.file], mutant.number


def _examine(
    core: Core, mutants: Sequence[Mutant], state: State, workers: int, tell: bool
) -> list[tuple[Mutant, int]]:
    fates = list(state.found.items())
    mutants = [mutant for mutant in mutants if mutant not in state.found]
    own = {mutant.path: own_test(mutant.path) for mutant in mutants}
    mirrors = {path: test for path, test in own.items() if test is not None}
    before, begun = len(fates), time.monotonic()
    tried = results(mutants, core.tests, mirrors, workers) if mutants else ()
    for mutant, fate in tried:
        fates.append((mutant, fate))
        state.note(mutant, fate)
        if tell or fate == LIVES:
            place = f"{mutant.path}:{mutant.line}: {mutant.place}: {mutant.change}"
            print(f"  {WORDS[fate]}: {place}", file=sys.stderr, flush=True)
        done = len(fates) - before
        if done % 100 == 0:
            taken = time.monotonic() - begun
            rest = taken / done * (len(mutants) - done)
            live = sum(each == LIVES for _, each in fates)
            print(
                f"  {done} of {len(mutants)} mutants, {live} live; {taken:.0f} s, about "
                f"{rest:.0f} s to go",
                file=sys.stderr,
                flush=True,
            )
    return sorted(fates, key=lambda one: (one[0].path, one[0].number))


def _machine() -> dict[str, Any]:
    from benchmarks.run import machine  # noqa: PLC0415  # imports much, and only figures need it

    return machine()


def report(
    name: str,
    fates: Sequence[tuple[Mutant, int]],
    reasons: Mapping[str, str],
    files: Sequence[str],
) -> dict[str, Any]:
    """Prints what tests did not notice, and returns the figures of a core.

    Args:
        name: of the core.
        fates: every mutant that was tried with FOUND, ENDLESS or LIVES, in order.
        reasons: why a mutant changes nothing that can be seen, by its key; it does not count where it lives.
        files: the core's modules, in the order of the figures.
    """
    left = [mutant for mutant, fate in fates if fate == LIVES]
    open_ = [mutant for mutant in left if mutant.key not in reasons]
    for mutant in open_:
        print(f"{mutant.path}:{mutant.line}: {mutant.place}: {mutant.change}")
    equivalent = len(left) - len(open_)
    counted = len(fates) - equivalent
    endless = sum(fate == ENDLESS for _, fate in fates)
    share = 1.0 - len(open_) / counted if counted else 1.0
    print(
        f"{name}: {counted - len(open_)} of {counted} mutants found ({share:.1%}), {endless} of them "
        f"as they did not come to an end; {equivalent} more change nothing"
    )
    for key in stale(fates, reasons):
        print(f"no reason is needed any more, as a test finds it: {key}")
    by_module = {path: [0, 0] for path in files}
    for mutant, fate in fates:
        by_module[mutant.path][0] += fate != LIVES
        by_module[mutant.path][1] += fate != LIVES or mutant.key not in reasons
    return {
        "mutants": len(fates),
        "found": counted - len(open_),
        "endless": endless,
        "found_share": round(share, 4),
        "found_by_module": {path: f"{a} of {b}" for path, (a, b) in by_module.items() if b},
        "survivors": [mutant.key for mutant in open_],
        "equivalent": {mutant.key: reasons[mutant.key] for mutant in left if mutant not in open_},
    }


def stale(fates: Sequence[tuple[Mutant, int]], reasons: Mapping[str, str]) -> list[str]:
    """Returns the keys that have a reason why nothing changes although every mutant of it is found."""
    living = {mutant.key for mutant, fate in fates if fate == LIVES}
    return sorted({mutant.key for mutant, _ in fates} & reasons.keys() - living)


if __name__ == "__main__":
    sys.exit(main())
