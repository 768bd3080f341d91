"""From a schedule to its worth: criteria, priorities, penalties (paper 004, section 2)."""

from libc.math cimport pow
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from broker.planner._builder cimport Workspace
from broker.planner._scratch cimport Scratch
from broker.planner._instance cimport Instance
from broker.planner._types cimport choice_t, money_t, seconds_t, task_t, workflow_t

cdef double FITNESS_MAX = 100_000.0


cdef inline double achieved(double value, double least, double most) noexcept nogil:
    # 1 − equation 2.5: 1 at the least, 0 at the most and beyond it.
    cdef double share
    if value <= least:
        return 1.0
    if value >= most:
        return 0.0
    share = (value - least) / (most - least)
    return 1.0 - share


cdef inline double fading(double x, double first, double third) noexcept nogil:
    # 1 at the first x, a third at `third`.
    return pow(3.0, -(x - first) / (third - first))


cdef void sum_workflows(
    const Scratch* scratch, seconds_t* completion, money_t* cost, Worth* worth
) noexcept nogil:
    # Completion and cost by workflow; makespan, utilization and delay of the plan but for bounds.
    cdef const Instance* instance = scratch.instance
    cdef seconds_t last = instance.now
    cdef double busy = 0.0
    cdef double delay = 0.0
    cdef int32_t waited_for = 0
    cdef int32_t i
    cdef task_t task
    cdef workflow_t workflow
    cdef choice_t choice
    memcpy(completion, instance.fixed_completion, instance.workflows * sizeof(seconds_t))
    memcpy(cost, instance.fixed_cost, instance.workflows * sizeof(money_t))
    for task in range(instance.tasks):
        choice = scratch.choice[task]
        if choice < 0:
            continue
        workflow = instance.workflow[task]
        cost[workflow] += scratch.cost[task]
        if scratch.end[task] > completion[workflow]:
            completion[workflow] = scratch.end[task]
        if scratch.end[task] > last:
            last = scratch.end[task]
        for i in range(instance.demand_begin[choice], instance.demand_begin[choice + 1]):
            busy += (scratch.end[task] - scratch.start[task]) * instance.demand_units[i]
        if instance.successor_begin[task] < instance.successor_begin[task + 1]:
            waited_for += 1
            delay += scratch.start[task] - instance.earliest_start[workflow]
    worth.makespan = last - instance.now
    worth.utilization = busy
    worth.delay = delay / waited_for if waited_for else 0.0
    worth.unplanned = instance.tasks - scratch.planned


cdef void judge_workflows(
    const Instance* instance,
    const Goals* goals,
    const seconds_t* completion,
    const money_t* cost,
    Worth* worth,
) noexcept nogil:
    # The criteria of users, averaged, and what is beyond their limits.
    cdef workflow_t i
    worth.criterion[TIME] = worth.criterion[COST] = 0.0
    worth.tardiness = worth.excess = worth.cost = worth.completion = 0.0
    worth.late = worth.over_budget = 0
    for i in range(instance.workflows):
        worth.criterion[TIME] += achieved(completion[i], goals.time_min[i], goals.time_max[i])
        worth.criterion[COST] += achieved(cost[i], goals.cost_min[i], goals.cost_max[i])
        worth.cost += cost[i]
        worth.completion += completion[i] - instance.earliest_start[i]
        if completion[i] > instance.due_date[i] + TIME_TOLERANCE:
            worth.late += 1
            worth.tardiness += completion[i] - instance.due_date[i]
        if cost[i] > instance.budget[i] * (1.0 + COST_TOLERANCE):
            worth.over_budget += 1
            worth.excess += cost[i] - instance.budget[i]
    worth.criterion[TIME] /= instance.workflows
    worth.criterion[COST] /= instance.workflows
    worth.completion /= instance.workflows


cdef double penalty(const Goals* goals, const Worth* worth, workflow_t workflows) noexcept nogil:
    # Four factors: how many are late and how much, how many are too dear and how much.
    cdef double factor = 1.0
    cdef double first = 1.0 / workflows
    cdef double third = max(goals.offenders_third, 2.0 * first)
    if worth.late > 0:
        factor *= goals.first_offender * fading(<double> worth.late / workflows, first, third)
        factor *= fading(worth.tardiness / goals.time_scale, 0.0, goals.tardiness_third)
    if worth.over_budget > 0:
        factor *= goals.first_offender * fading(
            <double> worth.over_budget / workflows, first, third
        )
        factor *= fading(worth.excess / goals.cost_scale, 0.0, goals.over_budget_third)
    return factor


