# The search for the best place for a task among its alternatives.
from broker.planner._scratch cimport Scratch, Strategy
from broker.planner._types cimport choice_t, money_t, seconds_t, task_t

cdef struct Slot:
    # The best place for a task so far; a choice of −1 means none.
    choice_t choice
    choice_t rank
    seconds_t start
    seconds_t end
    money_t cost

cdef void find_place(
    Scratch* scratch, task_t task, Strategy strategy, Slot* best
) noexcept nogil
