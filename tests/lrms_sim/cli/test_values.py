"""Kinds of values of one's own."""

import subprocess
import sys
from typing import Any

import click
import pytest

from lrms_sim.util.option_fields import FloatRange, ParamType

OLD = """
import click

def refuse(cls, _):
    raise TypeError("type 'ParamType' is not subscriptable")

click.ParamType.__class_getitem__ = classmethod(refuse)
import broker.cli.main, grms.cli.main, lrms_sim.cli.main, scenarios.cli.main
"""
"""The commands with a click before 8.4."""


class _Twice(ParamType[int]):
    name = "number"

    def convert(self, value: Any, *_: Any) -> int:
        return 2 * int(value)


def test_a_kind_of_value_is_one_of_clicks() -> None:
    """Options take it as any other."""

    @click.command()
    @click.option("--count", type=_Twice())
    def work(count: int) -> int:
        return count

    assert isinstance(_Twice(), click.ParamType)
    assert work.main(["--count", "3"], standalone_mode=False) == 6


def test_commands_need_no_click_that_knows_generic_kinds() -> None:
    """`pyproject.toml` allows click 8.1, whose class cannot be subscripted."""
    subprocess.run([sys.executable, "-c", OLD], check=True)  # noqa: S603  # this very interpreter


def test_a_number_in_a_range_is_finite() -> None:
    """Also where the range has no end."""

    @click.command()
    @click.option("--seconds", type=FloatRange(0, min_open=True))
    def work(seconds: float | None) -> float | None:
        return seconds

    assert work.main([], standalone_mode=False) is None
    assert work.main(["--seconds", "1e308"], standalone_mode=False) == 1e308
    for wrong, said in (
        ("nan", "no finite"),
        ("inf", "no finite"),
        ("-inf", "range"),
        ("0", "range"),
    ):
        with pytest.raises(click.BadParameter, match=said):
            work.main(["--seconds", wrong], standalone_mode=False)
