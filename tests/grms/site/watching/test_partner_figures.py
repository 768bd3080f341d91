"""What operators see of how partners are, as the list of partners changes."""

from prometheus_client import CollectorRegistry

from grms.site.watching.partner_figures import OTHER, PartnerGauges


def shown(registry: CollectorRegistry) -> dict[str, dict[str, float]]:
    """Returns the figures, by partner and name without what all have in common."""
    found: dict[str, dict[str, float]] = {}
    for family in registry.collect():
        for sample in family.samples:
            name = sample.name.removeprefix("hanse_").removeprefix("partner_")
            found.setdefault(sample.labels["partner"], {})[name] = sample.value
    return found


def test_a_partner_of_the_list_is_there_from_the_beginning() -> None:
    """It does not answer yet and has no jobs here, so that an alert on it can be written."""
    registry = CollectorRegistry()
    PartnerGauges(registry, ["CTC"])
    assert shown(registry) == {"CTC": {"reachable": 0, "guest_jobs": 0}}


def test_a_partner_that_leaves_the_list_is_shown_no_more() -> None:
    """An alert on a partner that does not answer would otherwise go on until the next restart."""
    registry = CollectorRegistry()
    figures = PartnerGauges(registry, ["CTC", "SDSC"])
    figures.set_reachable("SDSC", reachable=True)
    figures.set_standing("SDSC", awrt_s=7.0, open_jobs=3)
    figures.set_promise("SDSC", suspended=True, breaches=2, credit=5.0)
    figures.set_partners(["CTC"])
    assert shown(registry)["CTC"] == {"reachable": 0, "guest_jobs": 0}
    # What is heard of it later makes it no partner either.
    figures.set_reachable("SDSC", reachable=False)
    figures.set_standing("SDSC", awrt_s=7.0, open_jobs=3)
    figures.set_promise("SDSC", suspended=True, breaches=2, credit=5.0)
    assert "SDSC" not in shown(registry)
    figures.set_partners(["CTC", "SDSC"])
    assert shown(registry)["SDSC"] == {"reachable": 0, "guest_jobs": 0}


def test_jobs_of_partners_that_have_left_are_shown_together() -> None:
    """They are still here; one that comes back finds its own."""
    registry = CollectorRegistry()
    figures = PartnerGauges(registry, ["CTC", "SDSC", "KTH"])
    for name, count in (("CTC", 1), ("SDSC", 2), ("KTH", 4)):
        figures.set_guests(name, count)
    figures.set_partners(["KTH"])
    assert {name: each["guest_jobs"] for name, each in shown(registry).items()} == {
        "KTH": 4,
        OTHER: 3,
    }
    figures.set_guests("SDSC", 1)
    assert shown(registry)[OTHER]["guest_jobs"] == 2
    figures.set_partners(["KTH", "CTC"])
    assert shown(registry)["CTC"]["guest_jobs"] == 1
    assert shown(registry)[OTHER]["guest_jobs"] == 1
