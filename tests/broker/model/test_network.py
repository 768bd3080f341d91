"""Networks name sites and resources that there are."""

import pytest

from broker.model.network import HOME, Link, Network

RESOURCES = ("alpha", "beta", "gamma")


def test_a_network_of_sites_that_there_are_is_taken() -> None:
    """Those of its resources, the home of inputs, and others that are said to be there."""
    links = {("x", "gamma"): Link(), (HOME, "x"): Link(), ("gamma", "store"): Link()}
    network = Network(Link(), {"alpha": "x", "beta": "x"}, links, "store")
    network.check(RESOURCES, ["store"])
    Network(Link()).check(())


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (Network(Link(), {"delta": "x"}), "there is no resource 'delta'"),
        (
            Network(Link(), {"alpha": "x"}, {("x", "y"): Link()}),
            "the link between 'x' and 'y': there is no site 'y', nor a resource of that name without a site",
        ),
        (
            Network(Link(), {"alpha": "x"}, {("alpha", "x"): Link()}),
            "the link between 'alpha' and 'x': there is no site 'alpha', nor a resource of that name without a site",
        ),
        (
            Network(Link(), inputs="y"),
            "inputs: there is no site 'y', nor a resource of that name without a site",
        ),
    ],
)
def test_what_a_network_names_and_is_not_there_is_said(network: Network, reason: str) -> None:
    """A resource that is at a site is none itself."""
    with pytest.raises(ValueError, match=f"^{reason}$"):
        network.check(RESOURCES)
