"""Connections in a broker's configuration: users, sites, an MQTT broker, and the dashboard."""

import re
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from broker.executor.jobs import RESOURCE as JOBS
from broker.model.pool import KIND_DEFAULT
from broker.model.resources import PERFORMANCE_MIN, PRICE_MAX, Resource
from broker.util.errors import OutputError
from grms.daemon.config_base import FilePath, Model, SocketPath, TlsConfig, absolute, wrong
from grms.daemon.config_errors import must_be
from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.web.access import loopback
from grms.security.tls import TlsFiles

HOUR: Final = 3600.0
_SITE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _address(value: str, info: ValidationInfo) -> str:
    if value.startswith("unix:"):
        return f"unix:{absolute(value.removeprefix('unix:'), info)}"
    host, _, port = value.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise wrong(f'is {value!r}; it must be "unix:PATH" or "HOST:PORT"')
    return value


def _loopback(value: str) -> str:
    try:
        loopback(value)
    except ValueError as error:
        raise wrong(f"is {value!r}; {error}") from error
    return value


def _site_name(value: str) -> str:
    if _SITE_NAME.fullmatch(value) is None:
        what = "1 to 64 letters, digits, `_`, `.` and `-`, the first a letter or a digit"
        raise must_be(value, what)
    return value


class ListenConfig(Model):
    """Listener of the broker.

    Attributes:
        socket: Unix socket; whoever can open it controls the broker: its own user and root.
    """

    socket: SocketPath


class JobsConfig(Model):
    """How a site runs tasks as ordinary jobs of its batch system.

    Attributes:
        processors: that jobs of the broker have at a time; the batch system may start them later.
        kind: of the resource that is planned with.
        performance: seconds of work that a processor does in one second.
        price_per_hour: of one processor.
    """

    processors: Annotated[int, Field(ge=1, le=2**31 - 1)]
    kind: Annotated[str, Field(min_length=1, max_length=4096)] = KIND_DEFAULT
    performance: Annotated[float, Field(ge=PERFORMANCE_MIN, allow_inf_nan=False)] = 1.0
    price_per_hour: Annotated[float, Field(ge=0, le=PRICE_MAX * HOUR, allow_inf_nan=False)] = 0.0


class SiteConfig(Model):
    """A site where tasks can run.

    Attributes:
        name: by which resources refer to it; with TLS the name in its certificate.
        address: `unix:PATH` of its users' socket, or `HOST:PORT` with TLS.
        learn: ask the site for its offers; else resources are registered by hand.
        jobs: tasks are ordinary jobs of its batch system; without it they are reservations.
    """

    name: Annotated[str, AfterValidator(_site_name)]
    address: Annotated[str, AfterValidator(_address)]
    tls: TlsConfig | None = None
    learn: bool = True
    jobs: JobsConfig | None = None

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls is None) != self.address.startswith("unix:"):
            needs = "without [tls] it must be unix:PATH, the site's users' socket"
            if self.tls is not None:
                needs = "with [tls] it must be HOST:PORT, where the site listens for partners"
            raise wrong(f"address is {self.address!r}; {needs}")
        if self.jobs is not None and self.tls is not None:
            what = (
                "jobs goes with unix:PATH, the site's users' socket: the broker is one of its users"
            )
            raise wrong(f"address is {self.address!r}; {what}")
        return self

    def job_resource(self) -> Resource | None:
        """Returns what is planned with for ordinary jobs; `None` where tasks are reservations."""
        jobs = self.jobs
        if jobs is None:
            return None
        price = jobs.price_per_hour / HOUR
        return Resource(JOBS, jobs.kind, jobs.performance, price, capacity=jobs.processors)


class MqttConfig(Model):
    """Where the plan is published over MQTT; without `tls` only on loopback."""

    address: Annotated[str, AfterValidator(_address)]
    username: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    password_file: FilePath | None = None
    tls: TlsConfig | None = None

    @model_validator(mode="after")
    def _check_mqtt(self) -> Self:
        if self.address.startswith("unix:"):
            raise wrong(f"address is {self.address!r}; it must be HOST:PORT")
        try:
            self._made(None)
        except ValueError as error:
            raise wrong(str(error)) from None
        if self.password_file is not None and self.username is None:
            raise wrong("password_file goes with username")
        return self

    def _made(self, password: str | None) -> MqttSettings:
        host, _, port = self.address.rpartition(":")
        files = None if self.tls is None else TlsFiles.of(self.tls)
        return MqttSettings(host.strip("[]"), int(port), self.username, password, files)

    def settings(self) -> MqttSettings:
        """Returns how the MQTT broker is reached; `OutputError` if the password cannot be read."""
        password = None
        if self.password_file is not None:
            try:
                password = Path(self.password_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise OutputError(
                    f"{self.password_file}: the password of mqtt cannot be read: {error}"
                ) from error
        return self._made(password)


class DashboardConfig(Model):
    """The dashboard.

    Attributes:
        listen: HOST:PORT; loopback, as it shows what users have planned.
        hosts: names by which browsers know a reverse proxy in front of it.
    """

    listen: Annotated[str, AfterValidator(_loopback)]
    hosts: list[Annotated[str, Field(min_length=1, max_length=253)]] = []  # noqa: RUF012  # pydantic copies it
