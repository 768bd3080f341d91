"""Whom a site is connected to, as its file says it: users, partners, an MQTT broker, and those who look on."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from grms.kit.models import Count, FilePath, Model, SocketPath, absolute, wrong
from grms.names import Endpoint, check_site_name, parse_endpoint
from grms.policy.words import TRANSFER_DEFAULT, TRANSFER_WORDS, is_written


def _site_name(value: str) -> str:
    try:
        return check_site_name(value)
    except ValueError as error:
        raise wrong(str(error)) from error


def _endpoint(value: str) -> str:
    try:
        return str(parse_endpoint(value))
    except ValueError as error:
        raise wrong(str(error)) from error


def _transfer(value: str, info: ValidationInfo) -> str:
    if value in TRANSFER_WORDS or is_written(value):
        return value
    if not value.endswith(".json"):
        words = ", ".join(TRANSFER_WORDS)
        text = f"{value!r} is no transfer policy; there are: {words}, and the path of a rule base file (*.json)"
        raise wrong(text)
    return absolute(value, info)


Name = Annotated[str, AfterValidator(_site_name)]
Address = Annotated[str, AfterValidator(_endpoint)]


class ListenConfig(Model):
    """Where the daemon can be reached.

    Attributes:
        users: the Unix socket of users and operators.
        partners: host and port for partners; nobody else reaches a site without it.
    """

    users: SocketPath
    partners: Address | None = None

    @property
    def endpoint(self) -> Endpoint | None:
        """Where partners reach the daemon."""
        return None if self.partners is None else parse_endpoint(self.partners)


class PartnerConfig(Model):
    """A site one exchanges jobs with.

    Attributes:
        name: its name, as its certificate has it.
        address: host and port; left out where it is found through MQTT presence.
        processors: its size, where that is to be known before it first answered.
        transfer: what is kept rather than offered to it, and accepted from it: `awf`, `keep`,
            `none` (neither asked nor answered), `fair-exchange` or another word for rails, or the path
            of a rule base file. Where it is left out and the site has rails, what they allow is done.
        shared: it has the folders `shared.roots` too, under the same paths.
    """

    name: Name
    address: Address | None = None
    processors: Count | None = None
    transfer: Annotated[str, AfterValidator(_transfer)] = TRANSFER_DEFAULT
    shared: bool = False


class MqttConfig(Model):
    """The broker of telemetry.

    Attributes:
        enabled: whether anything is published at all.
        address: host and port; left out for a broker inside the daemon, on loopback.
        username: where the broker wants one.
        password_file: file with the password alone.
        tls: use the site's certificate and authority.
        discovery: take partners' addresses from their presence; only of partners on the list.
        outbox: events kept while the broker is away; the oldest are dropped beyond.
    """

    enabled: bool = True
    address: Address | None = None
    username: str | None = None
    password_file: FilePath | None = None
    tls: bool = False
    discovery: bool = False
    outbox: Count = 10_000


class MetricsConfig(Model):
    """Figures for the site's own operators.

    Attributes:
        listen: host and port of the Prometheus endpoint; loopback, as it tells the site's load.
        exchange_hours: how often it is computed what exchange has brought own users, hours, at least
            1; 0: never.
    """

    listen: Address
    exchange_hours: Annotated[float, Field(ge=0, le=8784, allow_inf_nan=False)] = 1.0

    @field_validator("exchange_hours")
    @classmethod
    def _check_hours(cls, value: float) -> float:
        if 0 < value < 1:
            raise wrong(f"is {value}; it must be at least 1, or 0 for never")
        return value


class DashboardConfig(Model):
    """Pages for the site's own operators.

    Attributes:
        listen: host and port; loopback, as they tell the site's load. A reverse proxy may be before it.
        hosts: names by which browsers know that proxy.
    """

    listen: Address
    hosts: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(default_factory=list)
