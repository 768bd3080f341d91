"""Jobs as `scontrol show job` has them: a record of several lines each."""

from collections.abc import Iterator, Sequence

from grms.lrms.slurm.job_rows import OPEN, Row, minutes
from hanse_slurm.site import Site, now_s
from hanse_slurm.squeue import print_error
from hanse_slurm.times import long_duration, moment
from hanse_slurm.users import group_of, uid_of
from hanse_slurm.variables import job_words
from hanse_slurm.wanted import Wanted


def show_jobs(given: Sequence[tuple[str, str]], number: str) -> int:
    """Prints the jobs that a number names, or all; returns 1 where there is no such job.

    `given` are the options with their values.

    Raises:
        UsageError: the number is none.
        SiteError: the site cannot be reached, or refuses.
    """
    wanted = Wanted(job_words([number]) if number else [])
    is_one_line = False
    for option, value in given:
        wanted.take("clusters" if option == "-M" else option.lstrip("-"), value)
        is_one_line = is_one_line or option in {"-o", "--oneliner"}
    with Site() as site:
        rows = list(wanted.rows(site))
    if not rows:
        if wanted.jobs:
            print_error()
            return 1
        print("No jobs in the system")
        return 0
    for row in rows:
        lines = list(_lines(row, now_s()))
        print(" ".join(lines) if is_one_line else "\n   ".join(lines) + "\n")
    return 0


def _lines(row: Row, now: float) -> Iterator[str]:
    array = ""
    if row.index:
        array = f" ArrayJobId={row.array} ArrayTaskId={row.index}"
    null = "(null)"
    yield f"JobId={row.array}{array} JobName={row.name or null}"
    group, gid = group_of(row.user)
    yield f"UserId={row.user}({uid_of(row.user)}) GroupId={group}({gid})"
    yield f"Account={row.account or null} QOS={row.qos or null}"
    yield f"JobState={row.state.word} Reason={row.reason} Dependency={row.dependency or null}"
    yield f"BatchFlag=1 ExitCode={row.exit}"
    limit = long_duration(60 * minutes(row.limit_s))
    yield f"RunTime={long_duration(row.elapsed_s)} TimeLimit={limit}"
    yield f"SubmitTime={moment(row.submit_s)} EligibleTime={moment(row.submit_s)}"
    end_s = row.end_s if row.state not in OPEN or row.end_s is None else max(row.end_s, now)
    yield f"StartTime={moment(row.start_s, 'Unknown')} EndTime={moment(end_s, 'Unknown')}"
    yield f"Partition={row.partition or null}"
    yield f"NodeList={row.ran_at or null}"
    yield f"NumNodes={row.nodes} NumCPUs={row.cpus} NumTasks={row.tasks}"
    yield f"Features={row.features or null} Licenses={row.licences or null}"
