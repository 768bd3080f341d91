"""Recorded logs: where they are, and their download."""
