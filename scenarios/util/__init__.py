"""Errors of scenarios."""
