"""What can go wrong outside this program, as errors whose text is meant for its user."""

from lrms_sim.util.errors import HanseError
from lrms_sim.util.file_errors import MistakesError


class ScenarioError(HanseError):
    """Base of all errors that a user can fix; the text says what, where and how."""


class SpecError(MistakesError, ScenarioError):
    """A scenario file that cannot be used, with everything that is wrong in it."""


class UnknownScenarioError(ScenarioError):
    """Neither a bundled scenario nor a file has that name."""


class TraceMissingError(ScenarioError):
    """A recorded log is not on this machine."""


class WorkloadError(ScenarioError):
    """A workload cannot be read or made."""


class FetchError(ScenarioError):
    """A log could not be downloaded."""


class OutputError(ScenarioError):
    """The results cannot be written to, or read from, the folder."""


class LiveError(ScenarioError):
    """Daemons of a live scenario do not do what they should."""
