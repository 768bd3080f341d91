from dataclasses import asdict
from pathlib import Path

import pytest

from grms.policy.files import save_rule_base
from grms.policy.transfer import Gaussian, Rule, RuleBase
from scenarios.run.replay import load_policies
from scenarios.studies.decentralized_grid.grids import (
    EASY_NO_LOSER,
    EGOISTIC,
    REGIMES,
    grid_spec,
    learned_file,
    run_grid,
)

SELFISH = RuleBase((Rule(Gaussian(0.0, 1e6), Gaussian(0.0, 1e6), accept=True),), name="selfish")
"""Keeps and takes everything, whatever the queue."""


def test_regimes_have_folders_of_their_own() -> None:
    """A regime's key is its folder's name; people read its words."""
    assert [regime.key for regime in REGIMES] == [
        "fcfs-egoistic",
        "fcfs-no-loser",
        "easy-egoistic",
        "easy-no-loser",
    ]
    assert EASY_NO_LOSER.words == "EASY, no-loser"


def test_without_rule_bases_everybody_accepts_when_fit() -> None:
    """Whatever policies the bundled scenario has."""
    spec = grid_spec("three-sites-6", "easy")
    assert {site.discipline for site in spec.sites} == {"easy"}
    policies = load_policies(spec)
    found = {policy.name for of_site in policies.values() for policy in of_site.values()}
    assert found == {"awf"}


def test_each_site_uses_what_it_learned_for_each_partner(tmp_path: Path) -> None:
    """The file of a pair is the one used for it; learners may be some of the sites."""
    for site, partner in (("KTH", "CTC"), ("CTC", "KTH")):
        base = RuleBase(SELFISH.rules, name=f"{site} for {partner}")
        save_rule_base(base, learned_file(tmp_path, site, partner))

    def learned(site: str, partner: str) -> Path:
        return learned_file(tmp_path, site, partner)

    both = load_policies(grid_spec("kth-ctc-6", "fcfs", learned=learned))
    assert both["KTH"]["CTC"].name == "KTH for CTC"
    assert both["CTC"]["KTH"].name == "CTC for KTH"
    one = load_policies(
        grid_spec("kth-ctc-6", "fcfs", learned=learned, learners=frozenset({"KTH"}))
    )
    assert one["KTH"]["CTC"].name == "KTH for CTC"
    assert one["CTC"]["KTH"].name == "awf"


def test_an_unknown_partner_is_treated_like_the_one_of_nearest_size(tmp_path: Path) -> None:
    """Section 8.1: SDSC00 with 128 processors is like KTH with 100; to KTH itself, like CTC."""
    for site in ("KTH", "CTC", "SDSC05"):
        for partner in {"KTH", "CTC", "SDSC05"} - {site}:
            base = RuleBase(SELFISH.rules, name=f"{site} for {partner}")
            save_rule_base(base, learned_file(tmp_path, site, partner))
    spec = grid_spec(
        "four-sites-6", "fcfs", learned=lambda site, partner: learned_file(tmp_path, site, partner)
    )
    policies = load_policies(spec)
    assert {name: of["SDSC00"].name for name, of in policies.items() if name != "SDSC00"} == {
        "KTH": "KTH for CTC",
        "CTC": "CTC for KTH",
        "SDSC05": "SDSC05 for KTH",
    }
    assert {policy.name for policy in policies["SDSC00"].values()} == {"awf"}
    assert policies["CTC"]["SDSC05"].name == "CTC for SDSC05"


@pytest.mark.traces
def test_a_grid_of_selfish_sites_is_each_site_alone(tmp_path: Path, traces_folder: Path) -> None:
    """Who keeps everything gives nothing, so every figure is that of the site alone."""
    for site, partner in (("KTH", "CTC"), ("CTC", "KTH")):
        save_rule_base(SELFISH, learned_file(tmp_path, site, partner))
    spec = grid_spec(
        "kth-ctc-6", "fcfs", learned=lambda site, partner: learned_file(tmp_path, site, partner)
    )
    run = run_grid(
        spec,
        policies=EGOISTIC.key,
        seed=7,
        environment={"HANSE_TRACES": str(traces_folder)},
    )
    assert (run.scenario, run.policies, run.seed) == ("kth-ctc-6", "fcfs-egoistic", 7)
    assert [site.awrt_improvement for site in run.sites] == [0.0, 0.0]
    assert [round(site.awrt_alone, 4) for site in run.sites] == [100013.1841, 59118.1572]
    assert asdict(run)["sites"][0]["jobs_given"] == 0
