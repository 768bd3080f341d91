"""Published tables of jobs by name: what their columns are is in `published.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from lrms_sim.workload.accounting.table import Layout


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    text = files(__package__).joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def layout_of(
    name: str, columns: Mapping[str, str] | None = None, units: Mapping[str, str] | None = None
) -> Layout:
    """Returns what the columns of a published table mean.

    Args:
        name: of a table of `published.toml`.
        columns: columns of fields that are to be others than those of the name.
        units: the same of units.

    Raises:
        KeyError: no table has that name.
        ValueError: a field or unit is not known.
    """
    said = _tables()[name]
    own = dict(columns or {})
    return Layout(
        {**said["columns"], **own},
        said.get("names", ()),
        units={**said.get("units", {}), **(units or {})},
        optional=frozenset(said.get("optional", ())) - own.keys(),
    )
