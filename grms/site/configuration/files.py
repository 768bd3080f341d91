"""Reads a site's configuration, and the policies that it names.

Everything that is wrong is said at once: the file, the key, the value, and what is allowed.
"""

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from grms.kit.models import WRONG
from grms.lrms.adapter import LrmsSettings
from grms.policy.files import RuleBaseError
from grms.policy.location import LocationPolicy, WrittenLocation
from grms.policy.rails_table import ERROR_KINDS
from grms.policy.transfer import AlwaysAgree, Railed, TransferPolicy, WrittenTransfer
from grms.policy.words import NO_EXCHANGE, PolicyShelf, location_by_name
from grms.site.configuration.config import SiteConfig
from grms.site.configuration.lrms_kinds import KINDS
from grms.site.configuration.written import CarefulLocation, CarefulTransfer
from lrms_sim import spelling
from lrms_sim.text_files import parse_toml, read_bytes

FILE_BYTES_MAX: Final = 1 << 20
"""Largest configuration file that is read."""


class ConfigError(Exception):
    """A configuration that cannot be used; the text has one line for each thing that is wrong."""


def load_config(path: Path) -> SiteConfig:
    """Reads a site's configuration.

    Args:
        path: the TOML file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or breaks the format.
    """
    data = read_bytes(path, FILE_BYTES_MAX, ConfigError)
    return parse_config(data, folder=path.parent, shown=str(path))


def parse_config(data: bytes, *, folder: Path, shown: str) -> SiteConfig:
    """Builds a configuration from the content of a file.

    Args:
        data: TOML.
        folder: what relative paths in it are relative to.
        shown: what errors call it.

    Raises:
        ConfigError: it is no TOML, or breaks the format.
    """
    document = parse_toml(data, shown, ConfigError)
    try:
        return SiteConfig.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        lines = {
            f"{shown}: {_line(details, document)}": None
            for details in error.errors(include_url=False)
        }
        raise ConfigError("\n".join(lines)) from error


def _line(details: ErrorDetails, document: dict[str, Any]) -> str:
    key = ""
    for part in _places(details):
        key += f"[{part}]" if isinstance(part, int) else f".{part}"
    key = key.removeprefix(".")
    if details["type"] == "extra_forbidden":
        return f"{key}: {_unknown_key(details, document)}"
    if details["type"] == "missing":
        return f"{key}: is missing"
    text = details["msg"]
    if details["type"] not in {WRONG, *ERROR_KINDS}:
        text = f"is {spelling.shown(details['input'])}; {text[0].lower()}{text[1:]}"
    return f"{key}: {text}" if key else text


def _places(details: ErrorDetails) -> tuple[int | str, ...]:
    # Behind `rails` pydantic puts whether it took the value for a word or for a table.
    loc = details["loc"]
    return (*loc[:1], *loc[2:]) if loc[:1] == ("rails",) else loc


def _unknown_key(details: ErrorDetails, document: dict[str, Any]) -> str:
    model: Any = SiteConfig
    for part in _places(details)[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_of(model.model_fields[part].annotation) or SiteConfig
        if model is LrmsSettings:
            model = KINDS[document["lrms"].get("kind", "simulated")].settings
    names = list(model.model_fields)
    wrong = str(details["loc"][-1])
    close = get_close_matches(wrong, names, n=1)
    meant = f", did you mean {close[0]!r}?" if close else ";"
    return f"there is no such key here{meant} there are: {', '.join(names)}"


def _model_of(annotation: Any) -> Any:
    # The model inside `Model | None`, `list[Model]` and the like; None where there is none.
    if hasattr(annotation, "model_fields"):
        return annotation
    inner = (_model_of(one) for one in getattr(annotation, "__args__", ()))
    return next((model for model in inner if model is not None), None)


_AGREE: Final = AlwaysAgree()
"""What decides within rails where no transfer policy is named."""


def load_policies(config: SiteConfig, shown: str) -> dict[str, TransferPolicy]:
    """Returns the transfer policy for each partner with which jobs are exchanged.

    Args:
        config: the site.
        shown: what errors call its file.

    Raises:
        ConfigError: rule bases cannot be used.
    """
    policies: dict[str, TransferPolicy] = {}
    problems: dict[str, None] = {}
    shelf, rails = PolicyShelf(), config.rails_in_force
    for partner in config.partners:
        if partner.transfer == NO_EXCHANGE:
            continue
        try:
            policy: TransferPolicy = _AGREE
            if rails is None or "transfer" in partner.model_fields_set:
                policy = shelf.policy_by_name(partner.transfer)
            if isinstance(policy, WrittenTransfer):
                policy = WrittenTransfer(CarefulTransfer(policy))
            if rails is not None and not isinstance(policy, Railed):
                # One that has rails of its own keeps these.
                policy = Railed(rails, policy, f"{policy.name} within rails")
            policies[partner.name] = policy
        except RuleBaseError as error:
            problems[f"{shown}: partners.{partner.name}.transfer: {error}"] = None
    if problems:
        raise ConfigError("\n".join(problems))
    return policies


def location_policy(config: SiteConfig) -> LocationPolicy:
    """Returns the order in which partners are asked.

    Raises:
        ConfigError: a policy written in Python cannot be loaded.
    """
    try:
        policy = location_by_name(config.location, awrt="awrt-open")
    except ValueError as error:
        raise ConfigError(f"location: {error}") from error
    if isinstance(policy, WrittenLocation):
        return WrittenLocation(CarefulLocation(policy))
    return policy
