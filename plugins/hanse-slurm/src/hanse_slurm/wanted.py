"""Which jobs a command is about: by number, name, user, state, partition, account and site."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grms.lrms.slurm.job_rows import Row, State, read_states, row_of
from grms.v1 import job_pb2
from hanse_slurm.options import UsageError
from hanse_slurm.site import Site, now_s
from hanse_slurm.users import own_name, read_users
from hanse_slurm.variables import job_words


@dataclass
class Wanted:
    """What options have said; an empty one is no limit.

    Attributes:
        jobs: names or numbers.
        users: whose jobs; by default those that the site shows the caller.
        everybody: those of all users, for operators.
        states: `None` for all.
        clusters: names of sites.
    """

    jobs: list[str]
    names: frozenset[str] = frozenset()
    users: tuple[str, ...] = ()
    everybody: bool = False
    partitions: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    states: frozenset[State] | None = None
    clusters: frozenset[str] = frozenset()

    def take(self, option: str, value: str) -> bool:
        """Takes an option that several commands have, by its long name; returns whether it is one.

        Raises:
            UsageError: its value makes no sense.
        """
        if option in {"name", "jobname"}:
            self.names |= _words(value)
        elif option == "partition":
            self.partitions |= _words(value)
        elif option in {"account", "accounts"}:
            self.accounts |= _words(value)
        elif option == "qos":
            self.qos |= _words(value)
        elif option in {"job", "jobs"}:
            self.jobs += job_words([value])
        elif option in {"user", "users", "uid"}:
            self._take_users(value)
        elif option == "me":
            self.users += (own_name(),)
        elif option in {"cluster", "clusters"}:
            self.clusters |= _words(value) - {"all"}
        else:
            return False
        return True

    def _take_users(self, value: str) -> None:
        try:
            self.users += tuple(read_users(value))
        except ValueError as error:
            raise UsageError(f"Invalid user: {error}") from error

    def take_states(self, value: str) -> None:
        """Takes a list of states.

        Raises:
            UsageError: one is none of Slurm's.
        """
        try:
            self.states = read_states(value)
        except ValueError as error:
            raise UsageError(f"Invalid job state specified: {error}") from error

    def rows(self, site: Site, *, only_open: bool = False) -> Iterator[Row]:
        """Yields the jobs in Slurm's words, as the site has them.

        Raises:
            SiteError: the site cannot be reached, or refuses.
        """
        now = now_s()
        if self.jobs:
            jobs = [job for job in site.named(self.jobs) if job is not None]
            # An array and one of its elements may both be named.
            found: Iterable[Row] = {job.job_id: row_of(job, now) for job in jobs}.values()
        else:
            found = (row_of(job, now) for job in self._listed(site, only_open=only_open))
        yield from filter(self._fits, found)

    def _listed(self, site: Site, *, only_open: bool) -> Iterator[job_pb2.Job]:
        if self.everybody:
            yield from site.listed(all_users=True, only_open=only_open)
        elif set(self.users) <= {own_name()}:
            yield from site.listed(only_open=only_open)
        else:
            for user in dict.fromkeys(self.users):
                yield from site.listed(user=user, only_open=only_open)

    def _fits(self, row: Row) -> bool:
        return (
            (not self.names or row.name in self.names)
            and (not self.users or row.user in self.users)
            and (not self.partitions or not self.partitions.isdisjoint(row.partition.split(",")))
            and (not self.accounts or row.account in self.accounts)
            and (not self.qos or row.qos in self.qos)
            and (self.states is None or row.state in self.states)
            and (not self.clusters or row.site in self.clusters)
        )


def _words(value: str) -> frozenset[str]:
    return frozenset(word for word in value.split(",") if word)
