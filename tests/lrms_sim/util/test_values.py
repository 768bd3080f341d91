"""Kinds of values of one's own."""

import subprocess
import sys
from typing import Any

import click

from lrms_sim.util.values import ParamType

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
