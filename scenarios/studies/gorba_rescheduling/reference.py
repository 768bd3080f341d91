"""What the paper prints: Table 4.1, its settings, and what its text says of Figures 4.1 to 4.5.

The figures are charts without numbers; of them only the text can be compared.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HARD: Final = ("sRlD", "lRlD")
"""Classes with many dependencies, which the paper calls the harder ones."""

CLASSES: Final = ("sRsD", "sRlD", "lRsD", "lRlD")
"""Small or large freedom of choosing resources R, few or many dependencies D."""

TASKS: Final = (100, 200)
"""Of the first planning in Figure 4.1 and Table 4.1."""

RESOURCES: Final = 10
"""In Figure 4.1 and Table 4.1."""

FINISHED: Final = (0.10, 0.20)
NEW: Final = (0.10, 0.20, 0.30, 0.50)
"""Shares of finished and new tasks: with classes and tasks, 32 settings."""

SIZES: Final = (200, 400, 600, 800, 900, 1000, 1200, 1400, 1600, 2400, 3200, 5000, 7000)
"""Tasks in Figures 4.2 to 4.5; resources are a tenth of them."""

SWEEP_FINISHED: Final = 0.10
SWEEP_NEW: Final = 0.10
"""Shares of finished and new tasks in Figures 4.2 to 4.5."""

RULES: Final = ("shortest due time", "shortest task", "shortest workflow")
STRATEGIES: Final = ("RAS-3", "RAS-2", "RAS-1")

COLUMNS: Final = tuple((finished, new) for finished in FINISHED for new in NEW)
"""Of Table 4.1, before the average."""

_ROWS = """
0.90 0.96 0.88 0.92 0.86 0.83 0.89 0.92 0.90
0.70 0.44 0.73 0.80 0.64 0.59 0.75 0.61 0.66
0.48 0.44 0.54 0.45 0.59 0.22 0.53 0.45 0.46
0.97 0.86 0.81 0.69 0.94 0.78 0.81 0.62 0.81
0.74 0.42 0.63 0.53 0.66 0.50 0.68 0.39 0.57
0.47 0.41 0.46 0.28 0.57 0.24 0.54 0.26 0.40
0.90 0.88 0.82 0.70 0.86 0.83 0.77 0.70 0.81
0.70 0.41 0.70 0.56 0.64 0.51 0.57 0.46 0.57
0.48 0.44 0.57 0.31 0.59 0.24 0.49 0.43 0.44
0.45 0.42 0.35 0.56 0.45 0.41 0.47 0.51 0.45
0.58 0.52 0.38 0.72 0.51 0.43 0.56 0.69 0.55
0.42 0.42 0.39 0.54 0.39 0.37 0.37 0.45 0.42
0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01
0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01
0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01 0.01
0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02
0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02
0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02
"""


def _table() -> dict[str, tuple[float, ...]]:
    names = [
        f"{prefix}{rule} & {strategy}"
        for prefix in ("replanning: ", "")
        for rule in RULES
        for strategy in STRATEGIES
    ]
    rows = [tuple(map(float, line.split())) for line in _ROWS.strip().splitlines()]
    return dict(zip(names, rows, strict=True))


TABLE_4_1: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(_table())
"""By heuristic, fitness relative to the best heuristic of a setting, averaged; the last column is
the average of the others. The paper's order: replanning first, due time before working time."""


def shown_heuristic(name: str) -> str:
    """Returns a heuristic's name as the paper abbreviates it, such as "RH SDT & RAS-3"."""
    short = {
        "shortest due time": "SDT",
        "shortest task": "SWT (GJ)",
        "shortest workflow": "SWT (AJ)",
    }
    rest = name.removeprefix("replanning: ")
    rule, _, strategy = rest.partition(" & ")
    new = "RH " if rest != name else ""
    return f"{new}{short[rule]} & {strategy}"
