"""From a schedule to its worth: criteria, priorities, penalties (paper 004, section 2)."""

from libc.math cimport log, pow
from libc.stdint cimport int32_t
from libc.string cimport memcpy

import numpy as np

from broker.planner._builder cimport Workspace
from broker.planner._scratch cimport Scratch
from broker.planner._instance cimport Instance, doubles
from broker.planner._types cimport choice_t, money_t, seconds_t, task_t, workflow_t

cdef double FITNESS_MAX = 100_000.0

# Below this the fitness falls with the logarithm of raw fitness times penalties: the order of
# plans is the same, and no penalty makes it 0.
cdef double FITNESS_BEND = 100.0

# A raw fitness of 0 has no logarithm.
cdef double RAW_MIN = 1e-3

cdef double LOG_3 = 1.0986122886681098


cdef inline double achieved(double value, double least, double most) noexcept nogil:
    # 1 − equation 2.5: 1 at the least, 0 at the most and beyond it.
    cdef double share
    if value <= least:
        return 1.0
    if value >= most:
        return 0.0
    share = (value - least) / (most - least)
    return 1.0 - share


cdef inline double beyond(double value, double possible, double allowed) noexcept nogil:
    # 0 at what is possible, ½ at what was allowed beyond it, never 1.
    cdef double excess = value - possible
    return excess / (excess + allowed) if excess > 0.0 else 0.0


cdef int32_t moved_tasks(const Scratch* scratch) noexcept nogil:
    # Number of tasks that are not where the old plan has them.
    cdef const Instance* instance = scratch.instance
    cdef int32_t moved = 0
    cdef task_t task
    for task in range(instance.tasks):
        moved += (
            instance.kept[task] >= 0
            and scratch.choice[task] >= 0
            and scratch.choice[task] != instance.kept[task]
        )
    return moved


cdef void sum_workflows(const Scratch* scratch, Worth* worth) noexcept nogil:
    # Completion and cost by workflow; makespan, utilization and delay of the plan without bounds.
    cdef const Instance* instance = scratch.instance
    cdef seconds_t* completion = scratch.completion
    cdef seconds_t last = instance.now
    cdef double busy = 0.0
    cdef double delay = 0.0
    cdef int32_t waited_for = 0
    cdef int32_t i
    cdef task_t task
    cdef workflow_t workflow
    cdef choice_t choice
    memcpy(completion, instance.fixed_completion, instance.workflows * sizeof(seconds_t))
    memcpy(scratch.spent, instance.fixed_cost, instance.workflows * sizeof(money_t))
    for task in range(instance.tasks):
        choice = scratch.choice[task]
        if choice < 0:
            continue
        workflow = instance.workflow[task]
        scratch.spent[workflow] += scratch.cost[task]
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
    worth.moved = moved_tasks(scratch) if instance.keeping > 0 else 0


cdef void judge_lost(
    const Scratch* scratch, const Goals* goals, Worth* worth
) noexcept nogil:
    # Misses beyond what is possible, for limits that cannot be kept.
    cdef workflow_t i
    for i in range(scratch.instance.workflows):
        if goals.lost_time[i] > 0.0:
            worth.lost_time += goals.lost_time[i] * beyond(
                scratch.completion[i], goals.earliest_end[i], goals.allowed_time[i]
            )
        if goals.lost_money[i] > 0.0:
            worth.lost_money += goals.lost_money[i] * beyond(
                scratch.spent[i], goals.least_spent[i], goals.allowed_money[i]
            )


cdef void judge_workflows(
    const Scratch* scratch, const Goals* goals, Worth* worth
) noexcept nogil:
    # The users' criteria, averaged, and misses of their limits: of those that can be kept, and the
    # avoidable part of the others.
    cdef const Instance* instance = scratch.instance
    cdef const seconds_t* completion = scratch.completion
    cdef const money_t* cost = scratch.spent
    cdef workflow_t i
    worth.criterion[TIME] = worth.criterion[COST] = 0.0
    worth.tardiness = worth.excess = worth.cost = worth.completion = 0.0
    worth.avoidable_tardiness = worth.avoidable_excess = 0.0
    worth.lost_time = worth.lost_money = 0.0
    worth.late = worth.over_budget = worth.missed_dates = worth.missed_budgets = 0
    for i in range(instance.workflows):
        worth.criterion[TIME] += achieved(completion[i], goals.time_min[i], goals.time_max[i])
        worth.criterion[COST] += achieved(cost[i], goals.cost_min[i], goals.cost_max[i])
        worth.cost += cost[i]
        worth.completion += completion[i] - instance.earliest_start[i]
        if completion[i] > instance.due_date[i] + TIME_TOLERANCE:
            worth.late += 1
            worth.tardiness += completion[i] - instance.due_date[i]
            if completion[i] > goals.due[i] + TIME_TOLERANCE:
                worth.missed_dates += 1
                worth.avoidable_tardiness += completion[i] - goals.due[i]
        if cost[i] > instance.budget[i] * (1.0 + COST_TOLERANCE):
            worth.over_budget += 1
            worth.excess += cost[i] - instance.budget[i]
            if cost[i] > goals.budget[i] * (1.0 + COST_TOLERANCE):
                worth.missed_budgets += 1
                worth.avoidable_excess += cost[i] - goals.budget[i]
    if goals.lost:
        judge_lost(scratch, goals, worth)
    worth.criterion[TIME] /= instance.workflows
    worth.criterion[COST] /= instance.workflows
    worth.completion /= instance.workflows