cdef void worth_fast(
    const Scratch* scratch,
    const Goals* goals,
    seconds_t* completion,
    money_t* cost,
    Worth* worth,
) noexcept nogil:
    # The schedule in the scratch, judged.
    cdef const Instance* instance = scratch.instance
    cdef int32_t level, i
    cdef bint goes_on = True
    sum_workflows(scratch, completion, cost, worth)
    judge_workflows(instance, goals, completion, cost, worth)
    if worth.makespan > 0.0:
        worth.utilization /= goals.capacity * worth.makespan
    worth.criterion[DELAY] = achieved(worth.delay, goals.delay_min, goals.delay_max)
    worth.criterion[MAKESPAN] = achieved(worth.makespan, goals.makespan_min, goals.makespan_max)
    worth.criterion[UTILIZATION] = worth.utilization
    worth.raw = 0.0
    for level in range(goals.priorities):
        for i in range(CRITERIA):
            if goals.priority[i] == level and goes_on:
                worth.raw += FITNESS_MAX * goals.weight[i] * worth.criterion[i]
        for i in range(CRITERIA):
            if goals.priority[i] == level and worth.criterion[i] < goals.threshold[i]:
                goes_on = False
    worth.fitness = worth.raw * penalty(goals, worth, instance.workflows)
    if worth.unplanned > 0:
        worth.fitness = 0.0


cdef class WorkflowSums:
    """Room for what is summed by workflow.

    Args:
        workflows: how many.
    """

    def __cinit__(self, workflow_t workflows):
        self.completion = <seconds_t*> calloc(workflows, sizeof(seconds_t))
        self.cost = <money_t*> calloc(workflows, sizeof(money_t))
        if self.completion == NULL or self.cost == NULL:
            raise MemoryError(f"sums of {workflows} workflows")

    def __dealloc__(self):
        free(self.completion)
        free(self.cost)


cdef class CompiledGoals:
    """Goals and bounds as the kernel reads them; made by `broker.planner.evaluation`.

    Args:
        numbers: the single numbers of `Goals` in _evaluation.pxd.
        by_criterion: weight, priority and threshold of each criterion.
        by_workflow: the four bounds of each workflow, as float64 arrays.
    """

    def __init__(self, dict numbers, list by_criterion, dict by_workflow):
        cdef Goals* goals = &self.goals
        cdef const double[::1] column
        cdef int32_t i
        self.kept = by_workflow
        goals.priorities = 0
        for i, (weight, priority, threshold) in enumerate(by_criterion):
            goals.weight[i] = weight
            goals.priority[i] = priority
            goals.threshold[i] = threshold
            goals.priorities = max(goals.priorities, goals.priority[i] + 1)
        goals.first_offender = numbers["first_offender"]
        goals.offenders_third = numbers["offenders_third"]
        goals.tardiness_third = numbers["tardiness_third"]
        goals.over_budget_third = numbers["over_budget_third"]
        goals.delay_min = numbers["delay_min"]
        goals.delay_max = numbers["delay_max"]
        goals.makespan_min = numbers["makespan_min"]
        goals.makespan_max = numbers["makespan_max"]
        goals.time_scale = numbers["time_scale"]
        goals.cost_scale = numbers["cost_scale"]
        goals.capacity = numbers["capacity"]
        column = by_workflow["time_min"]
        goals.time_min = &column[0]
        column = by_workflow["time_max"]
        goals.time_max = &column[0]
        column = by_workflow["cost_min"]
        goals.cost_min = &column[0]
        column = by_workflow["cost_max"]
        goals.cost_max = &column[0]

    def worth(self, Workspace workspace) -> dict[str, object]:
        """Returns what the schedule in a workspace is worth, with completion and cost of each
        workflow."""
        cdef Worth worth
        cdef WorkflowSums sums = WorkflowSums(workspace.scratch.instance.workflows)
        cdef workflow_t i
        cdef workflow_t workflows = workspace.scratch.instance.workflows
        worth_fast(&workspace.scratch, &self.goals, sums.completion, sums.cost, &worth)
        return {
            "fitness": worth.fitness,
            "raw": worth.raw,
            "criteria": tuple(worth.criterion[i] for i in range(CRITERIA)),
            "unplanned": worth.unplanned,
            "late": worth.late,
            "over_budget": worth.over_budget,
            "tardiness": worth.tardiness,
            "excess": worth.excess,
            "makespan": worth.makespan,
            "utilization": worth.utilization,
            "cost": worth.cost,
            "mean_completion": worth.completion,
            "mean_delay": worth.delay,
            "completion": np.array([sums.completion[i] for i in range(workflows)]),
            "workflow_cost": np.array([sums.cost[i] for i in range(workflows)]),
        }
