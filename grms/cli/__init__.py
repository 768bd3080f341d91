"""The command `grms`."""
