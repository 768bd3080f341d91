from broker.pool import Pool
from broker.resources import Resource
from broker.workflow import Alternative, Demand

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
