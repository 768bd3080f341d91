"""The command `gorba`."""
