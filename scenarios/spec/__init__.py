"""Scenario files, validated."""
