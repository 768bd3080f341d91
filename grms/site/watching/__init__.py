"""Logs, metrics and telemetry: for those who watch and act on nothing."""
