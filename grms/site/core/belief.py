"""Whether what a partner says of a job can be true, above all of its end, by what the home site knows itself.

An answer that the protocol does not have is a fault of the partner (`faults`). Of an end the home site
knows what the job asked for, when it offered it and what time it is. A report that goes against that
is not believed: it is counted, its numbers are brought within what can be, and the partner that sent
it is asked last until it has made good for it. A lie within these bounds cannot be seen from here;
docs/protocol.md says what remains.
"""

import math
from dataclasses import replace

from grms.site.facts.events import StatusAnswered
from grms.site.facts.jobs import Completion, HomeJob
from grms.site.facts.lifecycle import GuestState, JobState, Outcome
from grms.site.facts.settings import SiteSettings


def violation(job: HomeJob, completion: Completion, now: float, settings: SiteSettings) -> str:
    """Returns what cannot be true of a job's reported end, for a person; empty where all may be.

    Args:
        job: that was offered to the partner.
        completion: as it was reported.
        now: of the receipt, on the home site's clock, seconds.
        settings: of the home site, with the graces.
    """
    run_time, requested = completion.run_time, job.request.requested_time
    ended = completion.end_time
    grace, skew = settings.run_time_grace, settings.clock_grace
    elapsed = max(0.0, now - job.offer_time)
    clocks = math.isfinite(skew)
    for wrong, text in (
        (run_time > requested + grace, f"a run time of {run_time:g} s, {requested:g} s requested"),
        (
            completion.outcome is Outcome.TIMEOUT and run_time < requested - grace,
            f"cut at its limit after {run_time:g} s, {requested:g} s requested",
        ),
        (
            clocks and run_time > elapsed * (1.0 + settings.clock_drift) + settings.elapsed_grace,
            f"a run time of {run_time:g} s, {elapsed:g} s after the offer",
        ),
        (clocks and ended > now + skew, f"an end {ended - now:g} s in the future"),
        (
            clocks and ended - run_time < job.offer_time - skew,
            f"a start {job.offer_time - (ended - run_time):g} s before the offer",
        ),
    ):
        if wrong:
            return text
    return ""


def believable(job: HomeJob, completion: Completion, now: float) -> Completion:
    """Returns a report that cannot be true with its times brought to what can be.

    Args:
        job: that was offered to the partner.
        completion: as it was reported.
        now: of the receipt, on the home site's clock, seconds.
    """
    run_time = min(completion.run_time, job.request.requested_time, max(0.0, now - job.offer_time))
    return replace(completion, run_time=run_time, end_time=now)


def senseless(job: HomeJob, event: StatusAnswered) -> bool:
    """Returns whether an answer about an offer is none that the protocol has.

    That is an end of another offer, or of none; and a withdrawal is never answered by "never heard of".
    """
    if event.completion is not None:
        return event.completion.offer != event.offer or event.status is not GuestState.ENDED
    if event.status is GuestState.ENDED:
        return True
    withdrawn = job.cancel_told or job.state is JobState.WITHDRAWING
    return event.status is None and withdrawn
