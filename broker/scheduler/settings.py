"""What the broker's pure state is told about how it is to work."""

import math
from dataclasses import dataclass
from typing import Literal

from broker.model.network import Network

OnLost = Literal["wait", "rerun"]
EstimatesFrom = Literal["file", "learned"]


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How the broker works; all times are seconds on its clock.

    Attributes:
        cycle: between the beginnings of two plannings; the paper's three minutes.
        slot: the planning slot: tasks that start within it stay as they are.
        pause: least time between a plan and one that is wanted at once; and what else makes a new
            plan worth while is gathered at least so long.
        gather: least time between a plan and one that is wanted for something that can wait.
        margin: by which a reservation is longer than its run.
        extension: share of its time by which the reservation of a run that takes longer is extended
            each time, at least 0.
        extension_max: share of its time by which it is extended in all, or until the limit of its program if that
            is later; 0 for never.
        runs_max: failures of one task before it has failed for good.
        tasks_max: tasks of workflows that have not ended; beyond, submissions are refused.
        ended_max: workflows that have ended and can still be asked for.
        on_lost: what becomes of a run at a site that is lost: "wait", or "rerun", which risks
            that it runs twice.
        hindered: a task that its site does not begin for so long, for a reason other than room, goes elsewhere if it can.
        early: tasks that can begin do so where units are free; else each waits for its time.
        network: what files take between sites; `None` if they do not count.
        grouped: programs that are thought to run no longer than this are launched in groups where pilots are, if
            they may begin early; 0 for none.
        estimates: how long programs are thought to take: what their users say ("file"), or what comes of that and of
            runs of the same program ("learned").

    Raises:
        ValueError: a number is out of bounds.
    """

    cycle: float = 180.0
    slot: float = 180.0
    pause: float = 5.0
    gather: float = 60.0
    margin: float = 2.0
    extension: float = 0.25
    extension_max: float = 1.0
    runs_max: int = 3
    tasks_max: int = 100_000
    ended_max: int = 1_000
    on_lost: OnLost = "wait"
    hindered: float = 600.0
    early: bool = True
    network: Network | None = None
    grouped: float = 5.0
    estimates: EstimatesFrom = "file"

    def __post_init__(self) -> None:
        for word, value in (("cycle", self.cycle), ("slot", self.slot), ("pause", self.pause)):
            if not 0 < value < math.inf:
                raise ValueError(f"the {word} is {value} s; it must be more than 0 and finite")
        least = (
            ("gather", self.gather),
            ("margin", self.margin),
            ("hindered", self.hindered),
            ("grouped", self.grouped),
        )
        for word, value in least:
            if not 0 <= value < math.inf:
                raise ValueError(f"the {word} is {value} s; it must be at least 0 and finite")
        for word, share in (("extension", self.extension), ("extension_max", self.extension_max)):
            if not 0 <= share < math.inf:
                raise ValueError(f"{word} is {share}; it must be at least 0 and finite")
        for word, count in (("runs_max", self.runs_max), ("tasks_max", self.tasks_max)):
            if count < 1:
                raise ValueError(f"{word} is {count}; it must be at least 1")
        if self.ended_max < 0:
            raise ValueError(f"ended_max is {self.ended_max}; it must be at least 0")
