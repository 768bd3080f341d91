"""Judges a federation by its journals: has every job that was taken run once, and once alone?

The journals are read after all daemons have ended; besides them, only what the daemons had acknowledged counts.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    GuestWithdrawn,
    JobDeclined,
    JobEnded,
    JobKept,
    JobOffered,
    JobReceived,
    JobReleased,
    JobStarted,
    Record,
)

OfferKey = tuple[str, str, int, int]
"""Partner, home, epoch of the home's journal, number."""


@dataclass(slots=True)
class Run:
    """A job at one site, with the times of its starts and its recorded ends."""

    site: str
    processors: int
    starts: list[float] = field(default_factory=list)
    ends: list[JobEnded] = field(default_factory=list)


@dataclass(slots=True)
class Home:
    """A job in its home's journal.

    Attributes:
        kept: how often it was kept at home.
        held: it waited for others, or for room in its array, and was never released.
        ends: as shown to its user.
    """

    received: JobReceived
    keys: list[OfferKey] = field(default_factory=list)
    kept: int = 0
    held: bool = False
    starts: list[float] = field(default_factory=list)
    ends: list[JobEnded] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Its idempotency key; behind that of its array an element has its index, as in `key[7]`."""
        received = self.received
        key = received.idempotency_key
        return f"{key}[{received.index}]" if received.array else key

    @property
    def never_began(self) -> bool:
        """Whether it ended while it was held: it was given to nobody."""
        return self.held and [(end.outcome, end.run_time) for end in self.ends] == [
            (Outcome.CANCELLED, 0.0)
        ]


@dataclass(slots=True)
class Verdict:
    """Result of judging a federation by its journals.

    Attributes:
        problems: violations, in words.
        counts: jobs, those cancelled while they were held, delegated, offers, declined or withdrawn, returned unstarted, tombstones, and records.
        places: the executing site of each job, by home and `Home.key`.
    """

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[tuple[str, str], str] = field(default_factory=dict)


class Federation:
    """The contents of all sites' journals."""

    def __init__(
        self,
        journals: Mapping[str, Sequence[Record]],
        epochs: Mapping[str, int],
        processors: Mapping[str, int],
    ) -> None:
        self._processors = processors
        self._jobs: dict[tuple[str, int], Home] = {}
        self._guests: dict[OfferKey, Run] = {}
        self._accepted: Counter[OfferKey] = Counter()
        self._verdict = Verdict()
        self._verdict.counts["records"] = sum(map(len, journals.values()))
        for site, records in journals.items():
            for record in records:
                self._home_record(site, epochs[site], record)
                self._guest_record(site, record)

    def _home_record(self, site: str, epoch: int, record: Record) -> None:
        counts = self._verdict.counts
        if isinstance(record, JobReceived):
            counts["jobs"] += 1
            if (site, record.job) in self._jobs:
                self._verdict.problems.append(f"{site}-{record.job} was taken twice")
            self._jobs[site, record.job] = Home(
                record, held=bool(record.dependencies or record.array)
            )
        elif isinstance(record, JobReleased):
            self._jobs[site, record.job].held = False
        elif isinstance(record, JobOffered):
            counts["offers"] += 1
            key = (record.partner, site, epoch, record.number)
            self._jobs[site, record.job].keys.append(key)
        elif isinstance(record, JobDeclined):
            counts["declined_or_taken_back"] += 1
        elif isinstance(record, JobKept):
            self._jobs[site, record.job].kept += 1
        elif isinstance(record, JobStarted) and isinstance(record.job, int):
            self._jobs[site, record.job].starts.append(record.start_time)
        elif isinstance(record, JobEnded) and isinstance(record.job, int):
            self._jobs[site, record.job].ends.append(record)

    def _guest_record(self, site: str, record: Record) -> None:
        if isinstance(record, GuestWithdrawn):
            self._verdict.counts["tombstones"] += 1
        if not isinstance(record, GuestAccepted | JobStarted | JobEnded):
            return
        if isinstance(record.job, int):
            return
        offer = record.job.offer
        key = (site, record.job.partner, offer.epoch, offer.number)
        if isinstance(record, GuestAccepted):
            self._accepted[key] += 1
            self._guests[key] = Run(site, record.request.processors)
        elif isinstance(record, JobStarted):
            self._guests[key].starts.append(record.start_time)
        else:
            self._guests[key].ends.append(record)

    def verdict(self) -> Verdict:
        """Returns what is wrong, and what there was."""
        problems, runs = self._verdict.problems, []
        self._check_keys()
        for (site, number), home in self._jobs.items():
            run = self._run(site, number, home)
            if run is not None:
                runs.append(run)
                self._verdict.places[site, home.key] = run.site
                self._verdict.counts["delegated"] += run.site != site
        problems += self._crowded(runs)
        return self._verdict

    def hands(self) -> Verdict:
        """Checks that each job was given to only one site, and has one end at home.

        If batch systems may rerun or fail a job, the number of starts and the kind of end are judged elsewhere.
        """
        self._check_keys()
        for (site, number), home in self._jobs.items():
            run = self._hand(site, number, home)
            if run is None:
                continue
            if len(home.ends) != 1:
                text = f"{site}-{number} has ended {len(home.ends)} times"
                self._verdict.problems.append(text)
            self._verdict.places[site, home.key] = run.site
            self._verdict.counts["delegated"] += run.site != site
        return self._verdict

    def _check_keys(self) -> None:
        problems = self._verdict.problems
        names = Counter((site, home.key) for (site, _), home in self._jobs.items())
        problems += [f"{site} took {key!r} {n} times" for (site, key), n in names.items() if n > 1]
        problems += [f"{key} was accepted {n} times" for key, n in self._accepted.items() if n > 1]
        offered = {key for home in self._jobs.values() for key in home.keys}
        problems += [f"{key} ran without an offer" for key in self._guests.keys() - offered]

    def _hand(self, site: str, number: int, home: Home) -> Run | None:
        if home.never_began and not (home.keys or home.kept):
            self._verdict.counts["cancelled_while_held"] += 1
            return None
        runs = [self._guests[key] for key in home.keys if key in self._guests]
        undone = [run for run in runs if _is_undone(run)]
        self._verdict.counts["went_home_undone"] += len(undone)
        runs = [run for run in runs if run not in undone]
        if home.kept:
            request = home.received.request
            runs.append(Run(site, request.processors, home.starts, list(home.ends)))
        if len(runs) == 1 and home.kept <= 1:
            return runs[0]
        where = ", ".join(run.site for run in runs) or "nobody"
        self._verdict.problems.append(f"{site}-{number} was given to {where}")
        return None

    def _run(self, site: str, number: int, home: Home) -> Run | None:
        job, problems = f"{site}-{number}", self._verdict.problems
        run = self._hand(site, number, home)
        if run is None:
            return None
        if len(run.starts) != 1:
            problems.append(f"{job} started {len(run.starts)} times at {run.site}")
        elif len(run.ends) != 1:
            problems.append(f"{job} ended {len(run.ends)} times at {run.site}")
        elif len(home.ends) != 1:
            problems.append(f"the end of {job} is {len(home.ends)} times in its home's journal")
        elif home.ends[0].outcome is not Outcome.COMPLETED:
            problems.append(f"{job} is {home.ends[0].outcome.name}: {home.ends[0].reason}")
        elif (home.ends[0].end_time, home.ends[0].run_time) != (
            run.ends[0].end_time,
            run.ends[0].run_time,
        ):
            problems.append(f"the end of {job} is not what {run.site} has")
        else:
            return run
        return None

    def _crowded(self, runs: Sequence[Run]) -> list[str]:
        # At one moment ends come before starts.
        changes: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for run in runs:
            changes[run.site] += [
                (run.starts[0], run.processors),
                (run.ends[0].end_time, -run.processors),
            ]
        problems = []
        for site, moments in changes.items():
            used = most = 0
            for _, change in sorted(moments):
                used += change
                most = max(most, used)
            if most > self._processors[site]:
                problems.append(f"{site} used {most} of its {self._processors[site]} processors")
        return problems


def _is_undone(run: Run) -> bool:
    """Returns whether a partner has returned a job without starting it."""
    return not run.starts and [(end.outcome, end.run_time) for end in run.ends] == [
        (Outcome.LOST, 0.0)
    ]
