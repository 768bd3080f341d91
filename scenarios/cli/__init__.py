"""The command `scenario`."""
