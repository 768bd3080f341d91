"""The value function of a machine's state, and its files.

Eight fuzzy rules over three inputs (Vengerov, section 3.3): x1, the mean unit utility that the
running jobs are expected to bring, weighted by processors; x2, the least expected time to a
completion; x3, the free processors. Each is large to the degree x1 / `utility`, x2 / `time`,
x3 / `processors`, kept between 0 and 1, and small to the rest; a rule's weight is the product.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lrms_sim.malleable._formulas import rule_weights
from lrms_sim.util.documents import known_keys, number, reading, schema_in, table, text, whole
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import read_json, write_json

SCHEMA: Final = "hanse.value-function/1"
"""Value of the key `schema` in files that this version reads and writes."""

RULES: Final = ("SSS", "SSL", "SLS", "SLL", "LSS", "LSL", "LLS", "LLL")
"""The rules in their order: is x1, x2, x3 small or large."""

PAPER_P: Final = (-0.97, -0.25, -0.86, -0.39, 0.48, -0.85, 4.03, 0.19)
"""What the paper's combined policy learned in one run (section 5)."""

FILE_BYTES_MAX: Final = 1024 * 1024

_KEYS: Final = ("schema", "name", "p", "scales", "provenance")


class ValueFunctionError(HanseError, ValueError):
    """A value function file that cannot be used; the text says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Scales:
    """The inputs that count as wholly large.

    Attributes:
        utility: of x1; more than 0. 1 if all weights are.
        time: of x2, in seconds; more than 0. The paper's MaxJobLength.
        processors: of x3: the machine's size.
    """

    utility: float = 1.0
    time: float = 10.0
    processors: int = 24

    def __post_init__(self) -> None:
        for name in ("utility", "time", "processors"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"scale of {name} is {value}; it must be finite and more than 0")

    def for_kernel(self) -> dict[str, Any]:
        """Returns the scales as the kernel takes them."""
        return {"utility": self.utility, "time": self.time, "processors": self.processors}


@dataclass(frozen=True, slots=True)
class ValueFunction:
    """What a machine's state is worth.

    Attributes:
        p: the outputs of `RULES`, in their order; finite.
        provenance: plain JSON values.
    """

    p: tuple[float, ...] = (0.0,) * len(RULES)
    scales: Scales = field(default_factory=Scales)
    name: str = "value function"
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.p) != len(RULES) or not all(map(math.isfinite, self.p)):
            raise ValueError(f"p is {self.p}; it must be {len(RULES)} finite numbers")

    def rule_weights(self, x1: float, x2: float, x3: float) -> tuple[float, ...]:
        """Returns the weight of each rule in a state; they sum to 1. Inputs: utility, seconds, processors."""
        return rule_weights(x1, x2, x3, self.scales.for_kernel())

    def value(self, x1: float, x2: float, x3: float) -> float:
        """Returns the value of a state (equation 1)."""
        weights = self.rule_weights(x1, x2, x3)
        return sum(p * weight for p, weight in zip(self.p, weights, strict=True))


def load_value_function(path: str | os.PathLike[str]) -> ValueFunction:
    """Reads a value function.

    Raises:
        ValueFunctionError: it cannot be read, is no JSON, or breaks the format.
    """
    document = read_json(Path(path), FILE_BYTES_MAX, ValueFunctionError)
    return value_function_from_document(document, source=str(path))


def value_function_from_document(document: object, *, source: str) -> ValueFunction:
    """Builds a value function from decoded JSON.

    Raises:
        ValueFunctionError: the document breaks the format.
    """
    with reading(source, ValueFunctionError):
        _, top = schema_in(document, SCHEMA)
        known_keys(top, _KEYS, "the document")
        p = table(top.get("p"), "p")
        if tuple(p) != RULES:
            raise ValueError(f"p has the keys {list(p)}; {list(RULES)} are expected")
        scales = table(top.get("scales"), "scales")
        if sorted(scales) != ["processors", "time", "utility"]:
            raise ValueError(
                f"scales has the keys {list(scales)}; utility, time, processors are expected"
            )
        size = whole(scales["processors"], "scales.processors")
        if not 1 <= size < 2**31:
            raise ValueError(f"scales.processors is {size}; a whole number from 1 is expected")
        utility, time = (number(scales[name], f"scales.{name}") for name in ("utility", "time"))
        return ValueFunction(
            tuple(number(value, f"p.{rule}") for rule, value in p.items()),
            Scales(utility, time, size),
            text(top.get("name", "value function"), "name"),
            table(top.get("provenance", {}), "provenance"),
        )


def value_function_to_document(value: ValueFunction) -> dict[str, Any]:
    """Returns a value function's file content, ready for JSON."""
    return {
        "schema": SCHEMA,
        "name": value.name,
        "p": dict(zip(RULES, value.p, strict=True)),
        "scales": value.scales.for_kernel(),
        "provenance": dict(value.provenance),
    }


def save_value_function(value: ValueFunction, path: str | os.PathLike[str]) -> None:
    """Writes a value function atomically, with numbers to the last bit.

    Raises:
        OSError: the file cannot be written.
        TypeError: the provenance cannot be written as JSON.
    """
    write_json(path, value_function_to_document(value))
