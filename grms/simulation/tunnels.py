"""Links that are open in one direction alone, in the fault test, and sites that only call out.

A site that only calls out is called over tunnels, connections that it has opened itself: without one, calls to it do not
pass, while its own calls are answered. Two such sites meet at a relay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

from grms.simulation.clock import ManualClock
from grms.simulation.network import Network
from grms.simulation.random_source import RandomSource

ONLY_OUT: Final = 0.4
"""Probability that a site only calls out."""

BREAKS_MOST: Final = 4
"""So often the tunnels of a pair of sites break at most, and so often the relay dies."""

REOPENED_S: Final = (0.2, 10.0)
"""Shortest and longest time until tunnels are open again, seconds."""


@dataclass(slots=True)
class Tunnels:
    """The sites of a run that only call out, and what happens to their tunnels; `draws` is the source of chance."""

    draws: RandomSource
    sites: Sequence[str]
    network: Network
    only_out: frozenset[str]

    @classmethod
    def drawn(
        cls,
        draws: RandomSource,
        sites: Sequence[str],
        clock: ManualClock,
        network: Network,
        until: float,
    ) -> "Tunnels":
        """Draws them, and what breaks up to a moment, in seconds."""
        made = cls(draws, sites, network, frozenset(s for s in sites if draws.chance(ONLY_OUT)))
        made._break_links(clock, until)
        made._break_tunnels(clock, until)
        made._stop_relay(clock, until)
        return made

    def begin(self, site: str) -> None:
        """Takes note of a site that has just started: it opens its tunnels anew, each a little later."""
        if site in self.only_out:
            for other in self.sites:
                if other != site:
                    self.network.bar(other, site, self.draws.between(0.0, REOPENED_S[0]))

    def _break_links(self, clock: ManualClock, until: float) -> None:
        # From some sites to others no calls pass for most of the time; or nothing passes that way for a while.
        draws, network = self.draws, self.network
        for one, other in permutations(self.sites, 2):
            for _ in range(draws.integer(0, 2)):
                begin = draws.between(0.0, 0.5 * until)
                if draws.chance(0.7):
                    clock.after(begin, network.bar, one, other, until - begin)
                else:
                    duration = draws.between(1.0, 10.0)
                    clock.after(begin, network.cut_one_way, one, other, duration)

    def _break_tunnels(self, clock: ManualClock, until: float) -> None:
        draws = self.draws
        for caller, called in permutations(self.sites, 2):
            if called in self.only_out:
                for _ in range(draws.integer(0, BREAKS_MOST)):
                    duration = draws.between(*REOPENED_S)
                    begin = draws.between(0.0, until - duration)
                    clock.after(begin, self.network.bar, caller, called, duration)

    def _stop_relay(self, clock: ManualClock, until: float) -> None:
        # Without it two sites that only call out hear nothing of each other; it knows nothing that could be lost.
        draws, pairs = self.draws, list(combinations(sorted(self.only_out), 2))
        for _ in range(draws.integer(0, BREAKS_MOST) if pairs else 0):
            duration = draws.between(*REOPENED_S)
            begin = draws.between(0.0, until - duration)
            for one, other in pairs:
                clock.after(begin, self.network.cut, one, other, duration)
