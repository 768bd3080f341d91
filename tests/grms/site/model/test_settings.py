import math
from dataclasses import replace
from typing import Any

import pytest

from grms.policy.constraints import STRICT_EXCHANGE
from grms.policy.location import UserDefinedLocation
from grms.policy.transfer import AcceptWhenFit, Constrained, UserDefinedTransfer
from grms.site.model.settings import Limits, PartnerSettings, SiteSettings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"name": ""},
            r"^'' is no name for a site; 1 to 64 letters, digits, `_`, `\.` and `-` are, beginning with a letter or digit$",
        ),
        (
            {"name": "a/b"},
            r"^'a/b' is no name for a site; 1 to 64 letters, digits, `_`, `\.` and `-` are, beginning with a letter or digit$",
        ),
        (
            {"name": "ä"},
            r"^'ä' is no name for a site; 1 to 64 letters, digits, `_`, `\.` and `-` are, beginning with a letter or digit$",
        ),
        ({"name": "x" * 65}, "is no name for a site"),
        ({"processors": 0}, r"^processors is 0; it must be at least 1 and below 2147483648$"),
        ({"epoch": 0}, r"^epoch is 0; it must be at least 1 and below 9223372036854775808$"),
        ({"partners": (PartnerSettings("a"),)}, r"^site 'a' is listed as its own partner$"),
        (
            {"partners": (PartnerSettings("b"), PartnerSettings("b"))},
            r"^partner 'b' is listed twice$",
        ),
        (
            {"partners": (PartnerSettings("b", -1),)},
            r"^partner 'b' has -1 processors; at least 1, or 0 for unknown$",
        ),
        (
            {"partners": (PartnerSettings("b", 2**31),)},
            r"^partner 'b' has 2147483648 processors; at least 1, or 0 for unknown$",
        ),
        (
            {"processors": 2**31},
            r"^processors is 2147483648; it must be at least 1 and below 2147483648$",
        ),
        (
            {"epoch": 2**63},
            r"^epoch is 9223372036854775808; it must be at least 1 and below 9223372036854775808$",
        ),
        (
            {"partners": (PartnerSettings("b c"),)},
            r"^'b c' is no name for a site; 1 to 64 letters, digits, `_`, `\.` and `-` are, beginning with a letter or digit$",
        ),
        (
            {"transfer": {"b": AcceptWhenFit()}},
            r"^there is a transfer policy for 'b', which is no partner; the partners are none$",
        ),
        ({"decision_time_max": -1.0}, r"^decision_time_max is -1\.0; it must be at least 0$"),
        ({"decision_time_max": math.nan}, r"^decision_time_max is nan; it must be at least 0$"),
        (
            {"retry_first_s": 2.0, "retry_most_s": 1.0},
            r"^retry_first_s is 2\.0 and retry_most_s 1\.0; both must be finite, and the first not more than the second$",
        ),
        (
            {"retry_most_s": math.inf},
            r"^retry_first_s is 0\.2 and retry_most_s inf; both must be finite, and the first not more than the second$",
        ),
    ],
)
def test_settings_have_bounds(change: dict[str, Any], message: str) -> None:
    """What cannot be is refused, with the value."""
    with pytest.raises(ValueError, match=message):
        SiteSettings(**{"name": "a", "processors": 4, **change})


def test_bounds_themselves_are_possible() -> None:
    """No grace at all, the widest machine, and a partner of which nothing is known."""
    none: dict[str, Any] = dict.fromkeys(
        ("decision_time_max", "run_time_grace", "clock_grace"), 0.0
    )
    most: dict[str, Any] = {"processors": 2**31 - 1, "epoch": 2**63 - 1}
    for partner in (PartnerSettings("b", 0), PartnerSettings("b", 2**31 - 1)):
        given = SiteSettings(name="a", partners=(partner,), **most, **none)
        assert (given.processors, given.partners, given.clock_grace) == (2**31 - 1, (partner,), 0)
    pauses = SiteSettings("a", 1, retry_first_s=0.0, retry_most_s=0.0)
    assert (pauses.retry_first_s, pauses.retry_most_s) == (0.0, 0.0)


def test_a_bound_that_all_partners_keep_to_is_none() -> None:
    """Where as many may be asked as there are with a policy, nobody need be asked in turn."""
    partners = tuple(PartnerSettings(name) for name in "bcd")
    transfer = {"b": AcceptWhenFit(), "c": AcceptWhenFit()}
    for bound, questions in ((None, -1), (1, 1), (2, -1), (3, -1)):
        given = SiteSettings("a", 4, partners=partners, transfer=transfer, partners_asked=bound)
        assert given.questions == questions


def test_every_limit_leaves_room() -> None:
    """A limit of nothing is refused by name."""
    with pytest.raises(ValueError, match=r"^jobs_kept is 0; it must be at least 1$"):
        Limits(jobs_kept=0)


def test_ordinary_names_are_taken() -> None:
    """Letters, digits, dot, underscore and hyphen make a name."""
    for name in ("KTH", "sdsc05-6", "site_1.example", "x" * 64):
        assert SiteSettings(name, 4).name == name


def test_policies_are_ready_to_decide() -> None:
    """Those written in Python are wrapped once, here, and again only with other policies."""

    def mine(_: Any) -> bool:
        return True

    partners = (PartnerSettings("b"), PartnerSettings("c"))
    transfer: dict[str, Any] = {"b": mine, "c": Constrained(STRICT_EXCHANGE)}
    location: Any = lambda known: [each.name for each in known]  # noqa: E731  # as users write it
    given = SiteSettings("a", 4, partners=partners, transfer=transfer, location=location)
    assert given.transfer["b"] == UserDefinedTransfer(mine)
    assert given.transfer["c"] is transfer["c"]
    assert given.location == UserDefinedLocation(location)
    assert given.account is STRICT_EXCHANGE.account is not None
    again = replace(given, transfer={"b": given.transfer["b"]})
    assert again.transfer["b"] is given.transfer["b"]
    assert again.account is None
    none: Any = 3
    with pytest.raises(TypeError, match="3 is no transfer policy"):
        replace(given, transfer={"b": none})
    with pytest.raises(TypeError, match="3 is no location policy"):
        replace(given, location=none)
