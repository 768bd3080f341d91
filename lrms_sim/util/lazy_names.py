"""Names of a package that are loaded on first use.

Imports nothing itself: packages run this before a command can handle Ctrl-C.
"""

from __future__ import annotations

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
