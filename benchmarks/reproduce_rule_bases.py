"""Learns the bundled rule bases again, each with its seed, and compares all bits of their rules.

    python -m benchmarks.reproduce_rule_bases STUDY            needs the logs kth, ctc and sdsc05
    python -m benchmarks.reproduce_rule_bases STUDY --write    also says which commit they come from
    python -m benchmarks.reproduce_rule_bases STUDY --dirty --write    only those that name no commit

STUDY is a folder for the runs; interrupted, the same command goes on. All 24 take a quarter of an hour
on two quiet cores. With `--write`, what was learned anew replaces the bundled file where the rules
are the same and the sources are those of a commit: only its provenance changes. They are written when all
have been learned, as a tree with one of them changed is no commit any more. The status is 1 where any differ.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.frame import options_of
from scenarios.library import rule_base_folder
from scenarios.studies.decentralized_grid.grids import REGIMES, learned_file
from scenarios.studies.decentralized_grid.options import StudyOptions
from scenarios.studies.decentralized_grid.reference import SETUPS
from scenarios.studies.decentralized_grid.study import TrainingJob, learn, training_folder


def bundled() -> Iterator[tuple[Path, TrainingJob]]:
    """Returns every bundled rule base with the training run that its provenance tells of."""
    for regime in REGIMES:
        for setup in SETUPS:
            path = learned_file(rule_base_folder(regime.key), setup.site, setup.partner)
            told = _read(path)["provenance"]
            seed = told["strategy"]["seed"]
            yield path, TrainingJob(regime, told["generations"], seed, setup)


def names_commit(document: dict[str, Any]) -> bool:
    """Returns whether the provenance of a rule base names the commit that it was learned with."""
    commit: str = document["provenance"].get("commit", "")
    return bool(commit) and not commit.endswith("-dirty")


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def main() -> int:
    """Learns, compares and says what came of it."""
    parser = options_of(__doc__)
    parser.add_argument("study", type=Path, metavar="STUDY")
    parser.add_argument("--write", action="store_true", help="replace files whose rules are equal")
    parser.add_argument("--dirty", action="store_true", help="only those that name no commit")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    different, new = 0, []
    for path, job in bundled():
        if arguments.dirty and names_commit(_read(path)):
            continue
        learn(StudyOptions(folder=arguments.study), job, console, os.environ)
        site, partner = job.setup.site, job.setup.partner
        folder = training_folder(arguments.study, job.regime, job.seed, site, partner)
        made = learned_file(folder, site, partner)
        before, now = _read(path), _read(made)
        same = all(before[key] == now[key] for key in ("features", "rules"))
        if same and names_commit(now):
            new.append((made, path))
        different += not same
        words = "the same rules" if same else "OTHER RULES"
        print(f"{path.parent.name}/{path.name}: {words}", flush=True)
    for made, path in new if arguments.write else ():
        shutil.copyfile(made, path)
        print(f"{path.parent.name}/{path.name}: written")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
