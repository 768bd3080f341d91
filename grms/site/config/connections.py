"""Whom a site is connected to, as its file says it: users, partners, an MQTT broker, and those who look on."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from grms.daemon.config_base import Count, FilePath, Model, SocketPath, TlsConfig, absolute, wrong
from grms.policy.registry import TRANSFER_DEFAULT, TRANSFER_WORDS, is_user_defined
from grms.util.names import (
    ACCOUNT,
    PSEUDONYM,
    Endpoint,
    check_site_name,
    parse_endpoint,
    read_fingerprint,
)


def _site_name(value: str) -> str:
    try:
        return check_site_name(value)
    except ValueError as error:
        raise wrong(str(error)) from error


def _fingerprint(value: str) -> str:
    try:
        return read_fingerprint(value)
    except ValueError as error:
        raise wrong(str(error)) from error


def _endpoint(value: str) -> str:
    try:
        return str(parse_endpoint(value))
    except ValueError as error:
        raise wrong(str(error)) from error


def _transfer(value: str, info: ValidationInfo) -> str:
    if value in TRANSFER_WORDS or is_user_defined(value):
        return value
    if not value.endswith(".json"):
        words = ", ".join(TRANSFER_WORDS)
        text = f"{value!r} is no transfer policy; there are: {words}, and the path of a rule base file (*.json)"
        raise wrong(text)
    return absolute(value, info)


def _pseudonym(value: str) -> str:
    partner, _, pseudonym = value.partition(":")
    if not partner or PSEUDONYM.fullmatch(pseudonym) is None:
        raise wrong(f"{value!r} is no user of a partner's; one is PARTNER: and 32 digits")
    return value


def _account(value: str) -> str:
    if ACCOUNT.fullmatch(value) is None or value == "root":
        raise wrong(f"{value!r} is no local account for jobs")
    return value


Name = Annotated[str, AfterValidator(_site_name)]
Address = Annotated[str, AfterValidator(_endpoint)]


REFUSED_MAX: Final = 10_000


class SiteTlsConfig(TlsConfig):
    """Mutual TLS of a site.

    Attributes:
        refused: SHA-256 fingerprints of certificates that are no longer trusted, whoever has signed
            them.
    """

    refused: Annotated[
        list[Annotated[str, AfterValidator(_fingerprint)]], Field(max_length=REFUSED_MAX)
    ] = Field(default_factory=list)


class ListenConfig(Model):
    """Where the daemon can be reached.

    Attributes:
        users: the Unix socket of users and operators.
        partners: host and port for partners; left out: partners call over connections that the site itself keeps open.
    """

    users: SocketPath
    partners: Address | None = None

    @property
    def endpoint(self) -> Endpoint | None:
        """Where partners reach the daemon."""
        return None if self.partners is None else parse_endpoint(self.partners)


class RelayConfig(Model):
    """A relay at which sites meet that listen to nobody.

    Attributes:
        name: as its certificate has it.
        address: host and port.
    """

    name: Name
    address: Address


class OutgoingConfig(Model):
    """How partners and the relay are connected to.

    Attributes:
        proxy: host and port of an HTTP proxy that knows CONNECT; left out: straight.
        relay: where partners are met whose `way` is "relay".
    """

    proxy: Address | None = None
    relay: RelayConfig | None = None


Hours = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""Of a processor, in a month."""


class PartnerConfig(Model):
    """A site one exchanges jobs with.

    Attributes:
        name: its name, as its certificate has it.
        address: host and port; left out where it is found through MQTT presence, or is not called at one.
        way: how it is called: at its `address`; over a `callback`, a connection that it keeps open at `listen.partners`, as it
            listens to nobody; or over the `relay` of `[outgoing.relay]`, as neither listens to the other.
        keep_open: connections are kept open at its address over which it calls this site; left out: where this site has no
            `listen.partners`.
        processors: its size, where that is to be known before it first answered.
        transfer: what is kept rather than offered to it, and accepted from it: `awf`, `keep`,
            `none` (neither asked nor answered), `fair-exchange` or another word for constraints, or the path
            of a rule base file. Where it is left out and the site has constraints, what they allow is done.
        shared: it has the folders `shared.roots` too, under the same paths.
        tell_users: it is told whose a job is by name, with the program of one that it has accepted.
        account: local account as which its jobs run, through sudo; left out: the daemon's own.
        taken_hours_per_month: what its jobs may use here in a month, in hours of a processor (`usage.weights`); left out:
            there is no limit.
        taken_hours_per_user: the same of each of its users.
        given_hours_per_month: the same of own users' jobs there.
    """

    name: Name
    address: Address | None = None
    way: Literal["address", "callback", "relay"] = "address"
    keep_open: bool | None = None
    processors: Count | None = None
    transfer: Annotated[str, AfterValidator(_transfer)] = TRANSFER_DEFAULT
    shared: bool = False
    tell_users: bool = False
    account: Annotated[str, AfterValidator(_account)] | None = None
    taken_hours_per_month: Hours | None = None
    taken_hours_per_user: Hours | None = None
    given_hours_per_month: Hours | None = None


