import json

from grms.learning.evolution.catalog import new_strategy, strategy_from_state
from grms.learning.evolution.recorded import Recorded
from grms.learning.evolution.strategies import StrategySettings
from tests.training_grids import rule_space, same_genome, sphere

SPACE = rule_space(2)


def test_it_searches_as_if_nobody_wrote_down() -> None:
    """And remembers everybody that was not given up, over a resumption too."""
    plain = new_strategy("two-parents", SPACE, StrategySettings(3, 6), 1)
    recorded: object = Recorded(new_strategy("two-parents", SPACE, StrategySettings(3, 6), 1))
    seen = []
    for generation in range(4):
        assert isinstance(recorded, Recorded)
        assert (recorded.bound, recorded.generation) == (plain.bound, plain.generation)
        ours, theirs = recorded.ask(), plain.ask()
        assert all(same_genome(a, b) for a, b in zip(ours, theirs, strict=True))
        values = [sphere(genome).value for genome in theirs]
        figures = [((value, 1.0),) if place else () for place, value in enumerate(values)]
        seen += [(value, 1.0) for value in values[1:]]
        recorded.tell(values, figures)
        plain.tell(values, figures)
        assert recorded.seen == tuple(seen)
        if generation == 1:
            recorded = strategy_from_state(json.loads(json.dumps(recorded.to_state())))
    assert isinstance(recorded, Recorded)
    assert recorded.best is not None
    assert plain.best is not None
    assert recorded.best.value == plain.best.value
    assert recorded.exhausted == ""
    assert recorded.name == "recorded"


def test_there_is_an_end_to_what_it_remembers() -> None:
    """The first are kept."""
    full = Recorded(
        new_strategy("two-parents", SPACE, StrategySettings(3, 6), 1), [(1.0,)] * 99_999
    )
    full.ask()
    full.tell([1.0, 2.0, 3.0], [((1.0,),), ((2.0,),), ((3.0,),)])
    assert len(full.seen) == 100_000
    assert full.seen[-1] == (1.0,)