cdef double thirds(const Goals* goals, const Worth* worth, workflow_t workflows) noexcept nogil:
    # How often the fitness is divided by three: for the share of workflows that miss a limit that
    # can be kept, after the first one, and for the amount.
    cdef double first = 1.0 / workflows
    cdef double wide = max(goals.offenders_third, 2.0 * first) - first
    cdef double found = 0.0
    if worth.missed_dates > 0:
        found += (<double> worth.missed_dates / workflows - first) / wide
        found += worth.avoidable_tardiness / goals.time_scale / goals.tardiness_third
    if worth.missed_budgets > 0:
        found += (<double> worth.missed_budgets / workflows - first) / wide
        found += worth.avoidable_excess / goals.cost_scale / goals.over_budget_third
    return found


cdef double factors(const Goals* goals, const Worth* worth) noexcept nogil:
    # The penalties that stay well above 0.
    cdef double factor = (1.0 - worth.lost_time) * (1.0 - worth.lost_money)
    if worth.missed_dates > 0:
        factor *= goals.first_offender
    if worth.missed_budgets > 0:
        factor *= goals.first_offender
    return factor


cdef double penalized(double raw, double factor, double power) noexcept nogil:
    # raw · factor · 3^(−power), and below the bend an equivalent order: b/(1 + ln(b/that)).
    cdef double found = raw * factor * pow(3.0, -power)
    if found >= FITNESS_BEND:
        return found
    found = log(FITNESS_BEND / max(raw, RAW_MIN)) - log(factor) + power * LOG_3
    return FITNESS_BEND / (1.0 + max(found, 0.0))


cdef void worth_fast(
    const Scratch* scratch, const Goals* goals, Worth* worth
) noexcept nogil:
    cdef const Instance* instance = scratch.instance
    cdef int32_t level, i
    cdef bint goes_on = True
    sum_workflows(scratch, worth)
    judge_workflows(scratch, goals, worth)
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
    worth.fitness = penalized(
        worth.raw, factors(goals, worth), thirds(goals, worth, instance.workflows)
    )
    if worth.moved > 0 and goals.stability > 0.0:
        worth.fitness *= 1.0 - goals.stability * worth.moved / instance.keeping
    if worth.unplanned > 0:
        # Below every complete plan; more places are better.
        worth.fitness = worth.fitness / (2.0 * FITNESS_MAX) - worth.unplanned


cdef class CompiledGoals:
    """Goals and bounds for the kernel, made by `broker.planner.evaluation`.

    `numbers` are those of `Goals` in _evaluation.pxd, `by_criterion` weight, priority and
    threshold, `by_workflow` bounds and limits as float64 arrays.
    """

    def __init__(self, dict numbers, list by_criterion, dict by_workflow):
        cdef Goals* goals = &self.goals
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
        goals.stability = numbers["stability"]
        goals.delay_min = numbers["delay_min"]
        goals.delay_max = numbers["delay_max"]
        goals.makespan_min = numbers["makespan_min"]
        goals.makespan_max = numbers["makespan_max"]
        goals.time_scale = numbers["time_scale"]
        goals.cost_scale = numbers["cost_scale"]
        goals.capacity = numbers["capacity"]
        goals.time_min = doubles(by_workflow, "time_min")
        goals.time_max = doubles(by_workflow, "time_max")
        goals.cost_min = doubles(by_workflow, "cost_min")
        goals.cost_max = doubles(by_workflow, "cost_max")
        goals.due = doubles(by_workflow, "due")
        goals.budget = doubles(by_workflow, "budget")
        goals.lost_time = doubles(by_workflow, "lost_time")
        goals.earliest_end = doubles(by_workflow, "earliest_end")
        goals.allowed_time = doubles(by_workflow, "allowed_time")
        goals.lost_money = doubles(by_workflow, "lost_money")
        goals.least_spent = doubles(by_workflow, "least_spent")
        goals.allowed_money = doubles(by_workflow, "allowed_money")
        goals.lost = by_workflow["lost_time"].any() or by_workflow["lost_money"].any()

    def worth(self, Workspace workspace) -> dict[str, object]:
        """Returns the worth of the schedule in a workspace, with completion and cost of each
        workflow."""
        cdef Worth worth
        cdef const Scratch* scratch = &workspace.scratch
        cdef workflow_t i
        cdef workflow_t workflows = scratch.instance.workflows
        worth_fast(scratch, &self.goals, &worth)
        return {
            "fitness": worth.fitness,
            "raw": worth.raw,
            "criteria": tuple(worth.criterion[i] for i in range(CRITERIA)),
            "unplanned": worth.unplanned,
            "moved": worth.moved,
            "late": worth.late,
            "over_budget": worth.over_budget,
            "tardiness": worth.tardiness,
            "excess": worth.excess,
            "makespan": worth.makespan,
            "utilization": worth.utilization,
            "cost": worth.cost,
            "mean_completion": worth.completion,
            "mean_delay": worth.delay,
            "completion": np.array([scratch.completion[i] for i in range(workflows)]),
            "workflow_cost": np.array([scratch.spent[i] for i in range(workflows)]),
        }
