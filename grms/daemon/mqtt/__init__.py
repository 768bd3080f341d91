"""MQTT for watchers: topics, payloads, and a connection that is kept up.

No one acts on what is published here. If the broker is gone, work continues and telemetry catches
up; docs/telemetry.md says what is published, for whom, and what is lost when.
"""
