"""How a decision where a job runs begins."""

from grms.site.facts.jobs import HomeJob
from grms.site.facts.memory import Memory
from grms.site.facts.partners import asking_order


def begin(job: HomeJob, memory: Memory, now: float) -> None:
    """Begins a decision, or goes on with one in which the site has died: what was asked before counts.

    Args:
        job: that is decided.
        memory: of the site.
        now: on the site's clock, seconds.
    """
    settings = memory.settings
    most = settings.questions
    job.questions_left = max(0, most - job.put) if most > 0 else most
    job.remaining = asking_order(settings.location, memory.books, now, in_turn=most > 0)
    job.decision_time = now
