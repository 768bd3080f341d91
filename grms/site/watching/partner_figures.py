"""What a site's operators see of each partner: whether it answers, its jobs here, how it does with theirs.

Labels are the names of the list of partners, so that nobody outside can make the figures grow; others are
shown together. One that leaves the list has no figures of how it is any more.
"""

import contextlib
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

OTHER: Final = "other"
"""The label for a partner that is on no list."""


class PartnerGauges:
    """The figures of how partners are; what is counted of them is in `SiteMetrics`.

    Args:
        registry: what Prometheus collects.
        partners: the allow-list; others are counted together.
    """

    def __init__(self, registry: CollectorRegistry, partners: Iterable[str]) -> None:
        self._partners: frozenset[str] = frozenset()
        self._registry = registry
        self._gauges: list[Gauge] = []
        self._guest_counts: dict[str, int] = {}
        self._guests = self._gauge("hanse_guest_jobs", "Partners' jobs here.")
        self._reachable = self._gauge("hanse_partner_reachable", "1 where a partner answers.")
        self._awrt = self._gauge(
            "hanse_partner_awrt_seconds", "By which partners are put in order."
        )
        self._open = self._gauge("hanse_partner_open_jobs", "Own jobs that are open at a partner.")
        self._suspended = self._gauge(
            "hanse_partner_suspended", "1 while broken promises keep it from offers."
        )
        self._breaches = self._gauge(
            "hanse_partner_breaches", "Promises that a partner has broken."
        )
        self._credit = self._gauge(
            "hanse_partner_credit_seconds", "Processor seconds done as promised."
        )
        self.set_partners(partners)

    def label(self, partner: str) -> str:
        """Returns by which name a partner is shown."""
        return partner if partner in self._partners else OTHER

    def set_partners(self, partners: Iterable[str]) -> None:
        """Replaces the allow-list.

        One that comes does not answer yet. Of one that leaves nothing is shown but, among those of others,
        its jobs here.
        """
        before, self._partners = self._partners, frozenset(partners)
        for partner in before - self._partners:
            for gauge in self._gauges:
                with contextlib.suppress(KeyError):
                    gauge.remove(partner)
        for partner in sorted(self._partners - before):
            self.set_reachable(partner, reachable=False)
            self._guest_counts.setdefault(partner, 0)
        for partner, count in self._guest_counts.items():
            self.set_guests(partner, count)
        self._show_others()

    def set_reachable(self, partner: str, *, reachable: bool) -> None:
        """Sets whether a partner answers."""
        if partner in self._partners:
            self._reachable.labels(partner).set(reachable)

    def set_guests(self, partner: str, count: int) -> None:
        """Sets how many jobs of a partner are here and have not ended."""
        self._guest_counts[partner] = count
        if partner in self._partners:
            self._guests.labels(partner).set(count)
        else:
            self._show_others()

    def set_standing(self, partner: str, *, awrt_s: float, open_jobs: int) -> None:
        """Sets how a partner does with the jobs given to it."""
        if partner in self._partners:
            self._awrt.labels(partner).set(awrt_s)
            self._open.labels(partner).set(open_jobs)

    def set_promise(self, partner: str, *, suspended: bool, breaches: int, credit: float) -> None:
        """Sets how a partner keeps its promises, where it is held to them.

        Args:
            partner: its name.
            suspended: it is offered nothing.
            breaches: promises that it has broken.
            credit: processor seconds.
        """
        if partner in self._partners:
            self._suspended.labels(partner).set(suspended)
            self._breaches.labels(partner).set(breaches)
            self._credit.labels(partner).set(credit)

    def _show_others(self) -> None:
        others = self._guest_counts.keys() - self._partners
        if others:
            self._guests.labels(OTHER).set(sum(self._guest_counts[name] for name in others))
        else:
            with contextlib.suppress(KeyError):
                self._guests.remove(OTHER)

    def _gauge(self, name: str, text: str) -> Gauge:
        gauge = Gauge(name, text, ("partner",), registry=self._registry)
        self._gauges.append(gauge)
        return gauge
