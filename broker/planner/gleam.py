"""GLEAM: ask for offspring, have it evaluated, tell, and stop at any time.

The population, its counters and the seed are the whole state: random numbers are a function of the
seed, the generation and the parent. A saved run continues bit for bit, independent of the number of
threads that judge offspring. The clock and the threads belong to the caller.
"""

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from broker.planner._gleam import GleamCore
from broker.planner._worker import Worker
from broker.planner.heuristics import (
    PAPER_STRATEGIES,
    PLANNING_STRATEGIES,
    STRATEGIES,
    Heuristic,
    Priorities,
)
from broker.planner.memetic import LevelAdaptation, Memetic, Searcher

GROUPS = {
    "segment exchange": (0.8, 0.7, 0.6),
    "1-point crossover": (0.6, 0.5, 0.4),
    "n-point crossover": (1.0, 0.9, 0.8),
    "order crossover, 3 runs": (0.6, 0.5, 0.4),
    "order crossover, n runs": (0.6, 0.5, 0.4),
    "small displacement": (0.6, 0.8, 1.0),
    "big displacement": (0.8, 0.6, 0.4),
    "path relinking": (0.0, 0.0, 0.0),
}
"""Groups of operators, with their probabilities for a poor, a medium and a good parent."""

POPULATION_MAX = 10_000
NEIGHBOURS = {5: 4, 10: 6}
"""Neighbours in the deme of a small population, by the largest population they hold for."""

NEIGHBOURS_DEFAULT = 8

NOISE = 0.15
"""How much noise is added to priorities, which go from 0 to 1."""

STATE_VERSION = 2


