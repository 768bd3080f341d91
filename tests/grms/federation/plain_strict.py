"""The plain program of the documentation (docs/examples/strict_exchange.py), which shares nothing with Hanse."""

import importlib.util
from pathlib import Path
from types import ModuleType

PATH = Path(__file__).parents[3] / "docs" / "examples" / "strict_exchange.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_strict_exchange", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plain = _load()
