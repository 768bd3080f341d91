"""Which field of a log says what jobs ask of nodes; commands read it without what is slow to import."""

from dataclasses import dataclass
from typing import Literal

from lrms_sim.util.option_fields import option


@dataclass(frozen=True, slots=True)
class DemandOptions:
    """What is taken from a log for what jobs ask for besides processors.

    Attributes:
        memory_from: the field with a job's memory, `requested` (field 10) or `used` (field 7), KiB for each
            processor; if it is not positive, the other one is taken. `none` takes neither.
    """

    memory_from: Literal["requested", "used", "none"] = option(
        "With --nodes: the field of the log that says a job's memory.", default="requested"
    )