@dataclass(frozen=True, slots=True)
class GleamSettings:
    """Parameters of a GLEAM run.

    Attributes:
        population: individuals on the ring, from 3 to 10,000.
        neighbours: of an individual in its deme, an even number; by default 8, and fewer in
            small populations.
        groups: probabilities of the operator groups, in the order of `GROUPS`.
        memetic: local search; `None` for the evolutionary algorithm alone.
        strategies: how many resource allocation strategies evolve: 3, the paper's, 5, or 6
            if tasks keep the places of an old plan. With more than three, our own heuristics also
            seed the population.
    """

    population: int = 60
    neighbours: int | None = None
    groups: tuple[tuple[float, float, float], ...] = tuple(GROUPS.values())
    memetic: Memetic | None = None
    strategies: int = PAPER_STRATEGIES

    def __post_init__(self) -> None:
        if not PAPER_STRATEGIES <= self.strategies <= len(STRATEGIES):
            raise ValueError(
                f"{self.strategies} strategies; from {PAPER_STRATEGIES} to {len(STRATEGIES)}"
            )
        if not 3 <= self.population <= POPULATION_MAX:
            raise ValueError(f"population is {self.population}; from 3 to {POPULATION_MAX}")
        if self.radius < 1 or 2 * self.radius >= self.population:
            raise ValueError(
                f"{self.neighbours} neighbours in a population of {self.population}; an even "
                "number from 2 on, and less than the population"
            )
        if self.neighbours is not None and self.neighbours % 2:
            raise ValueError(f"{self.neighbours} neighbours; an even number")
        if len(self.groups) != len(GROUPS):
            raise ValueError(f"{len(self.groups)} groups of operators; there are {len(GROUPS)}")
        for name, group in zip(GROUPS, self.groups, strict=True):
            if not all(0 <= each <= 1 for each in group):
                raise ValueError(f"probabilities of {name} are {group}; from 0 to 1")

    @property
    def assign(self) -> bool:
        """Whether individuals have a choice for each task, where the problem is a flexible job shop."""
        return self.memetic is not None and Searcher.BLOCKS in self.memetic.searchers

    @property
    def justify(self) -> bool:
        """Whether schedules are justified, where the problem allows it."""
        return self.memetic is not None and Searcher.JUSTIFY in self.memetic.searchers

    @property
    def radius(self) -> int:
        """Neighbours on either side."""
        if self.neighbours is not None:
            return self.neighbours // 2
        for population, neighbours in NEIGHBOURS.items():
            if self.population <= population:
                return min(neighbours // 2, (self.population - 1) // 2)
        return NEIGHBOURS_DEFAULT // 2


PASSES = 3
"""Schedules built for one justified child: the serial one and a pass in either direction."""

PROJECT_POPULATION = (3, 120)
"""Least and most individuals of a project's population."""

PROJECT_CHANCES = {"order crossover, n runs": 1.0, "small displacement": 0.2}
"""What makes children of projects; of parents that are alike, big displacement may."""

PROJECT_GROUPS = tuple((PROJECT_CHANCES.get(name, 0.0),) * 3 for name in GROUPS)
PROJECT = GleamSettings(memetic=Memetic(Searcher.JUSTIFY), groups=PROJECT_GROUPS)
"""The search for resource-constrained projects: every schedule is justified."""


def project_population(schedules: float) -> int:
    """Returns the population that makes best use of so many schedules: it grows more slowly."""
    least, most = PROJECT_POPULATION
    wanted: float = 0.65 * schedules**0.4
    return max(least, round(min(most, wanted)))


BLOCKS_GROUPS = tuple(
    (0.6,) * 3 if name == "path relinking" else chances for name, chances in GROUPS.items()
)
BLOCKS = GleamSettings(
    population=20,
    groups=BLOCKS_GROUPS,
    memetic=Memetic(Searcher.BLOCKS, best_only=True, iterations=8000),
)
"""The search for job shops: tabu search from schedules between those of two parents."""


GUIDED = GleamSettings(
    memetic=Memetic(Searcher.STRATEGY | Searcher.SHIFT), strategies=PLANNING_STRATEGIES
)
"""Our own search: all strategies and heuristics, and local search guided by schedules."""


Best = tuple[npt.NDArray[np.int32], int, float, npt.NDArray[np.int32] | None]
"""Genes, strategy, fitness, and choices by task; `None` for these where the strategy decides."""


@dataclass(frozen=True, slots=True)
class Offspring:
    """The children of one step, to be evaluated.

    Attributes:
        genes: by row the sequence of a child.
        strategies: by row 0 to 5 for RAS-1 to RAS-6.
    """

    genes: npt.NDArray[np.int32]
    strategies: npt.NDArray[np.int32]
    counts: list[int]


@dataclass
class Gleam:
    """One run of GLEAM; `justified` if all its schedules are, `assigned` if individuals have choices.

    `begin` starts a step, `breed` (on any number of threads) or `ask` and `tell` do its matings, and
    `commit` ends it.
    """

    tasks: int
    settings: GleamSettings
    seed: int
    evaluations: int = 0
    justified: bool = False
    assigned: bool = False
    adaptation: LevelAdaptation = field(default_factory=LevelAdaptation)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"the seed is {self.seed}; from 0 to 2^64 - 1")
        settings = self.settings
        self.core = GleamCore(
            self.tasks,
            settings.population,
            settings.radius,
            self.seed,
            list(settings.groups),
            settings.strategies,
            self.assigned,
        )
        self._set_improvement()

    def start(
        self,
        worker: Worker,
        seeds: Sequence[Heuristic],
        priorities: Sequence[Priorities] = (),
        *,
        known: Sequence[float] = (),
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Fills the population with heuristic solutions, then with random ones.

        Heuristics are spread over the ring; if they outnumber the places, the best are taken. Where
        schedules are justified, random ones follow the `priorities`, in turns, with some noise. The first
        seeds may be of `known` fitness. From when there is `enough` on, places get
        copies.
        """
        size = self.settings.population
        if self.settings.justify and worker.justifies:
            self.justified = True
            self._start_justified(worker, seeds, priorities)
            return
        every = sorted(self._judged(worker, seeds, known, enough))
        judged = every[:size]
        places = [number * size // max(1, len(judged)) for number in range(len(judged))]
        taken = dict(zip(places, judged, strict=True))
        built = 0
        for place in range(size):
            lengths = self.core.cut(place)
            if place in taken:
                fitness, row = taken[place]
                chosen = seeds[row]
                genes, strategy = chosen.genes, chosen.strategy
                if self.assigned:
                    worker.evaluate(genes, strategy)
                one = genes, strategy, -fitness, self._choices(worker)
            elif place == 0 or not enough():
                genes = self.core.shuffle(place)
                strategy = place % self.settings.strategies
                fitness = worker.evaluate(genes, strategy)
                one = genes, strategy, fitness, self._choices(worker)
                built += 1
            genes, strategy, fitness, choices = one
            self.core.set_individual(place, (genes, lengths, strategy), fitness, choices)
        self.evaluations += len(every) + built

    @staticmethod
    def _judged(
        worker: Worker,
        seeds: Sequence[Heuristic],
        known: Sequence[float],
        enough: Callable[[], bool],
    ) -> Iterator[tuple[float, int]]:
        # Fitness, negative, and row.
        for row, each in enumerate(seeds):
            if row < len(known):
                yield -known[row], row
            elif row == 0 or not enough():
                yield -worker.evaluate(each.genes, each.strategy), row

    def _choices(self, worker: Worker) -> npt.NDArray[np.int32] | None:
        # Those of the schedule that was built last, where individuals have them.
        return worker.workspace.columns["choice"][: self.tasks].copy() if self.assigned else None

    @property
    def schedules_of_mating(self) -> int | None:
        """Most schedules that a mating builds where it is known beforehand: if all are justified."""
        if not self.justified:
            return None
        return PASSES * max(1, sum(max(group) > 0 for group in self.settings.groups))

    def _start_justified(
        self, worker: Worker, seeds: Sequence[Heuristic], priorities: Sequence[Priorities]
    ) -> None:
        size = self.settings.population
        before = worker.evaluations
        judged = []
        for row, each in enumerate(seeds[:size]):
            genes = each.genes.copy()
            judged.append((-worker.justify(genes), row, genes))
        judged.sort(key=lambda entry: entry[:2])
        for place in range(size):
            if place < len(judged):
                fitness, _, genes = judged[place]
                fitness = -fitness
            else:
                keys = priorities[place % len(priorities)]
                noise = NOISE * self.core.shares(place)
                genes = np.argsort(keys + noise, kind="stable").astype(np.int32)
                fitness = worker.justify(genes)
            self.core.set_individual(place, (genes, self.core.cut(place), 0), fitness)
        self.evaluations += worker.evaluations - before

    def begin(self, most: int | None = None) -> int:
        """Takes up the matings of the next step, or so many of them; returns how many."""
        return self.core.begin_step(most)

    def breed(self, worker: Worker) -> None:
        """Does matings of the step until none is left; for several threads at the same time."""
        self.core.breed(worker)

    def ask(self, worker: Worker) -> Offspring:
        """Returns the offspring of the step, for the caller to judge; without local search."""
        return Offspring(*self.core.ask(worker))

    def tell(self, fitness: npt.NDArray[np.float64]) -> None:
        """Takes the fitness of the requested offspring, in its order.

        Raises:
            ValueError: the number of values differs from the number of children.
        """
        self.core.tell(fitness)

    def abandon(self) -> tuple[int, Best | None]:
        """Gives up the step that has begun, which the run's state knows nothing of.

        Returns how many schedules it has built, and the best child that was judged.
        """
        return self.core.abandon()

    def commit(self) -> None:
        """Lets the best children replace their parents."""
        records = self.core.commit()
        self.evaluations += sum(evaluations for *_, evaluations in records)
        memetic = self.settings.memetic
        if memetic is not None and not memetic.best_only:
            for level, gain, cost, _ in records:
                self.adaptation.note(level, gain, cost)
            if self.adaptation.adapt():
                self._set_improvement()

    def receive(self, one: Best) -> None:
        """Puts an individual from elsewhere in the place of the worst one, if it is better than that."""
        genes, strategy, fitness, choices = one
        worst = int(np.argmin(self.core.values))
        if fitness > self.core.values[worst]:
            chromosome = genes, self.core.cut(worst), strategy
            self.core.set_individual(worst, chromosome, fitness, choices)

    @property
    def generation(self) -> int:
        """How many generations are complete."""
        return self.core.progress[0]

    @property
    def best(self) -> tuple[npt.NDArray[np.int32], int, float]:
        """Genes, strategy and fitness of the best individual; the first of equals."""
        (genes, _, strategy), fitness = self.core.individual(int(np.argmax(self.core.values)))
        return genes, strategy, fitness

    @property
    def best_choices(self) -> npt.NDArray[np.int32] | None:
        """Choices of the best individual by task; `None` where its strategy decides."""
        return self.core.choices(int(np.argmax(self.core.values)))

    def state(self) -> dict[str, Any]:
        """Returns everything there is to save between two steps, as plain JSON values."""
        individuals = []
        for row in range(self.settings.population):
            (genes, lengths, strategy), fitness = self.core.individual(row)
            choices = self.core.choices(row)
            taken = None if choices is None else packed(choices)
            individuals.append([packed(genes), lengths, strategy, fitness, taken])
        return {
            "version": STATE_VERSION,
            "tasks": self.tasks,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "evaluations": self.evaluations,
            "justified": self.justified,
            "assigned": self.assigned,
            "progress": list(self.core.progress),
            "adaptation": self.adaptation.state(),
            "individuals": individuals,
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> "Gleam":
        """Returns the saved run, which continues as if it had not stopped.

        Raises:
            ValueError: the state has another version.
        """
        if state.get("version") != STATE_VERSION:
            raise ValueError(
                f"a saved run of version {state.get('version')}; this reads {STATE_VERSION}"
            )
        settings = dict(state["settings"])
        memetic = settings.pop("memetic")
        settings["groups"] = tuple(tuple(group) for group in settings["groups"])
        run = cls(
            state["tasks"],
            GleamSettings(**settings, memetic=Memetic(**memetic) if memetic else None),
            state["seed"],
            state["evaluations"],
            state["justified"],
            state["assigned"],
            LevelAdaptation(**state["adaptation"]),
        )
        for row, (genes, lengths, strategy, fitness, taken) in enumerate(state["individuals"]):
            choices = None if taken is None else unpacked(taken)
            run.core.set_individual(row, (unpacked(genes), lengths, strategy), fitness, choices)
        generation, step = state["progress"]
        run.core.progress = (generation, step)
        return run

    def _set_improvement(self) -> None:
        memetic = self.settings.memetic
        self.core.set_improvement(
            int(memetic.searchers) if memetic else 0,
            memetic.trials if memetic else 0,
            memetic.iterations if memetic else 0,
            memetic.best_only if memetic else False,
            tuple(self.adaptation.probability),
            self.adaptation.levels,
        )


def packed(numbers: npt.NDArray[np.int32]) -> str:
    """Returns numbers as a text for JSON."""
    return base64.b85encode(zlib.compress(numbers.astype("<i4").tobytes())).decode()


def unpacked(text: str) -> npt.NDArray[np.int32]:
    """Returns the numbers of such a text."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), "<i4").astype(np.int32)
