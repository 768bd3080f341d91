"""The parts of the command `gorba`."""
