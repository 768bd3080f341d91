"""What a site's configuration says of those who watch it."""

import math
import secrets
from dataclasses import dataclass
from pathlib import Path

import structlog

from grms.daemon.mqtt.link import MqttSettings
from grms.security.tls import TlsFiles
from grms.site.config.connections import MqttConfig
from grms.site.config.load import ConfigError
from grms.site.config.schema import SiteConfig
from grms.site.monitoring.metrics_endpoint import MetricsSettings
from grms.site.monitoring.telemetry import OUTBOX_EVENTS_MAX
from grms.util.names import Endpoint, parse_endpoint


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What a daemon publishes, and where.

    Attributes:
        instance: names this start of the daemon; another one after each.
        folder: the daemon's own, for the file that says how to watch.
        endpoint: where partners reach it; `None` if they do not.
        mqtt: the MQTT broker; `None` for one inside the daemon, or none.
        embedded: where the one inside the daemon listens, port 0 for any free one; `None` for none.
        metrics: where Prometheus collects; `None` for nowhere.
        metrics_every_s: how often figures are published for operators, seconds.
        outbox_events_max: how many job events wait for the broker.

    Raises:
        ValueError: a bound is violated.
    """

    site: str
    instance: str
    folder: Path
    endpoint: Endpoint | None = None
    mqtt: MqttSettings | None = None
    embedded: tuple[str, int] | None = None
    metrics: MetricsSettings | None = None
    metrics_every_s: float = 10.0
    outbox_events_max: int = OUTBOX_EVENTS_MAX

    def __post_init__(self) -> None:
        if not 0 < self.metrics_every_s < math.inf:
            raise ValueError(
                f"metrics_every_s is {self.metrics_every_s}; it must be finite and more than 0"
            )


def mqtt_settings(mqtt: MqttConfig, tls: TlsFiles | None) -> MqttSettings | None:
    """Returns the settings of `[mqtt]`; `None` if no address is given.

    Raises:
        ConfigError: the file with the password is unusable.
    """
    if mqtt.address is None:
        return None
    password = None
    if mqtt.password_file is not None:
        try:
            password = Path(mqtt.password_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            text = f"mqtt.password_file {mqtt.password_file}: cannot be read: {error}"
            raise ConfigError(text) from error
    endpoint = parse_endpoint(mqtt.address)
    return MqttSettings(
        endpoint.host,
        endpoint.port,
        mqtt.username,
        password,
        tls if mqtt.tls else None,
    )


def telemetry_settings(
    config: SiteConfig, log: structlog.typing.FilteringBoundLogger
) -> TelemetrySettings:
    """Returns what a daemon publishes, and where.

    Raises:
        ConfigError: the file with the password cannot be used.
    """
    mqtt = config.mqtt or MqttConfig()
    endpoint = config.listen.endpoint
    if endpoint is not None and endpoint.is_unspecified:
        log.warning("presence_without_address", listen=str(endpoint), wanted="a name or address")
        endpoint = None
    metrics = None
    if config.metrics is not None:
        listen = parse_endpoint(config.metrics.listen)
        metrics = MetricsSettings(listen.host, listen.port)
    return TelemetrySettings(
        site=config.name,
        instance=secrets.token_hex(8),
        folder=Path(config.journal.path).parent,
        endpoint=endpoint,
        mqtt=mqtt_settings(mqtt, None if config.tls is None else TlsFiles.of(config.tls))
        if config.publishes
        else None,
        embedded=("127.0.0.1", 0) if config.publishes and mqtt.embedded else None,
        metrics=metrics,
        outbox_events_max=mqtt.outbox,
    )


def endpoints(config: SiteConfig) -> dict[str, Endpoint | None]:
    """Returns the partners' addresses; `None` if discovered through MQTT presence."""
    return {
        partner.name: None if partner.address is None else parse_endpoint(partner.address)
        for partner in config.partners
    }
