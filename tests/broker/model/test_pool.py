import pytest

from broker.model.pool import Pool
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand

POOL = Pool(
    (
        Resource("small"),
        Resource("large", capacity=8),
        Resource("gpu-1", "gpu", capacity=2),
        Resource("licence", "licence", capacity=3),
    ),
    {"gpu-1": (Demand("licence", 2),)},
)


def test_a_pool_gives_alternatives_by_kind() -> None:
    """Resources in order, large enough, with what they require."""
    assert POOL.kinds == ["cpu", "gpu", "licence"]
    assert POOL.alternatives(["gpu", "cpu"], 2) == (
        Alternative((Demand("large", 2),)),
        Alternative((Demand("gpu-1", 2), Demand("licence", 2))),
    )
    assert POOL.alternatives(["gpu"], 3) == ()
    both = Alternative((Demand("small", 1),)), Alternative((Demand("large", 1),))
    assert POOL.alternatives(["cpu"]) == both


def test_tasks_with_the_same_wishes_share_their_alternatives() -> None:
    """Fifty thousand tasks on seven hundred resources would be thirty-five million objects otherwise."""
    assert POOL.alternatives(["gpu", "cpu"], 2) is POOL.alternatives(("cpu", "gpu"), 2)
    assert POOL.alternative("large", 2) is POOL.alternatives(["cpu"], 2)[0]
    assert POOL.alternative("large", 3) != POOL.alternative("large", 2)


def test_what_is_required_is_followed_to_the_end() -> None:
    """A tool, its operating system and the hardware of that; what comes twice is held once."""
    names = ("tool", "system", "hardware", "licence", "server")
    pool = Pool(
        tuple(Resource(name, name, capacity=8) for name in names),
        {
            "tool": (Demand("system"), Demand("licence", 2)),
            "system": (Demand("hardware", 4), Demand("server")),
            "licence": (Demand("server", 3),),
        },
    )
    assert pool.alternative("tool", 5) == Alternative(
        (
            Demand("tool", 5),
            Demand("system"),
            Demand("licence", 2),
            Demand("hardware", 4),
            Demand("server", 3),
        )
    )
    assert pool.alternative("system") == Alternative(
        (Demand("system"), Demand("hardware", 4), Demand("server"))
    )


def test_resources_that_require_each_other_are_refused() -> None:
    """The text names the circle, wherever it begins."""
    requires = {
        "tool": (Demand("system"),),
        "system": (Demand("hardware"),),
        "hardware": (Demand("elsewhere"), Demand("system")),
    }
    with pytest.raises(
        ValueError, match=r"^resources require each other: system → hardware → system$"
    ):
        Pool(tuple(Resource(name) for name in requires), requires)
