from typing import Generic, TypeVar

_T = TypeVar("_T")

class Copier(Generic[_T]):
    kind: type[_T]
    def __init__(self, kind: type[_T]) -> None: ...
    def __call__(self, thing: _T) -> _T: ...
