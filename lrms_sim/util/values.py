"""The base of what commands take as values of their own kinds."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    ParamType = click.ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType`, generic as from click 8.4 on; older versions work as well."""

        def __class_getitem__(cls, _: object) -> type:
            return cls
