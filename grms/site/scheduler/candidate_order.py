"""How the decision where a job runs begins."""

from grms.site.model.jobs import HomeJob
from grms.site.model.partners import asking_order
from grms.site.model.state_tables import StateTables


def begin(job: HomeJob, memory: StateTables, now: float) -> None:
    """Begins a decision, or resumes one after a restart: partners asked before still count."""
    settings = memory.settings
    most = settings.questions
    job.questions_left = max(0, most - job.put) if most > 0 else most
    job.remaining = asking_order(settings.location, memory.books, now, in_turn=most > 0)
    job.decision_time = now
