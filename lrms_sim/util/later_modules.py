"""Modules that libraries import for what few commands do: they are loaded when something of them is used.

The standard library's `LazyLoader` loads a module as soon as a second one imports it.
"""

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any


def load_later(*names: str) -> None:
    """Lets modules be loaded with the first attribute that is asked for; those that are loaded, or not there, stay so.

    The packages that they are in are loaded.
    """
    for name in names:
        if name not in sys.modules:
            _put(name)


def load_protobuf_in_python_later() -> None:
    """The same for protobuf's implementation in Python where that in C is in force, which is half of its time."""
    from google.protobuf.internal import api_implementation  # noqa: PLC0415  # who uses messages has it

    if api_implementation.Type() != "python":
        load_later("google.protobuf.internal.python_message")


def _put(name: str) -> None:
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, module_from_spec(spec)
    lock, begun = RLock(), False

    def load(attribute: str) -> Any:
        nonlocal begun
        with lock:  # other threads wait until all of it is there
            if not begun:
                begun = True
                try:
                    loader.exec_module(module)
                except BaseException:
                    begun = False
                    raise
                if module.__dict__.get("__getattr__") is load:  # else it is the module's own
                    del module.__dict__["__getattr__"]
        try:
            return module.__dict__[attribute]
        except KeyError:
            own = module.__dict__.get("__getattr__", load)
            if own is not load:
                return own(attribute)
            text = f"module {name!r} has no attribute {attribute!r}"
            raise AttributeError(text, name=attribute, obj=module) from None

    module.__dict__["__getattr__"] = load
    sys.modules[name] = module
    package, _, last = name.rpartition(".")
    if package:
        setattr(sys.modules[package], last, module)
