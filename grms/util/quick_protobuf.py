"""Lets protobuf load without its implementation in Python where that in C is there, which is half of its time."""

from lrms_sim.util.later_modules import load_later


def load_python_later() -> None:
    """Lets the implementation in Python be loaded when something of it is used, if it is not the one in force."""
    from google.protobuf.internal import api_implementation  # noqa: PLC0415  # who uses messages has it

    if api_implementation.Type() != "python":
        load_later("google.protobuf.internal.python_message")
