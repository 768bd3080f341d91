"""The picture of what a rule base decides."""

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grms.learning.plots import drawn
from grms.learning.transfer.recorded import StateVisits
from grms.policy.transfer import RuleBase

ACCEPT = (0.13, 0.40, 0.67)
"""Colour of states in which the site runs a job itself; red, green and blue from 0 to 1."""

DECLINE = (0.85, 0.45, 0.10)
"""Colour of states in which it lets a job go."""

NWP_CELLS = 120
"""Cells of the decision map along NWP."""

NJP_CELLS = 50
"""Cells along NJP: 2 % each."""

NAME_LENGTH_MAX = 20

_PALE = 0.22  # how strong the colour of a cell is that no decision has visited


REQUEST_SHOWN = 3600.0
"""The requested time that a map is drawn for where nothing was asked, seconds."""


def decision_map(
    rule_base: RuleBase,
    nwp: npt.NDArray[np.float64],
    njp: npt.NDArray[np.float64],
    *,
    requested_time: float = REQUEST_SHOWN,
    starts_now: bool = False,
) -> npt.NDArray[np.bool_]:
    """Returns the decisions of a rule base on a grid, shape (b, a); True if the site runs the job itself.

    Args:
        rule_base: the policy.
        nwp: shape (a,), values of the normalized waiting parallelism.
        njp: shape (b,), values of the normalized job parallelism, percent.
        requested_time: of the job, seconds, if the rules use it.
        starts_now: whether the job would start at once, if the rules use it.
    """
    output = rule_base.compiled.output
    return np.array(
        [
            [
                output(x, y, requested_time=requested_time, starts_now=starts_now) > 0
                for x in nwp.tolist()
            ]
            for y in njp.tolist()
        ]
    )


def usual_request(visits: StateVisits) -> float:
    """Returns the requested time that a map is drawn for, seconds: the median of those asked about."""
    return float(np.median(visits.requested_time)) if len(visits) else REQUEST_SHOWN


def decision_map_svg(
    rule_base: RuleBase,
    visits: StateVisits,
    site: str,
    *,
    starts_now: bool = False,
    key: str = "decision-map",
) -> str:
    """Draws the decisions of a rule base over NWP × NJP, emphasized at the visits of a replay.

    For a rule base with more features this is one section: for the usual request of its questions,
    and either own jobs or guests.
    """
    edge = float(max(1.0, np.quantile(visits.nwp, 0.999))) if len(visits) else 10.0
    nwp_edges = np.linspace(0.0, edge, NWP_CELLS + 1)
    njp_edges = np.linspace(0.0, 100.0, NJP_CELLS + 1)
    accepted = decision_map(
        rule_base,
        (nwp_edges[:-1] + nwp_edges[1:]) / 2,
        (njp_edges[:-1] + njp_edges[1:]) / 2,
        requested_time=usual_request(visits),
        starts_now=starts_now,
    )
    count = np.histogram2d(visits.njp, visits.nwp, (njp_edges, nwp_edges))[0]
    strength = np.where(
        count > 0, 0.5 + 0.5 * np.log1p(count) / np.log1p(max(count.max(), 1)), _PALE
    )
    color = np.where(accepted[..., None], np.array(ACCEPT), np.array(DECLINE))
    image = np.concatenate([color, strength[..., None]], axis=2)

    shown = site if len(site) <= NAME_LENGTH_MAX else site[: NAME_LENGTH_MAX - 1] + "…"

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.imshow(
            image, origin="lower", aspect="auto", interpolation="nearest", extent=(0, edge, 0, 100)
        )
        axes.set_xlabel(f"NWP: processors the queue of {shown} asks for / its processors")
        axes.set_ylabel("NJP: processors the job asks for, % of the site's")
        axes.legend(
            handles=[
                Patch(color=ACCEPT, label=f"runs at {shown}"),
                Patch(color=DECLINE, label="is let go"),
                Patch(color="0.55", label="shaded: where decisions were taken"),
            ],
            frameon=False,
            ncols=3,
            loc="lower left",
            bbox_to_anchor=(0, 1),
        )

    about = "Accepting and declining over waiting and job parallelism"
    return drawn(key, "Decision map", about, draw)
