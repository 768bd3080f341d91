"""Local searchers of the memetic algorithm (paper 004, section 3.4, and its announced next step).

A small change of a sequence can only be judged by the whole schedule, so each trial builds it.
"""

from libc.stdint cimport int32_t
from libc.string cimport memcpy, memmove, memset

from broker.planner._scratch cimport RAS_1, RAS_2, RAS_3, RAS_4, RAS_5, RAS_6, Scratch
from broker.planner._chromosome cimport chromosome_copy
from broker.planner._critical cimport tabu_search_fast
from broker.planner._evaluation cimport COST_TOLERANCE, TIME_TOLERANCE
from broker.planner._instance cimport FASTEST, Instance, duration_on, placement_cost_fast
from broker.planner._random cimport Random, random_below, random_chance, random_share
from broker.planner._types cimport choice_t, money_t, seconds_t, task_t, word_t, workflow_t
from broker.planner._worker cimport evaluate_fast


cdef enum:
    FLEXIBLE_PART = 5     # of the iterations, a child of a flexible job shop gets one in so many


cdef bint strategy_may_help(const Bench* bench, int32_t present, int32_t other) noexcept nogil:
    # Reasonable alternatives (section 3.4). A workflow that is too expensive with cheap resources,
    # or late with fast ones, can only gain by preferences; otherwise both others may help.
    cdef bint late = bench.worth.missed_dates > 0
    cdef bint dear = bench.worth.missed_budgets > 0
    if other == present:
        return False
    if other == RAS_6:
        return True
    if other >= RAS_4:
        return late or dear
    if present == RAS_4 or present == RAS_5:
        return not dear
    if dear and not late:
        return other == RAS_3 if present == RAS_2 else other != RAS_1
    if late and not dear:
        return other == RAS_3 if present == RAS_1 else other != RAS_2
    return True


cdef double improve_strategy(
    Bench* bench, Chromosome* one, double fitness, int32_t strategies
) except? -1.0 nogil:
    cdef int32_t present = one.strategy
    cdef int32_t best = present
    cdef int32_t other
    cdef double found
    cdef bint worth_trying[6]
    for other in range(strategies):
        worth_trying[other] = strategy_may_help(bench, present, other)
    for other in range(strategies):
        if worth_trying[other] and not bench.cancelled:
            one.strategy = other
            found = evaluate_fast(bench, one)
            if found > fitness:
                fitness = found
                best = other
    one.strategy = best
    return fitness


cdef inline bint is_late(const Bench* bench, workflow_t workflow) noexcept nogil:
    # For a date that can be kept: advancing others would only delay those that can.
    return bench.scratch.completion[workflow] > bench.goals.due[workflow] + TIME_TOLERANCE


cdef inline bint is_dear(const Bench* bench, workflow_t workflow) noexcept nogil:
    return bench.scratch.spent[workflow] > bench.goals.budget[workflow] * (1.0 + COST_TOLERANCE)


cdef workflow_t worst_workflow(const Bench* bench, Random* random) noexcept nogil:
    # A random one that misses a limit; else the one that ends last.
    cdef const Instance* instance = bench.scratch.instance
    cdef workflow_t i
    cdef workflow_t found = 0
    cdef int32_t offenders = 0
    for i in range(instance.workflows):
        if is_late(bench, i) or is_dear(bench, i):
            offenders += 1
            if random_below(random, offenders) == 0:
                found = i
        elif offenders == 0 and bench.scratch.completion[i] > bench.scratch.completion[found]:
            found = i
    return found


cdef task_t dear_task(const Bench* bench, workflow_t workflow, Random* random) noexcept nogil:
    # A task of the workflow, with probability proportional to its cost.
    cdef const Scratch* scratch = bench.scratch
    cdef const Instance* instance = scratch.instance
    cdef double total = 0.0
    cdef task_t found = -1
    cdef task_t task
    for task in range(instance.tasks):
        if instance.workflow[task] == workflow and scratch.choice[task] >= 0:
            total += scratch.cost[task]
            if random_share(random) * total < scratch.cost[task]:
                found = task
    return found


cdef task_t cheaper_place(const Bench* bench, task_t task, Random* random) noexcept nogil:
    # A random task of another workflow that occupies what this one could use, at a lower cost and
    # at about the same time; those whose workflow can afford the exchange first. −1: none.
    cdef const Scratch* scratch = bench.scratch
    cdef const Instance* instance = scratch.instance
    cdef workflow_t mine = instance.workflow[task]
    cdef workflow_t theirs
    cdef seconds_t earliest = scratch.ready[task]
    cdef seconds_t latest = scratch.end[task]
    cdef seconds_t duration
    cdef money_t cost, change
    cdef task_t other
    cdef task_t found = -1
    cdef task_t second = -1
    cdef int32_t count = 0
    cdef int32_t second_count = 0
    cdef choice_t choice
    cdef word_t bit
    for other in range(instance.tasks):
        choice = scratch.choice[other]
        theirs = instance.workflow[other]
        if choice < 0 or theirs == mine or choice == scratch.choice[task]:
            continue
        if scratch.start[other] < earliest or scratch.start[other] > latest:
            continue
        bit = instance.usable[FASTEST][task * instance.words + (choice >> 6)] >> (choice & 63)
        if not bit & 1:
            continue
        duration = duration_on(instance, task, choice)
        cost = placement_cost_fast(instance, choice, scratch.start[other], duration)
        if cost >= scratch.cost[task]:
            continue
        second_count += 1
        if random_below(random, second_count) == 0:
            second = other
        duration = duration_on(instance, other, scratch.choice[task])
        change = placement_cost_fast(
            instance, scratch.choice[task], scratch.start[task], duration
        ) - scratch.cost[other]
        if bench.scratch.spent[theirs] + change <= bench.goals.budget[theirs]:
            count += 1
            if random_below(random, count) == 0:
                found = other
    return found if found >= 0 else second


