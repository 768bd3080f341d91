# The graph that tabu search moves tasks in, for one thread.
from libc.stdint cimport int32_t, int64_t

from broker.planner._instance cimport Instance
from broker.planner._types cimport choice_t, resource_t, seconds_t, task_t

cdef struct Graph:
    # The disjunctive graph: precedence, and an order of the tasks on each resource.
    const Instance* instance
    int32_t tasks
    bint usable                 # whether the problem is of this kind
    bint flexible               # whether some task has several choices
    bint instants               # whether some task takes no time
    bint branched               # whether precedence gives some task several neighbours on a side
    seconds_t* duration         # by task
    seconds_t* release          # by task, since the problem's begin
    task_t* source              # by task, its first predecessor by precedence; -1: none
    task_t* target              # by task, its first successor
    resource_t* resource        # by task
    choice_t* choice            # by task, in a flexible job shop
    int32_t* choices_begin      # by task, into the choices that it has
    choice_t* choices
    choice_t* best_choice       # of the shortest schedule so far
    int64_t* barred             # by task and resource: until which iteration it may not go there
    task_t* before              # the task before it on its resource; -1: none
    task_t* after
    seconds_t* head             # longest way to its start
    seconds_t* tail             # longest way from its end
    seconds_t* end              # head and duration; 0 at -1, for tasks that are not there
    seconds_t* rest             # duration and tail; likewise
    seconds_t* own_head         # by precedence and release alone
    seconds_t* own_tail
    seconds_t* new_head         # while a move is judged
    seconds_t* new_tail
    task_t* order               # topological
    int32_t* position           # by task, in that order
    int32_t* missing            # predecessors not in the order yet; 1 for tasks held back, 0 at -1
    task_t* held                # while an order is repaired
    task_t* sink                # tasks without successors by precedence
    int32_t sinks
    task_t* path                # a critical path
    task_t* best_before         # of the shortest schedule so far
    task_t* best_after
    task_t* last                # by resource, while orders are read
    int32_t* rank               # by task, among all that may be on one resource with it
    int32_t width               # ranks
    int64_t* forbidden          # by task and rank: until which iteration it may not go before
