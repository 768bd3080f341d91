"""The file that says where a daemon's pages are, with the token that lets somebody in."""

import contextlib
import json
import secrets
from pathlib import Path
from typing import Final

from grms.names import parse_endpoint
from lrms_sim.text_files import write_secret

TOKEN_LENGTH_MIN: Final = 32
"""Shortest token that is taken over from a file."""


def write_access(path: Path, address: str) -> str:
    """Writes where pages are and how to get in, for the daemon's user alone; returns the token.

    Args:
        path: of the file; the token of one that is there stays, so that a proxy can have it.
        address: of the pages.

    Raises:
        OSError: it cannot be written.
    """
    token = ""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        token = str(json.loads(path.read_text(encoding="utf-8"))["token"])
    token = token if len(token) >= TOKEN_LENGTH_MIN else secrets.token_urlsafe(32)
    write_secret(path, {"address": address, "token": token})
    return token


def read_access(path: Path) -> str:
    """Returns the address with the token.

    Args:
        path: of the file that `write_access` has written.

    Raises:
        OSError: it cannot be read.
        ValueError: it is another file.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return f"{document['address']}?token={document['token']}"
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: this file does not say where pages are") from error


def loopback(address: str) -> tuple[str, int]:
    """Returns host and port of an address at which pages may be served.

    Args:
        address: "HOST:PORT".

    Raises:
        ValueError: it is no address, or none of loopback: pages tell how busy a site is.
    """
    endpoint = parse_endpoint(address)
    if not endpoint.is_loopback:
        raise ValueError(
            f"{address} is not of loopback, and pages tell how busy one is; put a reverse proxy "
            "before them"
        )
    return endpoint.host, endpoint.port
