"""Lets protobuf load without its implementation in Python where that in C is there, which is half of its time.

Its modules import both. What would use that in Python after all finds it.
"""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Final

_PACKAGE: Final = "google.protobuf.internal"
_NAME: Final = "python_message"


def load_python_later() -> None:
    """Lets the implementation in Python be loaded when something of it is used; nothing if it is the one in force."""
    from google.protobuf import internal  # noqa: PLC0415  # who uses messages has it
    from google.protobuf.internal import api_implementation  # noqa: PLC0415  # same

    name = f"{_PACKAGE}.{_NAME}"
    if api_implementation.Type() == "python" or name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return  # of another version
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(internal, _NAME, module)
