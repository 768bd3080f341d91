"""The steps to a state, in words."""

from collections.abc import Iterable
from typing import Any

from grms.simulation.exhaustive.exploration import Label
from grms.simulation.exhaustive.numbers import Numbers
from grms.simulation.exhaustive.steps import Message
from grms.site.model.commands import Command
from grms.site.model.jobs import OfferId

_SHOWN = ("offer", "accepted", "status", "completion", "cancel", "confirm", "reserve")


class Teller:
    """Tells stories of sites."""

    def __init__(self, numbers: Numbers) -> None:
        self._name = numbers.judge.name

    def lines(self, labels: Iterable[Label]) -> list[str]:
        """Returns a line for each step."""
        return [f"{step:3d} {self._told(label)}" for step, label in enumerate(labels, start=1)]

    def _told(self, label: Label) -> str:
        place, *rest = label
        words = [self._name(place)]
        if rest[-2:-1] == ["late"]:
            rest[-2:] = ["(its records are not durable yet)"]
        elif rest[-2:-1] == ["crash"]:
            rest[-2:] = [f"and dies after step {rest[-1]} of what follows"]
            if rest[0] == "idle":
                rest = ["dies"]
        for part in rest:
            if isinstance(part, Message):
                words.append(self._said(part))
            elif isinstance(part, Command):
                words.append(_brief(part))
            else:
                words.append(str(part))
        return " ".join(words)

    def _said(self, message: Message) -> str:
        if message.answer is not None:
            return f"from {self._name(message.to)} {_brief(message.answer)}"
        wanted = "" if message.call else " (nobody waits for the answer)"
        return f"from {self._name(message.asker)} {_brief(message.question)}{wanted}"


def _brief(command: Any) -> str:
    words = [type(command).__name__]
    for name in _SHOWN:
        value = getattr(command, name, None)
        if isinstance(value, OfferId):
            words.append(f"{value.epoch}/{value.number}")
        elif value is not None and value is not False:
            word = getattr(value, "name", None) or getattr(value, "outcome", value)
            words.append(f"{name}={getattr(word, 'name', word)}")
    return " ".join(words)
