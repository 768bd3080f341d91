import pytest

from scenarios.library import bundled_names, scenario_path
from scenarios.spec.files import load_spec
from scenarios.studies.decentralized_grid.reference import (
    FOUR_SITES,
    PAIRS,
    SETUPS,
    TABLE_1,
    THREE_SITES,
    UNKNOWN_SITE,
    Setup,
)


def test_every_grid_is_a_bundled_scenario() -> None:
    """A study can be looked at piece by piece with `scenario run`."""
    names = {setup.scenario for setup in SETUPS} | {*PAIRS, THREE_SITES, FOUR_SITES}
    assert names <= set(bundled_names())
    assert len(names) == 11


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.number)
def test_a_setup_has_the_sites_of_its_scenario(setup: Setup) -> None:
    """The learner comes first, as in the paper's list."""
    spec = load_spec(scenario_path(setup.scenario))
    assert [site.name for site in spec.sites] == [setup.site, setup.partner]
    assert set(setup.paper) == {setup.site, setup.partner}


def test_the_paper_agrees_with_itself() -> None:
    """ΔAWRT of Table 2 is its AWRT against the one of Table 1, to the digits printed."""
    for setup in SETUPS:
        for name, figures in setup.paper.items():
            alone = TABLE_1[f"{name}-5"].awrt
            assert 100 * (1 - figures.awrt / alone) == pytest.approx(
                figures.awrt_improvement, abs=0.02
            ), (setup.number, name)


def test_the_unknown_site_is_in_the_last_grid_only() -> None:
    """Nobody has learned for it."""
    assert all(UNKNOWN_SITE not in (setup.site, setup.partner) for setup in SETUPS)
    names = [site.name for site in load_spec(scenario_path(FOUR_SITES)).sites]
    assert UNKNOWN_SITE in names
