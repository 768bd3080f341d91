"""What may still go wrong, as small numbers."""

from itertools import product
from typing import Final

BUDGET_BITS: Final = 16
BUDGET_MASK: Final = (1 << BUDGET_BITS) - 1


class Budgets:
    """What may still go wrong: how often each fault may come, as one number; 0 is all that may.

    `left[cost][budget]` is what is left of a budget; -1 where it does not suffice.
    """

    def __init__(self, faults: dict[str, int]) -> None:
        self._most = faults
        self._kinds = [kind for kind, most in faults.items() if most > 0]
        ranges = [range(faults[kind], -1, -1) for kind in self._kinds]
        self._vectors = list(product(*ranges))
        self._numbers = {vector: number for number, vector in enumerate(self._vectors)}
        if len(self._vectors) > BUDGET_MASK:
            raise ValueError(f"{len(self._vectors)} budgets; at most {BUDGET_MASK} are possible")
        self._costs: dict[tuple[str, ...], int] = {}
        self.paid: list[tuple[str, ...]] = []
        self.left: list[list[int]] = []
        self._below: dict[int, int] = {}
        self.cost()

    def cost(self, *kinds: str) -> int:
        """Returns the number of a cost, 0 for nothing; -1 if it can never be paid."""
        known = self._costs.get(kinds)
        if known is not None:
            return known
        paid = tuple(sorted(kind for kind in kinds if kind))
        if any(self._most.get(kind, 0) < paid.count(kind) for kind in paid):
            self._costs[kinds] = -1
            return -1
        if paid not in self._costs:
            self._costs[paid] = len(self.paid)
            self.paid.append(paid)
            self.left.append([self._after(vector, paid) for vector in self._vectors])
        self._costs[kinds] = self._costs[paid]
        return self._costs[kinds]

    def _after(self, vector: tuple[int, ...], paid: tuple[str, ...]) -> int:
        left = tuple(
            most - paid.count(kind) for kind, most in zip(self._kinds, vector, strict=True)
        )
        return self._numbers.get(left, -1)

    def below(self, budget: int) -> int:
        """Returns the budgets in which no fault may come more often than in this one, as bits; itself is one."""
        found = self._below.get(budget)
        if found is None:
            most = self._vectors[budget]
            found = self._below[budget] = sum(
                1 << number
                for vector, number in self._numbers.items()
                if all(one <= other for one, other in zip(vector, most, strict=True))
            )
        return found
