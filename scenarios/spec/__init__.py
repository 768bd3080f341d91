"""Scenario files, validated, and the recorded logs that they name."""
