"""What commands take as values of their own kinds: finite numbers, spans of days."""

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


def two_days(
    text: str | None, hint: str = "--window-days", *, upward: bool = True
) -> tuple[float | None, float | None]:
    """Returns the two days of `A:B`, as `0:150`, `150:` or `:150`; `None` for a missing side.

    `hint` is the option. `upward` requires the second to be after the first.

    Raises:
        click.BadParameter: it is not two days, or they are not `upward`.
    """
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    # Without a colon a part is left over that is no number.
    parts = (first, last) if colon else (":", "")
    try:
        begin, end = (float(part) if part else None for part in parts)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not two days A:B, such as 0:150, 150: or :150", param_hint=hint
        ) from None
    if upward and begin is not None and end is not None and end <= begin:
        raise click.BadParameter(
            f"{text!r} ends on day {end:g}, which is not after day {begin:g}, where it begins; say "
            "the earlier day first, such as 0:150",
            param_hint=hint,
        )
    return begin, end
