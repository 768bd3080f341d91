"""An account of a site, for tests of what is told of it."""

from typing import Any

from grms.site.accounting.own_account import AccountFigures


def account(**changes: Any) -> AccountFigures:
    """Returns the account of a site that exchange has paid."""
    return AccountFigures(
        **{
            "in_credit": True,
            "since": 7200.0,
            "turns": 2,
            "began": 0.0,
            "last_look": 9000.0,
            "guests": "preempt",
            "allowed": 0.0,
            "others": False,
            "compared": 250.4,
            "gain": 0.08,
            "waiting_gain": 0.21,
            "waiting_part": 0.4,
            "brought": 1234.5,
            "saved": 96.0,
            "owed": 0.0,
            "turned_saved": 12.0,
            "turned_owed": 3.5,
            "waiting": 3,
            "protected": 2,
            "preemptible": 1,
            "staying": 0,
            "lent": 3600.0,
            "lent_lost": 1800.0,
            "given": 7200.0,
            "given_lost": 0.0,
            "guests_sent_home": 1,
            "sent_home": 0,
            **changes,
        }
    )
