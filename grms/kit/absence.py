"""How calls end whose daemon is away: not there, being stopped, or ended in the middle of them."""

from typing import Any, Final

import grpc

GONE: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
"""What calls end with when a daemon has: CANCELLED where its server ended them, and not the caller."""

BROKEN: Final = "Internal error from Core"
"""What gRPC says for INTERNAL where a connection broke before the call had begun; no daemon says it."""


def is_absent(error: Any) -> bool:
    """Returns whether a call has failed as its daemon is away, and may be answered when it is back.

    Args:
        error: that the call has raised; a caller that cancels a call of its own gets no such error.
    """
    code = error.code()
    if code is grpc.StatusCode.INTERNAL:
        return str(error.details() or "").startswith(BROKEN)
    return code in GONE
