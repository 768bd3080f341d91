from grms.site.engine.outside import REPLIES, STAYS, TO_LRMS, WAITED_FOR
from grms.site.facts import commands
from grms.site.facts.commands import Command


def test_every_command_is_of_one_kind() -> None:
    """Of each it is known whether somebody outside hears of it, and of none is it said twice."""
    every = [
        kind
        for kind in vars(commands).values()
        if isinstance(kind, type) and issubclass(kind, Command) and kind is not Command
    ]
    kinds = (REPLIES, WAITED_FOR, TO_LRMS, STAYS)
    assert [kind for kind in every if sum(kind in group for group in kinds) != 1] == []
    assert sum(map(len, kinds)) == len(every)
