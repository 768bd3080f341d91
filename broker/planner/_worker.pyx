"""What one thread needs to judge chromosomes and to make new ones."""

from libc.stdint cimport int32_t
from libc.string cimport memcpy

import numpy as np

from broker.planner._arena cimport Arena, arena_open, cut
from broker.planner._builder cimport build_fast
from broker.planner._chromosome cimport cut_chromosome, cut_room
from broker.planner._scratch cimport STRATEGIES, Strategy
from broker.planner._evaluation cimport worth_fast
from broker.planner._instance cimport CompiledProblem
from broker.planner._project cimport build_serial, justify_fast
from broker.planner._types cimport choice_t, task_t


cdef double evaluate_fast(Bench* bench, const Chromosome* one) except? -1.0 nogil:
    # The fitness of a chromosome; its schedule stays in the scratch.
    bench.scratch.assigned = one.choices
    build_fast(bench.scratch, one.genes, <Strategy> one.strategy)
    bench.scratch.assigned = NULL
    worth_fast(bench.scratch, bench.goals, &bench.worth)
    bench.evaluations += 1
    return bench.worth.fitness


cdef double evaluate_justified(Bench* bench, task_t* genes) noexcept nogil:
    # The fitness of the justified schedule of a sequence, which stays in the scratch; the genes
    # become the sequence that builds it. Three schedules: the serial one, and one for each pass.
    build_serial(bench.project, bench.scratch, genes)
    justify_fast(bench.project, bench.scratch)
    worth_fast(bench.scratch, bench.goals, &bench.worth)
    memcpy(genes, bench.project.sequence, bench.project.tasks * sizeof(task_t))
    bench.evaluations += 3
    return bench.worth.fitness


cdef void lay_out(Bench* bench, Arena* arena, task_t tasks) noexcept:
    cut_room(&bench.room, arena, tasks)
    cut_chromosome(&bench.trial, arena, tasks)
    if bench.graph != NULL and bench.graph.flexible:
        bench.trial.choices = <choice_t*> cut(arena, tasks, sizeof(choice_t))


cdef class Worker:
    """One thread's memory: a `Workspace`, with its parameters, and that of operators.

    `assigning` allows for tabu search in flexible job shops.
    """

    def __init__(
        self,
        CompiledProblem problem,
        CompiledGoals goals,
        double horizon,
        int buckets=128,
        bint assigning=False,
    ):
        cdef task_t tasks = problem.instance.tasks
        cdef Bench* bench = &self.bench
        cdef Arena arena = Arena(NULL, 0)
        self.workspace = Workspace(problem, horizon, buckets)
        self.goals = goals
        bench.scratch = &self.workspace.scratch
        bench.goals = &goals.goals
        bench.evaluations = 0
        bench.cancelled = 0
        bench.graph = NULL
        self.graph = CriticalGraph(problem, assigning)
        if self.graph.graph.usable:
            bench.graph = &self.graph.graph
        lay_out(bench, &arena, tasks)
        self.memory = np.zeros(arena.used, np.uint8)
        arena_open(&arena, self.memory)
        lay_out(bench, &arena, tasks)
        bench.project = NULL
        self.project = ProjectRoom(problem)
        if self.project.project.usable:
            bench.project = &self.project.project

    @property
    def evaluations(self) -> int:
        return self.bench.evaluations

    @property
    def cancelled(self) -> bool:
        """Whether the step is given up: another thread may set it while matings are done."""
        return self.bench.cancelled != 0

    @cancelled.setter
    def cancelled(self, bint value):
        self.bench.cancelled = value

    @property
    def assigns(self) -> bool:
        """Whether a choice for each task belongs to a chromosome: in flexible job shops."""
        return self.bench.graph != NULL and self.bench.graph.flexible

    def evaluate(
        self, const int32_t[::1] genes, int strategy, const int32_t[::1] choices=None
    ) -> float:
        """Returns the fitness of a sequence; its schedule stays in the workspace, as by
        `Workspace.build`."""
        self.workspace.build(genes, strategy, choices)
        worth_fast(self.bench.scratch, self.bench.goals, &self.bench.worth)
        self.bench.evaluations += 1
        return self.bench.worth.fitness

    @property
    def justifies(self) -> bool:
        """Whether the problem is one whose schedules can be justified."""
        return self.bench.project != NULL

    def justify(self, int32_t[::1] genes) -> float:
        """Returns the fitness of the justified schedule of a sequence; it stays in the workspace.

        The genes become the sequence that builds it. ValueError if the problem is not a project.
        """
        if self.bench.project == NULL:
            raise ValueError("tasks have alternatives, or resources are not always there")
        if sorted(genes) != list(range(self.bench.project.tasks)):
            raise ValueError(
                f"a sequence has to name each of {self.bench.project.tasks} tasks once"
            )
        return evaluate_justified(&self.bench, &genes[0])

    def evaluate_many(self, const int32_t[:, ::1] genes, const int32_t[::1] strategies) -> object:
        """Returns the fitness of several sequences, by row, computed without the GIL."""
        cdef Py_ssize_t i
        cdef Py_ssize_t count = genes.shape[0]
        cdef Chromosome one
        fitness = np.zeros(count)
        cdef double[::1] values = fitness
        everything = np.arange(self.bench.scratch.instance.tasks)
        if count != strategies.shape[0] or genes.shape[1] != len(everything):
            raise ValueError(
                f"{count} sequences of {genes.shape[1]} for {strategies.shape[0]} strategies "
                f"and {len(everything)} tasks"
            )
        if not (np.sort(genes, axis=1) == everything).all():
            raise ValueError(f"a sequence has to name each of the {len(everything)} tasks once")
        if count and not 0 <= min(strategies) <= max(strategies) < STRATEGIES:
            raise ValueError(f"strategies are from 0 to {STRATEGIES - 1}")
        with nogil:
            for i in range(count):
                one.genes = <task_t*> &genes[i, 0]
                one.strategy = strategies[i]
                one.choices = NULL
                values[i] = evaluate_fast(&self.bench, &one)
        return fitness
