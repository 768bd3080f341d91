"""Tools to test sites with: a manual clock, a fake batch system, a network with faults.

`python -m grms.testing --seed N` replays one run of the fault test and tells its story.
"""

from grms.conducted.clock import ManualClock
from grms.testing.draws import Draws
from grms.testing.faults import Crashes, Faults, Timing
from grms.testing.findings import Verdict
from grms.testing.lrms import FakeLrms
from grms.testing.network import Network
from grms.testing.site import SimulatedSite
from grms.testing.trial import (
    Trial,
    run_trial,
)

__all__ = [
    "Crashes",
    "Draws",
    "FakeLrms",
    "Faults",
    "ManualClock",
    "Network",
    "SimulatedSite",
    "Timing",
    "Trial",
    "Verdict",
    "run_trial",
]
