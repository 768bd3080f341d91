"""What goes wrong in a simulation, and how patient its daemons are."""

from dataclasses import dataclass


@dataclass(slots=True)
class Faults:
    """How bad a network is.

    Attributes:
        loss: probability that a message is lost.
        duplication: probability that it arrives twice, the second time on its own way.
        late: probability that a copy takes `late_mean` seconds on average instead of `delay_mean`.
        delay_mean: seconds.
        late_mean: seconds.
    """

    loss: float = 0.0
    duplication: float = 0.0
    late: float = 0.0
    delay_mean: float = 0.05
    late_mean: float = 30.0

    def heal(self) -> None:
        """Ends losses and duplication; late messages still arrive."""
        self.loss = self.duplication = self.late = 0.0


@dataclass(slots=True)
class Crashes:
    """When a daemon dies by itself, and how long its steps take.

    Attributes:
        probability: that it dies before a step.
        down_mean: mean down time, seconds.
        commit_mean: mean time of a commit, seconds.
    """

    probability: float = 0.0
    down_mean: float = 5.0
    commit_mean: float = 0.01


@dataclass(slots=True)
class Timing:
    """How patient a daemon is.

    Attributes:
        call_deadline: of a call to a partner, seconds.
        probe_interval: between two looks at each partner, seconds; 0: no more looks.
        lost_after: looks without an answer until a partner is lost.
        reoffer: between two rounds of offers, seconds; 0: there are none.
    """

    call_deadline: float = 2.0
    probe_interval: float = 5.0
    lost_after: int = 3
    reoffer: float = 0.0
