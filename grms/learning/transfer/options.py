"""Settings of a training run, each an option of `grms train` too; nothing is slow to import."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.option_fields import option

CONSTRAINTS_WORDS: Final = (
    "none",
    "start-now",
    "short-guests",
    "fair-exchange",
    "strict-exchange",
)
"""The words of `grms.policy.constraints`, which is slow to import; a test compares them."""

FEATURE_WORDS: Final = (
    *("requested-time", "memory-share", "gpu-share", "dominant-share", "starts-now"),
    "none",
)
"""Further features of rules within constraints."""

Objective = Literal["egoistic", "no_loser"]
"""The minimized objective: the site's AWRT alone, or so that no partner falls behind being alone."""


STEM_LENGTH_MAX = 100
"""Longest name of a rule base's file, without extension; many partners would exceed file system limits."""


def rule_base_file(site: str, partners: Sequence[str]) -> str:
    """Returns the name of a rule base's file, such as kth-for-ctc.json."""
    words = f"{site}-for-{'-'.join(partners)}".lower()
    return re.sub(r"[^a-z0-9_.-]", "_", words)[:STEM_LENGTH_MAX] + ".json"


def _with_underscores(_: click.Context, __: click.Parameter, word: str) -> str:
    return word.replace("-", "_")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is learned from, for which site, and how.

    Attributes:
        scenarios: names or files, at least one; their replays are averaged.
        site: whose policy evolves.
        partners: those to use the policy with.
        together: one replay with all partners, instead of one with each.
        rails: word of the constraints within which all sites exchange jobs; `none`: as in the scenario.
        unseen: test scenarios.
        strategy: one of `grms.learning.evolution.catalog.STRATEGIES`.
        output: folder for all files; default by site and partners.
    """

    scenarios: tuple[str, ...]
    site: str = option("Whose transfer policy evolves.", required=True)
    partners: tuple[str, ...] = option(
        "Whom the policy is for; several are averaged, each in a replay of its own.",
        flag="--partner",
        required=True,
    )
    together: bool = option("One replay with all partners instead.", default=False)
    rails: str = option(
        "All sites keep to these constraints; the rules decide only what they leave open.",
        default="none",
        type=click.Choice(CONSTRAINTS_WORDS),
    )
    unseen: tuple[str, ...] = option(
        "Evaluate on this one too, compared with what needs no learning.",
        default=(),
        metavar="SCENARIO",
    )
    objective: Objective = option(
        "The site's AWRT alone, or so that no partner falls behind being alone.",
        default="egoistic",
        type=click.Choice(["egoistic", "no-loser"]),
        callback=_with_underscores,
    )
    strategy: str = option(
        default="paper", type=click.Choice(["paper", "self-adaptive", "two-parents", "cma"])
    )
    seed: int = option(default=1, type=click.IntRange(0, SEED_MAX))
    output: Path | None = option(
        "Folder for rule base, pictures and checkpoint.  [default: out/train-SITE-for-PARTNER]",
        default=None,
        type=click.Path(path_type=Path),
    )
    resume: bool = option("Go on from the checkpoint in that folder.", default=False)
