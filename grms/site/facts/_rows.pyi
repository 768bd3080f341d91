from collections.abc import Callable
from typing import Any

class RowError(ValueError):
    number: int

class Form:
    def __init__(
        self,
        kind: str,
        names: tuple[str, ...],
        convert: tuple[tuple[Callable[..., Any], bool] | None, ...],
        payload_at: int,
    ) -> None: ...
    def values(self, body: str, payload: bytes | None) -> list[Any]: ...

def check(rows: list[tuple[Any, ...]], expected: int, checksum: int) -> int: ...
def hand_over(
    rows: list[tuple[Any, ...]],
    takers: dict[str, tuple[Form, Callable[..., None]]],
    other: Callable[[tuple[Any, ...]], None],
) -> float: ...
