"""The kinds of batch system that a site's configuration can name."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails

from grms.kit.models import wrong
from grms.lrms import simulated
from grms.lrms.adapter import Adapter, LrmsSettings
from grms.lrms.batch import kinds as batch

KINDS: Final[Mapping[str, Adapter[Any]]] = {
    "simulated": simulated.ADAPTER,
    "slurm": batch.SLURM,
    "gridengine": batch.GRID_ENGINE,
}
"""Adapters by `lrms.kind`."""


def settings_of(table: object, info: ValidationInfo) -> LrmsSettings:
    """Returns the settings that a table `[lrms]` has.

    Args:
        table: as it was read; a kind that is left out is `simulated`.
        info: of the validation, with the folder of relative paths.

    Raises:
        ValidationError: there is no such kind, or a key or a value of its table is wrong.
        PydanticCustomError: it is no table.
    """
    if isinstance(table, LrmsSettings):
        return table
    if not isinstance(table, dict):
        raise wrong("must be a table")
    kind = table.get("kind", "simulated")
    adapter = KINDS.get(kind) if isinstance(kind, str) else None
    if adapter is None:
        text = f"{kind!r} is no kind of batch system; there are: {', '.join(KINDS)}"
        details = InitErrorDetails(type=wrong(text), loc=("kind",), input=kind)
        raise ValidationError.from_exception_data("lrms", [details])
    settings: LrmsSettings = adapter.settings.model_validate(table, context=info.context)
    return settings
