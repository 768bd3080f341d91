"""What a site's operators see of rounds of offers: how many, what they ask, and what comes of it."""

from prometheus_client import CollectorRegistry, Counter


class RoundFigures:
    """The figures of rounds of offers; where none are held they stay 0.

    Args:
        registry: what Prometheus collects.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._held = Counter(
            "hanse_rounds_total", "Rounds of offers that have come to their end.", registry=registry
        )
        self._questions = Counter(
            "hanse_round_questions_total",
            "Questions to partners about jobs that wait.",
            registry=registry,
        )
        self._moved = Counter(
            "hanse_round_jobs_moved_total",
            "Jobs that have left the queue and that a partner has confirmed.",
            registry=registry,
        )

    def held(self) -> None:
        """Counts a round that is over."""
        self._held.inc()

    def asked(self) -> None:
        """Counts a question: a partner is asked to hold a place for a job."""
        self._questions.inc()

    def moved(self) -> None:
        """Counts a job that has left the queue, and that a partner has confirmed to have."""
        self._moved.inc()
