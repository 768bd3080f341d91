"""What a preparation did with a log: how often each rule applied, and what was lost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from lrms_sim.spelling import share

Treatment = Literal["dropped", "altered", "kept", "ignored"]

LOSSY_SHARE: Final = 0.25
"""From this share of dropped records on, what was lost is said beside the figures."""

_KEEPING: Final = {
    "partial-execution": ("partial_execution", "keep"),
    "submit-time-negative": ("submit_time_negative", "keep"),
    "run-time-zero": ("run_time_zero", "one_second"),
    "requested-time-missing": ("requested_time_missing", "run_time"),
    "job-id-repeated": ("job_id_repeated", "renumber"),
}
"""Option and choice that keep the records that a rule drops, by the rule's reason."""


@dataclass(frozen=True, slots=True)
class PreparationEntry:
    """How often one rule applied.

    Attributes:
        reason: the rule's short name, made of lower-case words and hyphens.
        description: the same for people.
        count: records concerned.
        treatment: `dropped`, `altered`, `kept` where something odd was left as it is, or `ignored` where
            something that the log says is not used.
    """

    reason: str
    description: str
    count: int
    treatment: Treatment


@dataclass(frozen=True, slots=True)
class PreparationReport:
    """What the preparation did with a log.

    A record that several rules would drop is counted under the first of them, so that records
    dropped and jobs prepared add up to the records read. Alterations are counted among the jobs
    prepared.

    Attributes:
        path: the log.
        records_read: job lines in the log.
        jobs_prepared: jobs in the resulting table.
        entries: one for each rule that applied at least once.
    """

    path: str
    records_read: int
    jobs_prepared: int
    entries: tuple[PreparationEntry, ...]

    @property
    def records_dropped(self) -> int:
        """Records of the log that became no job."""
        return self.records_read - self.jobs_prepared

    def count(self, reason: str) -> int:
        """Returns the number of records to which the rule of that short name applied."""
        return sum(entry.count for entry in self.entries if entry.reason == reason)

    @property
    def is_lossy(self) -> bool:
        """Whether so many records were dropped that one should know: `LOSSY_SHARE` of them."""
        return self.records_dropped > 0 and (
            self.records_dropped >= LOSSY_SHARE * self.records_read
        )

    def losses(self, option: Callable[[str, str], str]) -> str:
        """Returns in words how many records were dropped, why, and what keeps them.

        Args:
            option: says an option of `PreparationOptions` and a choice as its user writes them.
        """
        dropped = [entry for entry in self.entries if entry.treatment == "dropped"]
        dropped.sort(key=lambda entry: (-entry.count, entry.reason))
        reasons = [
            f"{entry.count:,} {entry.description}"
            + (
                f" ({option(*_KEEPING[entry.reason])} keeps them)"
                if entry.reason in _KEEPING
                else ""
            )
            for entry in dropped
        ]
        part = share(self.records_dropped / self.records_read) if self.records_read else share(0)
        return (
            f"{self.records_dropped:,} of {self.records_read:,} records ({part}) were dropped: "
            f"{', '.join(reasons)}"
        )

    def rows(self) -> list[tuple[str, int, Treatment]]:
        """Returns what a person wants to see: description, count and treatment of each rule."""
        return [(entry.description, entry.count, entry.treatment) for entry in self.entries]
