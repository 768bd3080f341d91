"""Jobs in lines for a person: in a list, and one by one.

What few jobs need is imported for those alone: most of the time of a command is imports.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lrms_sim.util.messages import day_and_time, duration, printable, shorten

if TYPE_CHECKING:
    from grms.client import Job

WIDE: Final = 136
"""Columns of a terminal from which on a job has one line."""

_NARROW = "{:<14} {:>5} {:<10} {:<10} {:<12} {:<12} {:>9}"
_WIDE = "{:<14} {:<10} {:>6} {:>12} {:<10} {:<12} {:<12} {:<12} {:<12} {:>9} {}"
_NONE: Final = "-"


def columns() -> int:
    """Returns how many columns there are to write into; 80 if the output is no terminal."""
    import shutil  # noqa: PLC0415  # see the module's docstring

    return max(80, shutil.get_terminal_size((80, 24)).columns)


def head(width: int) -> str:
    """Returns the line above a list, for a terminal of so many columns."""
    if width < WIDE:
        return _NARROW.format("JOB", "PROCS", "STATE", "AT", "SUBMITTED", "STARTED", "PROC-H")
    return _WIDE.format(
        *("JOB", "USER", "PROCS", "LIMIT", "STATE", "AT", "SUBMITTED", "STARTED", "SINCE"),
        *("PROC-H", "NAME"),
    )


def lines(width: int, job: "Job", *others: "Job", users: bool = False) -> Iterator[str]:
    """Yields the lines of a job in a list, or those of an element and others of its array.

    In a narrow terminal what is said in words has lines of its own, with the user if there are several `users`.
    """
    shown = _name(job, others)
    lost = f"sent home {lost_words(job)}" if job.sent_home else ""
    said = "; ".join(
        filter(None, (printable(job.reason), place_words(job), lost, printable(job.place)))
    )
    started = _time(job.start_time_s)
    cost = _NONE if job.cost is None else f"{job.cost / 3600:,.1f}"
    if width < WIDE:
        import textwrap  # noqa: PLC0415  # see the module's docstring

        yield _NARROW.format(
            *(shown, job.processors, state_word(job), shorten(job.executed_on or _NONE, 10)),
            *(_time(job.submit_time_s), started, cost),
        ).rstrip()
        words = ": ".join(
            filter(None, (printable(job.user) if users else "", printable(job.name), said))
        )
        if words:
            yield from textwrap.wrap(
                words,
                width - 1,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
        return
    yield _WIDE.format(
        *(shown, printable(job.user), job.processors, duration(job.requested_time_s)),
        *(state_word(job), job.executed_on or _NONE, _time(job.submit_time_s), started),
        *(_time(job.since_s), cost),
        " ".join(filter(None, (printable(job.name), said and f"({said})"))),
    ).rstrip()


def state_word(job: "Job") -> str:
    """Returns where a job stands in a word: how it ended, or what its batch system, here or elsewhere, says of it."""
    if job.outcome is not None:
        return str(job.outcome)
    if job.phase is not None and str(job.state) in {"running", "delegated"}:
        return str(job.phase)
    return str(job.state)


def _name(job: "Job", others: "tuple[Job, ...]") -> str:
    if not others:
        return job.job_id
    from grms.util.job_arrays import ArraySpec  # noqa: PLC0415  # see the module's docstring

    indices = sorted(each.array_index or 0 for each in (job, *others))
    return f"{job.array_id}_[{ArraySpec.of(indices)}]"


def _time(moment: float | None) -> str:
    return _NONE if moment is None else day_and_time(moment)


def job_words(job: "Job") -> str:
    """Returns a line on how a job is."""
    state = f"{job.state}, {job.outcome}" if job.outcome else str(job.state)
    where = f" on {job.executed_on}" if job.executed_on else ""
    took = ""
    if job.end_time_s is not None:
        took = f" {job.end_time_s - job.submit_time_s:.3f} s after its submission"
    left = "" if not job.exit_code else f", exit code {job.exit_code}"
    if job.signal is not None:
        left += f", signal {job.signal}"
    reason = f" ({printable(job.reason)})" if job.reason else ""
    place = f", {place_words(job)}" if job.offered_to else ""
    if job.outcome is None and (word := state_word(job)) != state:
        state += f", {word}"
    if job.array is not None:
        done = job.array
        state += f", {done.completed} of {done.count} elements completed, {done.not_completed} not"
        state += f", {done.under_way} under way, {done.held} held" if not job.has_ended else ""
    sent = f", {home_words(job)}" if job.sent_home else ""
    return f"{job.job_id}: {state}{left}{where}{place}{took}{sent}{reason}"


def job_details(job: "Job") -> Iterator[str]:
    """Yields lines that say of one job when what has become of it, and what it costs whom."""
    import textwrap  # noqa: PLC0415  # see the module's docstring

    since = job.since_s if job.end_time_s is None else None
    told = (
        ""
        if job.told_time_s is None
        else f", as {printable(job.executed_on)} has last said at {_time(job.told_time_s)}"
    )
    asks = printable(job.needs) or f"{job.processors} processors"
    cost = "" if job.cost is None else f"{job.cost / 3600:,.2f} hours"
    payer = f"account {printable(job.account)} of " if job.account else ""
    for what, text in (
        ("asks for", f"{asks} for {duration(job.requested_time_s)}"),
        ("submitted", _time(job.submit_time_s)),
        ("started", "" if job.start_time_s is None else _time(job.start_time_s)),
        (state_word(job), "" if since is None else f"since {_time(since)}{told}"),
        ("sent home", lost_words(job)),
        ("place", printable(job.place)),
        ("ended", "" if job.end_time_s is None else _time(job.end_time_s)),
        ("cost", f"{cost}, paid by {payer}{printable(job.user)}" if cost else ""),
    ):
        if text:
            yield from textwrap.wrap(
                f"  {what:<11} {text}",
                79,
                subsequent_indent=" " * 14,
                break_on_hyphens=False,
            )


def home_words(job: "Job") -> str:
    """Returns which partners have sent a job home, and how often; empty if none has."""
    told = [f"{printable(each.site)}{_times(each.times)}" for each in job.sent_home]
    return f"sent home by {', '.join(told)}" if told else ""


def lost_words(job: "Job") -> str:
    """Returns the same with how long it had run there for nothing, and what is kept of it."""
    return "; ".join(
        f"by {printable(each.site)}{_times(each.times)}"
        f"{f', {duration(each.kept_s)} kept' if each.kept_s else ''}, {duration(each.lost_s)} lost"
        f"{f', not kept: {printable(each.problem)}' if each.problem else ''}"
        for each in job.sent_home
    )


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


def place_words(job: "Job") -> str:
    """Returns where a queued job may go in a round of offers; empty if no one is asked."""
    if not job.offered_to:
        return ""
    return f"{'leaving for' if job.leaving else 'offered to'} {printable(job.offered_to)}"