cdef task_t blocker_of(const Scratch* scratch, task_t task) noexcept nogil:
    # A task that holds one of this task's resources until it starts; -1 if it waits for none.
    cdef const Instance* instance = scratch.instance
    cdef int32_t i, k, j
    cdef task_t other
    if scratch.start[task] <= scratch.ready[task]:
        return -1
    for i in range(scratch.planned):
        other = scratch.order[i]
        if scratch.end[other] != scratch.start[task]:
            continue
        for k in range(
            instance.demand_begin[scratch.choice[other]],
            instance.demand_begin[scratch.choice[other] + 1],
        ):
            for j in range(
                instance.demand_begin[scratch.choice[task]],
                instance.demand_begin[scratch.choice[task] + 1],
            ):
                if instance.demand_resource[k] == instance.demand_resource[j]:
                    return other
    return -1


cdef task_t waiting_task(
    const Scratch* scratch, workflow_t workflow, Random* random
) noexcept nogil:
    # A random task on the critical path of a workflow that waits for a resource; -1 if there is
    # none.
    cdef const Instance* instance = scratch.instance
    cdef task_t task, before
    cdef task_t last = -1
    cdef task_t found = -1
    cdef int32_t i
    cdef int32_t waiting = 0
    for i in range(scratch.planned):
        task = scratch.order[i]
        if instance.workflow[task] == workflow and (
            last < 0 or scratch.end[task] > scratch.end[last]
        ):
            last = task
    while last >= 0:
        if scratch.start[last] > scratch.ready[last]:
            waiting += 1
            if random_below(random, waiting) == 0:
                found = last
        before = -1
        for i in range(instance.predecessor_begin[last], instance.predecessor_begin[last + 1]):
            task = instance.predecessor[i]
            if scratch.choice[task] < 0:
                continue
            if instance.sites > 0:
                # It may have waited for files of any of them.
                if before < 0 or scratch.end[task] > scratch.end[before]:
                    before = task
            elif scratch.end[task] == scratch.ready[last]:
                before = task
        last = before
    return found


cdef void place_before(Chromosome* one, int32_t source, int32_t target) noexcept nogil:
    # Moves the gene at `source` to the earlier place `target`. Segments keep their lengths.
    cdef task_t gene = one.genes[source]
    memmove(&one.genes[target + 1], &one.genes[target], (source - target) * sizeof(task_t))
    one.genes[target] = gene


cdef bint save_cost(
    const Bench* bench, Chromosome* one, workflow_t workflow, Random* random
) noexcept nogil:
    # Exchanges the genes of an expensive task and of one with a cheaper place.
    cdef const Scratch* scratch = bench.scratch
    cdef task_t task = dear_task(bench, workflow, random)
    cdef task_t other
    if task < 0:
        return False
    other = cheaper_place(bench, task, random)
    if other < 0:
        return False
    one.genes[scratch.position[task]] = other
    one.genes[scratch.position[other]] = task
    return True


cdef bint save_time(
    const Bench* bench, Chromosome* one, workflow_t workflow, Random* random
) noexcept nogil:
    # Moves a task of the critical path before the one that it waits for.
    cdef const Scratch* scratch = bench.scratch
    cdef task_t task = waiting_task(scratch, workflow, random)
    cdef task_t blocker
    if task < 0:
        return False
    blocker = blocker_of(scratch, task)
    if blocker < 0 or scratch.position[blocker] > scratch.position[task]:
        return False
    place_before(one, scratch.position[task], scratch.position[blocker])
    return True


cdef void go_first(
    const Bench* bench, Chromosome* one, workflow_t workflow, Random* random
) noexcept nogil:
    # Moves a whole workflow forward to a random place, to choose resources before others.
    cdef const Instance* instance = bench.scratch.instance
    cdef int32_t count = instance.tasks
    cdef int32_t limit = random_below(random, count)
    cdef int32_t target = 0
    cdef int32_t i
    while target < limit and instance.workflow[one.genes[target]] != workflow:
        target += 1
    for i in range(target, count):
        if instance.workflow[one.genes[i]] == workflow:
            if i > target:
                place_before(one, i, target)
            target += 1


