"""A relay's configuration file."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from grms.daemon.config_base import Count, LoggingConfig, Model, Seconds, wrong
from grms.daemon.config_errors import mistakes_of
from grms.site.config.connections import Address, Name, SiteTlsConfig
from grms.site.config.load import FILE_BYTES_MAX, ConfigError
from lrms_sim.util.file_errors import said_of
from lrms_sim.util.files import parse_toml, read_bytes


class LimitsConfig(Model):
    """What is taken at most.

    Attributes:
        connections: of all sites together.
        connections_per_site: of these, for one: it has two that wait, and one for each call that goes on.
        handshake_timeout_s: for a connection to say whose it is.
    """

    connections: Count = 2000
    connections_per_site: Count = 200
    handshake_timeout_s: Seconds = 20.0


class RelayConfig(Model):
    """A relay.

    Attributes:
        name: as its certificate has it; no site of the federation has the same.
        listen: host and port.
        meet: groups of sites, by name; any two of one group may call each other.
        tls: its keys, and the authority of the sites.
        limits: what is taken at most.
        logging: the log on standard error.
    """

    name: Name
    listen: Address
    meet: Annotated[
        list[Annotated[list[Name], Field(min_length=2, max_length=10_000)]],
        Field(min_length=1, max_length=10_000),
    ]
    tls: SiteTlsConfig
    limits: LimitsConfig = LimitsConfig()
    logging: LoggingConfig = LoggingConfig()

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for position, group in enumerate(self.meet):
            for name in group:
                if name == self.name:
                    raise wrong(f"meet[{position}] has {name!r}, the relay itself")
                if group.count(name) > 1:
                    raise wrong(f"meet[{position}] has {name!r} twice")
        return self

    @property
    def sites(self) -> frozenset[str]:
        """All that may come here."""
        return frozenset(name for group in self.meet for name in group)

    def may_meet(self, one: str, other: str) -> bool:
        """Returns whether two sites may call each other."""
        return one != other and any(one in group and other in group for group in self.meet)


def load_relay(path: Path) -> RelayConfig:
    """Reads a relay's configuration; relative paths in it are relative to the file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or breaks the format; the text has a line for each mistake.
    """
    document = parse_toml(read_bytes(path, FILE_BYTES_MAX, ConfigError), str(path), ConfigError)
    try:
        return RelayConfig.model_validate(document, context={"folder": path.parent})
    except ValidationError as error:
        mistakes = mistakes_of(error, document, RelayConfig)
        raise ConfigError(said_of(str(path), mistakes)) from error
