"""Queue disciplines that users write in Python, and the lookup of objects by name.

A discipline is an object with a method `decide`, or a function: it is called at every pass at
which a waiting job fits, with a `MachineView`, and starts jobs with `view.start(job)`:

    def sjf(view):
        for job in sorted(view.waiting, key=lambda job: job.requested_time):
            if job.processors > view.processors_free:
                break
            view.start(job)

Names: an entry point of the groups below, or `package.module:name`.
"""

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Protocol

from lrms_sim.kernel._python_scheduler import MachineView, PythonScheduler, QueuedJob
from lrms_sim.util.plugins import PluginError, is_plugin, load_plugin

__all__ = [
    "Decides",
    "MachineView",
    "QueuedJob",
    "UserDefinedDiscipline",
    "load_user_defined",
    "name_of_user_defined",
    "names_user_defined",
]


class Decides(Protocol):
    """What an object needs to be a discipline."""

    def decide(self, view: MachineView) -> object:
        """Starts what is to start now."""


@dataclass(frozen=True, slots=True)
class UserDefinedDiscipline:
    """A queue discipline written in Python.

    In addition to `decide(view)` a discipline may have: `name`; `submitted(view, job)` and
    `ended(view, job)`, called at these events; `notes()`, whose result is `Schedule.notes` after a
    replay and `Machine.notes` at any time; `per_event`, for a pass after every single event; and
    `needs_groups`. Every machine has a deep copy, so state is per machine. A discipline has to
    start a job that fits if no job runs and no other job waits.

    Attributes:
        written: the object or function.
        fails_as: type of the error raised if a call fails; `None` for the original error.
    """

    written: Any
    fails_as: type[Exception] | None = None

    @property
    def name(self) -> str:
        """The word for this discipline in reports."""
        return name_of_user_defined(self.written)

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event."""
        return self._flag("per_event")

    def scheduler(self) -> PythonScheduler:
        """Returns a new scheduler for one machine.

        Raises:
            TypeError: it cannot be copied, or one of the attributes above is of the wrong kind.
        """
        try:
            own = copy.deepcopy(self.written)
        # Whatever a class of a user raises here means that it cannot be copied.
        except Exception as error:
            raise TypeError(
                f"discipline {self.name!r} cannot be copied: {error}; every machine has a deep copy of its "
                "own, so it holds no locks, open files and the like"
            ) from error
        notices: dict[str, Callable[[MachineView, QueuedJob], object]] = {
            name: self._called(own, name)
            for name in ("submitted", "ended")
            if getattr(own, name, None) is not None
        }
        return PythonScheduler(
            self._called(own, "decide") if hasattr(own, "decide") else self._runs(own, "it"),
            per_event=self.per_event,
            needs_groups=self._flag("needs_groups"),
            noted=self._called(own, "notes") if hasattr(own, "notes") else None,
            **notices,
        )

    def _flag(self, name: str) -> bool:
        flag = getattr(self.written, name, False)
        if not isinstance(flag, bool):
            raise TypeError(
                f"{name} of discipline {self.name!r} is {flag!r}; it must be True or False"
            )
        return flag

    def _called(self, own: Any, name: str) -> Any:
        method = getattr(own, name)
        if not callable(method):
            raise TypeError(
                f"{name} of discipline {self.name!r} is {method!r}; it must be a method"
            )
        return self._runs(method, name)

    def _runs(self, call: Any, name: str) -> Any:
        # Of these a call makes an object and runs nothing: every job would wait for ever.
        if any(
            kind(call) for kind in (isgeneratorfunction, iscoroutinefunction, isasyncgenfunction)
        ):
            raise TypeError(
                f"discipline {self.name!r}: {name} is a generator or a coroutine, which a call does not "
                "run; it must be a plain function that starts jobs with view.start(job)"
            )
        return call if self.fails_as is None else self._telling(call, self.fails_as)

    def _telling(self, call: Any, kind: type[Exception]) -> Any:
        def told(*given: Any) -> object:
            try:
                return call(*given)
            except Exception as error:
                raise kind(
                    f"discipline {self.name!r} has failed: {type(error).__name__}: {error}"
                ) from error

        return told


def name_of_user_defined(written: object) -> str:
    """Returns its `name`, or that of the function or class."""
    named = getattr(written, "name", None) or getattr(written, "__name__", None)
    return str(named or type(written).__name__)


def names_user_defined(group: str, name: str) -> bool:
    """Returns whether a name means something written in Python: an entry point, or with a colon."""
    return ":" in name or is_plugin(group, name)


def load_user_defined(group: str, name: str, what: str) -> Any:
    """Returns the object of a name, `package.module:name` or an entry point; of a class a new instance.

    `what` is the word for it in errors.

    Raises:
        ValueError: there is none, or it cannot be loaded; the text says why.
    """
    try:
        loaded = load_plugin(group, name, what) if is_plugin(group, name) else _at(name)
        return loaded() if isinstance(loaded, type) else loaded
    except PluginError:
        raise
    # Whatever the module of a user raises is a mistake in what was named.
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{what} {name!r} cannot be loaded: {type(error).__name__}: {error}; it is an entry "
            f"point of the group {group}, or package.module:name of a module on Python's path"
        ) from error


def _at(path: str) -> Any:
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found
