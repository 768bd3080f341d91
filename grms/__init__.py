"""A site's grid layer: transfer and location policies, and the federation kernel.

The names below can be imported from here; what they need is loaded when they are first used.
"""

from __future__ import annotations

from lrms_sim.util.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`: this runs before a command hears Ctrl-C, and takes no time.
    from typing import Final

    from grms.federation.federation import Federation, Site, replay, replay_alone
    from grms.policy.files import load_rule_base, save_rule_base
    from grms.policy.location import AwrtLocation, FixedOrder
    from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, RuleBase

_HOMES: Final = {
    "AcceptWhenFit": "policy.transfer",
    "AlwaysKeep": "policy.transfer",
    "AwrtLocation": "policy.location",
    "Federation": "federation.federation",
    "FixedOrder": "policy.location",
    "RuleBase": "policy.transfer",
    "Site": "federation.federation",
    "load_rule_base": "policy.files",
    "replay": "federation.federation",
    "replay_alone": "federation.federation",
    "save_rule_base": "policy.files",
}
__all__ = [
    "AcceptWhenFit",
    "AlwaysKeep",
    "AwrtLocation",
    "Federation",
    "FixedOrder",
    "RuleBase",
    "Site",
    "load_rule_base",
    "replay",
    "replay_alone",
    "save_rule_base",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
