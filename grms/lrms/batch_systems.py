"""The kinds of batch system that a site's configuration can name."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails

from grms.daemon.config_base import wrong
from grms.lrms.adapter import Adapter, LrmsSettings
from grms.lrms.simulated import simulated
from lrms_sim.util.messages import unknown
from lrms_sim.util.plugins import LRMS_GROUP, PluginError, is_plugin, load_plugin, plugin_names


def _slurm() -> Adapter[Any]:
    from grms.lrms.slurm.slurm_adapter import ADAPTER  # noqa: PLC0415  # only where a site has one

    return ADAPTER


KINDS: Final[Mapping[str, Callable[[], Adapter[Any]]]] = {
    "simulated": lambda: simulated.ADAPTER,
    "slurm": _slurm,
}
"""What returns the adapter of each built-in kind."""


def adapter_of(kind: object) -> Adapter[Any]:
    """Returns the adapter of a kind; `PluginError` if there is none, or it cannot be used."""
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]()
    if not isinstance(kind, str) or not is_plugin(LRMS_GROUP, kind):
        names = [*KINDS, *plugin_names(LRMS_GROUP)]
        text = unknown("kind of batch system", kind, names)
        raise PluginError(f"{text}; others are plugins, entry points of the group {LRMS_GROUP}")
    adapter: Adapter[Any] = load_plugin(
        LRMS_GROUP,
        kind,
        "the batch system",
        _is_adapter,
        "a grms.lrms.adapter.Adapter of LrmsSettings",
    )
    return adapter


def _is_adapter(loaded: object) -> bool:
    settings = loaded.settings if isinstance(loaded, Adapter) else None
    return isinstance(settings, type) and issubclass(settings, LrmsSettings)


def settings_of(table: object, info: ValidationInfo) -> LrmsSettings:
    """Returns the settings of a table `[lrms]`, whose kind is `simulated` by default.

    Raises:
        ValidationError: the kind is unknown, or a key or value of its table is wrong.
        PydanticCustomError: it is no table.
    """
    if isinstance(table, LrmsSettings):
        return table
    if not isinstance(table, dict):
        raise wrong("must be a table")
    kind = table.get("kind", "simulated")
    try:
        adapter = adapter_of(kind)
    except PluginError as error:
        details = InitErrorDetails(type=wrong(str(error)), loc=("kind",), input=kind)
        raise ValidationError.from_exception_data("lrms", [details]) from error
    settings: LrmsSettings = adapter.settings.model_validate(table, context=info.context)
    return settings
