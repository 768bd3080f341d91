"""Pictures of federations show what is in their schedules."""

import pytest

from grms import AcceptWhenFit, Site, replay, replay_alone
from grms.util.plots import flows, gains
from lrms_sim import awrt, generate


def test_flows_and_gains() -> None:
    """Cells count jobs by home and place; bars are improvements of AWRT in percent."""
    sites = [
        Site(name, 16, generate(16, jobs=60, load=0.9, seed=seed), transfer_policies=policies)
        for seed, (name, policies) in enumerate(
            [("a", {"b": AcceptWhenFit()}), ("b", {"a": AcceptWhenFit()})]
        )
    ]
    together, alone = replay(sites), replay_alone(sites)
    axes = flows(together)
    cells = [[int(text.get_text()) for text in axes.texts[row : row + 2]] for row in (0, 2)]
    assert [sum(row) for row in cells] == [60, 60]
    assert cells[0][1] == ((together.submitted_to == 0) & (together.executed_on == 1)).sum() > 0
    bars = gains(alone, together)
    heights = [bar.get_height() for bar in bars.patches]  # type: ignore[attr-defined]  # Rectangles
    expected = [100 * (1 - awrt(together, site) / awrt(alone, site)) for site in (0, 1)]
    assert heights == pytest.approx(expected)
    assert gains(alone, together, axes=bars) is bars
    assert flows(together, axes=axes) is axes
