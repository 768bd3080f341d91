"""A model of partners' answers, from their past answers.

For an offer that was really made, a partner repeats its answer, and the job takes the time that it took. For
any other it accepts as often as for jobs of the same size class, with a wait drawn at random from that
class. It declines jobs wider than any it was ever offered, as it may be too small. The model ignores that a
partner asked more often may become busier, or stricter.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from grms.site.accounting.accounts import Accounts, OwnRun

WIDTHS: Final = (1 / 16, 1 / 4, 1.0)
"""Bounds of the width classes, as shares of the site's own machine."""

REQUESTS_S: Final = (3600.0, 6 * 3600.0, math.inf)
"""Bounds of the classes of requested times, seconds."""

ANSWERS_MIN: Final = 10
"""With fewer answers or waits in a class, those of all classes are used."""

SizeClass = tuple[int, int]


def size_class(processors: int, requested_time: float, machine: int) -> SizeClass:
    """Returns the size class of a job: by width, at most `machine`, and requested time in seconds."""
    return bisect_left(WIDTHS, processors / machine), bisect_left(REQUESTS_S, requested_time)


class PartnerAnswers:
    """Model of partners' answers.

    `partners` are in asking order, after those that were really asked; `jobs` are the numbers that may be asked
    about. Each job and partner has its own random draw, independent of other questions.
    """

    def __init__(
        self,
        accounts: Accounts,
        machine: int,
        partners: Iterable[str],
        jobs: Iterable[int],
        rng: np.random.Generator,
    ) -> None:
        self._machine = machine
        self._partners = tuple(partners)
        rows = sorted(jobs)
        self._rows = {job: row for row, job in enumerate(rows)}
        draws = rng.random((len(rows), len(self._partners), 2))
        self._draws: list[list[list[float]]] = draws.tolist()
        self._said: dict[int, dict[str, bool]] = defaultdict(dict)
        counts: dict[tuple[str, SizeClass | None], list[int]] = defaultdict(lambda: [0, 0])
        self._widest: dict[str, int] = {}
        for answer in accounts.answers:
            self._widest[answer.partner] = max(
                self._widest.get(answer.partner, 0), answer.processors
            )
            self._said[answer.job][answer.partner] = answer.accepted
            size = size_class(answer.processors, answer.requested_time, machine)
            for key in ((answer.partner, size), (answer.partner, None)):
                counts[key][0] += 1
                counts[key][1] += answer.accepted
        self._counts = dict(counts)
        self._ran = {run.job: run for run in accounts.own if run.partner}
        self._waits = _waits(self._ran, machine)

    def order(self, job: int) -> list[str]:
        """Returns the partners in the order in which they are asked about a job."""
        asked = [name for name in self._said.get(job, ()) if name in self._partners]
        return [*asked, *(name for name in self._partners if name not in asked)]

    def accepts(self, job: int, partner: str, processors: int, requested_time: float) -> bool:
        """Returns whether a partner accepts a job."""
        said = self._said.get(job, {}).get(partner)
        if said is not None:
            return said
        if processors > self._widest.get(partner, 0):
            return False
        size = size_class(processors, requested_time, self._machine)
        asked, accepted = self._counts.get((partner, size), (0, 0))
        if asked < ANSWERS_MIN:
            asked, accepted = self._counts.get((partner, None), (0, 0))
        return self._draw(job, partner, 0) * asked < accepted

    def wait(self, job: int, partner: str, processors: int, requested_time: float) -> float:
        """Returns how long an accepted job waits at a partner, seconds."""
        ran = self._ran.get(job)
        if ran is not None and ran.partner == partner:
            return _wait(ran)
        waits = self._waits.get(
            (partner, size_class(processors, requested_time, self._machine)), []
        )
        if len(waits) < ANSWERS_MIN:
            waits = self._waits.get((partner, None), [])
        return waits[int(self._draw(job, partner, 1) * len(waits))] if waits else 0.0

    def _draw(self, job: int, partner: str, which: int) -> float:
        return self._draws[self._rows[job]][self._partners.index(partner)][which]


def _wait(run: OwnRun) -> float:
    # A partner's clock may be slow.
    return max(0.0, run.end_time - run.run_time - run.handed_time)


def _waits(
    ran: Mapping[int, OwnRun], machine: int
) -> dict[tuple[str, SizeClass | None], list[float]]:
    waits: dict[tuple[str, SizeClass | None], list[float]] = defaultdict(list)
    for run in ran.values():
        if run.run_time > 0:
            size = size_class(run.processors, run.requested_time, machine)
            for key in ((run.partner, size), (run.partner, None)):
                waits[key].append(_wait(run))
    return dict(waits)
