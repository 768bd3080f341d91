"""Judges by the journals of all sites, of all their lives, whether each job has run to its end once."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from grms.daemon.journal import reading
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    JobEnded,
    JobOffered,
    JobReceived,
    JobReoffered,
    JobSentHome,
    JobStarted,
    Record,
)
from grms.site.runtime.journal import KIND

OwnJob = tuple[str, int]
"""Its home, and its number there."""


@dataclass(slots=True)
class Run:
    """What a site has recorded of a job that it was to run."""

    site: str
    starts: int = 0
    ends: list[Outcome] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether it has run once, and completed; one that ended between two looks at its batch system has no start."""
        return self.starts <= 1 and self.ends == [Outcome.COMPLETED]

    @property
    def is_none(self) -> bool:
        """Whether it has not begun, or was ended for another job and sent home."""
        if self.starts == 0:
            return Outcome.COMPLETED not in self.ends
        return self.starts == 1 and self.ends == [Outcome.PREEMPTED]


@dataclass(slots=True)
class Judged:
    """Result of judging; `counts` says what there was, `problems` what must not be, in words."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def story(paths: Sequence[Path]) -> list[Record]:
    """Returns all records that copies of one journal have, each once, in order; a compacted copy has not all of them."""
    found: dict[bytes, Record] = {}
    for path in paths:
        with reading(path, KIND) as scan:
            for record in scan.records():
                found.setdefault(msgspec.msgpack.encode(record), record)
    return list(found.values())


def epoch_of(path: Path) -> int:
    """Returns the epoch of a journal."""
    with reading(path, KIND) as scan:
        for _ in scan.batches():
            pass
        return int(scan.notes["epoch"])


class Judge:
    """Takes what all sites have recorded.

    `acknowledged` are the idempotency keys that each site has taken; an element of an array has its index behind it, as in
    `key[7]`.
    """

    def __init__(
        self,
        journals: Mapping[str, Sequence[Record]],
        epochs: Mapping[str, int],
        acknowledged: Mapping[str, set[str]],
    ) -> None:
        self._judged = Judged()
        self._acknowledged = acknowledged
        self._keys: dict[OwnJob, str] = {}
        self._offers: dict[tuple[str, str, int, int], OwnJob] = {}
        self._runs: defaultdict[OwnJob, list[Run]] = defaultdict(list)
        self._ends: Counter[OwnJob] = Counter()
        for site, records in journals.items():
            self._read_home(site, epochs[site], records)
        for site, records in journals.items():
            self._read_runs(site, records)

    def _read_home(self, site: str, epoch: int, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record, JobReceived):
                index = f"[{record.index}]" if record.array else ""
                self._keys[site, record.job] = record.idempotency_key + index
            elif isinstance(record, JobOffered | JobReoffered):
                self._offers[record.partner, site, epoch, record.number] = (site, record.job)
            elif isinstance(record, JobSentHome):
                self._judged.counts["sent_home"] += 1
            elif isinstance(record, JobEnded) and isinstance(record.job, int):
                job = (site, record.job)
                self._ends[job] += 1
                if record.outcome is not Outcome.COMPLETED:
                    text = f"{self._keys[job]} of {site} is {record.outcome}: {record.reason}"
                    self._judged.problems.append(text)

    def _read_runs(self, site: str, records: Sequence[Record]) -> None:
        here: dict[object, Run] = {}
        for record in records:
            if not isinstance(record, GuestAccepted | JobStarted | JobEnded):
                continue
            ref = record.job
            if isinstance(ref, int):
                if isinstance(record, JobEnded) and ref not in here:
                    continue  # it has run at a partner
                job = (site, ref)
            else:
                job = self._offers[site, ref.partner, ref.offer.epoch, ref.offer.number]
            if ref not in here:
                here[ref] = Run(site)
                self._runs[job].append(here[ref])
            if isinstance(record, JobStarted):
                here[ref].starts += 1
            elif isinstance(record, JobEnded):
                here[ref].ends.append(record.outcome)

    def judged(self) -> Judged:
        """Returns what is wrong, and what there was."""
        self._judged.problems += self._of_keys()
        for job, key in self._keys.items():
            self._judged.counts["jobs"] += 1
            self._judged.problems += self._of_job(job, key)
        return self._judged

    def _of_keys(self) -> Iterator[str]:
        names = Counter((site, key) for (site, _), key in self._keys.items())
        for (site, key), times in names.items():
            if times > 1:
                yield f"{site} took {key} {times} times"
        for site, wanted in self._acknowledged.items():
            for key in sorted(wanted - {key for at, key in names if at == site}):
                yield f"{key} of {site} was acknowledged and is lost"

    def _of_job(self, job: OwnJob, key: str) -> Iterator[str]:
        whole = [run for run in self._runs[job] if run.is_whole]
        others = [run for run in self._runs[job] if not run.is_whole]
        self._judged.counts["ran_at_partners"] += sum(run.site != job[0] for run in whole)
        if len(whole) != 1:
            yield f"{key} of {job[0]} has run to its end {len(whole)} times: {self._runs[job]}"
        if wrong := [run for run in others if not run.is_none]:
            yield f"{key} of {job[0]} has also run as {wrong}"
        if self._ends[job] != 1:
            yield f"{key} of {job[0]} has ended {self._ends[job]} times at its home"
