"""Tells what Slurm's programs say without an answer of the controller from what it has answered. Pure."""

from typing import Final

_SILENCE: Final = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "No route to host",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "backup controller",
    "standby mode",
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "authentication",  # Munge is down, or clocks differ
    "Munge",
    "Unspecified error",
    "error writing",
    "Message send failure",
    "Message receive failure",
    "Transport endpoint is not connected",
    "Broken pipe",
    "Network is unreachable",
    "Host is down",
    "slurm_msg_sendto",  # of Slurm's own functions that send and receive, whatever the reason
    "slurm_receive_msg",
    "Unexpected missing socket",
    "Communication shutdown failure",
    "Header lengths are longer",
    "Insane message length",
    "Incompatible versions of client and server",  # an upgrade is under way
    "Can't find an address",
    "getaddrinfo",
    "Unable to establish control machine",
    "configuration source",  # which is the controller
    "failed to fetch config",
    "Unable to process configuration file",  # on a file system that is away
)
"""Messages of Slurm's programs without an answer of the controller; everything else is an answer."""


def is_no_answer(said: str) -> bool:
    """Returns whether a program has said that it has not been answered: what it was to do may be done or not."""
    return any(word.lower() in said.lower() for word in _SILENCE)
