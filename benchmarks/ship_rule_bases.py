"""Copies learned rule bases from a study's folder to the bundled library.

    scenario paper decentralized-grid --output STUDY
    python benchmarks/ship_rule_bases.py STUDY

Of each pair of sites and regime the rule base of the seed with the median AWRT in training is
taken, of an even number the better of the two in the middle: what users get is what learning
usually comes to, not its luckiest draw. A rule base that was learned with changed sources is refused:
nobody could learn it again.
"""

import json
import shutil
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from grms.learning.transfer.options import rule_base_file  # noqa: E402  # the path comes first
from scenarios.library import rule_base_folder  # noqa: E402  # same


def main(study: Path) -> None:
    """Copies the median rule base of each pair and regime."""
    trainings = json.loads((study / "study.json").read_text(encoding="utf-8"))["trainings"]
    groups = defaultdict(list)
    for one in trainings:
        groups[one["regime"], one["site"], one["partner"]].append((one["awrt"], one["seed"]))
    for (regime, site, partner), runs in sorted(groups.items()):
        awrt, seed = sorted(runs)[(len(runs) - 1) // 2]
        name = rule_base_file(site, [partner])
        source = study / "policies" / regime / f"seed-{seed}" / name.removesuffix(".json") / name
        commit = json.loads(source.read_text(encoding="utf-8"))["provenance"].get(
            "commit", "-dirty"
        )
        if commit.endswith("-dirty"):
            sys.exit(
                f"{source} was learned with changed sources ({commit}); commit, learn it again"
            )
        folder = rule_base_folder(regime)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        print(f"{regime}/{name}: seed {seed} of {len(runs)}, AWRT {awrt:,.2f} s in training")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
