"""GLEAM: a ring population with demes, segments and groups of operators (paper 004, section 3.3).

Every individual is a parent once per generation and may be replaced at once, in place. Successive
parents are far apart on the ring: those of one step have disjoint demes, so their matings are
independent and may run in parallel, with the same result as in sequence. docs/planner.md says
more.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import numpy as np

from broker.planner._chromosome cimport Chromosome, chromosome_copy, cut_segments, distance_fast
from broker.planner._chromosome import checked
from broker.planner._improvement cimport SEARCH_JUSTIFY, improve_fast
from broker.planner._crossovers cimport (
    BIG_DISPLACEMENT,
    GROUPS,
    RELINKING,
    SMALL_DISPLACEMENT,
    inherit_choices,
    make_child,
)
from broker.planner._random cimport (
    Random,
    random_begin,
    random_below,
    random_chance,
    random_share,
)
from broker.planner._ring cimport QUALITIES, Ring, is_accepted, partner_of
from broker.planner._ring import parents_by_step
from broker.planner._scratch cimport STRATEGIES
from broker.planner._types cimport choice_t, task_t
from broker.planner._worker cimport Bench, Worker, evaluate_fast, evaluate_justified

cdef extern from *:
    int32_t take_next "__sync_fetch_and_add"(int32_t* counter, int32_t step) noexcept nogil

cdef double FITNESS_MAX = 100_000.0
cdef double DISTANCE_MIN = 0.001          # parents that are nearer do not cross
cdef double RELINKING_DISTANCE = 0.04     # and those that are nearer than this are not relinked
cdef int32_t RELINKING_TASKS = 400        # with fewer a population would become alike too soon


cdef class GleamCore:
    """Population, offspring and counters of one run; `broker.planner.gleam.Gleam` is its Python
    interface.

    A chromosome has `tasks` genes; demes have `radius` neighbours on either side. `groups` has by
    group of operators the probabilities for a poor, medium and good parent; `strategies` resource
    allocation strategies evolve. `assigned` individuals have a choice for each task.
    """

    def __cinit__(
        self,
        int32_t tasks,
        int32_t size,
        int32_t radius,
        uint64_t seed,
        list groups,
        int32_t strategies=3,
        bint assigned=False,
    ):
        cdef int32_t i, k, most
        if tasks < 1 or size < 2 or not 1 <= radius < size:
            raise ValueError(f"{tasks} tasks, {size} individuals, demes of radius {radius}")
        if len(groups) != GROUPS:
            raise ValueError(f"{len(groups)} groups of operators; there are {GROUPS}")
        if not 3 <= strategies <= STRATEGIES:
            raise ValueError(f"{strategies} strategies; from 3 to {STRATEGIES}")
        self.tasks, self.size, self.seed = tasks, size, seed
        self.strategies = strategies
        self.steps = parents_by_step(size, radius)
        most = max(len(parents) for parents in self.steps)
        self.individuals = <Chromosome*> calloc(size, sizeof(Chromosome))
        self.children = <Chromosome*> calloc(most * CHILDREN_MAX, sizeof(Chromosome))
        self.matings = <Mating*> calloc(most, sizeof(Mating))
        if self.individuals == NULL or self.children == NULL or self.matings == NULL:
            raise MemoryError(f"a population of {size}")
        self.columns = {
            "genes": np.zeros((size, tasks), np.int32),
            "length": np.zeros((size, tasks), np.int32),
            "fitness": np.zeros(size),
            "child_genes": np.zeros((most * CHILDREN_MAX, tasks), np.int32),
            "child_length": np.zeros((most * CHILDREN_MAX, tasks), np.int32),
            "child_fitness": np.zeros(most * CHILDREN_MAX),
        }
        self.assigned = assigned
        if assigned:
            self.columns["choices"] = np.zeros((size, tasks), np.int32)
            self.columns["child_choices"] = np.zeros((most * CHILDREN_MAX, tasks), np.int32)
            bind_choices(self.individuals, self.columns["choices"])
            bind_choices(self.children, self.columns["child_choices"])
        bind(self.individuals, self.columns["genes"], self.columns["length"])
        bind(self.children, self.columns["child_genes"], self.columns["child_length"])
        cdef double[::1] values = self.columns["fitness"]
        self.fitness = &values[0]
        self.ring = Ring(self.fitness, size, radius)
        values = self.columns["child_fitness"]
        self.child_fitness = &values[0]
        for i in range(GROUPS):
            for k in range(QUALITIES):
                self.groups[i].probability[k] = groups[i][k]
        memset(&self.improvement, 0, sizeof(Improvement))

    def __dealloc__(self):
        free(self.individuals)
        free(self.children)
        free(self.matings)

    def set_improvement(
        self,
        int searchers,
        int trials,
        int iterations,
        bint best_only,
        tuple probability,
        tuple level,
    ) -> None:
        """Sets the local search of offspring from the next step on.

        `searchers` is a set of `broker.planner.memetic.Searcher`, 0 for none; `trials` are those
        of shifting tasks, `iterations` those of tabu search. By active level, `probability` is
        that of being drawn for a mating, `level` that of improving a child that is not the best.
        """
        cdef int32_t i
        self.improvement.searchers = searchers
        self.improvement.trials = trials
        self.improvement.iterations = iterations
        self.improvement.best_only = best_only
        for i in range(LEVELS):
            self.improvement.probability[i] = probability[i]
            self.improvement.level[i] = level[i]

    def choices(self, int32_t row):
        """Returns a copy of an individual's choices by task; None where the strategy decides."""
        if not 0 <= row < self.size:
            raise ValueError(f"individual {row} of {self.size}")
        return self.columns["choices"][row].copy() if self.assigned else None

    def set_individual(self, int32_t row, chromosome, double fitness, choices=None) -> None:
        """Puts a chromosome into the population, with its choices if individuals have them.

        It is genes, lengths of segments, and strategy.
        """
        if not 0 <= row < self.size:
            raise ValueError(f"individual {row} of {self.size}")
        genes, lengths, strategy = checked(chromosome)
        if len(genes) != self.tasks:
            raise ValueError(f"{len(genes)} genes for {self.tasks} tasks")
        if (choices is not None) != self.assigned:
            raise ValueError("individuals have choices, or the strategy decides: for all of them")
        if self.assigned:
            self.columns["choices"][row] = choices
        self.columns["genes"][row] = genes
        self.columns["length"][row, : len(lengths)] = lengths
        self.individuals[row].segments = len(lengths)
        self.individuals[row].strategy = strategy
        self.fitness[row] = fitness

    def individual(self, int32_t row):
        """Returns genes, lengths of segments and strategy of an individual, and its fitness."""
        if not 0 <= row < self.size:
            raise ValueError(f"individual {row} of {self.size}")
        cdef Chromosome* one = &self.individuals[row]
        lengths = self.columns["length"][row, : one.segments].tolist()
        return (self.columns["genes"][row].copy(), lengths, one.strategy), self.fitness[row]

    @property
    def values(self):
        """A copy of the fitness of all individuals."""
        return self.columns["fitness"].copy()

    def cut(self, int64_t number) -> list[int]:
        """Returns lengths of segments for a new chromosome, determined by the number."""
        lengths = np.zeros(self.tasks, np.int32)
        cdef int32_t[::1] view = lengths
        cdef Chromosome one
        cdef Random random
        one.length = &view[0]
        random_begin(&random, self.seed, <uint64_t> -1, number)
        cut_segments(&one, self.tasks, &random)
        return lengths[: one.segments].tolist()

    def shuffle(self, int64_t number):
        """Returns the tasks in a random order, determined by the number."""
        genes = np.arange(self.tasks, dtype=np.int32)
        cdef int32_t[::1] view = genes
        cdef Random random
        cdef int32_t i, other
        random_begin(&random, self.seed, <uint64_t> -2, number)
        for i in range(self.tasks - 1, 0, -1):
            other = random_below(&random, i + 1)
            view[i], view[other] = view[other], view[i]
        return genes

    def shares(self, int64_t number):
        """Returns by task a uniform share of 1, determined by the number."""
        shares = np.zeros(self.tasks)
        cdef double[::1] view = shares
        cdef Random random
        cdef int32_t i
        random_begin(&random, self.seed, <uint64_t> -3, number)
        for i in range(self.tasks):
            view[i] = random_share(&random)
        return shares

    @property
    def progress(self) -> tuple[int, int]:
        """The next generation and step."""
        return self.generation, self.step

    @progress.setter
    def progress(self, value):
        self.generation, self.step = value

    def begin_step(self, most=None) -> int:
        """Prepares the matings of the next step, the first `most` of them; returns their number."""
        cdef int32_t i
        cdef Mating* mating
        parents = self.steps[self.step][:most]
        self.mating_count = len(parents)
        self.next_mating = 0
        for i, parent in enumerate(parents):
            mating = &self.matings[i]
            memset(mating, 0, sizeof(Mating))
            mating.parent = parent
            mating.best = -1
            random_begin(&mating.random, self.seed, self.generation, parent)
        return self.mating_count

    def ask(self, Worker worker):
        """Makes the offspring of a step that has begun, without evaluating it.

        Returns genes, by row a child, strategies, and the number of children of each mating.
        """
        cdef int32_t i
        for i in range(self.mating_count):
            self.generate(&self.matings[i], &worker.bench)
        self.next_mating = self.mating_count
        counts = [self.matings[i].children for i in range(self.mating_count)]
        rows = [i * CHILDREN_MAX + k for i, count in enumerate(counts) for k in range(count)]
        strategies = np.array([self.children[row].strategy for row in rows], np.int32)
        return self.columns["child_genes"][rows], strategies, counts

    def tell(self, const double[::1] fitness) -> None:
        """Takes the fitness of the offspring of `ask`, in its order; `commit` is next."""
        cdef int32_t i, k
        cdef Py_ssize_t told = 0
        cdef Mating* mating
        for i in range(self.mating_count):
            mating = &self.matings[i]
            for k in range(mating.children):
                if told == len(fitness):
                    raise ValueError(f"only {told} values for the offspring")
                self.child_fitness[i * CHILDREN_MAX + k] = fitness[told]
                if mating.best < 0 or fitness[told] > (
                    self.child_fitness[i * CHILDREN_MAX + mating.best]
                ):
                    mating.best = k
                told += 1
            mating.evaluations = mating.children
        if told < len(fitness):
            raise ValueError(f"{len(fitness)} values for {told} children")

    def breed(self, Worker worker) -> None:
        """Does pending matings of the step that has begun.

        Several threads may call this concurrently, each with a worker of its own. A worker that is
        cancelled returns after the schedule at hand; the step is to be abandoned then.
        """
        cdef int32_t i
        cdef Mating* mating
        if worker.bench.scratch.instance.tasks != self.tasks:
            raise ValueError(
                f"a worker for {worker.bench.scratch.instance.tasks} tasks, a population for "
                f"{self.tasks}"
            )
        with nogil:
            i = take_next(&self.next_mating, 1)
            while i < self.mating_count and not worker.bench.cancelled:
                mating = &self.matings[i]
                self.generate(mating, &worker.bench)
                self.judge(mating, &worker.bench)
                if self.improvement.searchers & ~SEARCH_JUSTIFY:
                    self.improve(mating, &worker.bench)
                i = take_next(&self.next_mating, 1)

    def commit(self):
        """Replaces parents by the best children, and goes to the next step.

        Returns, by mating, the level of improvement, the gain and the schedules of local search,
        and all schedules.
        """
        cdef int32_t i
        cdef Mating* mating
        records = []
        for i in range(self.mating_count):
            mating = &self.matings[i]
            if mating.best < 0:
                raise ValueError("a step is committed before all its offspring was judged")
            records.append(
                (mating.level, mating.gain, mating.search_evaluations, mating.evaluations)
            )
        for i in range(self.mating_count):
            self.commit_mating(&self.matings[i])
        self.mating_count = 0
        self.step += 1
        if self.step == len(self.steps):
            self.step = 0
            self.generation += 1
        return records

    def abandon(self):
        """Gives up a step that has begun: it begins anew with the next `begin_step`.

        Returns how many schedules it has built, and the best child that was judged, as genes,
        strategy, fitness and choices; None for it if there was none.
        """
        cdef int32_t i, k, row
        cdef int32_t best = -1
        cdef int64_t evaluations = 0
        cdef Mating* mating
        for i in range(self.mating_count):
            mating = &self.matings[i]
            evaluations += mating.evaluations
            if mating.best < 0:
                continue
            for k in range(mating.judged):
                row = i * CHILDREN_MAX + k
                if best < 0 or self.child_fitness[row] > self.child_fitness[best]:
                    best = row
        self.mating_count = 0
        if best < 0:
            return evaluations, None
        choices = self.columns["child_choices"][best].copy() if self.assigned else None
        genes = self.columns["child_genes"][best].copy()
        strategy = self.children[best].strategy
        return evaluations, (genes, strategy, self.child_fitness[best], choices)

    cdef int generate(self, Mating* mating, Bench* bench) noexcept nogil:
        # One child for each group of operators drawn, at least one. If parents are relinked, that
        # is the only child: without local search others are seldom better.
        cdef int32_t quality, partner, group
        cdef const Chromosome* parent = &self.individuals[mating.parent]
        cdef const Chromosome* other
        partner = partner_of(&self.ring, mating.parent, &mating.random, &quality)
        other = &self.individuals[partner]
        cdef double distance = distance_fast(parent, other, self.tasks, &bench.room)
        mating.children = 0
        if (
            self.groups[RELINKING].probability[quality] > 0.0
            and (self.assigned or self.tasks >= RELINKING_TASKS)
            and distance >= RELINKING_DISTANCE
            and random_chance(&mating.random, self.groups[RELINKING].probability[quality])
        ):
            self.add_child(mating, RELINKING, partner, bench)
            return 0
        for group in range(RELINKING):
            if not random_chance(&mating.random, self.groups[group].probability[quality]) and (
                group < BIG_DISPLACEMENT or mating.children > 0
            ):
                continue
            if group < SMALL_DISPLACEMENT and distance < DISTANCE_MIN:
                continue
            self.add_child(mating, group, partner, bench)
        return 0

    cdef void add_child(
        self, Mating* mating, int32_t group, int32_t partner, Bench* bench
    ) noexcept nogil:
        cdef const Chromosome* parent = &self.individuals[mating.parent]
        cdef const Chromosome* other = &self.individuals[partner]
        cdef bint crosses = group < SMALL_DISPLACEMENT or group == RELINKING
        cdef Chromosome* child = &self.children[
            (mating - self.matings) * CHILDREN_MAX + mating.children
        ]
        mating.children += 1
        make_child(
            group, child, parent, other, self.tasks, self.strategies, &bench.room, &mating.random
        )
        if crosses and self.fitness[partner] > self.fitness[mating.parent]:
            # The RAS gene is that of the better parent.
            child.strategy = other.strategy
        elif crosses:
            child.strategy = parent.strategy
        if self.assigned:
            inherit_choices(
                child, parent, other, self.tasks, 0.5 if crosses else 0.0, &mating.random
            )

    cdef int judge(self, Mating* mating, Bench* bench) except -1 nogil:
        cdef int32_t first_row = (mating - self.matings) * CHILDREN_MAX
        cdef int64_t evaluations = bench.evaluations
        cdef int32_t i
        cdef double fitness
        for i in range(mating.children):
            if bench.cancelled:
                break
            if self.improvement.searchers & SEARCH_JUSTIFY and bench.project != NULL:
                fitness = evaluate_justified(bench, self.children[first_row + i].genes)
            else:
                fitness = evaluate_fast(bench, &self.children[first_row + i])
            self.child_fitness[first_row + i] = fitness
            mating.judged = i + 1
            if mating.best < 0 or fitness > self.child_fitness[first_row + mating.best]:
                mating.best = i
        mating.evaluations += bench.evaluations - evaluations
        return 0

    cdef int improve(self, Mating* mating, Bench* bench) except -1 nogil:
        # Always the best child; the others with the probability of the level drawn.
        cdef int32_t first_row = (mating - self.matings) * CHILDREN_MAX
        cdef int32_t best = mating.best
        cdef double before
        cdef double drawn = random_share(&mating.random)
        cdef int64_t evaluations = bench.evaluations
        cdef double after, p_all
        cdef int32_t i
        if bench.cancelled:
            return 0
        before = self.child_fitness[first_row + best]
        mating.level = LEVELS - 1
        for i in range(LEVELS):
            drawn -= self.improvement.probability[i]
            if drawn < 0.0:
                mating.level = i
                break
        p_all = 0.0 if self.improvement.best_only else self.improvement.level[mating.level]
        for i in range(mating.children):
            if i != best and not random_chance(&mating.random, p_all):
                continue
            self.child_fitness[first_row + i] = improve_fast(
                bench,
                &self.children[first_row + i],
                self.child_fitness[first_row + i],
                self.improvement.searchers,
                self.strategies,
                self.improvement.trials,
                self.improvement.iterations,
                &mating.random,
            )
            if bench.cancelled:
                mating.evaluations += bench.evaluations - evaluations
                return 0
        for i in range(mating.children):
            if self.child_fitness[first_row + i] > self.child_fitness[first_row + mating.best]:
                mating.best = i
        after = self.child_fitness[first_row + mating.best]
        # rfg = (f_LS − f_evo)/(f_max − f_evo)
        mating.gain = (after - before) / (FITNESS_MAX - before) if before < FITNESS_MAX else 0.0
        mating.search_evaluations = bench.evaluations - evaluations
        mating.evaluations += mating.search_evaluations
        return 0

    cdef void commit_mating(self, Mating* mating) noexcept nogil:
        cdef int32_t row = (mating - self.matings) * CHILDREN_MAX + mating.best
        if is_accepted(&self.ring, mating.parent, self.child_fitness[row]):
            chromosome_copy(&self.individuals[mating.parent], &self.children[row], self.tasks)
            self.fitness[mating.parent] = self.child_fitness[row]


cdef bind_choices(Chromosome* rows, choices):
    cdef int32_t[:, ::1] view = choices
    cdef Py_ssize_t i
    for i in range(view.shape[0]):
        rows[i].choices = <choice_t*> &view[i, 0]


cdef bind(Chromosome* rows, genes, length):
    cdef int32_t[:, ::1] genes_view = genes
    cdef int32_t[:, ::1] length_view = length
    cdef Py_ssize_t i
    for i in range(genes_view.shape[0]):
        rows[i].genes = <task_t*> &genes_view[i, 0]
        rows[i].length = &length_view[i, 0]
        rows[i].segments = 0
        rows[i].strategy = 0
