"""Simulated batch systems: a site's machine on a clock."""
