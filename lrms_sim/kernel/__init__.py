"""Compiled kernels of the simulator; the plain modules above them check arguments and are documented."""
