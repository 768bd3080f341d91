"""Runs of a scenario through daemons in processes of their own."""
