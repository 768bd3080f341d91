"""Names of a package, and modules of libraries, that are loaded on first use.

Imports next to nothing itself: packages run this before a command can handle Ctrl-C. The standard library's
`LazyLoader` loads a module as soon as a second one imports it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Named like the constant of `typing`, which takes time.
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns a package's `__getattr__` and `__dir__`."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  # see above

        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        vars(import_module(package))[name] = found
        return found

    def names() -> list[str]:
        from importlib import import_module  # noqa: PLC0415  # see above

        return sorted({*vars(import_module(package)), *modules})

    return load, names


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
    from importlib.util import find_spec, module_from_spec  # noqa: PLC0415  # see above
    from threading import RLock  # noqa: PLC0415  # same

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
