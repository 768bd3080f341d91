"""MQTT for those who watch: topics, payloads, and a connection that is kept up.

Nobody acts on what is published here. Where the broker is gone, work goes on and telemetry
catches up; docs/telemetry.md says what is published, for whom, and what is lost when.
"""
