"""Usage records in the form in which they are exported, and their sums.

docs/how-to/accounting.md has the meaning of each field, and its names elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from grms.site.model.usage import NOTHING_USED, UsageRecord, Used, Weights, month_of
from grms.site.runtime.usage_log import PARTNERS, months_before, read_usage


@dataclass(frozen=True, slots=True)
class Usage:
    """What one job has used, as it is exported.

    Attributes:
        record_id: unique among all sites.
        global_job_id: the same in the records of the home and of the site that ran the job.
        number: among the records of its home at the same site: 1, 2, 3, …
        recorded_by: the site whose record it is.
        recorded_time: when that has noted the job's end.
        month: of UTC, to which the job belongs: that of its end.
        user: of the home; a pseudonym in a record of a site that ran it for a partner; empty if unknown.
        site: that ran it; empty if none did.
        processors, memory_mib, gpus: requested, on all nodes together.
        submit_time: or when it was accepted from a partner.
        start_time: `None` if it has not run.
        processor_s, memory_mib_s, gpu_s: the same times run time.
        cost: their weighted sum.
    """

    record_id: str
    global_job_id: str
    number: int
    recorded_by: str
    recorded_time: datetime
    month: str
    home: str
    site: str
    job_id: str
    job_name: str
    user: str
    account: str
    partition: str
    processors: int
    memory_mib: int
    gpus: int
    submit_time: datetime
    start_time: datetime | None
    end_time: datetime
    requested_time_s: float
    run_time_s: float
    processor_s: float
    memory_mib_s: float
    gpu_s: float
    cost: float
    outcome: str
    exit_code: int | None
    signal: int | None

    @property
    def used(self) -> Used:
        """What it has used."""
        ran = int(self.run_time_s > 0)
        return Used(ran, self.processor_s, self.memory_mib_s, self.gpu_s)


def exported(record: UsageRecord, recorded_by: str, weights: Weights) -> Usage:
    """Returns a record as it is exported."""
    used = record.used
    exchanged = f"{record.site}:{record.offer}" if record.offer and record.site else ""
    return Usage(
        record_id=f"{recorded_by}:{record.key}",
        global_job_id=exchanged or f"{record.home}:{record.key}",
        number=record.number,
        recorded_by=recorded_by,
        recorded_time=_moment(record.time),
        month=month_of(record.end_time),
        home=record.home,
        site=record.site,
        job_id=record.job_id,
        job_name=record.name,
        user=record.user,
        account=record.account,
        partition=record.partition,
        processors=record.processors,
        memory_mib=record.memory_mib,
        gpus=record.gpus,
        submit_time=_moment(record.submit_time),
        start_time=None if record.start_time is None else _moment(record.start_time),
        end_time=_moment(record.end_time),
        requested_time_s=record.requested_time,
        run_time_s=record.run_time,
        processor_s=used.processor_s,
        memory_mib_s=used.memory_mib_s,
        gpu_s=used.gpu_s,
        cost=used.cost(weights),
        outcome=str(record.outcome),
        exit_code=record.exit_code,
        signal=record.signal,
    )


_LAST = 253_370_764_799.0  # of the year 9998


def _moment(time: float) -> datetime:
    return datetime.fromtimestamp(min(max(time, 0.0), _LAST), UTC)


def usage_in(
    folder: Path, site: str, weights: Weights, first: str = "", last: str = ""
) -> Iterator[Usage]:
    """Yields what jobs have used that ended in some months, in the order in which it was recorded.

    Args:
        folder: with the records of the site.
        site: whose log it is.
        weights: by which costs are summed up.
        first: of these months; empty for all before `last`.
        last: of them; empty for all after `first`.

    Raises:
        JournalError: the records cannot be read.
    """
    # A partner's clock may be ahead: what ends next month there may be noted this month here.
    since = months_before(first, 1) if first else ""
    for record in read_usage(folder, site, since=since):
        month = month_of(record.end_time)
        if month >= first and (not last or month <= last):
            yield exported(record, site, weights)


def told_in(
    folder: Path,
    site: str,
    weights: Weights,
    first: str = "",
    last: str = "",
    *,
    pseudonym: Callable[[str, str], str] = lambda _partner, _user: "",
) -> Iterator[Usage]:
    """Yields what partners have recorded of own users' jobs that ended in some months, by partner.

    User, account and names are those of the job that had the offer, or else of the user with this pseudonym.

    Args:
        folder: with the records of the site.
        site: whose log it is.
        weights: by which costs are summed up.
        first: of these months; empty for all before `last`.
        last: of them; empty for all after `first`.
        pseudonym: returns what a user is called at a partner; empty if unknown.

    Raises:
        JournalError: the records cannot be read.
    """
    since = months_before(first, 1) if first else ""
    own = [one for one in read_usage(folder, site, since=since) if one.home == site]
    by_offer = {(one.site, one.offer): one for one in own if one.offer}
    users = {one.user for one in own}
    for path in sorted((folder / PARTNERS).glob("*")):
        partner = path.name
        named = {pseudonym(partner, user): user for user in users}
        for record in read_usage(path, partner, since=since):
            month = month_of(record.end_time)
            if month < first or (last and month > last):
                continue
            found = exported(record, partner, weights)
            job = by_offer.get((partner, record.offer))
            if job is not None:
                yield replace(
                    found,
                    job_id=job.job_id,
                    job_name=job.name,
                    user=job.user,
                    account=job.account,
                    partition=job.partition,
                )
            else:
                yield replace(found, user=named.get(record.user, record.user))


@dataclass(frozen=True, slots=True)
class Compared:
    """Own users' jobs that one partner has run, by this site's records and by the partner's."""

    partner: str
    own: Used
    told: Used


def compared(own: Iterable[Usage], told: Iterable[Usage], site: str) -> list[Compared]:
    """Returns the sums of both, by partner."""
    here: dict[str, Used] = {}
    there: dict[str, Used] = {}
    for sums, records in ((here, own), (there, told)):
        for record in records:
            if record.home == site and record.site not in {site, ""}:
                sums[record.site] = sums.get(record.site, NOTHING_USED).and_(record.used)
    return [
        Compared(partner, here.get(partner, NOTHING_USED), there.get(partner, NOTHING_USED))
        for partner in sorted({*here, *there})
    ]


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What jobs of one user and account have used at one site; `home` is the user's."""

    home: str
    user: str
    account: str
    site: str
    used: Used


def sums_of(records: Iterable[Usage]) -> list[UsageSum]:
    """Returns the sums of jobs that have run, by home, user, account and site."""
    found: dict[tuple[str, str, str, str], Used] = {}
    for record in records:
        if record.run_time_s > 0:
            who = record.home, record.user, record.account, record.site
            found[who] = found.get(who, NOTHING_USED).and_(record.used)
    return [UsageSum(*who, used) for who, used in sorted(found.items())]