cdef int32_t advanced(
    const Bench* bench, workflow_t workflow, int32_t place, double factor
) noexcept nogil:
    # The new place of a gene of a late workflow: forward by the number of tasks in the missing
    # time, times the factor.
    cdef double share
    if not is_late(bench, workflow):
        return place
    share = (
        bench.scratch.completion[workflow] - bench.goals.due[workflow]
    ) / bench.worth.makespan
    share = place - 1.0 - factor * share * bench.scratch.instance.tasks
    return <int32_t> share if share > 0.0 else 0


cdef void advance_late(Bench* bench, Chromosome* one, Random* random) noexcept nogil:
    # Moves all late workflows forward at once, as far as each needs, with random variation
    # ("squeaky wheels": Joslin and Clements, 1999). A counting sort by place; late ones first.
    cdef const Instance* instance = bench.scratch.instance
    cdef int32_t count = instance.tasks
    cdef int32_t* begin = bench.room.length
    cdef int32_t* place = bench.room.place
    cdef double factor = 0.5 + 1.5 * random_share(random)
    cdef int32_t i, size
    cdef int32_t sum = 0
    cdef bint late
    memset(begin, 0, count * sizeof(int32_t))
    for i in range(count):
        place[i] = advanced(bench, instance.workflow[one.genes[i]], i, factor)
        begin[place[i]] += 1
    for i in range(count):
        size = begin[i]
        begin[i] = sum
        sum += size
    for late in range(1, -1, -1):
        for i in range(count):
            if is_late(bench, instance.workflow[one.genes[i]]) == late:
                bench.room.genes[begin[place[i]]] = one.genes[i]
                begin[place[i]] += 1
    memcpy(one.genes, bench.room.genes, count * sizeof(task_t))


cdef void change_for(Bench* bench, Chromosome* one, Random* random) noexcept nogil:
    # Changes a chromosome, whose schedule is in the scratch, in favour of bad workflows.
    if bench.worth.missed_dates > 0 and random_chance(random, 0.5):
        advance_late(bench, one, random)
    else:
        change_for_one(bench, one, random)


cdef void change_for_one(Bench* bench, Chromosome* one, Random* random) noexcept nogil:
    cdef workflow_t workflow = worst_workflow(bench, random)
    cdef bint dear = is_dear(bench, workflow)
    cdef bint changed = False
    if dear and (not is_late(bench, workflow) or random_chance(random, 0.5)):
        changed = save_cost(bench, one, workflow, random)
    if not changed and not (dear and random_chance(random, 0.5)):
        changed = save_time(bench, one, workflow, random)
    if not changed:
        go_first(bench, one, workflow, random)


cdef double improve_shift(
    Bench* bench, Chromosome* one, double fitness, int32_t trials, Random* random
) except? -1.0 nogil:
    # First improvement: an improvement is kept, and the next trial starts from it.
    cdef int32_t count = bench.scratch.instance.tasks
    cdef int32_t left = trials
    cdef double found
    cdef bint stale = False
    while left > 0 and not bench.cancelled:
        left -= 1
        if stale:
            evaluate_fast(bench, one)
        chromosome_copy(&bench.trial, one, count)
        change_for(bench, &bench.trial, random)
        found = evaluate_fast(bench, &bench.trial)
        stale = found <= fitness
        if found > fitness:
            chromosome_copy(one, &bench.trial, count)
            fitness = found
    return fitness


cdef double improve_blocks(
    Bench* bench, Chromosome* one, double fitness, int32_t iterations, Random* random
) except? -1.0 nogil:
    # Tabu search from the schedule in the scratch; its result is evaluated like any schedule. Each
    # iteration computes a schedule, and counts as one. In flexible job shops shorter searches from
    # more children are better.
    cdef int32_t count = bench.scratch.instance.tasks
    cdef double found
    if bench.graph.flexible:
        iterations = max(1, iterations // FLEXIBLE_PART)
    chromosome_copy(&bench.trial, one, count)
    bench.evaluations += tabu_search_fast(
        bench.graph, bench.scratch, iterations, random, &bench.cancelled, bench.trial.genes,
        bench.trial.choices,
    )
    found = evaluate_fast(bench, &bench.trial)
    if found > fitness:
        chromosome_copy(one, &bench.trial, count)
        fitness = found
    return fitness


cdef double improve_fast(
    Bench* bench,
    Chromosome* one,
    double fitness,
    int32_t searchers,
    int32_t strategies,
    int32_t trials,
    int32_t iterations,
    Random* random,
) except? -1.0 nogil:
    # Runs a set of searchers in sequence on a chromosome of known fitness, until it is cancelled.
    if searchers & SEARCH_STRATEGY and not bench.cancelled:
        evaluate_fast(bench, one)
        fitness = improve_strategy(bench, one, fitness, strategies)
    if searchers & SEARCH_SHIFT and not bench.cancelled:
        evaluate_fast(bench, one)
        fitness = improve_shift(bench, one, fitness, trials, random)
    if searchers & SEARCH_BLOCKS and bench.graph != NULL and not bench.cancelled:
        evaluate_fast(bench, one)
        fitness = improve_blocks(bench, one, fitness, iterations, random)
    return fitness
