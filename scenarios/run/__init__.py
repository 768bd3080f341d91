"""Runs of a scenario within this process, and their figures."""
