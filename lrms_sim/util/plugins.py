"""Plugins: entry points of installed distributions.

Entry points are read only for a name that the program itself does not know, so that commands
without plugins do not pay for them.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lrms_sim.util.errors import HanseError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DISCIPLINE_GROUP: Final = "hanse.disciplines"
"""Queue disciplines: functions, objects with `decide`, or classes of such."""

TRANSFER_GROUP: Final = "hanse.transfer_policies"
"""Transfer policies: objects with `accept`, functions, or classes."""

LOCATION_GROUP: Final = "hanse.location_policies"
"""Location policies: objects with `ask`, functions, or classes."""

LRMS_GROUP: Final = "hanse.lrms"
"""Batch systems, by `lrms.kind`: a `grms.lrms.adapter.Adapter`."""

IMPORTER_GROUP: Final = "hanse.importers"
"""Formats of `lrms-sim import`: functions of the lines of a file and a `Reading` that yield each `Record`."""

STUDY_GROUP: Final = "hanse.studies"
"""Commands of `scenario study`: a `click.Command`."""

SCENARIO_GROUP: Final = "hanse.scenario_loaders"
"""What reads scenarios for `grms train`: a function of a reference that returns a `TrainingSource`."""


class PluginError(HanseError, ValueError):
    """A plugin that cannot be used; the text says which, of which distribution, why, and a remedy."""


def is_plugin(group: str, name: str) -> bool:
    """Returns whether an installed distribution has an entry point of that name in the group."""
    return name in _installed(group, name)


def plugin_names(group: str) -> tuple[str, ...]:
    """Returns the names of all entry points of a group, sorted; none of them is loaded."""
    return tuple(sorted(_installed(group)))


def load_plugin(
    group: str,
    name: str,
    what: str,
    fits: Callable[[Any], bool] = lambda _: True,
    expected: str = "",
) -> Any:
    """Loads the object of an entry point.

    Args:
        group: of entry points.
        name: of the entry point.
        what: the word for it in errors.
        fits: whether an object is of the kind that the group takes.
        expected: that kind, in words.

    Raises:
        PluginError: two distributions have the name, loading fails, or the object is of another
            kind.
        KeyError: no distribution has the name.
    """
    points = _installed(group, name)[name]
    origins = {point.value: f"{_distribution(point)} ({point.value})" for point in points}
    if len(origins) > 1:
        raise PluginError(
            f"{what} {name!r} is an entry point of the group {group} in several distributions: "
            f"{', '.join(sorted(origins.values()))}; uninstall all but one"
        )
    origin = f"the entry point of the group {group} in {origins[points[0].value]}"
    try:
        loaded = points[0].load()
    # Whatever the module of a plugin raises makes it one that cannot be used.
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{what} {name!r} cannot be loaded: {type(error).__name__}: {error}; it is {origin}: "
            "mend or reinstall that distribution"
        ) from error
    if not fits(loaded):
        raise PluginError(
            f"{what} {name!r} is of type {type(loaded).__name__}, not {expected}; it is {origin}"
        )
    return loaded


def _installed(group: str, name: str | None = None) -> Mapping[str, "list[EntryPoint]"]:
    from importlib.metadata import entry_points  # noqa: PLC0415  # takes longer than most that needs no plugin

    found: dict[str, list[EntryPoint]] = {}
    of_group = entry_points(group=group)
    for point in of_group if name is None else of_group.select(name=name):
        found.setdefault(point.name, []).append(point)
    return found


def _distribution(point: "EntryPoint") -> str:
    dist = point.dist
    return "no distribution" if dist is None else f"{dist.name} {dist.version}"
