"""Options that have a new name: the old one goes on working, and a note says how it is called now."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def renamed_option(new: str, old: str, **attributes: Any) -> Callable[[Function], Function]:
    """Returns a decorator for an option with a new and an old name.

    The old one is not in the help. Where both are given the new one counts.

    Args:
        new: name of the option, with its dashes.
        old: the same as it was called before.
        attributes: as of `click.option`; without a callback.
    """
    key = f"renamed {new}"
    shown = {"help", "default", "show_default"}
    hidden = {name: value for name, value in attributes.items() if name not in shown}

    def take(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            context.meta[key] = value
            click.echo(f"note: {old} is called {new} now", err=True)

    def choose(context: click.Context, _: click.Parameter, value: Any) -> Any:
        return context.meta.get(key) if value is None else value

    def decorate(function: Function) -> Function:
        # Eager, so that it is known when the new one's turn comes.
        inner = click.option(
            old, hidden=True, is_eager=True, expose_value=False, callback=take, **hidden
        )(function)
        return click.option(new, callback=choose, **attributes)(inner)

    return decorate
