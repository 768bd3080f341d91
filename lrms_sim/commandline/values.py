"""The base of what commands take as values of their own kinds."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    ParamType = click.ParamType
else:

    class ParamType(click.ParamType):
        """`click.ParamType`, which says what it converts to from click 8.4 on; older ones serve as well."""

        def __class_getitem__(cls, _: object) -> type:
            return cls
