"""The base of what commands take as values of their own kinds."""

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    ParamType = click.ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType`, generic as from click 8.4 on; older versions work as well."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


class Finite(click.types.FloatParamType):
    """A finite number; `float` and `click.FLOAT` take nan and infinity as well."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:  # as click has it
        """Returns the number, or fails with a message for the user."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is no finite number.", param, ctx)
        return found


FINITE = Finite()


class FloatRange(click.FloatRange):
    """A finite number in a range.

    `click.FloatRange` lets nan through, as no comparison with it holds, and infinity where a side has no bound.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:  # as click has it
        """Returns the number, or fails with a message for the user."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{found} is no finite number.", param, ctx)
        return found
