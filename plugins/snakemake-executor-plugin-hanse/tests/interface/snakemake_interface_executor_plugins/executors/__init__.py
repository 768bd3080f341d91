"""Executors to derive from."""
