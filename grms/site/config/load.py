"""Reads a site's configuration, and the policies that it names.

Everything that is wrong is said at once: the file, the key, the value, and what is allowed.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from grms.daemon.config_errors import Peculiarities, mistakes_of
from grms.federation.own_account import accountable
from grms.lrms.adapter import LrmsSettings
from grms.lrms.batch_systems import adapter_of
from grms.lrms.simulated.simulated import SimulatedSettings
from grms.policy.constraints import AccountRules
from grms.policy.files import RuleBaseError
from grms.policy.location import LocationPolicy, UserDefinedLocation
from grms.policy.registry import NO_EXCHANGE, PolicyShelf, location_by_name
from grms.policy.transfer import (
    AlwaysAgree,
    Constrained,
    TransferPolicy,
    UserDefinedTransfer,
    rails_of,
    without_constraints,
)
from grms.site.config.python_policies import CarefulLocation, CarefulTransfer
from grms.site.config.schema import SiteConfig
from grms.site.model.settings import PartnerSettings
from grms.site.model.translation import Translation
from grms.site.model.usage import UsageLimits, Weights
from lrms_sim.scheduling.disciplines import Discipline, Easy
from lrms_sim.util.errors import HanseError
from lrms_sim.util.file_errors import said_of
from lrms_sim.util.files import parse_toml, read_bytes

FILE_BYTES_MAX: Final = 1 << 20


class ConfigError(HanseError):
    """A configuration that cannot be used; the text has a line for each error."""


def load_config(path: Path) -> SiteConfig:
    """Reads a site's configuration.

    Raises:
        ConfigError: it cannot be read, is no TOML, or breaks the format.
    """
    data = read_bytes(path, FILE_BYTES_MAX, ConfigError)
    return parse_config(data, folder=path.parent, shown=str(path))


def parse_config(data: bytes, *, folder: Path, shown: str) -> SiteConfig:
    """Parses a configuration; `shown` is its name in errors, `folder` the base of relative paths.

    Raises:
        ConfigError: it is no TOML, or breaks the format.
    """
    document = parse_toml(data, shown, ConfigError)
    try:
        return SiteConfig.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        kind = Peculiarities(adapted=_adapted, narrowed=lambda one: _narrowed(one, document))
        mistakes = mistakes_of(error, document, SiteConfig, kind=kind)
        raise ConfigError(said_of(shown, mistakes)) from error


def _adapted(details: ErrorDetails) -> ErrorDetails:
    # Behind these pydantic puts whether it took the value for a word or for a table.
    loc = details["loc"]
    details["loc"] = (*loc[:1], *loc[2:]) if loc[:1] in {("rails",), ("reoffer",)} else loc
    return details


def _narrowed(model: type[BaseModel], document: dict[str, Any]) -> type[BaseModel]:
    # Of the table of the batch system, its kind says which keys there are.
    if model is not LrmsSettings:
        return model
    return adapter_of(document["lrms"].get("kind", "simulated")).settings


_AGREE: Final = AlwaysAgree()
"""Decides within the exchange constraints if no transfer policy is named."""


def shadow_of(config: SiteConfig) -> Discipline:
    """Returns the discipline with which the site keeps an account of itself: that of its simulated machine, or EASY."""
    return config.lrms.queue if isinstance(config.lrms, SimulatedSettings) else Easy()


def _why_not_kept(config: SiteConfig, rules: AccountRules) -> str:
    # Why a site cannot keep such an account of itself; empty if it can.
    if not accountable(shadow_of(config)):
        return (
            f"strict-exchange keeps an account of the site, which lrms.discipline = {config.lrms.discipline!r} cannot; "  # type: ignore[attr-defined]  # others have none
            "there are fcfs, list and easy"
        )
    why = config.lrms.ends_no_guests if rules.guests == "preempt" else ""
    return why and (
        f"strict-exchange sends guests home, and {why}; guests run to their ends with "
        'rails = {rules = "strict-exchange", guests = "run"}'
    )


def load_policies(config: SiteConfig, shown: str) -> dict[str, TransferPolicy]:
    """Returns the transfer policy for each partner with which jobs are exchanged.

    Raises:
        ConfigError: rule bases cannot be used.
    """
    policies: dict[str, TransferPolicy] = {}
    problems: dict[str, None] = {}
    shelf, rails = PolicyShelf(), config.constraints_in_force
    for partner in config.partners:
        if partner.transfer == NO_EXCHANGE:
            continue
        try:
            policy: TransferPolicy = _AGREE
            if rails is None or "transfer" in partner.model_fields_set:
                policy = shelf.policy_by_name(partner.transfer)
            if isinstance(policy, UserDefinedTransfer):
                policy = UserDefinedTransfer(CarefulTransfer(policy))
            if why := without_constraints(policy, rails):
                problems[f"{shown}: partners.{partner.name}.transfer: {why}"] = None
            if rails is not None and not isinstance(policy, Constrained):
                # One that has constraints of its own keeps these.
                policy = Constrained(rails, policy, f"{policy.name} within constraints")
            policies[partner.name] = policy
        except RuleBaseError as error:
            problems[f"{shown}: partners.{partner.name}.transfer: {error}"] = None
    problems |= {f"{shown}: {why}": None for why in _account_problems(config, policies.values())}
    if problems:
        raise ConfigError("\n".join(problems))
    return policies


def _account_problems(config: SiteConfig, policies: Iterable[TransferPolicy]) -> list[str]:
    # Why the site cannot keep the accounts that its policies need.
    within = [rails.account for each in policies if (rails := rails_of(each)) is not None]
    accounts = [rules for rules in dict.fromkeys(within) if rules is not None]
    found = [why for rules in accounts if (why := _why_not_kept(config, rules))]
    if len(accounts) > 1:
        found.append(
            "partners have policies with different ways to keep the account of strict-exchange"
        )
    return found


def policies_of(config: SiteConfig, shown: str) -> tuple[dict[str, TransferPolicy], LocationPolicy]:
    """Returns a site's policies, as `load_policies` and `location_policy` do.

    Raises:
        ConfigError: some are unusable; the text has a line for each.
    """
    problems = []
    try:
        transfer = load_policies(config, shown)
    except ConfigError as error:
        problems.append(str(error))
    try:
        location = location_policy(config, shown)
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return transfer, location


def location_policy(config: SiteConfig, shown: str) -> LocationPolicy:
    """Returns the order in which partners are asked.

    Raises:
        ConfigError: a policy written in Python cannot be loaded.
    """
    try:
        policy = location_by_name(config.location, awrt="awrt-open")
    except ValueError as error:
        raise ConfigError(f"{shown}: location: {error}") from error
    if isinstance(policy, UserDefinedLocation):
        return UserDefinedLocation(CarefulLocation(policy))
    return policy


def translation_of(config: SiteConfig) -> Translation:
    """Returns what names of partners mean at a site."""
    return Translation(**config.guests.translate.model_dump())


def weights_of(config: SiteConfig) -> Weights:
    """Returns what counts how much in costs and limits."""
    return Weights(**config.usage.weights.model_dump())


def partners_of(config: SiteConfig) -> tuple[PartnerSettings, ...]:
    """Returns whom a site exchanges jobs with, and the limits of a month."""
    return tuple(
        PartnerSettings(
            partner.name,
            partner.processors or 0,
            UsageLimits(
                _work(partner.taken_hours_per_month),
                _work(partner.taken_hours_per_user),
                _work(partner.given_hours_per_month),
            ),
        )
        for partner in config.partners
    )


def given_by_user(config: SiteConfig) -> float:
    """Returns what jobs of one user may use at partners in a month, weighted processor seconds."""
    return _work(config.usage.given_hours_per_user)


def _work(hours: float | None) -> float:
    return math.inf if hours is None else 3600.0 * hours


def place_held(config: SiteConfig) -> float:
    """Returns how long a place is held for a partner's job, seconds of the site's clock.

    In a replay nobody waits in vain: who has died is brought back.
    """
    virtual = config.clock.kind == "virtual"
    return math.inf if virtual else config.guests.place_held_s * config.clock.speed