_LOCAL_NAME: Final = re.compile(r"\*|[A-Za-z0-9_][\w.:@/+=-]{0,127}", re.ASCII)


def _local(value: str) -> str:
    if value and _LOCAL_NAME.fullmatch(value) is None:
        raise wrong(f"{value!r} is no name here; one has letters, digits and _.:@/+=-")
    return value


def _partitions(value: str) -> str:
    for name in value.split(",") if value else ():
        if not name:
            raise wrong(f"{value!r} has an empty name between its commas")
        _local(name)
    return value


def _image(value: str) -> str:
    if value.startswith("-") or not value.isprintable() or " " in value:
        raise wrong(f"{value!r} is no container image")
    return value


NamesHere = dict[str, Annotated[str, AfterValidator(_local)]]


class TranslateConfig(Model):
    """What names in partners' jobs mean here.

    A key is a name as partners write it, "PARTNER:NAME" for one partner alone, "*" or "PARTNER:*" for every other;
    of a name that has a colon and is no address, "*:NAME".
    The value is the name here; "*" is the same name, and "" leaves it out, so that this file's own settings count.
    A job with a name that is in no table is declined, but for features and types of GPUs without a table, which are
    looked for under their own names; of these a resource that Grid Engine calls FORCED has to be named.

    Attributes:
        partitions: the value may be several, with commas between.
        accounts: that pay.
        qos: quality of service.
        features: of nodes.
        gpus: types of GPUs.
        licences: counted for the cluster.
        images: container images.
        modules: of software.
    """

    partitions: dict[str, Annotated[str, AfterValidator(_partitions)]] = Field(default_factory=dict)
    accounts: NamesHere = Field(default_factory=dict)
    qos: NamesHere = Field(default_factory=dict)
    features: NamesHere = Field(default_factory=lambda: {"*": "*"})
    gpus: NamesHere = Field(default_factory=lambda: {"*": "*"})
    licences: NamesHere = Field(default_factory=dict)
    images: dict[str, Annotated[str, AfterValidator(_image)]] = Field(default_factory=dict)
    modules: NamesHere = Field(default_factory=dict)

    @property
    def partitions_here(self) -> list[str]:
        """The partitions of this site that the table names."""
        found = []
        for theirs, here in self.partitions.items():
            name = theirs.rpartition(":")[2] if here == "*" else here
            found += [each for each in name.split(",") if each not in {"", "*"}]
        return found


class GuestsConfig(Model):
    """Partners' jobs.

    Attributes:
        banned: whose jobs are not run here: `PARTNER:PSEUDONYM`, as `grms partners` shows it.
        users: file with the local accounts of partners' users that are known by name; left out: no name is
            looked at.
        unknown_users: what becomes of jobs of users that are not in that file: `run`, as all others of their
            partner; or `refuse`, and they go back to their home site.
        place_held_s: so long a place is held for a job that its home site has still. Less than ten seconds
            are too little for a batch system to let the job go; a day is too long for any partner's crash.
        preemptible: the batch system may end those for other jobs whose home sites run them again; all others run to
            their end.
        translate: what the names in their requests mean here: partitions, accounts and others.
    """

    banned: list[Annotated[str, AfterValidator(_pseudonym)]] = Field(default_factory=list)
    users: FilePath | None = None
    unknown_users: Literal["run", "refuse"] = "run"
    place_held_s: Annotated[float, Field(ge=10, le=86_400, allow_inf_nan=False)] = 300.0
    preemptible: bool = False
    translate: TranslateConfig = TranslateConfig()

    @model_validator(mode="after")
    def _check_users(self) -> Self:
        if self.unknown_users == "refuse" and self.users is None:
            raise wrong(
                "guests.unknown_users is 'refuse'; it needs guests.users, the file of those known"
            )
        return self


class MqttConfig(Model):
    """The MQTT broker to which telemetry goes; without `address` and `embedded` nothing is published.

    Attributes:
        enabled: whether anything is published; false leaves the rest as it stands, unused.
        address: host and port of a broker.
        embedded: whether the daemon runs a broker of its own, inside itself, on loopback.
        username: where the broker wants one.
        password_file: file with the password alone.
        tls: use the site's certificate and authority.
        discovery: take partners' addresses from their presence; only of partners on the list.
        outbox: events kept while the broker is away; the oldest are dropped beyond.
    """

    enabled: bool = True
    address: Address | None = None
    embedded: bool = False
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
