"""The imports of a daemon, which take longer than all else that it does before it serves."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Lets what is imported within take a sixth less processor time.

    What modules make stays, so Python need not look for garbage among it, now or later. And structlog
    imports rich wherever it is installed, for tracebacks in colours, which our logs do not have.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        _import_structlog()
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _import_structlog() -> None:
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python marks what is not to be found
    try:
        import structlog  # noqa: F401, PLC0415  # for the modules that import it later
    finally:
        del sys.modules["rich"]
